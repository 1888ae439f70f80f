"""What all charts have: axes with marks, and room for words around them."""

import msgspec

from floodway.bench.reports.charts.scales import Scale, Show, show_plain
from floodway.bench.reports.charts.svg import cut, element, label, stroke, words

WIDTH = 1060.0
"""How wide a chart is that has a page to itself."""

_GRID, _AXIS = 0.13, 0.45


class Axis(msgspec.Struct, frozen=True):
    """An axis: what it shows, how, and values that have to be on it in any case."""

    title: str = ""
    log: bool = False
    show: Show = show_plain
    covers: tuple[float, ...] = ()


class Box(msgspec.Struct, frozen=True):
    """Where the lines of a chart are; the rest is for words."""

    left: float
    top: float
    right: float
    bottom: float


def x_axis(axis: Axis, across: Scale, box: Box) -> list[str]:
    """Return marks from left to right, and the title below."""
    found = []
    for value in across.ticks(max(int((box.right - box.left) / 75), 2)):
        x = across.at(value)
        found.append(stroke(x, box.top, x, box.bottom, stroke_opacity=_GRID))
        found.append(label(axis.show(value), x, box.bottom + 17, anchor="middle", faint=True))
    found.append(stroke(box.left, box.bottom, box.right, box.bottom, stroke_opacity=_AXIS))
    if axis.title:
        middle = (box.left + box.right) / 2
        found.append(label(axis.title, middle, box.bottom + 38, anchor="middle"))
    return found


def y_axis(axis: Axis, up: Scale, box: Box) -> list[str]:
    """Return marks from bottom to top, and the title above."""
    found = []
    for value in up.ticks(max(int((box.bottom - box.top) / 30), 2)):
        y = up.at(value)
        found.append(stroke(box.left, y, box.right, y, stroke_opacity=_GRID))
        found.append(
            label(cut(axis.show(value), 60), box.left - 7, y + 4, anchor="end", faint=True)
        )
    if axis.title:
        found.append(label(axis.title, 2, box.top - 11))
    return found


def note_of(text: str) -> str:
    """Return what an element says when pointed at."""
    return element("title", words(text))


def nothing(box: Box) -> str:
    """Return the words of a chart without anything in it."""
    across, down = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    return label("nothing was measured", across, down + 4, anchor="middle", faint=True)
