"""A flow that runs: the driver's side.

The driver starts the tasks, leads them (`Coordinator`), keeps their reports (`Board`) and sees to
it that nothing is left when it is over. It never touches a record, except in stages whose connector
has to run here: standard input and output, and lists.
"""

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from floodway.core.duration import Duration, to_ms
from floodway.core.errors import EngineError, FloodwayError, OptionError
from floodway.engine.actions import Action, Launch
from floodway.engine.arrivals import Arrivals
from floodway.engine.checkpoint import Checkpoint, check_connectors
from floodway.engine.clock import SteadyClock
from floodway.engine.control import Offer, Switch, Switched, Throttle, Tune
from floodway.engine.coordinator import Coordinator, Epoching, State
from floodway.engine.datastream.settings import Settings
from floodway.engine.launcher import Launcher
from floodway.engine.leader import Leader
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.endpoint import Endpoint
from floodway.engine.metrics.health import Telling
from floodway.engine.metrics.report import decode_report
from floodway.engine.metrics.status import JoinKind, Status
from floodway.engine.metrics.summary import summarize
from floodway.engine.opstream.jobs import Operations
from floodway.engine.paradigms import Paradigms
from floodway.engine.rud.records import CommitRecord
from floodway.engine.scheduler.live import LiveScheduler
from floodway.engine.scheduler.story import Entry
from floodway.engine.scratch import make_scratch, remove_scratch
from floodway.engine.shipping import pack
from floodway.engine.spark.authentication import is_local
from floodway.engine.spark.context import Lease
from floodway.engine.transport.sockets import Keys, Mailbox, Network
from floodway.engine.whereabouts import Whereabouts
from floodway.model.flow import Flow
from floodway.model.tuning import Paradigm, Pin, Tuning
from floodway.operators.base import Operator
from floodway.operators.lookup_join import LookupJoin
from floodway.operators.sink import Sink
from floodway.operators.stream_join import StreamJoin
from floodway.operators.table_join import TableJoin
from floodway.plan.configuration import Configuration
from floodway.plan.stages import Plan, Stage

log = logging.getLogger(__name__)

Transport = Literal["auto", "ipc", "tcp"]
"""How tasks talk: Unix sockets on one host, TCP with CURVE between hosts; auto asks the master."""

LEAVE_SECONDS = 30.0
"""How long a process that ends waits for a flow that it has not waited for."""

TELL_SECONDS = 1.0
"""How often the driver looks whether there is something to warn of."""


class Job:
    """A flow that runs, or has run.

    Made by `floodway.Flow.run` or `start`; a context manager, which stops the flow at the end.

    Attributes
    ----------
    plan
        What runs.
    board
        What the tasks have reported.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        pulse_ms: int = 100,
        metrics_port: int | None = 0,
        recent_s: float = 30.0,
        transport: Transport = "auto",
        checkpoint: str | PathLike[str] | None = None,
        recovery: bool = True,
        epoch_ms: int = 1000,
        story: str | PathLike[str] | None = None,
        planned_ns: Mapping[str, float] | None = None,
    ) -> None:
        if checkpoint is not None and not recovery:
            raise OptionError(
                "a checkpoint is there to recover from, and recovery is off",
                remedy="leave out one of checkpoint= and recovery=False",
            )
        self.plan = plan
        self._transport = transport
        self._master = master
        self._conf = dict(conf or {})
        self._settings = settings or Settings()
        self._pulse_ms, self._epoch_ms = pulse_ms, epoch_ms
        self._recovery = recovery
        self._checkpoint = None if checkpoint is None else Checkpoint(checkpoint, plan)
        self._clock = SteadyClock()
        self._coordinator = Coordinator(
            plan, pulse_ms=pulse_ms, silent_ms=int(self._settings.silent_s * 1000)
        )
        self.board = Board(
            plan.flow,
            [_info(plan, stage, (planned_ns or {}).get(stage.name)) for stage in plan.stages],
            recent_s=recent_s,
        )
        self._metrics_port = metrics_port
        self._endpoint: Endpoint | None = None
        self._orders: deque[Callable[[Leader], list[Action]]] = deque()
        self._losses: deque[tuple[int, int, str]] = deque()
        self._over = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="floodway-driver", daemon=True)
        self._lease: Lease | None = None
        self._paradigms = Paradigms(plan)
        self._operations: Operations | None = None
        self._scheduler = LiveScheduler(plan, self._wish, prepare=self._prepare, file=story)
        self._start_epoch = 0
        self._telling, self._told_s = Telling(), 0.0
        self.error: FloodwayError | None = None

    # ------------------------------------------------------------------ life

    def start(self) -> Self:
        """Start the flow and return at once; what is known to fail is refused here."""
        scratch: Path | None = None
        try:
            record = None if self._checkpoint is None else self._checkpoint.open()
            check_connectors(self.plan, record)
            self._shipped = pack(self.plan)
            scratch = self._scratch = make_scratch()
            # What runs in this process is lost with it, and needs no other recovery.
            if self._checkpoint is None and self._recovery and self.plan.tasks:
                self._checkpoint = Checkpoint(scratch / "recovery", self.plan, lasting=False)
                self._checkpoint.open()
            if self._checkpoint is not None:
                self._go_on(self._checkpoint, record)
        except BaseException:
            self._close_checkpoint()
            if scratch is not None:
                remove_scratch(scratch)
            raise
        atexit.register(self._leave)
        self._thread.start()
        return self

    def _go_on(self, checkpoint: Checkpoint, record: CommitRecord | None) -> None:
        """Let the flow commit to a checkpoint, and go on from a record of it."""
        self._start_epoch = 0 if record is None else record.epoch
        self._settings = msgspec.structs.replace(
            self._settings,
            vault=str(checkpoint.path),
            lasting=checkpoint.lasting,
            nonce=checkpoint.nonce,
        )
        epoching = Epoching(
            self._epoch_ms,
            record,
            int(self._settings.silent_s * 1000),
            checkpoint.attempts,
            lasting=checkpoint.lasting,
            folder=str(checkpoint.path),
            machine=Whereabouts.here().machine,
        )
        self._coordinator = Coordinator(self.plan, pulse_ms=self._pulse_ms, epoching=epoching)

    def _close_checkpoint(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _leave(self) -> None:
        """Stop with the process, in order: sinks are closed, and nothing is left."""
        self.stop()
        self._thread.join(LEAVE_SECONDS)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flow is over; return whether it is. Raise what made it fail."""
        if not self._over.wait(timeout):
            return False
        self._thread.join()
        if self.error is not None:
            raise self.error
        return True

    def wait_running(self, timeout: float | None = None) -> bool:
        """Wait until the flow runs, or is over; return whether that is so."""
        return self._started.wait(timeout)

    def drain(self) -> None:
        """Let the sources read no more, and what is there come out.

        With a checkpoint the flow stops after one more epoch and can go on from there.
        """
        self._orders.append(lambda leader: leader.coordinator.drain())

    def stop(self) -> None:
        """Stop now; what is on its way is lost, unless there is a checkpoint to go on from."""
        self._orders.append(lambda leader: leader.coordinator.stop())

    def tune(
        self, operator: str, *, b_out: int | None = None, linger: Duration | None = None
    ) -> None:
        """Batch an operator's output differently, from now on."""
        known = [op.name for op in self.plan.graph.operators]
        if operator not in known:
            raise OptionError(
                f"the flow has no operator {operator!r}", remedy=f"use one of: {', '.join(known)}"
            )
        linger_us = None if linger is None else to_ms(linger, what="linger", zero=True) * 1000
        tune = Tune(operator, b_out, linger_us)
        self._orders.append(lambda leader: leader.wish(tune))

    def throttle(self, source: str, per_second: float | None) -> None:
        """Let each task of a source bring in at most so many records a second."""
        known = [op.name for op in self.plan.graph.sources]
        if source not in known:
            raise OptionError(
                f"the flow has no source {source!r}", remedy=f"use one of: {', '.join(known)}"
            )
        throttle = Throttle(source, per_second)
        self._orders.append(lambda leader: leader.wish(throttle))

    def switch(self, stage: str, paradigm: Paradigm) -> None:
        """Let a stage, named itself or by one of its operators, work in a paradigm from now on.

        In the paradigm ``data`` its tasks process records as they come; in ``operation`` they
        collect them, and micro-batches on Spark do all that needs no state. Results are the same.
        """
        order = self._paradigms.order(stage, paradigm)
        if paradigm == "operation" and self._lease is not None and not self._lease.spare:
            raise EngineError(
                f"Spark has no slot for micro-batches: the tasks of flows use all of "
                f"{self._lease.context.master}",
                remedy="give Spark more slots, or leave out the master",
            )
        self._scheduler.pin(order.stage, paradigm)
        if paradigm == "operation":
            self._prepare(order.stage)
        self._wish(order)

    def _wish(self, wish: Tune | Switch) -> None:
        self._orders.append(lambda leader: leader.wish(wish))

    def _prepare(self, stage: str) -> None:
        if self._operations is not None:
            self._operations.prepare(stage)

    @property
    def story(self) -> list[Entry]:
        """What the scheduler has decided lately, with the numbers that made it; oldest first."""
        return self._scheduler.story.entries

    @property
    def paradigms(self) -> Mapping[str, Paradigm]:
        """The paradigm in which each stage works, by the word of its tasks."""
        return self._paradigms.of_stages

    @property
    def state(self) -> State:
        """What the flow is doing."""
        return self._coordinator.state

    @property
    def status(self) -> Status:
        """What the tasks have reported, put together."""
        return self.board.status(self._seconds())

    @property
    def summary(self) -> str:
        """What has happened: what came in and out, what got lost, and why to worry, if at all."""
        return summarize(self.status, self.state)

    @property
    def url(self) -> str | None:
        """Where metrics are served, if they are."""
        return self._endpoint.url if self._endpoint is not None else None

    @property
    def committed(self) -> int:
        """The last committed epoch; 0 if there is none."""
        return self._coordinator.committed

    @property
    def start_epoch(self) -> int:
        """The epoch from which the flow has gone on; 0 if it began at the beginning."""
        return self._start_epoch

    @property
    def recovers(self) -> bool:
        """Whether the flow survives the loss of tasks."""
        return self._coordinator.recovers

    @property
    def recoveries(self) -> int:
        """How often the flow has gone back to a committed epoch because a task was lost."""
        return self._coordinator.recoveries

    @property
    def settings(self) -> Settings:
        """What driver and tasks go by."""
        return self._settings

    @property
    def waiting(self) -> list[str]:
        """The tasks that wait for a free slot of Spark."""
        return self._coordinator.queued

    @property
    def restoring(self) -> tuple[int, int] | None:
        """How many bytes of state have been read, of how many; None while none is read."""
        parts = list(self._coordinator.restoring.values())
        return (sum(p[0] for p in parts), sum(p[1] for p in parts)) if parts else None

    @property
    def processes(self) -> list[tuple[str, int]]:
        """Host and process of every task."""
        return self._coordinator.processes

    @property
    def tasks(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Host and process of every task that is there, by its stage and index."""
        coordinator = self._coordinator
        found = {name: coordinator.process(task) for task, name in coordinator.names.items()}
        return {name: process for name, process in found.items() if process is not None}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._over.is_set():
            self.stop()
        self._over.wait()

    # ------------------------------------------------------------------ the driver's thread

    def _run(self) -> None:
        scratch = self._scratch
        try:
            self._lead(scratch)
        except FloodwayError as error:
            self._fail(error)
        except Exception as error:
            log.exception("the driver failed")
            problem = f"the driver failed: {type(error).__name__}: {error}"
            remedy = "report this as a fault of Floodway, with the log"
            self._fail(EngineError(problem, remedy=remedy))
        finally:
            remove_scratch(scratch)
            self._close_checkpoint()
            self.error = self._coordinator.failure or self.error
            self._started.set()
            self._over.set()
            atexit.unregister(self._leave)

    def _fail(self, error: FloodwayError) -> None:
        self.error = error
        self._coordinator.fail(error)

    def _lead(self, scratch: Path) -> None:
        try:
            if self._metrics_port is not None:
                self._endpoint = Endpoint(
                    self.board,
                    port=self._metrics_port,
                    story=lambda: self.story,
                    clock=self._seconds,
                ).__enter__()
            if self.plan.tasks:
                self._lease = Lease.take(
                    self.plan.flow, self.plan.tasks, master=self._master, conf=self._conf
                )
            network = self._network(scratch)
            with Mailbox(network, "driver") as mailbox:
                self._lead_with(mailbox, network)
        finally:
            if self._endpoint is not None:
                self._endpoint.close()
            if self._lease is not None:
                self._lease.release()

    def _network(self, scratch: Path) -> Network:
        context = self._lease.context if self._lease is not None else None
        local = context is None or is_local(context.master)
        if self._transport == "ipc" or (self._transport == "auto" and local):
            return Network(folder=str(scratch))
        host = "127.0.0.1"
        if context is not None:
            host = context.getConf().get("spark.driver.host", host)
        return Network(host=host, keys=Keys.make(), towards=host, announce=self._settings.announce)

    def _lead_with(self, mailbox: Mailbox, network: Network) -> None:
        launcher = Launcher(
            self.plan,
            self._shipped,
            self._lease,
            network,
            mailbox.address,
            self._settings,
            self._coordinator,
            lambda *lost: self._losses.append(lost),
        )
        leader = Leader(
            self.plan,
            self._coordinator,
            mailbox,
            commits=None if self._checkpoint is None else self._checkpoint.commits,
            launch=launcher.launch,
            report=self._reported,
            offered=self._offered,
            switched=self._switched,
        )
        leader.orders, leader.losses = self._orders, self._losses
        try:
            if self._lease is not None:
                self._operations = self._start_operations(self._lease, leader)
                mailbox.watch(self._operations.descriptor)
            leader.carry_out([Launch(task, 0) for task in self._coordinator.names], 0)
            self._loop(leader, launcher, mailbox)
        finally:
            self._scheduler.close()
            if self._operations is not None:
                mailbox.unwatch(self._operations.descriptor)
                self._operations.close()
            launcher.wind_up(lambda: leader.hear_the_rest(self._now_ms()))
            self.board.returns = dict(self._coordinator.returns)
            self.board.end()
            self._tell()

    def _start_operations(self, lease: Lease, leader: Leader) -> Operations:
        self._scheduler.observer.slots = max(lease.spare, 1)
        return Operations.on_spark(
            self.plan,
            self._shipped,
            lease.context,
            self._scratch / "batches",
            leader.tell,
            slots=lambda: lease.spare,
            alive=lambda: lease.alive,
        )

    def _reported(self, data: bytes) -> None:
        report = decode_report(data)
        self.board.take(report, now=self._seconds())
        self._scheduler.take(report)

    def _tell(self) -> None:
        """Warn of what the flow loses, each thing once."""
        now = self._seconds()
        for reason in self._telling.fresh(self.board.health(now), now):
            log.warning("%s", reason)

    def _switched(self, message: Switched) -> None:
        self._paradigms.switched(message)
        self._scheduler.switched(message, self._now_ms())

    def _now_ms(self) -> int:
        return self._clock.now() // 1000

    def _seconds(self) -> float:
        return self._clock.now() / 1e6

    def _offered(self, offer: Offer) -> None:
        if self._operations is not None:
            self._operations.offer(offer)

    def _loop(self, leader: Leader, launcher: Launcher, mailbox: Mailbox) -> None:
        coordinator = self._coordinator
        arrivals = Arrivals(coordinator, launcher, self._settings.patience_s)
        while not coordinator.over and coordinator.state != "stopping":
            now_ms = self._now_ms()
            leader.turn(now_ms)
            launcher.note()
            if self._operations is not None:
                self._operations.turn()
            if coordinator.state == "running" and self._operations is not None:
                self._scheduler.turn(now_ms)
            absent = arrivals.look(now_ms, time.monotonic())
            self.board.waiting = coordinator.queued
            self.board.returns = dict(coordinator.returns)
            if absent is not None:
                leader.carry_out(coordinator.fail(absent), now_ms)
            if coordinator.state == "running":
                self._started.set()
            if time.monotonic() - self._told_s > TELL_SECONDS:
                self._told_s = time.monotonic()
                self._tell()
            mailbox.wait(10)
        if coordinator.state == "stopping":
            coordinator.state = "ended"


def start(
    flow: Flow,
    *,
    dop: int | None = None,
    b_out: int | None = None,
    linger: Duration | None = None,
    configuration: Configuration | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    metrics_port: int | None = 0,
    input_cache: int = Settings().input_cache,
    settings: Settings | None = None,
    recent_s: float = 30.0,
    transport: Transport = "auto",
    checkpoint: str | PathLike[str] | None = None,
    recovery: bool = True,
    epoch: Duration = "1s",
    patience: Duration | None = None,
    state_memory: int | None = None,
    paradigm: Pin | None = None,
    story: str | PathLike[str] | None = None,
    planned_ns: Mapping[str, float] | None = None,
) -> Job:
    """Start a flow and return its handle at once; see `Flow.run` for the options.

    `planned_ns` is what a record should cost each stage, for the status to compare with.
    """
    given = configuration or Configuration()
    default = Tuning(dop=dop, b_out=b_out, linger=linger, paradigm=paradigm).over(given.default)
    plan = Plan.of(flow, Configuration(default, given.operators))
    settings = settings or Settings(input_cache=input_cache, state_memory=state_memory)
    if patience is not None:
        seconds = to_ms(patience, what="patience") / 1000
        settings = msgspec.structs.replace(settings, patience_s=seconds)
    return Job(
        plan,
        master=master,
        conf=conf,
        settings=settings,
        metrics_port=metrics_port,
        recent_s=recent_s,
        transport=transport,
        checkpoint=checkpoint,
        recovery=recovery,
        epoch_ms=to_ms(epoch, what="epoch"),
        story=story,
        planned_ns=planned_ns,
    ).start()


def _info(plan: Plan, stage: Stage, planned_ns: float | None) -> StageInfo:
    spreads = sorted({str(exchange.partitioning) for exchange in plan.inputs(stage)})
    kinds = {operator.name: _join_kind(operator) for operator in stage.operators}
    return StageInfo(
        stage.name,
        tuple(operator.name for operator in stage.operators),
        stage.dop,
        ", ".join(spreads) or "source",
        tuple(op.name for op in stage.operators if isinstance(op, Sink)),
        tuple(op.name for op in stage.sources),
        planned_ns,
        {
            op.name: tuple(edge.operator.name for edge in plan.graph.inputs[op.name])
            for op in stage.operators
            if len(plan.graph.inputs[op.name]) > 1
        },
        {name: kind for name, kind in kinds.items() if kind is not None},
        {operator.name: str(operator.place) for operator in stage.operators},
        tuple(op.name for op in stage.sources if op.timed),
    )


def _join_kind(operator: Operator) -> JoinKind | None:
    """Return which kind of inner join an operator is; others give something for every record."""
    match operator:
        case StreamJoin(how="inner"):
            return "streams"
        case LookupJoin(how="inner"):
            return "lookup"
        case TableJoin(how="inner"):
            return "tables"
    return None
