"""Elements of SVG and HTML, as text: everything is closed, and everything foreign is escaped."""

import math
import re
from html import escape

_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither XML nor a file can hold: what a program said before it died has them."""

FONT_PX = 12.0
"""How large the letters of charts are."""

_WIDE = 0.6
"""A letter is about so wide, of its height."""


def words(text: str) -> str:
    """Return text as what may stand in an element, or in an attribute.

    >>> words("a <b> & 'c'")
    'a &lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return escape(_UNFIT.sub("\N{REPLACEMENT CHARACTER}", text))


def element(kind: str, *content: str, **attributes: str | float) -> str:
    """Return an element; its content is elements, or text that has gone through `words`.

    Attributes are escaped. Their names have dashes for underscores, and may end in one.

    >>> element("text", words("<1"), x=1.0, text_anchor="end", class_='"')
    '<text x="1" text-anchor="end" class="&quot;">&lt;1</text>'
    """
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
    )
    return f"<{kind}{shown}>{''.join(content)}</{kind}>"


def _value(value: str | float) -> str:
    return words(value) if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """Return a coordinate, short.

    >>> number(12.50001), number(-0.001), number(3)
    ('12.5', '0', '3')
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is no place on a page")
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def width_of(text: str, size: float = FONT_PX) -> float:
    """Return about how wide a text is; nobody knows exactly before it is shown."""
    return _WIDE * size * len(text)


def cut(text: str, width: float, size: float = FONT_PX) -> str:
    """Return as much of a text as has room.

    >>> cut("a Python loop by hand", 90), cut("a loop", 90)
    ('a Python lo…', 'a loop')
    """
    most = max(int(width / (_WIDE * size)), 1)
    return text if len(text) <= most else text[: max(most - 1, 0)].rstrip() + "…"


def label(
    text: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    size: float = FONT_PX,
    faint: bool = False,
    bold: bool = False,
) -> str:
    """Return a line of text in a chart, in the colour of the page's text."""
    more = {"font_weight": "600"} if bold else {}
    return element(
        "text",
        words(text),
        x=x,
        y=y,
        font_size=size,
        text_anchor=anchor,
        fill="currentColor",
        fill_opacity=0.7 if faint else 1.0,
        **more,
    )


def stroke(x1: float, y1: float, x2: float, y2: float, **attributes: str | float) -> str:
    """Return a straight line."""
    given: dict[str, str | float] = {"stroke": "currentColor", **attributes}
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **given)


def drawing(title: str, width: float, height: float, *content: str) -> str:
    """Return a whole chart: it has a name for those who cannot see it, and grows with the page."""
    return element(
        "svg",
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=title,
    )
