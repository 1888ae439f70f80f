"""Sustainable throughput: the search, repeated, and the latency at parts of what was found."""

import math
from collections.abc import Callable
from statistics import fmean, stdev

import msgspec

from floodway_lab.figures.machine import Machine
from floodway_lab.runs.experiment import Experiment, Latency, Run
from floodway_lab.runs.running import run_once
from floodway_lab.runs.searching import Search, Trial

LOADS = (0.1, 0.5, 0.9)
"""The latency is taken at these parts of the sustainable rate."""

_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t for 95 of 100, by degrees of freedom from 1."""

TRIALS = 4
"""So many trials a search takes, more or less."""

Progress = Callable[[float, float, str], None]
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
    complete
        Whether it came to its end.
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
    complete: bool


def sustain(
    experiment: Experiment,
    *,
    repeats: int = 3,
    loads: tuple[float, ...] = LOADS,
    progress: Progress = lambda *_: None,
    keep: Callable[[Sustained], None] = lambda _: None,
    run: Runner = run_once,
) -> Sustained:
    """Find the highest rate that a system sustains; the experiment's rate is tried first.

    `keep` gets what there is after every step, in case there is no next one.
    """
    found = _Found(experiment, repeats, loads, progress, keep, run)
    return found.search()


class _Found:
    """What was found so far."""

    def __init__(
        self,
        experiment: Experiment,
        repeats: int,
        loads: tuple[float, ...],
        progress: Progress,
        keep: Callable[[Sustained], None],
        run: Runner,
    ) -> None:
        self._experiment, self._repeats, self._loads = experiment, repeats, loads
        self._progress, self._keep, self._run = progress, keep, run
        self._machine, self._right, self._steps = Machine.here(), True, 0
        self._rates: list[float] = []
        self._trials: list[list[Trial]] = []
        self._parts: list[AtLoad] = []

    def search(self) -> Sustained:
        """Do all there is to do."""
        first = self._experiment.rate
        for number in range(self._repeats):
            rate = self._search_once(Search(first), number)
            if rate is None:
                break
            self._rates.append(rate)
            first = rate * 1.02
        if self._rates:
            for load in self._loads:
                self._parts.append(self._at_load(load, fmean(self._rates)))
                self._keep(self._so_far(complete=False))
        done = self._so_far(complete=True)
        self._keep(done)
        return done

    def _search_once(self, search: Search, number: int) -> float | None:
        self._trials.append(search.trials)
        while (rate := search.next_rate()) is not None:
            self._tell(f"search {number + 1} of {self._repeats}: {rate:,.0f} events/s")
            done = self._run(msgspec.structs.replace(self._experiment, rate=rate, judged=True))
            self._right = self._right and done.correct is not False
            search.note(Trial(rate, done.sustained and not done.void, done.per_s))
            self._keep(self._so_far(complete=False))
        return search.sustained

    def _at_load(self, load: float, found: float) -> AtLoad:
        rate = round(load * found, 1)
        self._tell(f"at {load:.0%}: {rate:,.0f} events/s")
        done = self._run(msgspec.structs.replace(self._experiment, rate=rate, judged=False))
        return AtLoad(load, rate, done.latency_ms, done.correct, done.void, done.why)

    def _tell(self, what: str) -> None:
        expected = self._repeats * TRIALS + len(self._loads)
        self._progress(self._steps, max(expected, self._steps + 1), what)
        self._steps += 1

    def _so_far(self, *, complete: bool) -> Sustained:
        rate = fmean(self._rates) if self._rates else None
        return Sustained(
            case=self._experiment.case,
            system=self._experiment.system,
            machine=self._machine,
            sustainable_rate=None if rate is None else round(rate, 1),
            interval=interval(self._rates),
            rates=self._rates,
            trials=self._trials,
            latency_ms=self._parts,
            correct=self._right and all(part.correct is not False for part in self._parts),
            void=rate is None or any(part.void for part in self._parts),
            complete=complete,
        )


def interval(values: list[float]) -> tuple[float, float] | None:
    """Return the bounds of a mean in 95 of 100 cases; None for a single value.

    >>> low, high = interval([100.0, 104.0, 96.0])
    >>> round(low, 2), round(high, 2)
    (90.07, 109.93)
    """
    if len(values) < 2:
        return None
    factor = _T95[min(len(values) - 2, len(_T95) - 1)]
    half = factor * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half
