"""How pictures are drawn: with matplotlib, as PNG, or as SVG that fits into a page.

In a page, words and lines have the colour of its text, whether it is light or dark. What can be
pointed at says what it is, and what belongs together (a line and its name) is a group ``series``.
"""

import importlib.util
import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import msgspec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Side
    from matplotlib.figure import Figure

COLOURS = {"data": "#56B4E9", "operation": "#D55E00", "switching": "#999999"}
"""Of Okabe and Ito's palette, which everybody can tell apart; bars also say it in words."""

INK, FAINT = "#222222", "#888888"
"""The colour of words, which in a page is that of its text, and of what matters less."""

GRID, SHADE = 0.13, 0.06
"""How much of the ink lines behind a chart have, and areas."""

_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.5,
    "font.size": 10,
    "grid.alpha": GRID,
    "grid.color": INK,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "svg.fonttype": "none",  # words stay words: they can be searched and read aloud
    "svg.hashsalt": "floodway",  # the same picture is the same file
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}

_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither XML nor a file can hold: what a program said before it died has them."""

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_REFERENCE = re.compile(r"#([^\")]+)")


class Span(msgspec.Struct, frozen=True):
    """What was so from when until when."""

    start: float
    stop: float
    kind: str


def fit(text: str) -> str:
    r"""Return a text without what no file can hold.

    >>> fit("a\x00b")
    'a�b'
    """
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def can_draw() -> bool:
    """Return whether the library that draws is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def drawn(draw: Callable[["Figure"], Mapping[str, str] | None], width: float, height: float) -> Any:
    """Return a figure of so many pixels, and what its parts say when pointed at, by their names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
        return figure, draw(figure) or {}


def as_png(figure: "Figure") -> bytes:
    """Return a figure as PNG."""
    return _saved(figure, format="png", dpi=150, facecolor="white")


def as_svg(figure: "Figure", title: str, notes: Mapping[str, str] | None = None) -> str:
    """Return a figure as an ``svg`` element.

    Parameters
    ----------
    title
        What it shows, for those who cannot see it.
    notes
        What parts say when pointed at: by the first part of their `gid`, up to a dash. Parts with
        the same one become one group.
    """
    text = _saved(figure, format="svg", transparent=True, metadata={"Date": None}).decode()
    root = ElementTree.fromstring(text[text.index("<svg") :].replace(INK, "currentColor"))
    root.attrib |= {"role": "img", "aria-label": fit(title)}
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    for name, note in (notes or {}).items():
        _group(root, name, note)
    used = set(_REFERENCE.findall(text))
    for each in root.iter():
        if each.attrib.get("id") not in used:
            each.attrib.pop("id", None)  # a page has many pictures, which would have the same ones
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK)
    return ElementTree.tostring(root, encoding="unicode")


def _saved(figure: "Figure", **options: Any) -> bytes:
    import matplotlib as mpl

    file = io.BytesIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # It knows letters only that its own font has; a browser finds others.
        warnings.filterwarnings("ignore", message="Glyph ")
        figure.savefig(file, **options)
    return file.getvalue()


def _group(root: ElementTree.Element, name: str, note: str) -> None:
    """Put all parts with a name into one group, which says something when pointed at."""
    group = ElementTree.Element(f"{{{_SVG}}}g", {"class": "series"})
    ElementTree.SubElement(group, f"{{{_SVG}}}title").text = fit(note)
    found = [
        (parent, each)
        for parent in root.iter()
        for each in parent
        if each.attrib.get("id", "").split("-")[0] == name
    ]
    for number, (parent, each) in enumerate(found):
        if not number:
            parent.insert(list(parent).index(each), group)
        parent.remove(each)
        group.append(each)


# ---------------------------------------------------------------- what several pictures have


def titled(axes: "Axes", title: str) -> None:
    """Say above a panel what it shows, and what its lines are."""
    axes.set_title(fit(title), loc="left")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, ncols=3)


def marked(side: "Side", show: Callable[[float], str], *, log: bool = False) -> None:
    """Let an axis show its values in some way."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    side.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8) if log else MaxNLocator(8))
    side.set_minor_formatter(NullFormatter())
    side.set_major_formatter(FuncFormatter(lambda value, _: show(value)))


def bands(
    axes: "Axes", rows: Mapping[str, Sequence[Span]], end: float, colours: Mapping[str, str]
) -> dict[str, str]:
    """Draw what was so from when until when, a row for each thing; return what each span says."""
    notes: dict[str, str] = {}
    for row, (name, spans) in enumerate(rows.items()):
        for span in spans:
            length = span.stop - span.start
            if not math.isfinite(length):
                continue
            gid = f"span{len(notes)}"
            notes[gid] = f"{name}: {span.kind}, {span.start:.1f} to {span.stop:.1f}"
            colour = colours.get(span.kind, FAINT)
            axes.barh(row, length, 0.68, span.start, color=colour, zorder=2)[0].set_gid(gid)
            if length >= end * 0.07:  # enough for the word
                word = axes.text(span.start + length / 2, row, fit(span.kind), fontsize=8.5)
                word.set(ha="center", va="center_baseline", color="#111111", zorder=3)
                word.set_gid(f"{gid}-word")
    axes.set_yticks(range(len(rows)), [fit(name)[:40] for name in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return notes
