"""A flow that runs: the driver's side.

The driver starts the tasks, leads them (`Coordinator`), keeps their reports (`Board`) and sees to
it that nothing is left when it is over. It never touches a record, except in stages whose connector
has to run here: standard input and output, and lists.
"""

import atexit
import logging
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
import psutil

from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.core.duration import Duration, to_ms
from floodway.core.errors import ConnectorError, EngineError, FloodwayError, OptionError
from floodway.engine.control import (
    Message,
    Report,
    Stop,
    Throttle,
    Tune,
    from_frame,
    to_frame,
)
from floodway.engine.coordinator import Action, Coordinator, State
from floodway.engine.datastream.runner import Runner
from floodway.engine.datastream.settings import Settings
from floodway.engine.datastream.task import Numbering
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.endpoint import Endpoint
from floodway.engine.metrics.report import decode_report
from floodway.engine.metrics.status import Status
from floodway.engine.scratch import make_scratch, remove_scratch
from floodway.engine.shipping import pack
from floodway.engine.spark.context import Lease, is_local
from floodway.engine.spark.launch import StageJob
from floodway.engine.spark.worker import Shipment
from floodway.engine.transport.frame import FrameError
from floodway.engine.transport.sockets import Keys, Mailbox, Network
from floodway.model.flow import Flow
from floodway.model.tuning import Tuning
from floodway.operators.sink import Sink
from floodway.operators.source import Source
from floodway.plan.configuration import Configuration
from floodway.plan.stages import Plan, Stage

log = logging.getLogger(__name__)

Transport = Literal["auto", "ipc", "tcp"]
"""How tasks talk: Unix sockets on one host, TCP with CURVE between hosts; auto asks the master."""

STOP_SECONDS = 5.0
"""How long tasks have to stop before Spark is asked to kill them."""

LEAVE_SECONDS = 30.0
"""How long a process that ends waits for a flow that it has not waited for."""


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
    ) -> None:
        self.plan = plan
        self._transport = transport
        self._master = master
        self._conf = dict(conf or {})
        self._settings = settings or Settings()
        self._coordinator = Coordinator(plan, pulse_ms=pulse_ms)
        self._names = {
            Numbering(plan).number(stage.name, index): (stage, index)
            for stage in plan.stages
            for index in range(stage.dop)
        }
        self.board = Board(
            plan.flow, [_info(plan, stage) for stage in plan.stages], recent_s=recent_s
        )
        self._metrics_port = metrics_port
        self._endpoint: Endpoint | None = None
        self._asked: deque[str] = deque()
        self._tunes: deque[Message] = deque()
        self._lost: deque[tuple[str, str | None]] = deque()
        self._over = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="floodway-driver", daemon=True)
        self._jobs: list[StageJob] = []
        self._local: list[threading.Thread] = []
        self._lease: Lease | None = None
        self._told_warnings = 0
        self._connected: set[int] = set()
        self.error: FloodwayError | None = None

    # ------------------------------------------------------------------ life

    def start(self) -> Self:
        """Start the flow and return at once; what is known to fail is refused here."""
        check_connectors(self.plan)
        self._shipped = pack(self.plan)
        self._scratch = make_scratch()
        atexit.register(self._leave)
        self._thread.start()
        return self

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
        """Let the sources read no more, and what is there come out."""
        self._asked.append("drain")

    def stop(self) -> None:
        """Stop now; what is on its way is lost."""
        self._asked.append("stop")

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
        self._tunes.append(Tune(operator, b_out, linger_us))

    def throttle(self, source: str, per_second: float | None) -> None:
        """Let each task of a source bring in at most so many records a second."""
        known = [op.name for op in self.plan.graph.sources]
        if source not in known:
            raise OptionError(
                f"the flow has no source {source!r}", remedy=f"use one of: {', '.join(known)}"
            )
        self._tunes.append(Throttle(source, per_second))

    @property
    def state(self) -> State:
        """What the flow is doing."""
        return self._coordinator.state

    @property
    def status(self) -> Status:
        """What the tasks have reported, put together."""
        return self.board.status(time.time())

    @property
    def url(self) -> str | None:
        """Where metrics are served, if they are."""
        return self._endpoint.url if self._endpoint is not None else None

    @property
    def processes(self) -> list[tuple[str, int]]:
        """Host and process of every task."""
        return self._coordinator.processes

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
            self.error = error
        except Exception as error:
            log.exception("the driver failed")
            self.error = EngineError(
                f"the driver failed: {type(error).__name__}: {error}",
                remedy="report this as a fault of Floodway, with the log",
            )
        finally:
            remove_scratch(scratch)
            self.error = self._coordinator.failure or self.error
            self._started.set()
            self._over.set()
            atexit.unregister(self._leave)

    def _lead(self, scratch: Path) -> None:
        try:
            if self._metrics_port is not None:
                self._endpoint = Endpoint(self.board, port=self._metrics_port).__enter__()
            if self.plan.tasks:
                self._lease = Lease.take(
                    self.plan.flow, self.plan.tasks, master=self._master, conf=self._conf
                )
            network = self._network(scratch)
            with Mailbox(network, "driver") as mailbox:
                self._launch(network, mailbox.address)
                self._loop(mailbox)
                self._wind_up(mailbox)
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
        return Network(host=host, keys=Keys.make(), towards=host)

    def _launch(self, network: Network, driver: str) -> None:
        import sys

        run = uuid.uuid4().hex[:8]
        paths = tuple(path or os.getcwd() for path in sys.path)
        # A task elsewhere listens at the address of its own host.
        everywhere = msgspec.structs.replace(network, host="")
        for stage in self.plan.stages:
            if stage.host == "driver":
                self._start_here(stage, network, driver)
                continue
            assert self._lease is not None
            shipment = Shipment(
                self._shipped, stage.name, everywhere, driver, self._settings, paths
            )
            group = f"floodway-{run}-{stage.name}"
            job = StageJob(self._lease.context, shipment, stage.dop, group, self._job_over)
            self._jobs.append(job)
            job.start()

    def _start_here(self, stage: Stage, network: Network, driver: str) -> None:
        def run() -> None:
            Runner(self.plan, stage.name, 0, network, driver, self._settings).run()

        thread = threading.Thread(target=run, name=f"floodway-{stage.name}", daemon=True)
        self._local.append(thread)
        thread.start()

    def _job_over(self, stage: str, reason: str | None) -> None:
        self._lost.append((stage, reason))

    def _loop(self, mailbox: Mailbox) -> None:
        deadline = time.monotonic() + self._settings.patience_s
        while not self._coordinator.over and self._coordinator.state != "stopping":
            now_ms = time.time_ns() // 1_000_000
            actions: list[Action] = []
            for _, data in mailbox.drain(1000):
                actions += self._heard(data, now_ms)
            actions += self._coordinator.tick(now_ms)
            actions += self._orders()
            actions += self._losses()
            if self._coordinator.state == "gathering" and time.monotonic() > deadline:
                actions += self._coordinator.fail(self._nobody_came())
            self._tell(mailbox, actions)
            self._warn()
            if self._coordinator.state == "running":
                self._started.set()
            mailbox.wait(10)
        if self._coordinator.state == "stopping":
            self._coordinator.state = "ended"

    def _heard(self, data: bytes, now_ms: int) -> list[Action]:
        try:
            message = from_frame(data)
        except FrameError as error:
            log.warning("a message was dropped: %s", error.problem)
            return []
        if isinstance(message, Report):
            self.board.take(decode_report(message.data), now=time.time())
            return []
        return self._coordinator.take(message, now_ms)

    def _orders(self) -> list[Action]:
        actions: list[Action] = []
        while self._asked:
            order = self._asked.popleft()
            actions += self._coordinator.drain() if order == "drain" else self._coordinator.stop()
        while self._tunes:
            message = self._tunes.popleft()
            actions += [(number, message) for number in self._names]
        return actions

    def _losses(self) -> list[Action]:
        actions: list[Action] = []
        while self._lost:
            stage, reason = self._lost.popleft()
            if reason is not None:
                actions += self._coordinator.lost(stage, reason)
        return actions

    def _nobody_came(self) -> EngineError:
        missing = self._coordinator.missing
        shown = ", ".join(f"{stage}/{index}" for stage, index in missing[:5])
        return EngineError(
            f"{len(missing)} of {len(self._names)} tasks did not start within "
            f"{self._settings.patience_s:.0f} s: {shown}",
            remedy="the cluster has too few free slots, or its hosts cannot reach this one",
        )

    def _tell(self, mailbox: Mailbox, actions: Sequence[Action]) -> None:
        for number, message in actions:
            if number not in self._connected:
                address = self._coordinator.address(number)
                if address is None:
                    continue
                mailbox.connect(number, address)
                self._connected.add(number)
            mailbox.send(number, to_frame(message))

    def _warn(self) -> None:
        fresh = self._coordinator.warnings[self._told_warnings :]
        self._told_warnings += len(fresh)
        for text in fresh:
            log.warning("%s", text)

    # ------------------------------------------------------------------ the end

    def _there(self) -> set[int]:
        return {n for n in self._names if self._coordinator.address(n) is not None}

    def _wind_up(self, mailbox: Mailbox) -> None:
        """See every task out; who does not go is killed."""
        deadline = time.monotonic() + STOP_SECONDS
        waiting: list[Any] = [job.join for job in self._jobs]
        there = self._there()
        while waiting and time.monotonic() < deadline:
            for _, data in mailbox.drain(1000):  # the last reports
                self._heard(data, 0)
            # Who comes only now has not heard yet that it is over.
            late, there = self._there() - there, self._there()
            self._tell(mailbox, [(number, Stop()) for number in late])
            waiting = [join for join in waiting if not join(0.01)]
        if waiting:
            for job in self._jobs:
                job.cancel()
            for host, pid in self._coordinator.processes:
                if host == os.uname().nodename and pid != os.getpid():
                    _kill(pid)
            for job in self._jobs:
                job.join(STOP_SECONDS)
        for thread in self._local:
            thread.join(STOP_SECONDS)
        for _, data in mailbox.drain(10_000):
            self._heard(data, 0)


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
) -> Job:
    """Start a flow and return its handle at once; see `Flow.run` for the options."""
    given = configuration or Configuration()
    default = Tuning(dop=dop, b_out=b_out, linger=linger).over(given.default)
    plan = Plan.of(flow, Configuration(default, given.operators))
    return Job(
        plan,
        master=master,
        conf=conf,
        settings=settings or Settings(input_cache=input_cache),
        metrics_port=metrics_port,
        recent_s=recent_s,
        transport=transport,
    ).start()


def _kill(pid: int) -> None:
    try:
        process = psutil.Process(pid)
        if "python" in process.name().lower():
            process.kill()
    except psutil.Error:
        pass


def _info(plan: Plan, stage: Stage) -> StageInfo:
    spreads = sorted({str(exchange.partitioning) for exchange in plan.inputs(stage)})
    return StageInfo(
        stage.name,
        tuple(operator.name for operator in stage.operators),
        stage.dop,
        ", ".join(spreads) or "source",
        tuple(op.name for op in stage.operators if isinstance(op, Sink)),
    )


def check_connectors(plan: Plan) -> None:
    """Refuse sources and sinks without a connector, and those that are known to fail."""
    for operator in plan.graph.operators:
        if not isinstance(operator, Source | Sink):
            continue
        wanted = SourceConnector if isinstance(operator, Source) else SinkConnector
        connector = operator.connector
        if not isinstance(connector, wanted):
            kind = "source" if isinstance(operator, Source) else "sink"
            what = "no connector" if connector is None else f"a {type(connector).__name__}"
            raise ConnectorError(
                f"the {kind} {operator.name} has {what}, so the flow cannot run by itself",
                remedy="give it one, e.g. from floodway.connectors; without, only a test driver "
                "can run the flow",
                operator=operator.name,
                place=operator.place,
            )
        try:
            connector.check()
        except FloodwayError as error:
            raise error.at(operator.name, operator.place) from None
