"""A flow that is led: the driver's thread, and what it takes and gives back.

The thread takes an endpoint, slots of Spark, a mailbox and a launcher, and gives all back, whatever
happens meanwhile: nothing is left when the flow is over. In between the leader has its turns.
Nothing here touches a record, except in stages whose connector has to run in this process: standard
input and output, and lists. What other threads want, through the `Job`, is queued as orders.
"""

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from floodway.core.errors import EngineError, FloodwayError
from floodway.engine.control.report import TaskReport
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.actions import Action, Launch
from floodway.engine.driver.arrivals import Arrivals
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.driver.ground import Ground
from floodway.engine.driver.launcher import Launcher
from floodway.engine.driver.leader import Leader
from floodway.engine.driver.paradigms import Paradigms
from floodway.engine.driver.site import Site
from floodway.engine.host.clock import SteadyClock
from floodway.engine.metrics.board import Board
from floodway.engine.metrics.endpoint import Endpoint
from floodway.engine.metrics.health import Telling
from floodway.engine.scheduler.live import LiveScheduler
from floodway.engine.spark.batches import Operations
from floodway.engine.spark.context import Lease
from floodway.engine.transport.sockets import Mailbox, Network
from floodway.plan.stages import Plan

log = logging.getLogger(__name__)

LEAVE_SECONDS = 30.0
"""How long a process that ends waits for a flow that it has not waited for."""

TELL_SECONDS = 1.0
"""How often the driver looks whether there is something to warn of."""


class Running:
    """Leads a flow, from the thread that `start` starts.

    Parameters
    ----------
    board, paradigms, scheduler
        Who hears what the tasks report: for people, about switches, and to decide on them.

    Attributes
    ----------
    coordinator
        The coordinator; another one from `start` on.
    settings
        The settings of driver and tasks; with what tasks have to know of epochs from `start` on.
    orders
        What users want, until the leader has done it.
    begun, over
        Whether the flow has begun to run, or is over; whether it is over.
    error
        Why it has failed, if it has.
    """

    def __init__(
        self,
        plan: Plan,
        ground: Ground,
        site: Site,
        settings: Settings,
        *,
        pulse_ms: int,
        epoch_ms: int,
        board: Board,
        paradigms: Paradigms,
        scheduler: LiveScheduler,
    ) -> None:
        self._plan, self._ground, self._site = plan, ground, site
        self._pulse_ms, self._epoch_ms = pulse_ms, epoch_ms
        self.settings = settings
        self._board, self._paradigms, self._scheduler = board, paradigms, scheduler
        self._clock = SteadyClock()
        self.coordinator = Coordinator(plan, pulse_ms=pulse_ms, silent_ms=self._silent_ms)
        self.orders: deque[Callable[[Leader], list[Action]]] = deque()
        self._losses: deque[tuple[int, int, str]] = deque()
        self.begun, self.over = threading.Event(), threading.Event()
        self.error: FloodwayError | None = None
        self._endpoint: Endpoint | None = None
        self._lease: Lease | None = None
        self._operations: Operations | None = None
        self._telling, self._told_s = Telling(), 0.0
        self._thread = threading.Thread(target=self._run, name="floodway-driver", daemon=True)

    @property
    def _silent_ms(self) -> int:
        return int(self.settings.silent_s * 1000)

    @property
    def url(self) -> str | None:
        """Where metrics are served, if they are."""
        return self._endpoint.url if self._endpoint is not None else None

    def prepare(self, stage: str) -> None:
        """Get ready for micro-batches of a stage; refuse them if there is no slot for them."""
        if self._lease is not None and not self._lease.spare:
            raise EngineError(
                f"Spark has no slot for micro-batches: the tasks of flows use all of "
                f"{self._lease.context.master}",
                remedy="give Spark more slots, or leave out the master",
            )
        if self._operations is not None:
            self._operations.prepare(stage)

    def seconds(self) -> float:
        """Return the time by the driver's clock."""
        return self._clock.now() / 1e6

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Start to lead; what is known to fail is refused here."""
        try:
            self._ground.open()
            self._go_on()
        except BaseException:
            self._scheduler.close()
            self._ground.close()
            raise
        atexit.register(self._leave)
        self._thread.start()

    def stop(self) -> None:
        """Have the flow stopped now."""
        self.orders.append(lambda leader: leader.coordinator.stop())

    def _leave(self) -> None:
        """Stop with the process, in order: sinks are closed, and nothing is left."""
        self.stop()
        self._thread.join(LEAVE_SECONDS)

    def wait(self, seconds: float | None) -> bool:
        """Wait until the flow is over; return whether it is."""
        if not self.over.wait(seconds):
            return False
        self._thread.join()
        return True

    def _go_on(self) -> None:
        """Let the flow go on from what its ground knows, and go back there."""
        epoching = self._ground.epoching(self._epoch_ms, self._silent_ms)
        if epoching is not None:
            self.settings = self._ground.known_to(self.settings)
            self.coordinator = Coordinator(self._plan, pulse_ms=self._pulse_ms, epoching=epoching)

    # ------------------------------------------------------------------ the driver's thread

    def _run(self) -> None:
        try:
            self._lead()
        except FloodwayError as error:
            self._fail(error)
        except Exception as error:
            log.exception("the driver failed")
            problem = f"the driver failed: {type(error).__name__}: {error}"
            remedy = "report this as a fault of Floodway, with the log"
            self._fail(EngineError(problem, remedy=remedy))
        finally:
            self._scheduler.close()
            self._ground.close()
            self.error = self.coordinator.failure or self.error
            self.begun.set()
            self.over.set()
            atexit.unregister(self._leave)

    def _fail(self, error: FloodwayError) -> None:
        self.error = error
        self.coordinator.fail(error)

    def _lead(self) -> None:
        try:
            if self._site.metrics_port is not None:
                self._endpoint = Endpoint(
                    self._board,
                    port=self._site.metrics_port,
                    story=lambda: self._scheduler.story.entries,
                    clock=self.seconds,
                ).__enter__()
            self._lease = self._site.lease(self._plan)
            network = self._site.network(
                self._lease, self._ground.scratch, announce=self.settings.announce
            )
            with Mailbox(network, "driver") as mailbox:
                self._lead_with(mailbox, network)
        finally:
            if self._endpoint is not None:
                self._endpoint.close()
            if self._lease is not None:
                self._lease.release()

    def _lead_with(self, mailbox: Mailbox, network: Network) -> None:
        launcher = Launcher(
            self._plan,
            self._ground.shipped,
            self._lease,
            network,
            mailbox.address,
            self.settings,
            self.coordinator.roster,
            lambda *lost: self._losses.append(lost),
        )
        lease = self._lease
        operations = self._operations = None if lease is None else self._start_operations(lease)
        leader = Leader(
            self._plan,
            self.coordinator,
            mailbox,
            commits=self._ground.commits,
            launch=launcher.launch,
            report=self._reported,
            offered=None if operations is None else operations.offer,
            paradigms=self._paradigms,
            scheduler=self._scheduler,
        )
        leader.orders, leader.losses = self.orders, self._losses
        try:
            if lease is not None and operations is not None:
                self._scheduler.begin(operations.prepare, slots=max(lease.spare, 1))
                mailbox.watch(operations.descriptor)
            leader.carry_out([Launch(task, 0) for task in self.coordinator.names], 0)
            self._loop(leader, launcher, mailbox)
        finally:
            if operations is not None:
                mailbox.unwatch(operations.descriptor)
                operations.close()
            launcher.wind_up(lambda: leader.hear_the_rest(self._now_ms()))
            self._board.returns = dict(self.coordinator.returns)
            self._board.end()
            self._tell()

    def _start_operations(self, lease: Lease) -> Operations:
        return Operations.on_spark(
            self._plan,
            self._ground.shipped,
            lease.context,
            self._ground.scratch / "batches",
            slots=lambda: lease.spare,
            alive=lambda: lease.alive,
        )

    def _reported(self, report: TaskReport) -> None:
        self._board.take(report, now=self.seconds())

    def _tell(self) -> None:
        """Warn of what the flow loses, each thing once."""
        now = self.seconds()
        for reason in self._telling.fresh(self._board.health(now), now):
            log.warning("%s", reason)

    def _now_ms(self) -> int:
        return self._clock.now() // 1000

    def _loop(self, leader: Leader, launcher: Launcher, mailbox: Mailbox) -> None:
        coordinator = self.coordinator
        arrivals = Arrivals(coordinator, launcher, self.settings.patience_s)
        while not coordinator.over and coordinator.state != "stopping":
            now_ms = self._now_ms()
            leader.turn(now_ms)
            launcher.note()
            if self._operations is not None:
                self._operations.follow(coordinator.attempts)
                self._operations.turn(leader.tell)
            absent = arrivals.look(now_ms, time.monotonic())
            self._board.waiting = coordinator.queued
            self._board.returns = dict(coordinator.returns)
            if absent is not None:
                leader.carry_out(coordinator.fail(absent), now_ms)
            if coordinator.state == "running":
                self.begun.set()
            if time.monotonic() - self._told_s > TELL_SECONDS:
                self._told_s = time.monotonic()
                self._tell()
            mailbox.wait(10)
        if coordinator.state == "stopping":
            coordinator.state = "ended"
