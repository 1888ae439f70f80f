"""A picture of a flow over time: rate, latency and paradigms; as PNG, and as a page with its story.

The page is one file that needs nothing else, not even a network.
"""

from collections.abc import Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from floodway.demo import drawing
from floodway.demo.drawing import COLOURS, FAINT, INK, SHADE, Span, bands, marked, titled
from floodway.demo.page import page
from floodway.demo.series import Phase, PhaseFigures, Point, Sample, rates, spans
from floodway.engine.scheduler.story import Entry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OFFERED, PROCESSED = INK, "#0072B2"
MEDIAN, TAIL = "#009E73", "#CC79A7"
WIDTH = 800.0


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


def draw(picture: Picture, folder: Path, name: str = "demo") -> dict[str, Path]:
    """Draw a picture into a folder, and return what was drawn: a ``png`` and an ``html`` file.

    Without matplotlib (the extra ``pictures``) nothing is drawn.
    """
    if not drawing.can_draw():
        return {}
    png, html = folder / f"{name}.png", folder / f"{name}.html"
    height = 72 * (7.7 + 0.3 * len(picture.operators))
    figure, _ = drawing.drawn(lambda figure: _draw(figure, picture), WIDTH, height)
    png.write_bytes(drawing.as_png(figure))
    shown = drawing.as_svg(figure, f"{picture.title}: rate, latency and paradigms over time")
    document = page(picture.title, shown, picture.figures, picture.story, began_ms=picture.began_ms)
    html.write_text(document, encoding="utf-8")
    return {"png": png, "html": html}


def _draw(figure: "Figure", picture: Picture) -> None:
    heights = (2.6, 2.6, 0.3 * len(picture.operators) + 0.1)
    figure.suptitle(picture.title, x=0.012, ha="left", fontsize=13, fontweight="bold")
    rate, latency, paradigm = figure.subplots(3, 1, sharex=True, height_ratios=heights)
    for axes in (rate, latency, paradigm):
        _phases(axes, picture)
    _rates(rate, picture)
    _latency(latency, picture)
    _paradigms(paradigm, picture)
    paradigm.set_xlabel("seconds since the first event")
    paradigm.set_xlim(0, picture.end)


def _phases(axes: "Axes", picture: Picture) -> None:
    """Shade every second phase, and draw a line where something was switched."""
    start = 0.0
    for number, phase in enumerate(picture.phases):
        if number % 2:
            end = start + phase.seconds
            axes.axvspan(start, end, color=INK, alpha=SHADE, zorder=0, linewidth=0)
        start += phase.seconds
    for when in picture.switches():
        axes.axvline(when, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)


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
    axes.grid(axis="y")
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
    titled(axes, "events per second")


def _latency(axes: "Axes", picture: Picture) -> None:
    times = [point.t for point in picture.latency]
    for field, label, colour in (("p50", "p50", MEDIAN), ("p99", "p99", TAIL)):
        values = [getattr(point, field) for point in picture.latency]
        axes.plot(times, values, color=colour, linewidth=1.8, label=label)
    axes.set_yscale("log")
    if picture.latency:
        least = min(point.p50 for point in picture.latency)
        most = max(point.p99 for point in picture.latency)
        axes.set_ylim(10 ** floor(log10(max(least, 0.1))), 10 ** ceil(log10(max(most, 0.2))))
    marked(axes.yaxis, _milliseconds, log=True)
    axes.grid(axis="y")
    titled(axes, "latency, from when an event was due to its result (log scale)")


def _milliseconds(value: float) -> str:
    """Return a time for an axis.

    >>> [_milliseconds(value) for value in (0.1, 10, 1000, 20000)]
    ['0.1 ms', '10 ms', '1 s', '20 s']
    """
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def _paradigms(axes: "Axes", picture: Picture) -> None:
    rows = {name: spans(picture.samples, name) for name in picture.operators}
    for row in rows.values():
        row[0] = Span(0.0, row[0].stop, row[0].kind)  # the first look is a moment after the start
    bands(axes, rows, picture.end, COLOURS)
    seen = [paradigm for sample in picture.samples for paradigm in sample.paradigms.values()]
    for paradigm in dict.fromkeys(["data", "operation", *seen]):
        axes.bar(0, 0, color=COLOURS.get(paradigm, FAINT), label=paradigm)  # for the legend
    titled(axes, "paradigm of each operator")


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]
