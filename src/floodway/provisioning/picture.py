"""A picture of a graph with its loads, as SVG: one file that needs nothing else.

Levels go from left to right. A box is an operator; the darker it is, the more of its capacity is
used. A bottleneck has a thick orange border, and says so in words, for those who see no colours.
The more goes over a line, the thicker it is; it passes between the boxes of levels that it skips.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

import msgspec

from floodway.provisioning.cost.bottlenecks import Bottleneck, Diagnosis
from floodway.provisioning.cost.graph import Connection, CostGraph
from floodway.provisioning.cost.loads import Load

WIDTH, HEIGHT = 190, 92
"""Of a box, in pixels."""

GAP_X, GAP_Y, MARGIN, LEGEND, ARROW = 70, 20, 24, 46, 9

MOST_LANES = 2000
"""How many passages between boxes are made; in a larger picture lines go straight on."""

INK, LINE, ALARM = "#222222", "#888888", "#d55e00"
PALE, FULL = (0xF4, 0xF8, 0xFB), (0x56, 0xB4, 0xE9)
"""The fill of an idle operator and of one at its capacity; dark text is readable on both."""

MOST_LETTERS = 21
"""A longer name is cut in its box; it is whole in the box's title."""


class _Box(msgspec.Struct, frozen=True):
    x: float
    y: float


class _Place(msgspec.Struct):
    """A box, or the lane of a line that passes its level; the centre is known when it is placed."""

    column: int
    height: float
    before: list["_Place"]
    centre: float = 0.0


class _Layout(msgspec.Struct, frozen=True):
    boxes: Mapping[str, _Box]
    lanes: Mapping[tuple[str, str], Sequence[_Box]]


def picture(graph: CostGraph, diagnosis: Diagnosis, *, title: str = "flow") -> str:
    """Return the picture of a graph under load.

    Examples
    --------
    >>> from floodway.provisioning.cost.bottlenecks import detect
    >>> from floodway.provisioning.cost.graph import OperatorCosts, Platform
    >>> from floodway.provisioning.cost.settings import Setting
    >>> graph = CostGraph.of([OperatorCosts(name="read", c_cpu_ns=1000)], [], Platform())
    >>> drawn = picture(graph, detect(graph, {"read": 500_000}, {"read": Setting(2)}))
    >>> drawn.startswith("<svg") and "25 % used" in drawn
    True
    """
    layout = _placed(graph)
    boxes = layout.boxes
    found = {bottleneck.operator: bottleneck for bottleneck in diagnosis.bottlenecks}
    width = max(box.x for box in boxes.values()) + WIDTH + MARGIN
    passed = [lane.y for lanes in layout.lanes.values() for lane in lanes]
    height = max(*(box.y + HEIGHT for box in boxes.values()), *passed, 0) + MARGIN
    width = max(width, 3 * WIDTH)  # the legend has to fit
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f'<defs><marker id="arrow" viewBox="0 0 10 10" refX="1" refY="5" markerWidth="{ARROW}" '
        f'markerHeight="{ARROW}" markerUnits="userSpaceOnUse" orient="auto">'
        f'<polygon points="0,0 10,5 0,10" fill="{LINE}"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *_legend(title),
        *_lines(graph, diagnosis.loads, layout),
    ]
    for name, box in boxes.items():
        parts += _drawn(box, diagnosis.loads[name], found.get(name))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _placed(graph: CostGraph) -> _Layout:
    """Give each operator a place: by level, and within it near its producers."""
    columns = {name: column for column, level in enumerate(graph.levels) for name in level}
    places = {name: _Place(column, HEIGHT, []) for name, column in columns.items()}
    levels = [[places[name] for name in level] for level in graph.levels]
    links = [link for found in graph.outputs.values() for link in found]
    skipped = sum(columns[link.consumer] - columns[link.producer] - 1 for link in links)
    lanes: dict[tuple[str, str], list[_Place]] = {}
    for link in links:
        way = [places[link.producer]]
        if skipped <= MOST_LANES:
            for column in range(columns[link.producer] + 1, columns[link.consumer]):
                way.append(_Place(column, 0, [way[-1]]))
                levels[column].append(way[-1])
        places[link.consumer].before.append(way[-1])
        lanes[link.producer, link.consumer] = way[1:]
    for level in levels:
        _stack(level)
    top = min(place.centre - place.height / 2 for level in levels for place in level)

    def box(place: _Place) -> _Box:
        y = MARGIN + LEGEND + place.centre - place.height / 2 - top
        return _Box(MARGIN + place.column * (WIDTH + GAP_X), y)

    return _Layout(
        {name: box(place) for name, place in places.items()},
        {ends: [box(lane) for lane in way] for ends, way in lanes.items()},
    )


def _stack(level: Sequence[_Place]) -> None:
    """Put a level's places below each other, as near as possible to where their lines come from."""

    def wish(place: _Place) -> float:
        return sum(one.centre for one in place.before) / max(1, len(place.before))

    bottom, off = float("-inf"), 0.0
    for place in sorted(level, key=wish):
        place.centre = max(wish(place), bottom + place.height / 2)
        bottom = place.centre + place.height / 2 + GAP_Y
        off += place.centre - wish(place)
    for place in level:
        place.centre -= off / len(level)


def _legend(title: str) -> Iterator[str]:
    x, y = MARGIN, MARGIN + 12
    style = 'font-size="15" font-weight="bold"'
    yield f'<text x="{x}" y="{MARGIN}" {style}>{escape(title)}</text>'
    for step in range(5):
        fill = _fill(step / 4)
        yield f'<rect x="{x + 40 * step}" y="{y}" width="40" height="12" fill="{fill}"/>'
    yield (
        f'<text x="{x + 210}" y="{y + 10}">capacity used, 0 to 100 %; a bottleneck has a '
        f'<tspan fill="{ALARM}" font-weight="bold">thick border</tspan></text>'
    )


def _lines(graph: CostGraph, loads: Mapping[str, Load], layout: _Layout) -> Iterator[str]:
    links = [link for found in graph.outputs.values() for link in found]
    rates = [loads[link.producer].rate_out * link.share for link in links]
    most = max(rates, default=0.0) or 1.0
    for link, rate in zip(links, rates, strict=True):
        said = f"{link.producer} to {link.consumer}: {rate:,.0f} records/s, {link.partitioning}"
        yield (
            f'<path d="{_way(link, layout)}" fill="none" stroke="{LINE}" '
            f'stroke-width="{1 + 3 * rate / most:.1f}" marker-end="url(#arrow)">'
            f"<title>{escape(said)}</title></path>"
        )


def _way(link: Connection, layout: _Layout) -> str:
    """Return the way of a line, from box to box through the lanes between them."""
    start, end = layout.boxes[link.producer], layout.boxes[link.consumer]
    points = [(start.x + WIDTH, start.y + HEIGHT / 2)]
    for lane in layout.lanes[link.producer, link.consumer]:
        points += [(lane.x, lane.y), (lane.x + WIDTH, lane.y)]
    points.append((end.x - ARROW, end.y + HEIGHT / 2))
    said = [f"M{points[0][0]:.0f} {points[0][1]:.0f}"]
    for number, ((x1, y1), (x2, y2)) in enumerate(pairwise(points)):
        bend = (x2 - x1) / 2 if number % 2 == 0 else 0  # between levels; straight along a lane
        said.append(
            f"C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
            if bend
            else f"L{x2:.0f} {y2:.0f}"
        )
    return " ".join(said)


def _drawn(box: _Box, load: Load, bottleneck: Bottleneck | None) -> Iterator[str]:
    stroke, width = (ALARM, 4) if bottleneck else (LINE, 1)
    name = load.operator
    shown = name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "…"
    yield "<g>"
    yield f"<title>{escape(_told(load, bottleneck))}</title>"
    yield (
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
        f'fill="{_fill(load.utilisation)}" stroke="{stroke}" stroke-width="{width}"/>'
    )
    batches = f", b_out {load.setting.b_out:,}" if load.setting.b_out is not None else ""
    lines = [
        (shown, ' font-weight="bold"'),
        (f"dop {load.setting.dop}{batches}", ""),
        (f"{load.rate_in:,.0f} records/s in", ""),
        (f"{_percent(load.utilisation)} used ({load.binding})", ""),
    ]
    if bottleneck:
        first, *more = bottleneck.kinds
        rest = f" and {len(more)} more" if more else ""
        lines.append((f"bottleneck: {first}{rest}", ' font-weight="bold"'))
    for index, (text, style) in enumerate(lines):
        y = box.y + 18 + 16 * index
        yield f'<text x="{box.x + 10:.0f}" y="{y:.0f}"{style}>{escape(text)}</text>'
    yield "</g>"


def _percent(part: float) -> str:
    return "<1 %" if 0 < part < 0.005 else f"{part * 100:,.0f} %"


def _told(load: Load, bottleneck: Bottleneck | None) -> str:
    told = f"{load.operator}: can take {load.capacity:,.0f} records/s"
    if bottleneck is None:
        return told
    return f"{told}; bottleneck ({', '.join(bottleneck.kinds)}): {bottleneck.remedy}"


def _fill(utilisation: float) -> str:
    part = min(1.0, max(0.0, utilisation))
    channels = (round(a + (b - a) * part) for a, b in zip(PALE, FULL, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in channels)
