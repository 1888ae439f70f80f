"""Comparisons as tables of Markdown, one for each workload."""

from collections.abc import Iterable, Iterator, Sequence

from floodway_lab.reports.facts import (
    OWN,
    answers,
    late_at,
    measured,
    ordered,
    partial,
    rate_interval,
    relative,
    rounds_done,
    show_factor,
    show_late,
    show_rate,
    show_rates,
    voids,
    why_not,
)
from floodway_lab.runs.comparing import LOADS, Compared, Comparison
from floodway_lab.systems.registry import SYSTEMS, with_tasks
from floodway_lab.systems.system import System

_TITLES = (
    "system",
    "events/s",
    f"of `{OWN}`",
    *(f"{load:.0%} load: p50 / p99 ms".replace("%", " %") for load in LOADS),
    "link",
    "answers",
)


def markdown_table(
    found: Sequence[Comparison], *, systems: Iterable[System] = tuple(SYSTEMS.values())
) -> str:
    """Return a table for each workload.

    Parameters
    ----------
    found
        The comparisons. Several of one workload share its table; each has its own note below it.
    systems
        All there are: those that cannot do a workload have a row that says why.
    """
    known = tuple(systems)
    cases = dict.fromkeys(each.case for each in found)
    return "\n".join(_table([each for each in found if each.case == case], known) for case in cases)


def _table(found: Sequence[Comparison], systems: Sequence[System]) -> str:
    case = found[0].case
    rows = [_row(each, of) for each in found for of in ordered(each)]
    rows += [[f"`{system.name}`", why, *[""] * 6] for system, why in _unable(found, systems)]
    marks = ("---", *["---:"] * 5, "---", "---")
    lines = [
        f"### `{case}`: {_cell(found[0].title)}",
        "",
        *(_line(row) for row in (_TITLES, marks, *rows)),
        "",
        *(line for each in found for line in (_note(each), "")),
    ]
    return "\n".join(lines)


def _unable(found: Sequence[Comparison], systems: Sequence[System]) -> Iterator[tuple[System, str]]:
    """Yield the systems that are not written for a workload, and why."""
    told = {with_tasks(of.system)[0] for each in found for of in each.systems}
    case = found[0].case
    for system in systems:
        if case not in system.cases and system.name not in told:
            yield system, f"cannot: {_cell(system.cannot.get(case, 'not written for it'))}"


def _row(found: Comparison, of: Compared) -> list[str]:
    name = f"`{of.system}`"
    if why := why_not(of):
        return [name, f"left out: {_cell(why)}", *[""] * 4, of.link, ""]
    rate, bounds = of.sustainable_rate, show_rates(rate_interval(of))
    return [
        name,
        show_rate(rate or 0.0) + (f" ({bounds})" if bounds else ""),
        _relative(found, of.system),
        *(show_late(late_at(of, load)) for load in LOADS),
        of.link,
        answers(of).replace("WRONG", "**wrong**"),
    ]


def _relative(found: Comparison, system: str) -> str:
    if system == OWN:
        return "1"
    of = relative(found, system)
    return "-" if of is None else show_factor(of[0])


def _note(found: Comparison) -> str:
    """Return where and how it was measured, and what is missing."""
    on, how = found.machine, found.experiment
    told = [
        f"{on.date}, Floodway {on.floodway}, Python {on.python}, {on.processor}, {on.cores} cores; "
        f"rounds: {rounds_done(found)}, trials of {how.seconds:g} s, tasks: {how.dop}, "
        f"data engines: {how.engines}, results: {how.store}."
    ]
    if missing := partial(found):
        told.insert(0, f"**{missing}**")
    if void := len(voids(found)):
        told.append(f"Void runs, not in these figures: {void}.")
    if not measured(found):
        told.append("No system has sustained anything.")
    return _cell(" ".join(told))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    r"""Return text for one line of a table: nothing in it ends a cell or begins an element.

    >>> _cell("a|b\n<c>")
    'a\\|b &lt;c>'
    """
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")
