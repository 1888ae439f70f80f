"""A page about a run: a picture, the phases and the scheduler's story, in one file of HTML."""

from collections.abc import Iterable, Sequence

from floodway.demo.html import (
    cell,
    element,
    figure,
    note,
    section,
    table,
    titles,
    whole_page,
    words,
)
from floodway.demo.series import PhaseFigures
from floodway.engine.scheduler.story import Entry


def page(
    title: str,
    picture: str,
    figures: Sequence[PhaseFigures],
    story: Sequence[Entry],
    *,
    began_ms: int,
) -> str:
    """Return a page of HTML that needs nothing else.

    Parameters
    ----------
    title
        What it is about.
    picture
        The picture, as an ``svg`` element.
    figures, story
        What was measured, and what was decided.
    began_ms
        The zero of its times, in milliseconds since 1970.
    """
    return whole_page(
        title,
        element("h1", words(title)),
        figure(picture),
        section(
            "Phases",
            _table(_PHASE_TITLES, map(_phase_row, figures)),
            note(
                "Latency is the time from when an event was due to its result, at all times "
                "alike; waiting is the most events that were due and not processed."
            ),
        ),
        section(
            "What the scheduler decided",
            _table(_STORY_TITLES, (_story_row(entry, began_ms) for entry in story)),
            note(
                "V: records that arrive in a second. L: records that wait. P_D, P_O: records a "
                "second that the stage can do record by record, and in micro-batches. L_up: above "
                "it, micro-batches are faster. Numbers with a ~ are first guesses."
            ),
        ),
    )


_PHASE_TITLES = ("phase", "due/s", "done/s", "p50", "p90", "p99", "max", "waiting")
_STORY_TITLES = ("time", "decision", "why", "V", "L", "P_D", "P_O", "L_up")


def _phase_row(phase: PhaseFigures) -> list[str]:
    times = (phase.latency_ms.get(quantile) for quantile in ("p50", "p90", "p99", "max"))
    return [
        cell(phase.name),
        cell(f"{phase.per_second:,}", "n"),
        cell(f"{phase.processed_per_s:,.0f}", "n"),
        *(cell("" if time is None else f"{time:,.1f} ms", "n") for time in times),
        cell(f"{phase.waiting:,}", "n"),
    ]


def _story_row(entry: Entry, began_ms: int) -> list[str]:
    return [
        cell(f"{(entry.time_ms - began_ms) / 1000:.1f} s", "n"),
        element("td", _decision(entry), class_="name"),
        cell(entry.why),
        *_point(entry),
    ]


def _point(entry: Entry) -> list[str]:
    point = entry.point
    if point is None:
        return [cell("", "n")] * 5
    shown = {
        "arrival_per_s": f"{point.arrival_per_s:,.0f}",
        "queue_records": "∞" if point.unbounded else f"{point.queue_records:,}",
        "data_per_s": f"{point.data_per_s:,.0f}",
        "operation_per_s": f"{point.operation_per_s:,.0f}",
        "l_up": f"{point.l_up:,.0f}",
    }
    return [cell(f"~{text}" if n in point.guessed else text, "n") for n, text in shown.items()]


def _decision(entry: Entry) -> str:
    """Return what was decided.

    >>> _decision(
    ...     Entry(time_ms=0, what="switch", stage="a<b", why="", before="data", after="operation")
    ... )
    '<b>a&lt;b</b>: data → operation'
    """
    name = f"<b>{words(entry.operator or entry.stage)}</b>"
    before, after = words(str(entry.before)), words(str(entry.after))
    if entry.what == "switch":
        return f"{name}: {before} → {after}"
    if entry.what == "batch":
        return f"{name}: b_out {before} → {after}"
    if entry.what == "switched":
        return f"{name} works in {after}"
    return f"{name} could not switch" if entry.what == "failed" else f"{name} stays in {after}"


def _table(names: Sequence[str], rows: Iterable[list[str]]) -> str:
    found = [element("tr", *row) for row in rows]
    numeric = [name for name in names if name not in ("phase", "decision", "why")]
    return table(titles(*names, numeric=numeric), found) if found else note("None.")
