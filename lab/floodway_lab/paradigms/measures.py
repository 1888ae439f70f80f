"""What a run of the comparison of paradigms shows."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median

import msgspec

from floodway.demo.sending.engine import Progress
from floodway.demo.series import Latencies, percentile, quantiles
from floodway.engine.scheduler.story import Entry
from floodway_lab.runs.running import Seen
from floodway_lab.systems.looking import StageLook

PARTS = ("outside", "wait", "schedule", "process", "transmission")
"""The components of latency."""

ASIDE = frozenset({"campaigns.changelog", "campaigns"})
"""Stages that no event goes through: they read a table."""

WARM_S = 5.0
"""How long it is calm before a load that is measured."""

GAP_MS, BURST_MS = 40, 500
"""Without results for so long, those before were of one micro-batch, if it took no longer."""


class Outcome(msgspec.Struct, frozen=True):
    """What a run has shown.

    Attributes
    ----------
    what, load, workload, mode, round
        Which run it was.
    error
        Why it is void; None if it is not.
    seconds, events
        How long it took from the first event to the end, and how many events there were.
    figures
        What was measured, by name: times in ms, rates in events per second.
    stages
        The same for each stage.
    paradigms
        How each stage worked at last.
    story
        The file of the scheduler's story, if there was a scheduler.
    """

    what: str
    load: str
    workload: str
    mode: str
    round: int
    error: str | None
    seconds: float
    events: int
    figures: dict[str, float] = {}
    stages: dict[str, dict[str, float]] = {}
    paradigms: dict[str, str] = {}
    story: str | None = None


def outcome(
    of: tuple[str, str, str, str, int],
    seen: Seen | str,
    between: tuple[float, float],
    seconds: float,
    story: str | None,
) -> Outcome:
    """Return what a run has shown of the time between two moments.

    Parameters
    ----------
    of
        Which run it was: what, at which load, with which workload, in which mode, in which round.
    seen
        What was seen, or why nothing was.
    between
        From when to when it is measured, in seconds since the first event was due.
    seconds
        How long events were due.
    story
        Where the scheduler's story is, if there is one.
    """
    if isinstance(seen, str):
        return Outcome(*of, seen, 0.0, 0, story=story)
    figures: dict[str, float] = {}
    stages: dict[str, dict[str, float]] = {}
    error = seen.run.why if seen.run.void else None
    if error is None and not seen.series.pairs:
        error = "no result came"
    if error is None:
        figures, stages = _MEASURES[of[0]](seen, between, seconds)
        if of[0] in ("low", "components") and "p50" not in figures:
            error = "no result came"
        if of[0] in ("flood", "hot") and "per_s" not in figures:
            error = "too few results came to know the rate"
    last = seen.looks[-1].stages if seen.looks else {}
    return Outcome(
        *of,
        error,
        round((seen.looks[-1].time_ms - seen.began_ms) / 1000, 3) if seen.looks else seconds,
        seen.run.taken,
        figures,
        stages,
        {name: look.paradigm for name, look in last.items()},
        story,
    )


Measured = tuple[dict[str, float], dict[str, dict[str, float]]]
Measure = Callable[[Seen, tuple[float, float], float], Measured]


def _latency(seen: Seen, start: float, end: float) -> dict[str, float]:
    took = seen.series.probed().took(start, end)
    return {**quantiles(took), "probes": float(len(took))} if took else {}


def _low(seen: Seen, between: tuple[float, float], seconds: float) -> Measured:
    return _latency(seen, *between), {}


def _flood(seen: Seen, between: tuple[float, float], seconds: float) -> Measured:
    per_s = rate(seen.series.pairs, seen.history, *between)
    if per_s is None:
        return {}, {}
    passed = max(at + took / 1000 for at, took in seen.series.pairs) - WARM_S
    return {"per_s": round(per_s, 1), "whole_per_s": round(seen.run.taken / passed, 1)}, {}


def rate(
    pairs: Sequence[tuple[float, float]], history: Sequence[Progress], start: float, end: float
) -> float | None:
    """Return how many events per second a flow carries between two moments.

    When a result has come, those of all events have that were due before the latest one in it. The
    time counts from when all was done that had been due by the first moment: what was put off
    before does not make it look faster. Results of a micro-batch come all at once; then the time
    counts from when all of them have come, to when all of another have. If less than half of the
    time is left so, it counts until everything was done.

    Parameters
    ----------
    pairs
        When the latest event of each result was due, in seconds, and how long it took, in ms.
    history
        How many events were due by when.
    start, end
        The moments, in seconds since the first event.
    """
    came = sorted((1000 * at + took, 1000 * at) for at, took in pairs)
    if len(came) < 2 or len(history) < 2:
        return None
    times = [when for when, _ in came]
    done_ms = list(accumulate((due for _, due in came), max))
    reached = bisect_left(done_ms, 1000 * start)
    first = _burst_end(times, min(reached, len(times) - 1), 1)
    last = bisect_right(times, 1000 * end) - 1
    last = _burst_end(times, max(last, first), -1)
    if times[last] - times[first] < 500 * (end - start):
        last = len(times) - 1
    if times[last] - times[first] < GAP_MS:
        first = 0  # all came at once
    passed = times[last] - times[first]
    done = _due_by(history, done_ms[last]) - _due_by(history, done_ms[first])
    return done / passed * 1000 if passed > 0 else None


def _due_by(history: Sequence[Progress], ms: float) -> float:
    """Return how many events were due in the first milliseconds."""
    times = [progress.time_ms - history[0].time_ms for progress in history]
    place = min(max(bisect_left(times, ms), 1), len(times) - 1)
    before, after = history[place - 1], history[place]
    passed = (ms - times[place - 1]) / max(times[place] - times[place - 1], 1)
    grown = after.generated - before.generated
    return before.generated + grown * min(max(passed, 0.0), 1.0)


def _burst_end(times: Sequence[float], place: int, step: int) -> int:
    """Return the last place of a burst near another, after or before it; that, if there is none.

    >>> _burst_end([0, 1, 2, 90, 91, 92, 200], 1, 1), _burst_end([0, 1, 2, 90, 91], 4, -1)
    (2, 2)
    """
    at = min(place, len(times) - 2)
    while at >= 0 and at < len(times) - 1 and abs(times[at] - times[place]) < BURST_MS:
        if times[at + 1] - times[at] >= GAP_MS:
            return at
        at += step
    return place


def area(late: Latencies, seconds: float) -> float:
    """Return the latency of probes, summed up over the time at which they were due (s times s)."""
    return fmean(took for _, took in late.pairs) / 1000 * seconds


def outside_ms(history: Sequence[Progress], start: float, end: float) -> float:
    """Return how long events waited in the queue in a stretch of time, on average (ms)."""
    first_ms = history[0].time_ms
    inside = [e for e in history if start <= (e.time_ms - first_ms) / 1000 <= end]
    if len(inside) < 2:
        return 0.0
    due = inside[-1].generated - inside[0].generated
    waited = fmean(each.generated - each.taken for each in inside)
    return waited * (inside[-1].time_ms - inside[0].time_ms) / due if due else 0.0


def _stages(seen: Seen, start: float, end: float) -> dict[str, list[StageLook]]:
    """Return what was seen of each stage in a stretch of time."""
    found: dict[str, list[StageLook]] = {}
    for look in seen.looks:
        if start <= (look.time_ms - seen.began_ms) / 1000 < end:
            for name, stage in look.stages.items():
                found.setdefault(name, []).append(stage)
    return found


def _step(seen: Seen, between: tuple[float, float], seconds: float) -> Measured:
    start, end = between
    figures = {"area": round(area(seen.series.probed(), seconds), 3)}
    for name, stretch in (("calm", (start / 2, start)), ("flood", between), ("after", (end, 9e9))):
        found = _latency(seen, *stretch)
        figures |= {f"{name}_{q}": found[q] for q in ("p50", "p99") if q in found}
    figures |= _first_decision(seen, start)
    pauses = [e.pause_us / 1000 for e in seen.story if e.pause_us is not None]
    if pauses:
        figures["pause_ms"] = round(percentile(sorted(pauses), 0.99), 1)
    stages = _others(seen, between)
    if stages:
        worst = max(stages.values(), key=lambda each: each["ratio"])
        figures["others_ratio"] = worst["ratio"]
    return figures, stages


def _first_decision(seen: Seen, start: float) -> dict[str, float]:
    """Return how long after the step the scheduler did something, and told a stage to switch."""
    began = seen.began_ms + 1000 * start
    found: dict[str, float] = {}
    for entry in seen.story:
        after = entry.time_ms - began
        if after < 0 or not _against_flood(entry):
            continue
        found.setdefault("detection_ms", after)
        if entry.what == "switch":
            found.setdefault("switch_ms", after)
    return found


def _against_flood(entry: Entry) -> bool:
    if entry.what == "switch":
        return entry.after == "operation"
    if entry.what == "batch":
        before, after = entry.before, entry.after
        return isinstance(before, int) and isinstance(after, int) and after > before
    return False


def _others(seen: Seen, between: tuple[float, float]) -> dict[str, dict[str, float]]:
    """Return what 99 of 100 records took in stages that stayed, before and in the flood."""
    start, end = between
    before, during = _stages(seen, start / 2, start), _stages(seen, start, end)
    found = {}
    for name in before.keys() & during.keys():
        if all(look.paradigm == "data" for look in before[name] + during[name]):
            calm, flood = (median(look.p99 for look in looks[name]) for looks in (before, during))
            ratio = round(flood / calm, 2) if calm else 1.0
            found[name] = {"before_p99": calm, "during_p99": flood, "ratio": ratio}
    return found


def _components(seen: Seen, between: tuple[float, float], seconds: float) -> Measured:
    """Return where the time goes, of half of the probes.

    *Outside* is how long events wait in the queue. *Wait*, *schedule* and *process* are added up
    over the stages that events go through; see `_parts`. *Transmission* is the rest:
    sockets, channels, and what stands in them.
    """
    start, end = between
    settled = (start + end) / 2  # what a stage says reaches some seconds back
    figures = _latency(seen, settled, end)
    if not figures:
        return {}, {}
    stages = {
        name: _parts(looks)
        for name, looks in _stages(seen, settled, end).items()
        if name not in ASIDE
    }
    for part in ("wait", "schedule", "process"):
        figures[part] = round(sum(stage[part] for stage in stages.values()), 3)
    figures["outside"] = round(outside_ms(seen.history, settled, end), 3)
    known = sum(figures[part] for part in PARTS if part in figures)
    figures["transmission"] = round(max(figures["p50"] - known, 0.0), 3)
    return figures, stages


def _parts(looks: Sequence[StageLook]) -> dict[str, float]:
    """Return where the time of a record goes in a stage, in milliseconds.

    Record by record: the wait in the input cache and the processing, half of the sampled records.
    In a micro-batch: half of the time in which it is collected, the time until Spark has begun and
    the task has heard of the end, and the processing on Spark and the merging, all on average. Of
    a stage that has done both, each as far as records went that way.
    """
    all_done = looks[-1].counters - looks[0].counters
    done = all_done.batches
    batched = done.records / max(done.records, all_done.records_processed, 1)
    batch = 1000 * max(done.batches, 1)
    single = 1 - batched
    collected, scheduled = done.waited_us / batch, done.scheduled_us / batch
    worked = (done.processed_us + done.merged_us) / batch
    wait, process, wait_p99, process_p99 = (
        median(getattr(look, name) for look in looks)
        for name in ("wait", "process", "wait_p99", "process_p99")
    )
    parts = {
        "wait": single * wait + batched * collected / 2,
        "schedule": batched * scheduled,
        "process": single * process + batched * worked,
    }
    parts["p50"] = sum(parts.values())
    parts["p99"] = single * (wait_p99 + process_p99) + batched * (
        0.99 * collected + scheduled + worked
    )
    parts["batched"] = batched
    parts["batches"] = float(done.batches)
    return {name: round(value, 3) for name, value in parts.items()}


def _varying(seen: Seen, between: tuple[float, float], seconds: float) -> Measured:
    switches: dict[str, list[int]] = defaultdict(list)
    for entry in seen.story:
        if entry.what == "switch":
            switches[entry.stage].append(entry.time_ms)
    stages: dict[str, dict[str, float]] = {}
    for name, times in switches.items():
        stages[name] = {"switches": float(len(times))}
        if len(times) > 1:
            stages[name]["shortest_s"] = min(b - a for a, b in pairwise(times)) / 1000
    figures = _latency(seen, 0, 9e9)
    figures["switches"] = float(sum(map(len, switches.values())))
    apart = [stage["shortest_s"] for stage in stages.values() if "shortest_s" in stage]
    if apart:
        figures["shortest_s"] = min(apart)
    return figures, stages


_MEASURES: dict[str, Measure] = {
    "low": _low,
    "flood": _flood,
    "hot": _flood,
    "step": _step,
    "components": _components,
    "sine": _varying,
    "noise": _varying,
}
