"""Charts of what was so from when until when."""

import math
from collections.abc import Sequence

import msgspec

from floodway.bench.reports.charts.axes import WIDTH, Axis, Box, note_of, nothing, x_axis
from floodway.bench.reports.charts.scales import Scale, scaled
from floodway.bench.reports.charts.svg import cut, drawing, element, label, width_of, words


class Span(msgspec.Struct, frozen=True):
    """What was so from when until when."""

    start: float
    stop: float
    kind: str


class Row(msgspec.Struct, frozen=True):
    """A row of a chart over time."""

    name: str
    spans: Sequence[Span]


def band_chart(
    title: str,
    rows: Sequence[Row],
    axis: Axis,
    colours: dict[str, str],
    *,
    width: float = WIDTH,
) -> str:
    """Return a chart of what was so from when until when; a row for each thing."""
    names = min(max([60.0, *(width_of(row.name) + 14 for row in rows)]), 0.4 * width)
    high = 26.0
    box = Box(names, 6, width - 26, 6 + high * max(len(rows), 1))
    ends = [end for row in rows for span in row.spans for end in (span.start, span.stop)]
    across = scaled([*axis.covers, *ends], box.left, box.right)
    parts = [
        *x_axis(axis, across, box),
        *(_band(row, box.top + high * n, high, across, box, colours) for n, row in enumerate(rows)),
        *([] if rows else [nothing(box)]),
    ]
    return drawing(title, width, box.bottom + (48 if axis.title else 28), *parts)


def _band(
    row: Row, top: float, high: float, across: Scale, box: Box, colours: dict[str, str]
) -> str:
    parts = [label(cut(row.name, box.left - 10), box.left - 8, top + high / 2 + 4, anchor="end")]
    for span in row.spans:
        if not (math.isfinite(span.start) and math.isfinite(span.stop)):
            continue
        first, last = sorted((across.at(span.start), across.at(span.stop)))
        note = note_of(f"{row.name}: {span.kind}, {span.start:.1f} to {span.stop:.1f}")
        area = element(
            "rect",
            note,
            x=first,
            y=top + 4,
            width=last - first,
            height=high - 8,
            fill=colours.get(span.kind, "#999999"),
        )
        fits = width_of(span.kind, 11) + 8 < last - first
        inside = element(
            "text",
            words(span.kind),
            x=first + 5,
            y=top + high / 2 + 4,
            font_size=11.0,
            fill="#111111",
        )
        parts += [area, *([inside] if fits else [])]
    return element("g", *parts)
