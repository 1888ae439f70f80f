"""Charts of lines."""

import math
from collections.abc import Sequence

import msgspec

from floodway.bench.reports.charts.axes import WIDTH, Axis, Box, note_of, nothing, x_axis, y_axis
from floodway.bench.reports.charts.scales import Scale, scaled
from floodway.bench.reports.charts.svg import cut, drawing, element, label, number, stroke, width_of

_LEGEND_PX, _ROW_PX = 240.0, 21.0


class Line(msgspec.Struct, frozen=True):
    """A line: its name, its points (none at a gap), its look, and what it says when pointed at."""

    name: str
    points: Sequence[tuple[float, float | None]]
    colour: str = "currentColor"
    dash: str = ""
    wide: float = 1.75
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
    if legend:
        height = max(height, 60 + _ROW_PX * len(lines))
    box = Box(
        62,
        40 if heading else 26,
        width - (_LEGEND_PX if legend else 26),
        height - (48 if x.title else 28),
    )
    points = [point for line in lines for point in _finite(line.points)]
    across = scaled([*x.covers, *(at for at, _ in points)], box.left, box.right, log=x.log)
    up = scaled([*y.covers, *(value for _, value in points)], box.bottom, box.top, log=y.log)
    parts = [
        *([label(cut(heading, width - 12), 2, 15, bold=True)] if heading else []),
        *(_shade(shade, across, box) if shade else []),
        *x_axis(x, across, box),
        *y_axis(y, up, box),
        *(_series(line, across, up) for line in lines if not legend),
        *(
            _series(line, across, up, _legend(line, n, box.right + 22, width))
            for n, line in enumerate(lines)
            if legend
        ),
        *([] if points else [nothing(box)]),
    ]
    return drawing(title, width, height, *parts)


def _finite(points: Sequence[tuple[float, float | None]]) -> list[tuple[float, float]]:
    return [
        (at, value)
        for at, value in points
        if value is not None and math.isfinite(at) and math.isfinite(value)
    ]


def _pieces(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Return the points between gaps."""
    found: list[list[tuple[float, float]]] = [[]]
    for point in points:
        known = _finite([point])
        if known:
            found[-1] += known
        elif found[-1]:
            found.append([])
    return [piece for piece in found if piece]


def _series(line: Line, across: Scale, up: Scale, *more: str) -> str:
    drawn = []
    for piece in _pieces(line.points):
        places = [(across.at(at), up.at(value)) for at, value in piece]
        if len(places) == 1:
            (place,) = places
            drawn.append(element("circle", cx=place[0], cy=place[1], r=2.0, fill=line.colour))
        else:
            drawn.append(_path(line, places))
    return element("g", note_of(line.note or line.name), *drawn, *more, class_="series")


def _path(line: Line, places: Sequence[tuple[float, float]]) -> str:
    return element(
        "polyline",
        points=" ".join(f"{number(x)},{number(y)}" for x, y in places),
        fill="none",
        stroke=line.colour,
        stroke_width=line.wide,
        stroke_dasharray=line.dash or "none",
        stroke_linejoin="round",
    )


def _legend(line: Line, row: int, left: float, width: float) -> str:
    middle = 34 + row * _ROW_PX
    return "".join(
        (
            stroke(
                left,
                middle,
                left + 26,
                middle,
                stroke=line.colour,
                stroke_width=line.wide,
                stroke_dasharray=line.dash or "none",
            ),
            label(cut(line.name, width - left - 34), left + 33, middle + 4),
        )
    )


def _shade(shade: tuple[float, float, str], across: Scale, box: Box) -> list[str]:
    first, last = across.at(shade[0]), across.at(shade[1])
    if last - first < 1:
        return []
    area = element(
        "rect",
        note_of(shade[2]),
        x=first,
        y=box.top,
        width=last - first,
        height=box.bottom - box.top,
        fill="currentColor",
        fill_opacity=0.06,
    )
    fits = width_of(shade[2], 10) < last - first
    return [
        area,
        *([label(shade[2], first + 4, box.top + 11, size=10, faint=True)] if fits else []),
    ]
