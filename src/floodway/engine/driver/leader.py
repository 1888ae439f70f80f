"""The leader: carries out what the coordinator and the scheduler decide, turn by turn.

Messages of tasks and losses go to the coordinator; what it wants told is sent, what it wants
launched is launched, and epochs it wants written are written to the checkpoint. The scheduler says
what tasks are to do otherwise, and hears when they do. What is around the leader (mailbox,
launcher, clock) is given to it, so that a simulation can have others.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec

from floodway.core.errors import DiskFullError, EngineError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import VERSION, CommitRecord
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.control.messages import (
    Go,
    Message,
    Offer,
    Report,
    Stop,
    Switch,
    Switched,
    Throttle,
    Tune,
    from_frame,
    to_frame,
)
from floodway.engine.control.report import TaskReport, decode_report
from floodway.engine.driver.actions import Action, Launch, Tell, Write
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.driver.paradigms import Paradigms
from floodway.engine.scheduler.live import LiveScheduler
from floodway.engine.transport.contacts import Connections, Contacts
from floodway.engine.transport.frame import FrameError, Header
from floodway.plan.stages import Plan

log = logging.getLogger(__name__)

PAUSE_MS = 1_000
"""A turn that comes later than this after the last one comes late: the driver stood still."""

OWN_NAME = "driver"
"""What the driver is called where a link is named."""

LOOK_MS, COME_BACK_MS = 100, 5_000
"""How often the driver looks at its links, and how long after it stood still it does not:
connections that broke meanwhile come back first."""

RETRY_MS = 500
"""How long to wait before a record is written again that did not find room."""


class LeaderPost(Connections, Protocol):
    """What the leader needs of its mailbox."""

    def connect(self, number: int, address: str) -> None:
        """Make a way to the inbox of a task."""

    def send(self, number: int, frame: bytes) -> None:
        """Send a frame; never waits."""

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        """Return the frames that are there."""


class Leader:
    """Leads the tasks of a flow.

    Parameters
    ----------
    commits
        The flow's checkpoint, or None.
    launch
        Starts a process for a task, in place of any former one.
    report
        Takes the metrics of a task.
    offered
        Takes blocks for micro-batches.
    paradigms
        What is kept up to date about who works in which paradigm.
    scheduler
        Says what tasks are to do otherwise, while the flow runs.
    """

    def __init__(
        self,
        plan: Plan,
        coordinator: Coordinator,
        post: LeaderPost,
        *,
        commits: Commits | None,
        launch: Callable[[int, int], None],
        report: Callable[[TaskReport], None],
        offered: Callable[[Offer], None] | None = None,
        paradigms: Paradigms | None = None,
        scheduler: LiveScheduler | None = None,
    ) -> None:
        self._plan = plan
        self.coordinator = coordinator
        self._post = post
        self._commits = commits
        self._launch = launch
        self._report = report
        self._offered = offered
        self._paradigms = paradigms or Paradigms(plan)
        self._scheduler = scheduler
        self._followed: tuple[int, int] | None = None
        self._shape = FlowShape.of(plan)
        self._write: Write | None = None
        self._retry_ms = 0
        self._turned_ms: int | None = None
        self._found: list[Action] = []
        self._contacts = Contacts(
            post,
            self._unreachable,
            self._lost,
            self._reached,
            silent_s=coordinator.silent_ms / 1000,
        )
        self._next_look_ms = 0
        self._told_full = False
        self._told = 0
        self._wishes: dict[tuple[object, ...], Message] = {}
        self.losses: deque[tuple[int, int, str]] = deque()
        """Tasks whose process is gone: number, launch and reason; filled from other threads."""
        self.orders: deque[Callable[[Leader], list[Action]]] = deque()
        """What somebody outside wants done; filled from other threads."""

    def turn(self, now_ms: int) -> None:
        """Do what there is to do."""
        if self._turned_ms is not None and now_ms - self._turned_ms > PAUSE_MS:
            self.coordinator.excuse(now_ms - self._turned_ms)
            self._next_look_ms = now_ms + COME_BACK_MS
        self._turned_ms = now_ms
        for _, data in self._post.drain(1000):
            self.carry_out(self._heard(data, now_ms), now_ms)
        self.carry_out(self.coordinator.tick(now_ms), now_ms)
        self._look(now_ms)
        while self.orders:
            self.carry_out(self.orders.popleft()(self), now_ms)
        while self.losses:
            self.carry_out(self.coordinator.lost(*self.losses.popleft()), now_ms)
        if self._write is not None and now_ms >= self._retry_ms:
            self.carry_out([self._write], now_ms)
        self._schedule(now_ms)
        self._warn()

    def _schedule(self, now_ms: int) -> None:
        """Let the scheduler know who has switched, and tell the tasks what it decides."""
        settled = self._paradigms.settled()
        if self._scheduler is None:
            return
        for stage, paradigm, pause_us in settled:
            self._scheduler.switched(stage, now_ms, pause_us, paradigm)
        if self.coordinator.state == "running":
            for order in self._scheduler.turn(now_ms):
                self.carry_out(self.wish(order), now_ms)

    def _look(self, now_ms: int) -> None:
        """See whether what the tasks are told reaches them."""
        if now_ms < self._next_look_ms:
            return
        self._next_look_ms = now_ms + LOOK_MS
        self._contacts.look(self.coordinator.roster.there)
        found, self._found = self._found, []
        self.carry_out(found, now_ms)

    def _unreachable(self, task: int) -> None:
        self._found += self.coordinator.unreachable(OWN_NAME, task, lost=False)

    def _lost(self, task: int) -> None:
        self._found += self.coordinator.unreachable(OWN_NAME, task, lost=True)

    def _reached(self, task: int) -> None:
        self.coordinator.reached(OWN_NAME, task)

    def hear_the_rest(self, now_ms: int) -> None:
        """Take what is there, do nothing about it but count who has ended; tell latecomers."""
        for _, data in self._post.drain(10_000):
            before = set(self._there())
            self._heard(data, now_ms)
            for number in set(self._there()) - before:
                self.carry_out([Tell(number, Stop())], now_ms)

    def _there(self) -> Iterable[int]:
        numbers = range(len(self.coordinator.names))
        return [n for n in numbers if self.coordinator.roster.address(n) is not None]

    def _heard(self, data: bytes, now_ms: int) -> list[Action]:
        try:
            message = from_frame(data)
        except FrameError as error:
            log.warning("a message was dropped: %s", error.problem)
            return []
        match message:
            case Report(task, encoded):
                report = decode_report(encoded)
                if self._is_of_now(task, report.attempt):
                    self._paradigms.heard(task, report.attempt, report.paradigm)
                    self._report(report)
            case Offer():
                if self._offered is not None and self._is_of_now(message.task, message.attempt):
                    self._offered(message)
            case Switched():
                self._paradigms.switched(message)
            case _:
                return self.coordinator.take(message, now_ms)
        return []

    def _is_of_now(self, task: int, attempt: int) -> bool:
        """Return whether somebody speaks of a task's present attempt.

        One that was stopped, given up and replaced may wake while its successor has not said
        anything yet.
        """
        return self.coordinator.attempts.get(task) == attempt

    def carry_out(self, actions: Iterable[Action], now_ms: int) -> None:
        """Do what the coordinator wants done, and what follows from it."""
        left = self.coordinator.roster.left
        now = (self.coordinator.attempt, len(left))
        if self._followed != now:
            self._followed = now
            self._paradigms.follow(self.coordinator.attempts, left)
        waiting = deque(actions)
        while waiting:
            match waiting.popleft():
                case Tell(task, message):
                    self._tell(task, message)
                case Launch(task, launch):
                    self._launch(task, launch)
                case Write() as write:
                    waiting.extend(self._commit(write, now_ms))

    def wish(self, message: Tune | Throttle | Switch) -> list[Action]:
        """Tell all tasks that it concerns, and later each that begins anew."""
        name, *values = msgspec.structs.astuple(message)
        # A later wish replaces an earlier one about the same thing.
        about = (type(message), name, *(value is None for value in values))
        self._wishes.pop(about, None)  # what was wished last has to be told last
        self._wishes[about] = message
        if isinstance(message, Switch):
            self._paradigms.told(message)
        return [Tell(task, message) for task in self.coordinator.names if self._for(task, message)]

    def pin(self, order: Switch) -> list[Action]:
        """Tell a stage to work in a paradigm, and let the scheduler leave it there."""
        if self._scheduler is not None:
            self._scheduler.pin(order.stage, order.paradigm)
        return self.wish(order)

    def _for(self, task: int, wish: Message) -> bool:
        return not isinstance(wish, Switch) or self.coordinator.names[task][0] == wish.stage

    def _tell(self, task: int, message: Message) -> None:
        if isinstance(message, Go):
            for wish in self._wishes.values():
                if self._for(task, wish):
                    self.tell(task, wish)
            self._paradigms.goes(task)
        self.tell(task, message)

    def tell(self, task: int, message: Message) -> None:
        """Tell a task something, if it is there."""
        address = self.coordinator.roster.address(task)
        if address is not None:
            self._post.connect(task, address)
            self._post.send(task, to_frame(message))

    def _commit(self, write: Write, now_ms: int) -> list[Action]:
        """Write the record of an epoch; if there is no room, later, unless it is given up."""
        self._write = None
        if self.coordinator.writing != write.epoch:
            return []
        assert self._commits is not None
        try:
            self._commits.write(self._record(write))
        except DiskFullError as error:
            if not self._told_full:
                log.warning("%s; the flow goes on when there is room", error.problem)
            self._told_full = True
            self._write, self._retry_ms = write, now_ms + RETRY_MS
            return []
        except EngineError as error:
            return self.coordinator.fail(error)
        self._told_full = False
        return self.coordinator.written(write)

    def _record(self, write: Write) -> CommitRecord:
        return CommitRecord(
            version=VERSION,
            flow=self._plan.flow,
            shape=self._shape,
            epoch=write.epoch,
            attempt=self.coordinator.attempt,
            stream_time=self.coordinator.time_at(write.epoch),
            clock_ms=self.coordinator.clock_ms,
            finished=write.finished,
            tasks=[write.tasks[number] for number in sorted(write.tasks)],
        )

    def _warn(self) -> None:
        fresh = self.coordinator.warnings[self._told :]
        self._told += len(fresh)
        for text in fresh:
            log.warning("%s", text)
