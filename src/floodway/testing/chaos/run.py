"""Kill processes of a flow that runs, and see that its results are right all the same."""

import math
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from floodway.core.errors import OptionError
from floodway.plan import Plan
from floodway.testing.chaos.processes import FlowProcess
from floodway.testing.chaos.schedule import Kill, expected_s, plan
from floodway.testing.chaos.verdict import Branch, judge
from floodway.testing.chaos.watch import Strike, Watch
from floodway.testing.chaos.workload import HELD_BACK, Workload, build

PATIENCE_S = 120.0
"""How long a flow has to start, or to go on after a kill."""

GONE_S = 60.0
"""How long the processes of a dead driver have to go; a JVM takes its time."""

LEAST_S = 2.0
"""The items last at least so long."""

START_S, END_S = 15.0, 10.0
"""About how long the flow takes to start, and to end, to plan with."""

LEAST_RATE = 2000
"""A flow that takes fewer records a second at its end is taken for one that hangs."""

Progress = Callable[[float, float, str], None]
"""Told how it goes: how much is done, of how much, and what in words."""


class Order(msgspec.Struct, frozen=True):
    """What is wanted.

    Attributes
    ----------
    kills
        How many tasks to kill.
    records
        How many items the flow gets.
    driver_kills
        How many times to kill the driver, with its Spark.
    seed
        Decides whom to kill, and how long to wait before.
    dop
        Tasks per stage.
    epoch_ms
        How often an epoch is committed.
    state_memory
        How many bytes of state a task keeps in memory; None for all.
    folder
        Where everything is kept; a temporary folder, removed if all is well, if not given.
    switches
        Whether a stage changes its paradigm with every kill, and in between.
    """

    kills: int = 30
    records: int = 500_000
    driver_kills: int = 0
    seed: int = 1
    dop: int = 2
    epoch_ms: int = 200
    state_memory: int | None = None
    folder: str | None = None
    switches: bool = False


class Times(msgspec.Struct, frozen=True):
    """Milliseconds: the middle, almost the worst, and all."""

    p50: float | None
    p99: float | None
    all: list[float]

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Times":
        """Return the figures of times in seconds.

        >>> Times.of([0.5, 0.25, 2.0])
        Times(p50=500.0, p99=2000.0, all=[500.0, 250.0, 2000.0])
        """
        ms = [round(1000 * each, 1) for each in seconds]
        return cls(_percentile(ms, 50), _percentile(ms, 99), ms)


def _percentile(values: Sequence[float], percent: float) -> float | None:
    ranked = sorted(values)
    return ranked[math.ceil(len(ranked) * percent / 100) - 1] if ranked else None


class Result(msgspec.Struct, frozen=True):
    """What came of it.

    Attributes
    ----------
    kills
        How many tasks were killed.
    driver_kills
        How often the driver was.
    while_recovering
        How many of all kills hit a flow that had not recovered from the one before.
    lost, duplicated, wrong
        Results that are missing, there again, or neither; of all branches together.
    recovery_ms
        From the kill of a task until all tasks ran again. Kills that were overtaken by one of the
        driver are not in it.
    committed_ms
        From the kill of a task until an epoch was committed again.
    driver_recovery_ms
        From the kill of the driver until all tasks ran again, under a new driver and a new Spark.
    epochs
        How many epochs were committed.
    recoveries
        How often tasks were replaced.
    switches
        How often a stage changed its paradigm.
    seconds
        From the first moment at which the flow ran to its end.
    killed
        How many tasks of each stage were killed.
    left
        Processes that were still there a minute after their driver was gone.
    branches
        What is wrong, branch by branch.
    failure
        What made the flow fail or hang, if it did.
    folder
        Where the results, the checkpoint and the log are, if they were kept.
    order
        What was asked for.
    """

    kills: int
    driver_kills: int
    while_recovering: int
    lost: int
    duplicated: int
    wrong: int
    recovery_ms: Times
    committed_ms: Times
    driver_recovery_ms: Times
    epochs: int
    recoveries: int
    switches: int
    seconds: float
    killed: dict[str, int]
    left: int
    branches: dict[str, Branch]
    failure: str | None
    folder: str | None
    order: Order

    @property
    def sound(self) -> bool:
        """Whether nothing was lost, doubled, wrong or left, and every kill was survived."""
        asked = (self.order.kills, self.order.driver_kills)
        return (
            all(branch.sound for branch in self.branches.values())
            and (self.kills, self.driver_kills) == asked
            and not self.left
            and self.failure is None
            and (not self.order.switches or self.switches >= self.kills)
        )


def run(order: Order, progress: Progress) -> Result:
    """Run the flow, kill what was ordered, and judge the results."""
    folder = _folder(order)
    try:
        result = _Run(order, folder, progress).perform()
    except BaseException:
        if order.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if order.folder is None and result.sound:
        shutil.rmtree(folder)
        return result
    return msgspec.structs.replace(result, folder=str(folder))


def _folder(order: Order) -> Path:
    if order.folder is None:
        return Path(tempfile.mkdtemp(prefix="floodway-chaos-"))
    folder = Path(order.folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise OptionError(f"{folder} is not empty", remedy="name a folder that is, or a new one")
    return folder


class _Failed(Exception):
    """The flow has not survived."""


class _Run:
    """One run of the flow, from its start to the verdict."""

    def __init__(self, order: Order, folder: Path, progress: Progress) -> None:
        self._order, self._folder, self._progress = order, folder, progress
        workload = Workload(
            str(folder),
            order.records,
            1,
            order.dop,
            order.epoch_ms,
            order.state_memory,
            order.switches,
        )
        stages = [stage.name for stage in Plan.of(build(workload)).stages]
        self._plan = plan(
            stages, kills=order.kills, driver_kills=order.driver_kills, seed=order.seed
        )
        lasts = max(expected_s(self._plan), LEAST_S)
        rate = order.records * (1 - HELD_BACK) / lasts
        self._workload = msgspec.structs.replace(workload, per_second=rate)
        self._watch = Watch()
        self._processes: list[FlowProcess] = []
        self._left = 0
        self._judging = False

    def perform(self) -> Result:
        """Do everything."""
        failure = None
        began = time.monotonic()
        try:
            self._start()
            self._await(lambda: self._watch.state == "running", "start")
            began = time.monotonic()
            self._strike_all()
            self._workload.release.touch()
            self._finish()
        except _Failed as error:
            failure = str(error)
        finally:
            seconds = time.monotonic() - began
            self._clear()
        self._judging = True
        self._tell("comparing the results with a plain loop")
        return self._result(failure, seconds)

    def _start(self) -> None:
        self._tell("starting Spark and the flow")
        process = FlowProcess(self._workload, self._folder / "log", self._watch.hear)
        self._watch.follow(process)
        self._processes.append(process)

    # ------------------------------------------------------------------ killing

    def _strike_all(self) -> None:
        for kill in self._plan:
            self._pause(kill)
            if kill.stage is None:
                self._watch.strike_driver()
                self._start()
            else:
                self._await(partial(self._watch.strike, kill), "have a task to kill")
            self._tell(f"killed {kill.stage or 'the driver'}")
        self._await(lambda: self._watch.settled, "go on after the last kill")

    def _pause(self, kill: Kill) -> None:
        """Wait for the moment of a kill."""
        strikes = self._watch.strikes
        if kill.soon:
            until = strikes[-1].at + kill.delay_s
        else:
            self._await(lambda: self._watch.settled, "go on after a kill")
            until = time.monotonic() + kill.delay_s
        self._watch.wait(lambda: time.monotonic() >= until, kill.delay_s + 1)

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        if self._watch.wait(condition, PATIENCE_S):
            return
        code = self._processes[-1].exit_code
        if code is None:
            raise _Failed(f"the flow did not {what} within {PATIENCE_S:.0f} s")
        raise _Failed(f"the flow ended ({code}): {self._watch.error}")

    # ------------------------------------------------------------------ the end

    def _finish(self) -> None:
        self._tell("all kills are done; waiting for the last results")
        code = self._processes[-1].wait(max(PATIENCE_S, self._order.records / LEAST_RATE))
        if code != 0:
            how = "it hangs" if code is None else f"exit code {code}"
            raise _Failed(f"the flow did not end well: {how}: {self._watch.error}")

    def _clear(self) -> None:
        """See to it that no process is left, and count those that did not go by themselves."""
        self._tell("waiting for all processes to go")
        alive = self._processes[-1].exit_code is None
        for process in self._processes[: -1 if alive else None]:
            self._left += len(process.wait_gone(GONE_S))
        for process in self._processes:
            process.end()

    def _result(self, failure: str | None, seconds: float) -> Result:
        strikes = self._watch.strikes
        tasks = [strike for strike in strikes if strike.stage is not None]
        drivers = [strike for strike in strikes if strike.stage is None]
        branches = judge(self._workload)
        return Result(
            kills=len(tasks),
            driver_kills=len(drivers),
            while_recovering=sum(not strike.calm for strike in strikes),
            lost=sum(branch.lost for branch in branches.values()),
            duplicated=sum(branch.duplicated for branch in branches.values()),
            wrong=sum(branch.wrong for branch in branches.values()),
            recovery_ms=Times.of(_until_running(tasks)),
            committed_ms=Times.of(
                [s.committed_at - s.at for s in tasks if s.committed_at and not s.overtaken]
            ),
            driver_recovery_ms=Times.of(_until_running(drivers)),
            epochs=len(self._watch.epochs),
            recoveries=self._watch.recoveries,
            switches=self._watch.switches,
            seconds=round(seconds, 1),
            killed=dict(Counter(strike.stage or "" for strike in tasks)),
            left=self._left,
            branches=branches,
            failure=failure,
            folder=None,
            order=self._order,
        )

    def _tell(self, what: str) -> None:
        """Say how far it is, in seconds that were planned: a driver takes longer than a task."""
        strikes = len(self._watch.strikes)
        planned = START_S + expected_s(self._plan) + END_S
        done = START_S * (self._watch.committed > 0) + expected_s(self._plan[:strikes])
        note = f"{strikes} of {len(self._plan)} kills, {what}"
        self._progress(planned if self._judging else done, planned, note)


def _until_running(strikes: Sequence[Strike]) -> list[float]:
    return [s.running_at - s.at for s in strikes if s.running_at is not None and not s.overtaken]
