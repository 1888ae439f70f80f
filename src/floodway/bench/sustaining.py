"""Sustainable throughput: the search, repeated, and the latency at parts of what was found."""

import math
from collections.abc import Callable
from statistics import fmean, stdev

import msgspec

from floodway.bench.micro import Machine
from floodway.bench.running import Experiment, Latency, Run, run_once
from floodway.bench.searching import Search, Trial

LOADS = (0.1, 0.5, 0.9)
"""The latency is taken at these parts of the sustainable rate."""

_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t for 95 of 100, by degrees of freedom from 1."""

Progress = Callable[[str], None]
Runner = Callable[[Experiment], Run]


class AtLoad(msgspec.Struct, frozen=True):
    """What a run at a part of the sustainable rate has shown."""

    load: float
    rate: float
    latency_ms: Latency | None
    correct: bool | None
    void: bool
    why: str


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """The sustainable rate of a system.

    Attributes
    ----------
    case, system, machine
        Of what, and where.
    sustainable_rate
        The mean of what the searches found, in events per second; None if nothing was sustained.
    interval
        The bounds within which it lies in 95 of 100 cases, if there was more than one search.
    rates, trials
        What each search found, and all that was tried.
    latency_ms
        At a tenth, a half and nine tenths of it.
    correct, void
        Whether all answers were right, and whether a run at part of the load was void.
    """

    case: str
    system: str
    machine: Machine
    sustainable_rate: float | None
    interval: tuple[float, float] | None
    rates: list[float]
    trials: list[list[Trial]]
    latency_ms: list[AtLoad]
    correct: bool
    void: bool


def sustain(
    experiment: Experiment,
    *,
    repeats: int = 3,
    loads: tuple[float, ...] = LOADS,
    progress: Progress = lambda _: None,
    run: Runner = run_once,
) -> Sustained:
    """Find the highest rate that a system sustains; the experiment's rate is tried first."""
    machine, rates, trials, right = Machine.here(), list[float](), list[list[Trial]](), True
    first = experiment.rate
    for number in range(repeats):
        search = Search(first)
        while (rate := search.next_rate()) is not None:
            progress(f"search {number + 1} of {repeats}: {rate:,.0f} events/s")
            done = run(msgspec.structs.replace(experiment, rate=rate, judged=True))
            right = right and done.correct is not False
            search.note(Trial(rate, done.sustained and not done.void, done.per_s))
        trials.append(search.trials)
        if search.sustained is None:
            break
        rates.append(search.sustained)
        first = search.sustained * 1.02
    found = fmean(rates) if rates else None
    parts = [_at_load(experiment, load, found, progress, run) for load in loads] if found else []
    return Sustained(
        case=experiment.case,
        system=experiment.system,
        machine=machine,
        sustainable_rate=None if found is None else round(found, 1),
        interval=interval(rates),
        rates=rates,
        trials=trials,
        latency_ms=parts,
        correct=right and all(part.correct is not False for part in parts),
        void=found is None or any(part.void for part in parts),
    )


def _at_load(
    experiment: Experiment, load: float, found: float, progress: Progress, run: Runner
) -> AtLoad:
    rate = round(load * found, 1)
    progress(f"at {load:.0%}: {rate:,.0f} events/s")
    done = run(msgspec.structs.replace(experiment, rate=rate, judged=False))
    return AtLoad(load, rate, done.latency_ms, done.correct, done.void, done.why)


def interval(values: list[float]) -> tuple[float, float] | None:
    """Return the bounds of a mean in 95 of 100 cases; None for a single value.

    >>> interval([100.0, 104.0, 96.0])
    (90.1, 109.9)
    """
    if len(values) < 2:
        return None
    factor = _T95[min(len(values) - 2, len(_T95) - 1)]
    half = factor * stdev(values) / math.sqrt(len(values))
    return round(fmean(values) - half, 1), round(fmean(values) + half, 1)
