"""A flow that runs, as users have it: how it is started, and what is then asked and wanted of it.

The job puts together what a flow consists of in the driver: its ground, what hears the reports of
its tasks, and the thread that leads them (`Running`). Other threads use it, so what is wanted
becomes an order for that one, and what is asked is read as it is at the moment.
"""

from collections.abc import Mapping
from os import PathLike
from types import TracebackType
from typing import Self

import msgspec

from floodway.core.duration import Duration, to_ms
from floodway.core.errors import FloodwayError, OptionError
from floodway.engine.control.messages import Throttle, Tune
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.coordinator import Coordinator, FlowState
from floodway.engine.driver.ground import Ground
from floodway.engine.driver.paradigms import Paradigms
from floodway.engine.driver.running import Running
from floodway.engine.driver.site import Site, Transport
from floodway.engine.driver.stages import describe_stages
from floodway.engine.metrics.board import Board
from floodway.engine.metrics.status import Status
from floodway.engine.metrics.summary import summarize
from floodway.engine.metrics.window import ReportWindows
from floodway.engine.scheduler.live import LiveScheduler
from floodway.engine.scheduler.story import Entry
from floodway.model.flow import Flow
from floodway.model.tuning import Paradigm, Pin, Tuning
from floodway.plan.configuration import Configuration
from floodway.plan.stages import Plan


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
        self._ground = Ground(plan, checkpoint, recovery=recovery)
        self.plan = plan
        self._paradigms, windows = Paradigms(plan), ReportWindows()
        self._scheduler = LiveScheduler(plan, windows, self._paradigms, file=story)
        self.board = Board(
            plan.flow,
            describe_stages(plan, planned_ns or {}),
            recent_s=recent_s,
            windows=windows,
            paradigms=self._paradigms,
        )
        self._running = Running(
            plan,
            self._ground,
            Site(master, dict(conf or {}), transport, metrics_port),
            settings or Settings(),
            pulse_ms=pulse_ms,
            epoch_ms=epoch_ms,
            board=self.board,
            paradigms=self._paradigms,
            scheduler=self._scheduler,
        )

    # ------------------------------------------------------------------ life

    def start(self) -> Self:
        """Start the flow and return at once; what is known to fail is refused here."""
        self._running.start()
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flow is over; return whether it is. Raise what made it fail."""
        over = self._running.wait(timeout)
        if over and self.error is not None:
            raise self.error
        return over

    def wait_running(self, timeout: float | None = None) -> bool:
        """Wait until the flow runs, or is over; return whether that is so."""
        return self._running.begun.wait(timeout)

    def drain(self) -> None:
        """Stop reading, and let out what has been read.

        With a checkpoint the flow stops after one more epoch and can go on from there.
        """
        self._running.orders.append(lambda leader: leader.coordinator.drain())

    def stop(self) -> None:
        """Stop now; what is in flight is lost, unless there is a checkpoint to go on from."""
        self._running.stop()

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
        self._running.orders.append(lambda leader: leader.wish(tune))

    def throttle(self, source: str, per_second: float | None) -> None:
        """Limit how many records per second each task of a source brings in."""
        known = [op.name for op in self.plan.graph.sources]
        if source not in known:
            raise OptionError(
                f"the flow has no source {source!r}", remedy=f"use one of: {', '.join(known)}"
            )
        throttle = Throttle(source, per_second)
        self._running.orders.append(lambda leader: leader.wish(throttle))

    def switch(self, stage: str, paradigm: Paradigm) -> None:
        """Pin a stage, named by itself or by one of its operators, to a paradigm from now on.

        In the paradigm ``data`` its tasks process records as they come; in ``operation`` they
        collect them, and micro-batches on Spark do all that needs no state. Results are the same.
        """
        order = self._paradigms.order(stage, paradigm)
        if paradigm == "operation":
            self._running.prepare(order.stage)
        self._running.orders.append(lambda leader: leader.pin(order))

    @property
    def _coordinator(self) -> Coordinator:
        return self._running.coordinator

    @property
    def error(self) -> FloodwayError | None:
        """Why the flow has failed, if it has."""
        return self._running.error

    @property
    def story(self) -> list[Entry]:
        """The scheduler's latest decisions, with the numbers behind them; oldest first."""
        return self._scheduler.story.entries

    @property
    def paradigms(self) -> Mapping[str, Paradigm]:
        """The paradigm in which each stage works, as its tasks report it."""
        return self._paradigms.of_stages

    @property
    def state(self) -> FlowState:
        """What the flow is doing."""
        return self._coordinator.state

    @property
    def status(self) -> Status:
        """What the tasks have reported, put together."""
        return self.board.status(self._running.seconds())

    @property
    def summary(self) -> str:
        """What has happened: what came in and out, what was lost, and why to worry, if at all."""
        return summarize(self.status, self.state)

    @property
    def url(self) -> str | None:
        """Where metrics are served, if they are."""
        return self._running.url

    @property
    def committed(self) -> int:
        """The last committed epoch; 0 if there is none."""
        return self._coordinator.committed

    @property
    def start_epoch(self) -> int:
        """The epoch from which the flow has gone on; 0 if it started from the beginning."""
        return self._ground.start_epoch

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
        """The settings of driver and tasks."""
        return self._running.settings

    @property
    def waiting(self) -> list[str]:
        """The tasks that wait for a free Spark slot."""
        return self._coordinator.queued

    @property
    def restoring(self) -> tuple[int, int] | None:
        """How many bytes of state have been read, and of how many; None while none are read."""
        parts = list(self._coordinator.restoring.values())
        return (sum(p[0] for p in parts), sum(p[1] for p in parts)) if parts else None

    @property
    def processes(self) -> list[tuple[str, int]]:
        """Host and process of every task."""
        return self._coordinator.roster.processes

    @property
    def tasks(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Host and process of every task that is there, by its stage and index."""
        roster = self._coordinator.roster
        found = {name: roster.process(task) for task, name in roster.names.items()}
        return {name: process for name, process in found.items() if process is not None}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._running.over.is_set():
            self.stop()
        self._running.over.wait()


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
    default = Tuning(dop=dop, b_out=b_out, linger=linger, paradigm=paradigm)
    plan = Plan.of(flow, (configuration or Configuration()).with_default(default))
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
