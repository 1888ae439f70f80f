"""A picture of a flow over time: rate, latency and paradigms; as PNG, and as a page with its story.

The page is one file that needs nothing else, not even a network.
"""

import importlib.util
import io
from collections.abc import Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from floodway.bench.flooding import Phase
from floodway.bench.page import page
from floodway.bench.series import PhaseFigures, Point, Sample, rates, spans
from floodway.engine.scheduler.story import Entry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"data": "#56B4E9", "operation": "#D55E00", "switching": "#999999"}
"""Of Okabe and Ito's palette, which everybody can tell apart; bars also say it in words."""

INK, FAINT, SHADE = "#222222", "#888888", "#f1f1f1"
OFFERED, PROCESSED = "#222222", "#0072B2"
MEDIAN, TAIL = "#009E73", "#CC79A7"

_STYLE: Any = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "svg.fonttype": "none",  # words stay words: they can be searched and read aloud
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


class Picture(msgspec.Struct, frozen=True):
    """What is drawn.

    Attributes
    ----------
    title
        What it is a picture of.
    phases
        What load was meant to be when.
    samples, latency
        What was seen.
    story
        What the scheduler decided.
    began_ms
        When the first event was due, in milliseconds since 1970.
    figures
        What was measured in each phase.
    """

    title: str
    phases: tuple[Phase, ...]
    samples: list[Sample]
    latency: list[Point]
    story: list[Entry]
    began_ms: int
    figures: list[PhaseFigures]

    @property
    def operators(self) -> list[str]:
        """The operators that were seen, in the order of the flow."""
        return list(dict.fromkeys(name for s in self.samples for name in s.paradigms))

    @property
    def end(self) -> float:
        """When the last thing was seen."""
        planned = sum(phase.seconds for phase in self.phases)
        return max([planned, *(sample.t for sample in self.samples)])

    def switches(self) -> list[float]:
        """Return when the scheduler switched stages."""
        found = {(e.time_ms - self.began_ms) / 1000 for e in self.story if e.what == "switch"}
        return sorted(found)


def can_draw() -> bool:
    """Return whether the library that draws is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(picture: Picture, folder: Path, name: str = "demo") -> dict[str, Path]:
    """Draw a picture into a folder, and return what was drawn: a ``png`` and an ``html`` file.

    Without matplotlib (the extra ``pictures``) nothing is drawn.
    """
    if not can_draw():
        return {}
    import matplotlib as mpl

    png, html = folder / f"{name}.png", folder / f"{name}.html"
    with mpl.rc_context(_STYLE):
        figure = _figure(picture)
        figure.savefig(png, dpi=150, facecolor="white")
        text = io.StringIO()
        # No date: the same picture is the same file.
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    document = page(
        picture.title,
        svg[svg.index("<svg") :],  # without the head of a file, which a page has itself
        picture.figures,
        picture.story,
        began_ms=picture.began_ms,
    )
    html.write_text(document, encoding="utf-8")
    return {"png": png, "html": html}


def _figure(picture: Picture) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    heights = (2.6, 2.6, 0.3 * len(picture.operators) + 0.1)
    layout = ConstrainedLayoutEngine(hspace=0.06)
    figure = Figure(figsize=(11, sum(heights) + 2.4), layout=layout)
    figure.suptitle(picture.title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    rate, latency, paradigm = figure.subplots(3, 1, sharex=True, height_ratios=heights)
    for axes in (rate, latency, paradigm):
        _phases(axes, picture)
    _rates(rate, picture)
    _latency(latency, picture)
    _paradigms(paradigm, picture)
    paradigm.set_xlabel("seconds since the first event")
    paradigm.set_xlim(0, picture.end)
    return figure


def _phases(axes: "Axes", picture: Picture) -> None:
    """Shade every second phase, and draw a line where something was switched."""
    start = 0.0
    for number, phase in enumerate(picture.phases):
        if number % 2:
            axes.axvspan(start, start + phase.seconds, color=SHADE, zorder=0, linewidth=0)
        start += phase.seconds
    for when in picture.switches():
        axes.axvline(when, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)


def _titled(axes: "Axes", title: str) -> None:
    """Say above a panel what it shows, and what its lines are."""
    axes.set_title(title, loc="left", fontsize=10.5)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            frameon=False,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            borderaxespad=0.1,
            fontsize=9.5,
            ncols=3,
        )


def _rates(axes: "Axes", picture: Picture) -> None:
    from matplotlib.ticker import EngFormatter

    for what, label, colour, width in (
        ("due", "offered", OFFERED, 1.2),
        ("processed", "processed", PROCESSED, 1.8),
    ):
        found = rates(picture.samples, what)
        axes.plot(*_columns(found), color=colour, linewidth=width, label=label)
    top = max((value for _, value in rates(picture.samples, "due")), default=1.0)
    top = max([top, *(value for _, value in rates(picture.samples, "processed"))])
    axes.set_ylim(0, 1.2 * max(top, 1.0))  # with room for the names of the phases
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    _grid(axes)
    start = 0.0
    for phase in picture.phases:
        axes.annotate(
            f"{phase.name}: {phase.per_second:,}/s",
            (start + phase.seconds / 2, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -5),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=9.5,
        )
        start += phase.seconds
    _titled(axes, "events per second")


def _latency(axes: "Axes", picture: Picture) -> None:
    from matplotlib.ticker import FuncFormatter

    times = [point.t for point in picture.latency]
    for field, label, colour in (("p50", "p50", MEDIAN), ("p99", "p99", TAIL)):
        values = [getattr(point, field) for point in picture.latency]
        axes.plot(times, values, color=colour, linewidth=1.8, label=label)
    axes.set_yscale("log")
    if picture.latency:
        least = min(point.p50 for point in picture.latency)
        most = max(point.p99 for point in picture.latency)
        axes.set_ylim(10 ** floor(log10(max(least, 0.1))), 10 ** ceil(log10(max(most, 0.2))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _milliseconds(value)))
    _grid(axes)
    _titled(axes, "latency, from when an event was due to its result (log scale)")


def _milliseconds(value: float) -> str:
    """Return a time for an axis.

    >>> [_milliseconds(value) for value in (0.1, 10, 1000, 20000)]
    ['0.1 ms', '10 ms', '1 s', '20 s']
    """
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def _paradigms(axes: "Axes", picture: Picture) -> None:
    names = picture.operators
    wide = picture.end * 0.07  # enough for the word
    for row, name in enumerate(names):
        for number, span in enumerate(spans(picture.samples, name)):
            start = span.start if number else 0.0  # the first look is a moment after the start
            length = span.end - start
            colour = COLOURS.get(span.paradigm, FAINT)
            axes.broken_barh(
                [(start, length)], (row - 0.34, 0.68), color=colour, linewidth=0, zorder=2
            )
            if length >= wide:
                axes.text(
                    start + length / 2,
                    row,
                    span.paradigm,
                    ha="center",
                    va="center_baseline",
                    fontsize=8.5,
                    color="white" if span.paradigm == "operation" else INK,
                    zorder=3,
                )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for paradigm in dict.fromkeys(["data", "operation", *_seen(picture)]):
        axes.bar(0, 0, color=COLOURS.get(paradigm, FAINT), label=paradigm)  # for the legend
    _titled(axes, "paradigm of each operator")


def _seen(picture: Picture) -> list[str]:
    return [paradigm for sample in picture.samples for paradigm in sample.paradigms.values()]


def _grid(axes: "Axes") -> None:
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]
