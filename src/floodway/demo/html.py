"""The frame of a page: its style, its sections and its tables; one file that needs nothing else."""

from collections.abc import Iterable, Sequence
from html import escape

from floodway.demo.drawing import fit

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #222; --faint: #5a5a5a; --rule: #ddd;
  --soft: #f5f6f8; --bad: #b3261e; --badsoft: #fdecea; --good: #1a7f4b; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15181c; --ink: #e4e6e8; --faint: #a3a8ae; --rule: #353a40;
    --soft: #1e2227; --bad: #ff8a80; --badsoft: #3a1f1d; --good: #5cc98f; }
}
body { max-width: 68rem; margin: 2rem auto 4rem; padding: 0 1.2rem; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 0.6rem; }
h3 { font-size: 0.95rem; margin: 1.4rem 0 0.2rem; }
p.note, .sub { color: var(--faint); }
p.note { font-size: 0.87rem; max-width: 52rem; }
svg { display: block; width: 100%; height: auto; }
figure { margin: 0.6rem 0 1.4rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr));
  gap: 0.6rem 1.2rem; }
.panels figure { margin: 0; }
tbody th { white-space: nowrap; }
.series { transition: opacity 0.1s; }
svg:has(.series:hover) .series:not(:hover) { opacity: 0.18; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.32rem 0.9rem 0.32rem 0;
  border-bottom: 1px solid var(--rule); }
thead th { border-bottom-color: var(--faint); vertical-align: bottom; }
thead th.group { border-bottom-color: var(--rule); padding-left: 1.4rem; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.sub { font-size: 0.8rem; } .name { white-space: nowrap; } .own .sub { font-weight: 400; }
.own td { background: var(--soft); font-weight: 600; }
.swatch { display: inline-block; width: 0.7em; height: 0.7em; border-radius: 2px;
  margin-right: 0.5em; }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
.warning { background: var(--badsoft); color: var(--bad); font-weight: 600;
  border-left: 4px solid; padding: 0.7rem 1rem; }
.caveats { background: var(--soft); border-left: 4px solid var(--faint); padding: 0.1rem 1rem; }
.caveats h2 { margin: 0.7rem 0 0.2rem; } .caveats ul { margin: 0.3rem 0 0.8rem; }
.why { white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: 0.87em; overflow-wrap: anywhere; }
""".strip()

_RULES = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load: nothing."""


def words(text: str) -> str:
    """Return text as what may stand in an element, or in an attribute.

    >>> words("a <b> & 'c'")
    'a &lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return escape(fit(text))


def element(kind: str, *content: str, **attributes: str) -> str:
    """Return an element; its content is elements, or text that has gone through `words`.

    Attributes are escaped. Their names have dashes for underscores, and may end in one.

    >>> element("td", words("<1"), aria_label="less", class_='"')
    '<td aria-label="less" class="&quot;">&lt;1</td>'
    """
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{words(value)}"'
        for name, value in attributes.items()
    )
    return f"<{kind}{shown}>{''.join(content)}</{kind}>"


def whole_page(title: str, *content: str) -> str:
    """Return a page of HTML; it is XML too, so that tools can read it."""
    name = words(title)
    body = "\n".join(part for part in content if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy" content="{words(_RULES)}" />
<meta name="viewport" content="width=device-width" />
<title>{name}</title>
<style>
{_STYLE}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def section(title: str, *content: str) -> str:
    """Return a part of a page, with its title."""
    return element("section", element("h2", words(title)), *content) + "\n"


def note(text: str) -> str:
    """Return a remark."""
    return element("p", words(text), class_="note")


def figure(chart: str) -> str:
    """Return a chart as part of a page."""
    return element("figure", chart)


def table(head: str, rows: Iterable[str]) -> str:
    """Return a table; it can be moved sideways where there is little room."""
    body = "\n".join(rows)
    inner = element("thead", head) + element("tbody", body)
    return element("div", element("table", inner), class_="wide")


def titles(*names: str, numeric: Sequence[str] = ()) -> str:
    """Return the first row of a table."""
    return element(
        "tr",
        *(element("th", words(name), class_="n" if name in numeric else "t") for name in names),
    )


def cell(text: str, kind: str = "t", *, sub: str = "", tip: str = "") -> str:
    """Return a cell: what it says, in smaller letters what else, and what when pointed at."""
    more = element("div", words(sub), class_="sub") if sub else ""
    given = {"title": tip} if tip else {}
    return element("td", words(text), more, class_=kind, **given)
