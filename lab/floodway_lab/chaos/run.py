"""Let things go wrong with a flow that runs, and see that its results are right all the same."""

import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from floodway.core.errors import OptionError
from floodway.plan import Plan
from floodway.testing.servers import ServerUnavailable
from floodway_lab.chaos.kinds import KINDS, Kind, mixed
from floodway_lab.chaos.means import Means
from floodway_lab.chaos.outside import write_letters
from floodway_lab.chaos.processes import FlowProcess
from floodway_lab.chaos.result import Order, Result, Suffered, by_kind
from floodway_lab.chaos.schedule import Fault, expected_s, plan
from floodway_lab.chaos.striking import SILENT_S, Striker
from floodway_lab.chaos.verdict import Branch, judge
from floodway_lab.chaos.watch import Watch
from floodway_lab.chaos.workload import HELD_BACK, Workload, build

PATIENCE_S = 180.0
"""How long a flow has to start, or to go on after a fault."""

GONE_S = 60.0
"""How long the processes of a dead driver have to go; a JVM takes its time."""

LEAST_S = 2.0
"""The items last at least so long."""

START_S, END_S = 15.0, 10.0
"""About how long the flow takes to start, and to end, to plan with."""

LEAST_RATE = 2000
"""A flow that takes fewer records a second at its end is taken for one that hangs."""

LETTERS_SHARE = 0.1
"""This part of the items comes a second time, through Kafka, if there is one."""

MOST_TASKS = 14
"""A flow has at most so many stages here."""

Progress = Callable[[float, float, str], None]
"""Told how it goes: how much is done, of how much, and what in words."""


def run(order: Order, progress: Progress) -> Result:
    """Run the flow, let happen what was ordered, and judge the results."""
    kinds: set[Kind] = {kind for kind, count in order.faults.items() if count}
    folder = _folder(order)
    try:
        progress(0, 1, "starting what faults take")
        wanted = kinds | set(KINDS) if order.mixed else kinds
        optional = wanted - kinds
        with Means(wanted, folder, tasks=MOST_TASKS * order.dop, optional=optional) as means:
            result = _Run(order, folder, means, progress).perform()
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

    def __init__(self, order: Order, folder: Path, means: Means, progress: Progress) -> None:
        self._order, self._folder, self._progress = order, folder, progress
        self._means = means
        self._wanted = dict(order.faults)
        for kind, count in mixed(order.mixed, without=means.without).items() if order.mixed else ():
            self._wanted[kind] = self._wanted.get(kind, 0) + count
        self._wanted = {kind: count for kind, count in self._wanted.items() if count}
        self._watch = Watch()
        self._striker = Striker(self._watch, means)
        self._workload = self._described()
        self._processes: list[FlowProcess] = []
        self._left = self._unmade = 0
        self._judging = False

    def _described(self) -> Workload:
        """Return the workload, at a rate at which the items last as long as the faults do."""
        order, means = self._order, self._means
        workload = Workload(
            str(self._folder),
            order.records,
            1,
            order.dop,
            order.epoch_ms,
            order.state_memory,
            order.switches,
            kafka=means.kafka.servers if means.kafka is not None else "",
            redis=means.redis.url if means.redis is not None else "",
            letters=int(order.records * LETTERS_SHARE) if means.kafka is not None else 0,
            master=means.cluster.master if means.cluster is not None else "",
            announce=means.relay.host if means.relay is not None else "",
            silent_s=SILENT_S if "stop" in self._wanted else Workload("", 0, 0).silent_s,
        )
        stages = [stage.name for stage in Plan.of(build(workload)).stages]
        self._plan = plan(stages, self._wanted, order.seed)
        rate = order.records * (1 - HELD_BACK) / max(expected_s(self._plan), LEAST_S)
        return msgspec.structs.replace(workload, per_second=rate)

    def perform(self) -> Result:
        """Do everything."""
        failure = None
        began = time.monotonic()
        try:
            if self._workload.kafka:
                write_letters(self._workload.kafka, self._workload.letters)
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
            self._striker.close()
            self._clear()
        self._judging = True
        self._tell("comparing the results with a plain loop")
        branches: dict[str, Branch] = {}
        try:
            self._means.bring_back()  # a run that failed may have left them killed
            branches = judge(self._workload)
        except ServerUnavailable as error:
            failure = f"{failure or 'nobody can see the results'}; {error.reason}"
        return self._result(branches, failure, seconds)

    def _start(self) -> None:
        self._tell("starting Spark and the flow")
        process = FlowProcess(
            self._workload, self._folder / "log", self._watch.hear, self._means.environment
        )
        self._watch.follow(process)
        self._processes.append(process)

    # ------------------------------------------------------------------ faults

    def _strike_all(self) -> None:
        for number, fault in enumerate(self._plan):
            self._pause(fault)
            if self._workload.dry:
                self._unmade = len(self._plan) - number
                break
            what = f"have anybody for: {fault.kind}"
            self._await(
                partial(self._striker.strike, fault), what, why=lambda: self._striker.missed
            )
            self._tell(f"{fault.kind}: {self._watch.strikes[-1].what}")
            if fault.kind == "driver":
                self._start()
        self._await(lambda: self._watch.settled, "go on after the last fault")

    def _pause(self, fault: Fault) -> None:
        """Wait for the moment of a fault."""
        strikes = self._watch.strikes
        if fault.soon:
            until = strikes[-1].at + fault.delay_s
        else:
            self._await(lambda: self._watch.settled, "go on after a fault")
            until = time.monotonic() + fault.delay_s
        self._watch.wait(lambda: time.monotonic() >= until, fault.delay_s + 1)

    def _await(
        self, condition: Callable[[], bool], what: str, why: Callable[[], str] = str
    ) -> None:
        if self._watch.wait(condition, PATIENCE_S):
            return
        if self._watch.broken is not None:
            raise _Failed(self._watch.broken)
        code = self._processes[-1].exit_code
        strikes = self._watch.strikes
        last = f", last: {strikes[-1].kind} {strikes[-1].what}" if strikes else ""
        if code is None:
            because = f" ({why()})" if why() else ""
            raise _Failed(f"the flow did not {what} within {PATIENCE_S:.0f} s{because}{last}")
        raise _Failed(f"the flow ended ({code}{last}): {self._watch.error}")

    # ------------------------------------------------------------------ the end

    def _finish(self) -> None:
        self._tell("all faults are done; waiting for the last results")
        code = self._processes[-1].wait(max(PATIENCE_S, self._order.records / LEAST_RATE))
        if code != 0:
            how = "it hangs" if code is None else f"exit code {code}"
            raise _Failed(f"the flow did not end well: {how}: {self._watch.error}")

    def _clear(self) -> None:
        """See to it that no process is left, and count those that did not go by themselves."""
        self._tell("waiting for all processes to go")
        alive = bool(self._processes) and self._processes[-1].exit_code is None
        for process in self._processes[: -1 if alive else None]:
            self._left += len(process.wait_gone(GONE_S))
        for process in self._processes:
            process.end()

    def _result(self, branches: dict[str, Branch], failure: str | None, seconds: float) -> Result:
        strikes = self._watch.strikes
        everything = Suffered.of(strikes)
        return Result(
            faults=by_kind(strikes, self._wanted),
            wanted=self._wanted,
            without=self._means.without,
            while_recovering=sum(not strike.calm for strike in strikes),
            lost=sum(branch.lost for branch in branches.values()),
            duplicated=sum(branch.duplicated for branch in branches.values()),
            wrong=sum(branch.wrong for branch in branches.values()),
            running_ms=everything.running_ms,
            committed_ms=everything.committed_ms,
            epochs=len(self._watch.epochs),
            recoveries=self._watch.recoveries,
            switches=self._watch.switches,
            seconds=round(seconds, 1),
            left=self._left,
            branches=branches,
            failure=failure,
            folder=None,
            order=self._order,
            unmade=self._unmade,
        )

    def _tell(self, what: str) -> None:
        """Say how far it is, in seconds that were planned: a driver takes longer than a task."""
        strikes = len(self._watch.strikes)
        planned = START_S + expected_s(self._plan) + END_S
        done = START_S * (self._watch.committed > 0) + expected_s(self._plan[:strikes])
        note = f"{strikes} of {len(self._plan)} faults, {what}"
        self._progress(planned if self._judging else done, planned, note)
