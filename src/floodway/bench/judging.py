"""What a run of the comparison shows, and whether that is what was to be shown."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Literal

import msgspec

from floodway.bench.series import percentile
from floodway.bench.tracing import StageLook, Trace, quantiles
from floodway.bench.workloads import Workload
from floodway.engine.scheduler.story import Entry

PARTS = ("outside", "wait", "schedule", "process", "transmission")
"""The components of latency."""

WARM_S = 1.5
"""How long it is calm before a load that is measured."""


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


class Aim(msgspec.Struct, frozen=True):
    """What was to be shown.

    Attributes
    ----------
    what, workload, aim
        Of which runs, and in words.
    better, bound
        Whether the value is to be at least or at most so much.
    value, met
        What it is, and whether that is enough; None if it was not measured.
    """

    what: str
    workload: str
    aim: str
    better: Literal["more", "less"]
    bound: float
    value: float | None
    met: bool | None


def outcome(
    what: str,
    number: int,
    load: str,
    traced: Trace,
    workload: Workload,
    between: tuple[float, float],
    story: str,
) -> Outcome:
    """Return what a run has shown of the time between two moments."""
    figures: dict[str, float] = {}
    stages: dict[str, dict[str, float]] = {}
    error = traced.error
    if error is None:
        figures, stages = _MEASURES[what](traced, workload, between)
        if what in ("low", "components") and "p50" not in figures:
            error = "no probe came through"
        if what in ("flood", "hot") and "per_s" not in figures:
            error = "too few probes came through to know the rate"
    return Outcome(
        what,
        load,
        workload.name,
        traced.mode,
        number,
        error,
        traced.seconds,
        traced.events,
        figures,
        stages,
        {name: looks[-1].paradigm for name, looks in traced.stages(0, traced.seconds).items()},
        story if traced.mode == "dual" else None,
    )


Measured = tuple[dict[str, float], dict[str, dict[str, float]]]
Measure = Callable[[Trace, Workload, tuple[float, float]], Measured]


def _latency(traced: Trace, start: float, end: float) -> dict[str, float]:
    took = traced.took(start, end)
    return {**quantiles(took), "probes": float(len(took))} if took else {}


def _low(traced: Trace, workload: Workload, between: tuple[float, float]) -> Measured:
    return _latency(traced, *between), {}


def _flood(traced: Trace, workload: Workload, between: tuple[float, float]) -> Measured:
    rate = traced.rate(*between)
    if rate is None:
        return {}, {}
    over_s = max(each.due_ms + each.took_ms for each in traced.timed) / 1000
    passed = over_s - traced.began_ms / 1000 - WARM_S
    return {"per_s": round(rate, 1), "whole_per_s": round(traced.events / passed, 1)}, {}


def _step(traced: Trace, workload: Workload, between: tuple[float, float]) -> Measured:
    start, end = between
    figures = {"area": round(traced.area(), 3)}
    for name, stretch in (("calm", (start / 2, start)), ("flood", between), ("after", (end, 9e9))):
        found = _latency(traced, *stretch)
        figures |= {f"{name}_{q}": found[q] for q in ("p50", "p99") if q in found}
    figures |= _first_decision(traced, start)
    pauses = [e.pause_us / 1000 for e in traced.story if e.pause_us is not None]
    if pauses:
        figures["pause_ms"] = round(percentile(sorted(pauses), 0.99), 1)
    stages = _others(traced, between)
    if stages:
        worst = max(stages.values(), key=lambda each: each["ratio"])
        figures["others_ratio"] = worst["ratio"]
    return figures, stages


def _first_decision(traced: Trace, start: float) -> dict[str, float]:
    """Return how long after the step the scheduler did something, and told a stage to switch."""
    began = traced.began_ms + 1000 * start
    found: dict[str, float] = {}
    for entry in traced.story:
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


def _others(traced: Trace, between: tuple[float, float]) -> dict[str, dict[str, float]]:
    """Return what 99 of 100 records took in stages that stayed, before and in the flood."""
    start, end = between
    before, during = traced.stages(start / 2, start), traced.stages(start, end)
    found = {}
    for name in before.keys() & during.keys():
        if all(look.paradigm == "data" for look in before[name] + during[name]):
            calm, flood = (median(look.p99 for look in looks[name]) for looks in (before, during))
            ratio = round(flood / calm, 2) if calm else 1.0
            found[name] = {"before_p99": calm, "during_p99": flood, "ratio": ratio}
    return found


def _components(traced: Trace, workload: Workload, between: tuple[float, float]) -> Measured:
    """Return where the time goes, of half of the probes.

    *Outside* is how long the sender could not send what was due. *Wait*, *schedule* and *process*
    are added up over the stages that probes go through; see `_parts`. *Transmission* is the rest:
    sockets, channels, and what stands in them.
    """
    start, end = between
    settled = (start + end) / 2  # what a stage says reaches some seconds back
    figures = _latency(traced, settled, end)
    if not figures:
        return {}, {}
    stages = {
        name: _parts(looks)
        for name, looks in traced.stages(settled, end).items()
        if name not in workload.aside
    }
    for part in ("wait", "schedule", "process"):
        figures[part] = round(sum(stage[part] for stage in stages.values()), 3)
    figures["outside"] = round(traced.late_ms(settled, end), 3)
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
    done = looks[-1].counters - looks[0].counters
    batched = done.batch_records / max(done.batch_records, done.records_processed, 1)
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


def _varying(traced: Trace, workload: Workload, between: tuple[float, float]) -> Measured:
    switches: dict[str, list[int]] = defaultdict(list)
    for entry in traced.story:
        if entry.what == "switch":
            switches[entry.stage].append(entry.time_ms)
    stages: dict[str, dict[str, float]] = {}
    for name, times in switches.items():
        stages[name] = {"switches": float(len(times))}
        if len(times) > 1:
            stages[name]["shortest_s"] = min(b - a for a, b in pairwise(times)) / 1000
    figures = _latency(traced, 0, 9e9)
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


# ---------------------------------------------------------------- over all rounds


def middle(
    outcomes: Iterable[Outcome], what: str, workload: str, mode: str, figure: str, load: str = "low"
) -> float | None:
    """Return the middle of a figure over all rounds; None if it was not measured."""
    wanted = (what, workload, mode, load)
    found = [
        each.figures[figure]
        for each in outcomes
        if (each.what, each.workload, each.mode, each.load) == wanted
        and each.error is None
        and figure in each.figures
    ]
    return median(found) if found else None


def aims(outcomes: Sequence[Outcome]) -> list[Aim]:
    """Return what was to be shown by these runs, and whether it was."""
    found: list[Aim] = []
    done = dict.fromkeys((each.what, each.workload) for each in outcomes)
    for what, workload in done:
        judge = _JUDGES.get(what)
        if judge is not None:
            found += judge(outcomes, what, workload)
    return found


def _aim(
    what: str,
    workload: str,
    aim: str,
    value: float | None,
    *,
    least: float | None = None,
    most: float | None = None,
) -> Aim:
    bound = least if least is not None else most or 0.0
    met = None
    if value is not None:
        met = value >= bound if least is not None else value <= bound
        value = round(value, 3)
    return Aim(what, workload, aim, "more" if least is not None else "less", bound, value, met)


def _ratio(first: float | None, second: float | None) -> float | None:
    return first / second if first is not None and second else None


def _judge_low(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    dual, data, operation = (
        middle(outcomes, what, workload, mode, "p50") for mode in ("dual", "data", "operation")
    )
    return [
        _aim(what, workload, "p50 of dual / data", _ratio(dual, data), most=1.2),
        _aim(what, workload, "p50 of operation / dual", _ratio(operation, dual), least=5.0),
    ]


def _judge_flood(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    dual, data, operation, single = (
        middle(outcomes, what, workload, mode, "per_s")
        for mode in ("dual", "data", "operation", "data_unbatched")
    )
    fixed = [rate for rate in (data, operation, single) if rate is not None]
    best = max(fixed, default=None)
    return [
        _aim(what, workload, "rate of dual / data_unbatched", _ratio(dual, single), least=3.0),
        _aim(what, workload, "rate of dual / best fixed mode", _ratio(dual, best), least=1.0),
        _aim(what, workload, "rate of dual / operation", _ratio(dual, operation), least=1.14),
    ]


def _judge_step(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    def of(mode: str, figure: str) -> float | None:
        return middle(outcomes, what, workload, mode, figure)

    area = of("dual", "area")
    return [
        _aim(what, workload, "detection, ms", of("dual", "detection_ms"), most=300.0),
        _aim(what, workload, "pause of a switch, p99, ms", of("dual", "pause_ms"), most=250.0),
        _aim(
            what,
            workload,
            "p99 of other stages, in the flood / before",
            of("dual", "others_ratio"),
            most=2.0,
        ),
        _aim(what, workload, "area of dual / data", _ratio(area, of("data", "area")), most=1.0),
        _aim(
            what,
            workload,
            "area of dual / operation",
            _ratio(area, of("operation", "area")),
            most=1.0,
        ),
    ]


def _judge_varying(outcomes: Sequence[Outcome], what: str, workload: str) -> list[Aim]:
    shortest = middle(outcomes, what, workload, "dual", "shortest_s")
    aim = _aim(what, workload, "shortest time between switches, s", shortest, least=5.0)
    if shortest is None and middle(outcomes, what, workload, "dual", "switches") is not None:
        aim = msgspec.structs.replace(aim, met=True)  # no stage was switched twice
    return [aim]


_JUDGES: dict[str, Callable[[Sequence[Outcome], str, str], list[Aim]]] = {
    "low": _judge_low,
    "flood": _judge_flood,
    "step": _judge_step,
    "sine": _judge_varying,
    "noise": _judge_varying,
}
