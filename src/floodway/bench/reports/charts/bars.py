"""Charts of bars, with whiskers."""

import math
from collections.abc import Sequence

import msgspec

from floodway.bench.reports.charts.axes import WIDTH, Axis, Box, note_of, nothing, x_axis
from floodway.bench.reports.charts.scales import Scale, scaled
from floodway.bench.reports.charts.svg import cut, drawing, element, label, stroke, width_of


class Bar(msgspec.Struct, frozen=True):
    """A bar: its name, its length and the interval of that, what it is the mean of, and words."""

    name: str
    value: float
    interval: tuple[float, float] | None = None
    points: Sequence[float] = ()
    colour: str = "currentColor"
    text: str = ""
    note: str = ""


def bar_chart(
    title: str,
    bars: Sequence[Bar],
    axis: Axis,
    *,
    origin: float = 0.0,
    width: float = WIDTH,
    sides: tuple[str, str] | None = None,
) -> str:
    """Return a chart of bars from left to right, with whiskers for their intervals.

    Parameters
    ----------
    title, bars, axis
        What it shows, and what is drawn.
    origin
        The value at which bars begin; those that are lower go to the left.
    width
        How wide it is.
    sides
        What it means to be on the left of the origin, and on its right.
    """
    names = min(max([60.0, *(width_of(bar.name) + 14 for bar in bars)]), 0.3 * width)
    texts = min(max([20.0, *(width_of(bar.text) + 14 for bar in bars)]), 0.3 * width)
    row = 27.0
    box = Box(
        names, 24 if sides else 8, width - texts, (24 if sides else 8) + row * max(len(bars), 1)
    )
    across = scaled(_reach(bars, origin, axis), box.left, box.right, log=axis.log)
    parts = [
        *x_axis(axis, across, box),
        *(_sides(sides, across.at(origin), box) if sides else []),
        *(
            _bar(bar, box.top + row * n, row, across, origin, box, width)
            for n, bar in enumerate(bars)
        ),
        stroke(across.at(origin), box.top, across.at(origin), box.bottom, stroke_opacity=0.6),
        *([] if bars else [nothing(box)]),
    ]
    return drawing(title, width, box.bottom + (48 if axis.title else 28), *parts)


def _reach(bars: Sequence[Bar], origin: float, axis: Axis) -> list[float]:
    """Return what has to be on the axis; a very wide interval is not, it would make bars small."""
    values = [v for bar in bars for v in (bar.value, *bar.points) if math.isfinite(v)]
    values += [origin, *axis.covers]
    high = max(values)
    positive = [value for value in values if value > 0]
    low = min(positive, default=1.0) / 2 if axis.log else min(values)
    ends = [end for bar in bars if bar.interval for end in bar.interval if math.isfinite(end)]
    return [*values, *(min(max(end, low), 1.3 * high if high > 0 else high) for end in ends)]


def _bar(
    bar: Bar, top: float, row: float, across: Scale, origin: float, box: Box, width: float
) -> str:
    middle, value = top + row / 2, bar.value if math.isfinite(bar.value) else origin
    ends = sorted((across.at(origin), across.at(value)))
    return element(
        "g",
        note_of(bar.note or f"{bar.name}: {bar.text}"),
        label(cut(bar.name, box.left - 10), box.left - 8, middle + 4, anchor="end"),
        element(
            "rect",
            x=ends[0],
            y=top + 5,
            width=ends[1] - ends[0],
            height=row - 10,
            fill=bar.colour,
            fill_opacity=0.8,
        ),
        *(
            _whisker(bar.interval, middle - (2.5 if bar.points else 0.0), across)
            if bar.interval
            else []
        ),
        *(
            element(
                "circle",
                cx=across.at(point),
                cy=middle + 4.5,
                r=2.0,
                fill="currentColor",
                fill_opacity=0.75,
            )
            for point in bar.points
            if math.isfinite(point)
        ),
        label(cut(bar.text, width - box.right - 10), box.right + 10, middle + 4),
        class_="series",
    )


def _whisker(interval: tuple[float, float], middle: float, across: Scale) -> list[str]:
    """Return a line with an end at each bound that is on the chart."""
    bounds = [bound for bound in interval if not math.isnan(bound)]
    if len(bounds) < 2:
        return []
    places = [across.at(bound) for bound in bounds]
    ends = [p for p, b in zip(places, bounds, strict=True) if across.low <= b <= across.high]
    return [
        stroke(places[0], middle, places[1], middle, stroke_width=1.5),
        *(stroke(end, middle - 5, end, middle + 5, stroke_width=1.5) for end in ends),
    ]


def _sides(sides: tuple[str, str], origin: float, box: Box) -> list[str]:
    left, right = sides
    found = []
    if width_of(left, 11) < origin - box.left:
        found.append(label(f"← {left}", origin - 8, 14, anchor="end", size=11, faint=True))
    if width_of(right, 11) < box.right - origin:
        found.append(label(f"{right} →", origin + 8, 14, size=11, faint=True))
    return found
