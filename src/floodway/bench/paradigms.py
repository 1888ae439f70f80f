"""The paradigms against each other: each by itself, and both with the scheduler that chooses.

All modes of a comparison run in one go, one after the other and in changing order, each with a new
flow, the same events and the same schedule. A run with wrong answers is void, and one that fails
does not keep the others from running.
"""

import math
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Literal, get_args

import msgspec

from floodway.bench import judging
from floodway.bench.flooding import TAKEN, Phase
from floodway.bench.judging import WARM_S, Aim, Outcome
from floodway.bench.micro import Machine
from floodway.bench.tracing import MODES, Mode, Trace, trace
from floodway.bench.workloads import WORKLOADS

What = Literal["low", "flood", "step", "hot", "components", "sine", "noise"]
"""What is compared."""

WHATS: tuple[What, ...] = get_args(What)

SECONDS = 5.0
"""How long a load is measured, if nobody says otherwise."""

CALM = 1_000
"""Events a second that any mode carries with ease."""

GUESS = 300_000.0
"""Events a second that a flow carries, where that could not be measured."""

SETTLE_S, DRAIN_S, START_S = 2.5, 2.0, 5.0
"""Under load, before it is measured; about how long it takes to work off the rest, and to start."""

VARYING_S = 36.0
"""Sine and noise last so many times as long as other loads: three minutes by default."""

PERIOD_S, STEP_S = 20.0, 0.5
"""The period of the sine, and how long the load stays the same under noise and in the sine."""

OUTCOMES = "outcomes.jsonl"
"""The file to which each outcome is added as soon as it is there."""

STEPPED: tuple[Mode, ...] = ("dual", "data", "operation")
HOT_DOP = 2

Tell = Callable[[float, float, str], None]
"""Is told how many seconds of work are done, of how many, and what is going on."""


class Limits(msgspec.Struct, frozen=True):
    """Events per second that the modes of a workload carry, and the load that follows from it.

    Attributes
    ----------
    data, dual
        What was measured.
    flood
        1.3 times what the data paradigm carries; or a load between what that and both together
        carry, if that is more.
    """

    data: float
    dual: float
    flood: int

    @classmethod
    def of(cls, data: float | None, dual: float | None) -> "Limits":
        """Return the limits that follow from what was measured, if it was.

        >>> Limits.of(100_000, 400_000).flood, Limits.of(100_000, 90_000).flood
        (200000, 130000)
        """
        data = data or dual or GUESS
        dual = dual or data
        flood = math.sqrt(data * dual) if dual > 1.3**2 * data else 1.3 * data
        return cls(round(data), round(dual), int(min(flood, 2.5 * dual)))


class Comparison(msgspec.Struct, frozen=True):
    """All that was measured in one go.

    Attributes
    ----------
    machine, seconds, rounds, dop
        Where, how long and how often each load was measured, and in how many tasks.
    limits
        What each workload's flood was chosen by.
    outcomes
        Each run.
    aims
        What was to be shown, and whether it was.
    folder
        Where the stories and single outcomes are.
    """

    machine: Machine
    seconds: float
    rounds: int
    dop: int
    limits: dict[str, Limits]
    outcomes: list[Outcome]
    aims: list[Aim]
    folder: str


class Run(msgspec.Struct, frozen=True):
    """A run that is planned."""

    what: What
    workload: str
    mode: Mode
    round: int
    load: Literal["low", "high"] = "low"

    @property
    def name(self) -> str:
        """What it is, in words."""
        load = f" {self.load}" if self.what == "components" else ""
        return f"{self.what}{load}, {self.workload}, {self.mode}, round {self.round + 1}"


def plan(what: Sequence[What], workloads: Sequence[str], rounds: int) -> list[Run]:
    """Return all runs.

    Components, sine and noise take long: they are measured with the first workload only.

    >>> [run.mode for run in plan(["low"], ["grep"], 1)]
    ['dual', 'data', 'operation', 'data_unbatched']
    >>> len(plan(["sine", "noise"], ["ads", "words"], 3))
    2
    """
    runs: list[Run] = []
    for each in (name for name in WHATS if name in what):
        if each in ("sine", "noise"):
            runs.append(Run(each, workloads[0], "dual", 0))
            continue
        chosen = workloads[:1] if each == "components" else workloads
        for name in chosen:
            for number in range(rounds):
                runs += _round(each, name, number)
    return runs


def _round(what: What, workload: str, number: int) -> Iterator[Run]:
    modes = MODES if what in ("low", "flood") else STEPPED
    if what == "hot":
        modes = STEPPED[:2] if WORKLOADS[workload].hot else ()
    turned = [modes[(place + number) % len(modes)] for place in range(len(modes))]
    for mode in turned:
        if what == "components":
            yield Run(what, workload, mode, number, "low")
            yield Run(what, workload, mode, number, "high")
        else:
            yield Run(what, workload, mode, number)


def phases_of(run: Run, seconds: float, limits: Limits) -> tuple[Phase, ...]:
    """Return the load of a run."""
    if run.what == "low":
        return (Phase("warm", WARM_S, CALM), Phase("low", seconds, CALM))
    if run.what in ("flood", "hot"):
        return (Phase("warm", WARM_S, CALM), Phase("flood", SETTLE_S + seconds, TAKEN))
    if run.what == "step":
        calm = limits.flood // 5
        return (
            Phase("calm", max(seconds / 2, WARM_S), calm),
            Phase("flood", seconds, limits.flood),
            Phase("calm again", seconds, calm),
        )
    if run.what == "components":
        if run.load == "low":
            return (Phase("warm", WARM_S, CALM), Phase("low", seconds, CALM))
        return (Phase("warm", WARM_S, CALM), Phase("high", SETTLE_S + seconds, limits.flood))
    return varying(run.what, VARYING_S * seconds, limits.flood)


def varying(what: What, seconds: float, most: int) -> tuple[Phase, ...]:
    """Return a load that goes up and down, between a twentieth of the most and the most.

    >>> rates = [phase.per_second for phase in varying("sine", 20, 1000)]
    >>> min(rates), max(rates), len(rates)
    (50, 1000, 40)
    """
    rng = random.Random(1)
    found = []
    for number in range(round(seconds / STEP_S)):
        if what == "sine":
            high = (1 - math.cos(2 * math.pi * number * STEP_S / PERIOD_S)) / 2
            load = most * (0.05 + 0.95 * high)
        else:
            load = most * 20 ** -rng.random()
        found.append(Phase(f"{what} {number}", STEP_S, int(load)))
    return tuple(found)


def lasts(run: Run, seconds: float) -> float:
    """Return about how long a run takes."""
    load = phases_of(run, seconds, Limits.of(None, None))
    return START_S + sum(phase.seconds for phase in load) + DRAIN_S


def compare(
    what: Sequence[What],
    workloads: Sequence[str],
    tell: Tell,
    *,
    seconds: float = SECONDS,
    rounds: int = 1,
    dop: int = 1,
    folder: Path | None = None,
) -> Comparison:
    """Measure everything that is asked for."""
    machine = Machine.here()
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="floodway-paradigms-"))
    folder.mkdir(parents=True, exist_ok=True)
    measuring = _Measuring(plan(what, workloads, rounds), tell, seconds, dop, folder)
    measuring.go()
    return Comparison(
        machine,
        seconds,
        rounds,
        dop,
        measuring.limits,
        measuring.outcomes,
        judging.aims(measuring.outcomes),
        str(folder.resolve()),
    )


class _Measuring:
    """Runs what is planned, one after the other, and knows how far it is."""

    def __init__(self, runs: list[Run], tell: Tell, seconds: float, dop: int, folder: Path) -> None:
        self._runs, self._tell, self._seconds = runs, tell, seconds
        self._dop, self._folder = dop, folder
        self.limits: dict[str, Limits] = {}
        self.outcomes: list[Outcome] = []
        flooded = {run.workload for run in runs if run.what == "flood"}
        loads = ("step", "sine", "noise", "components")
        needed = {run.workload for run in runs if run.what in loads} - flooded
        look = Run("flood", "ads", "data", 0)
        self._todo = sum(lasts(run, seconds) for run in runs)
        self._todo += 2 * len(needed) * lasts(look, seconds / 2)
        self._done = 0.0

    def go(self) -> None:
        """Run everything."""
        for run in self._runs:
            limits = Limits.of(None, None)
            if run.what not in ("low", "flood", "hot"):
                limits = self._limits(run.workload)
            traced = self._trace(run, self._seconds, limits)
            story = str(self._story(run))
            workload, measured = WORKLOADS[run.workload], self._measured(run)
            self._keep(
                judging.outcome(run.what, run.round, run.load, traced, workload, measured, story)
            )
        self._tell(self._todo, self._todo, "done")

    def _keep(self, outcome: Outcome) -> None:
        """Take an outcome, and write it down: what was measured is there if this is broken off."""
        self.outcomes.append(outcome)
        with (self._folder / OUTCOMES).open("ab") as file:
            file.write(msgspec.json.encode(outcome) + b"\n")

    def _trace(self, run: Run, seconds: float, limits: Limits) -> Trace:
        took = lasts(run, seconds)
        load = phases_of(run, seconds, limits)
        planned = sum(phase.seconds for phase in load)
        self._tell(self._done, self._todo, run.name)

        def tick(passed: float) -> None:
            share = min(passed / planned, 1.0) * (took - START_S)
            self._tell(self._done + START_S + share, self._todo, run.name)

        story = self._story(run)
        story.unlink(missing_ok=True)
        traced = trace(
            WORKLOADS[run.workload],
            run.mode,
            load,
            dop=max(self._dop, HOT_DOP) if run.what == "hot" else self._dop,
            hot=run.what == "hot",
            story=story if run.mode == "dual" else None,
            tick=tick,
        )
        self._done += took
        return traced

    def _story(self, run: Run) -> Path:
        load = f"-{run.load}" if run.what == "components" else ""
        return self._folder / f"{run.what}{load}-{run.workload}-{run.mode}-{run.round}.jsonl"

    def _measured(self, run: Run) -> tuple[float, float]:
        """Return from when to when a run is measured, in seconds since its first event."""
        if run.what in ("flood", "hot") or run.load == "high":
            return WARM_S + SETTLE_S, WARM_S + SETTLE_S + self._seconds
        if run.what == "step":
            calm = max(self._seconds / 2, WARM_S)
            return calm, calm + self._seconds
        if run.what in ("low", "components"):
            return WARM_S, WARM_S + self._seconds
        return 0.0, VARYING_S * self._seconds

    def _limits(self, workload: str) -> Limits:
        """Return what a workload's flows carry: as measured already, or by a short look."""
        if workload not in self.limits:
            self.limits[workload] = Limits.of(
                self._carried(workload, "data"), self._carried(workload, "dual")
            )
        return self.limits[workload]

    def _carried(self, workload: str, mode: Mode) -> float | None:
        rates = [
            each.figures["per_s"]
            for each in self.outcomes
            if (each.what, each.workload, each.mode) == ("flood", workload, mode)
            and each.error is None
        ]
        if rates:
            return median(rates)
        if any(run.what == "flood" and run.workload == workload for run in self._runs):
            return None  # it was tried, and failed
        seconds = self._seconds / 2
        traced = self._trace(Run("flood", workload, mode, 0), seconds, Limits.of(None, None))
        start = WARM_S + SETTLE_S
        return None if traced.error else traced.rate(start, start + seconds)
