"""Charts for a page: lines, bars with intervals, and bands over time."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from floodway.demo.drawing import INK, SHADE, Span, as_svg, bands, drawn, fit, marked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 1060.0
"""How wide a chart is that has a page to itself."""

FEW, MANY = 1e-15, 1e15
"""What is beyond cannot have been measured, and would leave no room for the rest."""

Show = Callable[[float], str]
Notes = Mapping[str, str]
Point = tuple[float, float | None]


class Axis(msgspec.Struct, frozen=True):
    """An axis: what it shows, how, and values that have to be on it in any case."""

    title: str = ""
    log: bool = False
    show: Show = "{:g}".format
    covers: tuple[float, ...] = ()

    def has(self, value: float | None) -> bool:
        """Return whether a value can be on it."""
        if value is None or not math.isfinite(value) or abs(value) > MANY:
            return False
        return value > FEW if self.log else True


class Line(msgspec.Struct, frozen=True):
    """A line: its name, its points (none at a gap), its look, and what it says when pointed at.

    Dashes are lengths of lines and of gaps, in turn.
    """

    name: str
    points: Sequence[Point]
    colour: str = INK
    dash: str = ""
    wide: float = 1.75
    note: str = ""


class Bar(msgspec.Struct, frozen=True):
    """A bar: its name, its length and the interval of that, what it is the mean of, and words."""

    name: str
    value: float
    interval: tuple[float, float] | None = None
    points: Sequence[float] = ()
    colour: str = INK
    text: str = ""
    note: str = ""


def line_chart(
    title: str,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    width: float = WIDTH,
    height: float = 360,
    legend: bool = True,
    heading: str = "",
    shade: tuple[float, float, str] | None = None,
) -> str:
    """Return a chart of lines.

    Parameters
    ----------
    title
        What it shows, for those who cannot see it.
    lines, x, y
        What is drawn.
    width, height
        How large it is; higher if that many names need it.
    legend
        Whether names are beside it.
    heading
        What is written above it.
    shade
        From where to where it is grey, and why.
    """

    def draw(figure: "Figure") -> Notes:
        axes = figure.subplots()
        points = [(at, v) for line in lines for at, v in line.points if x.has(at) and y.has(v)]
        _scaled(axes, "x", x, [at for at, _ in points])
        _scaled(axes, "y", y, [value for _, value in points if value is not None])
        if shade:
            axes.axvspan(shade[0], shade[1], color=INK, alpha=SHADE, linewidth=0)
            place = axes.get_xaxis_transform()
            word = axes.text(shade[0], 1, fit(shade[2]), transform=place, va="top", fontsize=8.5)
            word.set(clip_on=True, in_layout=False)
        for number, line in enumerate(lines):
            _series(axes, line, f"series{number}", x, y)
        axes.set_title(fit(heading), loc="left", fontweight="bold")
        if legend and lines:
            _legend(axes, lines)
        if not points:
            _nothing(axes)
        return {f"series{n}": line.note or line.name for n, line in enumerate(lines)}

    return _chart(title, draw, width, max(height, 60 + 19 * len(lines)) if legend else height)


def _series(axes: "Axes", line: Line, name: str, x: Axis, y: Axis) -> None:
    places = [
        (at, value) if value is not None and x.has(at) and y.has(value) else (math.nan, math.nan)
        for at, value in line.points
    ]
    gap = [True, *(math.isnan(at) for at, _ in places), True]
    alone = [n for n in range(len(places)) if gap[n] and gap[n + 2] and not gap[n + 1]]
    style = (0, tuple(float(part) for part in line.dash.split())) if line.dash else "-"
    axes.plot(
        [at for at, _ in places],
        [value for _, value in places],
        color=line.colour,
        linewidth=line.wide,
        linestyle=style,
        marker="o",
        markersize=4,
        markevery=alone,
        gid=name,
    )


def _legend(axes: "Axes", lines: Sequence[Line]) -> None:
    names = [fit(line.name)[:40] for line in lines]
    shown = axes.legend(
        axes.get_lines()[-len(lines) :], names, loc="upper left", bbox_to_anchor=(1.01, 1.0)
    )
    for number, (key, text) in enumerate(zip(shown.get_lines(), shown.get_texts(), strict=True)):
        key.set(gid=f"series{number}-key", marker="")
        text.set_gid(f"series{number}-name")


def bar_chart(
    title: str,
    bars: Sequence[Bar],
    axis: Axis,
    *,
    origin: float = 0.0,
    sides: tuple[str, str] | None = None,
) -> str:
    """Return a chart of bars from left to right, with whiskers for their intervals.

    Parameters
    ----------
    title, bars, axis
        What it shows, and what is drawn.
    origin
        The value at which bars begin; those that are lower go to the left.
    sides
        What it means to be on the left of the origin, and on its right.
    """

    def draw(figure: "Figure") -> Notes:
        axes = figure.subplots()
        reach = _scaled(axes, "x", axis, _reach(bars, origin, axis))
        for row, bar in enumerate(bars):
            _bar(axes, row, bar, origin, axis, reach)
        axes.set_yticks(range(len(bars)), [fit(bar.name)[:40] for bar in bars])
        axes.set_ylim(max(len(bars), 1) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.axvline(origin, color=INK, linewidth=1, alpha=0.6)
        for text, place, side in zip(
            sides or (), ("← {}  ", "  {} →"), ("right", "left"), strict=False
        ):
            axes.annotate(
                place.format(text),
                (origin, 1),
                xycoords=("data", "axes fraction"),
                ha=side,
                va="bottom",
                fontsize=9,
            )
        if not bars:
            _nothing(axes)
        return {f"bar{n}": bar.note or f"{bar.name}: {bar.text}" for n, bar in enumerate(bars)}

    return _chart(title, draw, WIDTH, 70 + 27 * max(len(bars), 1))


def _reach(bars: Sequence[Bar], origin: float, axis: Axis) -> list[float]:
    """Return what has to be on the axis; a very wide interval is not, it would make bars small."""
    values = [v for bar in bars for v in (bar.value, *bar.points) if axis.has(v)] + [origin]
    ends = [end for bar in bars for end in bar.interval or () if axis.has(end)]
    high = max(values)
    low = min(values) / 2 if axis.log else min(values)
    return [*values, *(min(max(end, low), 1.3 * high if high > 0 else high) for end in ends)]


def _bar(
    axes: "Axes", row: int, bar: Bar, origin: float, axis: Axis, reach: tuple[float, float]
) -> None:
    name, value = f"bar{row}", bar.value if axis.has(bar.value) else origin
    area = axes.barh(row, value - origin, 0.63, origin, color=bar.colour, alpha=0.8)[0]
    area.set_gid(f"{name}-area")
    bounds = [
        min(max(end, reach[0]), reach[1]) for end in bar.interval or () if not math.isnan(end)
    ]
    if len(bounds) == 2:
        axes.plot(bounds, [row, row], color=INK, linewidth=1.5, marker="|", gid=f"{name}-whisker")
    points = [point for point in bar.points if axis.has(point)]
    axes.plot(points, [row + 0.15] * len(points), "o", color=INK, markersize=3, gid=f"{name}-dots")
    axes.annotate(
        fit(bar.text)[:60],
        (1.01, row),
        xycoords=("axes fraction", "data"),
        va="center",
        gid=f"{name}-text",
    )


def band_chart(
    title: str, rows: Mapping[str, Sequence[Span]], axis: Axis, colours: Mapping[str, str]
) -> str:
    """Return a chart of what was so from when until when; a row for each thing."""

    def draw(figure: "Figure") -> Notes:
        axes = figure.subplots()
        known = {
            name: [span for span in spans if axis.has(span.start) and axis.has(span.stop)]
            for name, spans in rows.items()
        }
        ends = [
            end for spans in known.values() for span in spans for end in (span.start, span.stop)
        ]
        _, last = _scaled(axes, "x", axis, ends)
        notes = bands(axes, known, last, colours)
        axes.grid(axis="y", visible=False)
        if not notes:
            _nothing(axes)
        return notes

    return _chart(title, draw, WIDTH, 50 + 26 * max(len(rows), 1))


def _chart(title: str, draw: Callable[["Figure"], Notes], width: float, height: float) -> str:
    figure, notes = drawn(draw, width, height)
    return as_svg(figure, title, notes)


def _scaled(axes: "Axes", which: str, axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    """Let an axis have room for values; return its ends."""
    setting: dict[str, Any] = {"xscale": "log"} if which == "x" else {"yscale": "log"}
    if axis.log:
        axes.set(**setting)
    held = [value for value in (*values, *axis.covers) if axis.has(value)]
    low, high = min(held, default=1.0 if axis.log else 0.0), max(held, default=1.0)
    if axis.log:
        low, high = low / 1.1, max(high * 1.1, low * 1.5)
    elif not high > low:
        low, high = min(low, 0.0), max(high, low + 1.0)
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    marked(axes.xaxis if which == "x" else axes.yaxis, axis.show, log=axis.log)
    axes.grid(axis=which)  # type: ignore[arg-type]
    if which == "x":
        axes.set_xlabel(axis.title)
    else:
        axes.set_ylabel(axis.title)
    return low, high


def _nothing(axes: "Axes") -> None:
    """Say that a chart has nothing in it."""
    axes.text(0.5, 0.5, "nothing was measured", transform=axes.transAxes, ha="center")


def show_count(value: float) -> str:
    """Return how many.

    >>> [show_count(value) for value in (0, 500, 20_000, 1_500_000, 4e9)]
    ['0', '500', '20 k', '1.5 M', '4 G']
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def show_duration(ms: float) -> str:
    """Return a time.

    >>> [show_duration(value) for value in (0, 0.2, 5, 2_000)]
    ['0', '200 µs', '5 ms', '2 s']
    """
    if ms >= 1000:
        return f"{ms / 1000:g} s"
    return f"{ms:g} ms" if ms >= 1 else f"{1000 * ms:g} µs" if ms > 0 else f"{ms:g}"


def show_share(value: float) -> str:
    """Return a share.

    >>> show_share(0.001), show_share(0.5)
    ('0.1 %', '50 %')
    """
    return f"{100 * value:g} %"
