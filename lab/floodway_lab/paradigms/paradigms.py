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
from typing import Any, Literal, get_args

import msgspec

from floodway.core.errors import FloodwayError
from floodway.demo.sending.schedules import Recorded
from floodway_lab.cases.base import Shape
from floodway_lab.cases.registry import CASES
from floodway_lab.figures.machine import Machine
from floodway_lab.paradigms import judging, measures
from floodway_lab.paradigms.judging import Aim
from floodway_lab.paradigms.measures import WARM_S, Outcome
from floodway_lab.runs.experiment import Experiment
from floodway_lab.runs.running import Seen, see
from floodway_lab.sending.schedules import Constant, Schedule, Step

What = Literal["low", "flood", "step", "hot", "components", "sine", "noise"]
"""What is compared."""

WHATS: tuple[What, ...] = get_args(What)

Mode = Literal["dual", "data", "operation", "data_unbatched"]
"""How a flow runs; see `floodway_lab.systems.on_floodway`."""

MODES: tuple[Mode, ...] = get_args(Mode)

WORKLOADS = ("ads", "words", "grep")
"""With which flows; each is a workload."""

HOT = ("ads", "words")
"""Those that have keys."""

SECONDS = 5.0
"""How long a load is measured, if nobody says otherwise."""

CALM = 1_000
"""Events a second that any mode carries with ease."""

GUESS = 300_000.0
"""Events a second that a flow carries, where that could not be measured."""

SETTLE_S, DRAIN_S, START_S = 2.5, 2.0, 8.0
"""Under load, before it is measured; about how long it takes to work off the rest, and to start."""

VARYING_S = 36.0
"""Sine and noise last so many times as long as other loads: three minutes by default."""

PERIOD_S, STEP_S = 20.0, 0.5
"""The period of the sine, and how long the load stays the same under noise and in the sine."""

OUTCOMES = "outcomes.jsonl"
"""The file to which each outcome is added as soon as it is there."""

STEPPED: tuple[Mode, ...] = ("dual", "data", "operation")
HOT_DOP = 2

See = Callable[..., Seen]
"""Runs an experiment; see `floodway_lab.runs.running.see`."""

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
        modes = STEPPED[:2] if workload in HOT else ()
    turned = [modes[(place + number) % len(modes)] for place in range(len(modes))]
    for mode in turned:
        if what == "components":
            yield Run(what, workload, mode, number, "low")
            yield Run(what, workload, mode, number, "high")
        else:
            yield Run(what, workload, mode, number)


class Load(msgspec.Struct, frozen=True):
    """The load of a run: when events are due, for how long, and from when to when it is measured.

    From `closed_s` on events are due as fast as they are taken.
    """

    schedule: Schedule
    seconds: float
    measured: tuple[float, float]
    closed_s: float | None = None


def load_of(run: Run, seconds: float, limits: Limits) -> Load:
    """Return the load of a run."""
    flood, settled = limits.flood, WARM_S + SETTLE_S
    if run.what in ("flood", "hot"):
        end = settled + seconds
        return Load(Constant(CALM), end, (settled, end), closed_s=WARM_S)
    if run.what == "step":
        calm, end = max(seconds / 2, WARM_S), max(seconds / 2, WARM_S) + seconds
        return Load(Step(flood // 5, flood, calm, end), end + seconds, (calm, end))
    if run.load == "high":
        end = settled + seconds
        return Load(Step(CALM, flood, WARM_S), end, (settled, end))
    if run.what in ("low", "components"):
        end = WARM_S + seconds
        return Load(Constant(CALM), end, (WARM_S, end))
    whole = VARYING_S * seconds
    return Load(varying(run.what, whole, flood), whole, (0.0, whole))


def varying(what: What, seconds: float, most: int) -> Recorded:
    """Return a load that goes up and down, between a twentieth of the most and the most.

    >>> rates = varying("sine", 20, 1000).per_s
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
        found.append(int(load))
    return Recorded(tuple(found), STEP_S)


def lasts(run: Run, seconds: float) -> float:
    """Return about how long a run takes."""
    return START_S + load_of(run, seconds, Limits.of(None, None)).seconds + DRAIN_S


def experiment_of(run: Run, load: Load, dop: int) -> Experiment:
    """Return the experiment that a run is; it is never void because others use the machine."""
    shape = Shape()
    if run.what == "hot":
        keys = msgspec.structs.replace(CASES[run.workload].keys, hot=0.5)
        shape, dop = Shape(keys=keys), max(dop, HOT_DOP)
    return Experiment(
        case=run.workload,
        system=f"floodway-{run.mode.removeprefix('data_')}",
        rate=CALM,
        schedule=load.schedule,
        closed_s=load.closed_s,
        seconds=load.seconds,
        warm_s=load.measured[0],
        dop=dop,
        shape=shape,
        most_foreign=1.0,
    )


def compare(
    what: Sequence[What],
    workloads: Sequence[str],
    tell: Tell,
    *,
    seconds: float = SECONDS,
    rounds: int = 1,
    dop: int = 1,
    folder: Path | None = None,
    see: See = see,
) -> Comparison:
    """Measure everything that is asked for."""
    machine = Machine.here()
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="floodway-paradigms-"))
    folder.mkdir(parents=True, exist_ok=True)
    measuring = _Measuring(plan(what, workloads, rounds), tell, seconds, dop, folder, see)
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

    def __init__(
        self, runs: list[Run], tell: Tell, seconds: float, dop: int, folder: Path, see: See
    ) -> None:
        self._runs, self._tell, self._seconds = runs, tell, seconds
        self._dop, self._folder, self._see = dop, folder, see
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
            load = load_of(run, self._seconds, limits)
            seen = self._seen(run, load)
            story = str(self._story(run)) if run.mode == "dual" else None
            self._keep(_outcome(run, seen, load, story))
        self._tell(self._todo, self._todo, "done")

    def _keep(self, outcome: Outcome) -> None:
        """Take an outcome, and write it down: what was measured is there if this is broken off."""
        self.outcomes.append(outcome)
        with (self._folder / OUTCOMES).open("ab") as file:
            file.write(msgspec.json.encode(outcome) + b"\n")

    def _seen(self, run: Run, load: Load) -> Seen | str:
        """Run it; return what was seen, or what went wrong: other runs go on."""
        self._tell(self._done, self._todo, run.name)
        self._done += START_S + load.seconds + DRAIN_S
        story = self._story(run)
        story.unlink(missing_ok=True)
        try:
            return self._see(
                experiment_of(run, load, self._dop), story=story if run.mode == "dual" else None
            )
        except (FloodwayError, OSError) as problem:
            return f"{type(problem).__name__}: {problem}"

    def _story(self, run: Run) -> Path:
        load = f"-{run.load}" if run.what == "components" else ""
        return self._folder / f"{run.what}{load}-{run.workload}-{run.mode}-{run.round}.jsonl"

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
        look = Run("flood", workload, mode, 0)
        load = load_of(look, self._seconds / 2, Limits.of(None, None))
        return _outcome(look, self._seen(look, load), load, None).figures.get("per_s")


def _outcome(run: Run, seen: Seen | str, load: Load, story: str | None) -> Outcome:
    of: tuple[Any, ...] = (run.what, run.load, run.workload, run.mode, run.round)
    return measures.outcome(of, seen, load.measured, load.seconds, story)
