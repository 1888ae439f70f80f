"""Plans in words: numbers, sentences, and a table of plain text."""

from collections.abc import Iterator, Sequence

from floodway.provisioning.cost import Bottleneck
from floodway.provisioning.planning.answers import Answer

NOTHING = "-"
"""Stands for a number that there is none of."""


def show_rate(rate: float) -> str:
    """Return records per second: whole, unless they are few.

    Examples
    --------
    >>> [show_rate(rate) for rate in (0, 0.297, 148.5, 500_000)]
    ['0', '0.297', '148', '500,000']
    """
    return f"{rate:,.0f}" if rate >= 100 or rate == round(rate) else f"{rate:.3g}"


def show_part(part: float) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> [show_part(part) for part in (0, 0.0003, 0.586, 1.25)]
    ['0 %', '<1 %', '59 %', '125 %']
    """
    return "<1 %" if 0 < part < 0.005 else f"{part * 100:,.0f} %"


def headline(found: Answer) -> str:
    """Return what was asked, and for which rate."""
    if found.minimum is None:
        return f"the configuration at {show_rate(found.rate)} records/s"
    if found.wishes.largest:
        rate = show_rate(found.rate)
        return f"the largest rate with {found.wishes.max_tasks} tasks: {rate} records/s"
    return f"the fewest tasks for {show_rate(found.rate)} records/s"


def size(found: Answer) -> str:
    """Return how many tasks there are, and servers if their cores are known."""
    said = _counted(found.tasks, "task")
    if found.servers is None or found.paper.cores is None:
        return said
    return f"{said} on {_counted(found.servers, 'server')} of {_counted(found.paper.cores, 'core')}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def overload(found: Bottleneck, headroom: float) -> str:
    """Return of what a bottleneck has too little, and how much too little it is."""
    kept = f" less {show_part(headroom)} headroom" if headroom else ""
    return (
        f"({', '.join(found.kinds)}); {show_rate(found.rate_in)} records/s arrive, it can take "
        f"{show_rate(found.capacity)}{kept}"
    )


def coming_through(found: Answer) -> Iterator[str]:
    """Return how much of what is expected comes through, and who holds back the rest."""
    prediction = found.outcome.prediction
    if not prediction.held_back_by:
        none = "" if found.diagnosis.bottlenecks else "no bottleneck: "
        yield f"{none}all {show_rate(found.rate)} records/s come through"
        return
    through = sum(prediction.throughput.values())
    yield (
        f"back-pressure: {show_rate(through)} of {show_rate(found.rate)} records/s come through "
        f"({show_part(through / found.rate)})"
    )
    if len(prediction.throughput) > 1:
        for source, rate in prediction.throughput.items():
            held = prediction.held_back_by.get(source)
            why = f", held back by {held}" if held else ""
            offered = show_rate(found.paper.workload[source])
            yield f"  {source}: {show_rate(rate)} of {offered}{why}"


def summary(found: Answer) -> str:
    """Return a plan in a line."""
    parts = [
        f"{name} {setting.dop} ({show_part(found.diagnosis.loads[name].utilisation)} used)"
        for name, setting in found.settings.items()
    ]
    return f"planned {found.tasks} tasks for {show_rate(found.rate)} records/s: {', '.join(parts)}"


def in_full(found: Answer) -> str:
    """Return a plan, or a configuration that was checked, as lines of plain text."""
    lines = [headline(found), "", *_table(found), "", size(found)]
    for one in found.diagnosis.bottlenecks:
        lines.append(f"bottleneck: {one.operator} {overload(one, found.wishes.headroom)}")
        lines.append(f"  remedy  {one.remedy}")
    return "\n".join([*lines, *coming_through(found)])


def _table(found: Answer) -> Iterator[str]:
    rows: list[Sequence[str]] = [("stage", "dop", "b_out", "rate in", "rate out", "used")]
    for name, one in found.stages.items():
        b_out = NOTHING if one.b_out is None else f"{one.b_out:,}"
        rates = show_rate(one.rate_in), show_rate(one.rate_out)
        rows.append((name, f"{one.dop:,}", b_out, *rates, show_part(one.utilisation)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        numbers = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *numbers])
