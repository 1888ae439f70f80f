"""The leader: carries out what the coordinator decides, turn by turn.

Messages of tasks and losses go to the coordinator; what it wants told is sent, what it wants
launched is launched, and epochs it wants written are written to the checkpoint. What is around the
leader (mailbox, launcher, clock) is given to it, so that a simulation can have others.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec

from floodway.core.errors import DiskFullError, EngineError
from floodway.engine.actions import Action, Launch, Tell, Write
from floodway.engine.control import (
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
from floodway.engine.coordinator import Coordinator
from floodway.engine.datastream.contacts import Connections, Contacts
from floodway.engine.rud.commits import Commits
from floodway.engine.rud.records import VERSION, CommitRecord
from floodway.engine.rud.shape import FlowShape
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


class Post(Connections, Protocol):
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
    offered, switched
        Take blocks for micro-batches, and that a task works in another paradigm.
    """

    def __init__(
        self,
        plan: Plan,
        coordinator: Coordinator,
        post: Post,
        *,
        commits: Commits | None,
        launch: Callable[[int, int], None],
        report: Callable[[bytes], None],
        offered: Callable[[Offer], None] | None = None,
        switched: Callable[[Switched], None] | None = None,
    ) -> None:
        self._plan = plan
        self.coordinator = coordinator
        self._post = post
        self._commits = commits
        self._launch = launch
        self._report = report
        self._offered, self._switched = offered, switched
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
        self._warn()

    def _look(self, now_ms: int) -> None:
        """See whether what the tasks are told reaches them."""
        if now_ms < self._next_look_ms:
            return
        self._next_look_ms = now_ms + LOOK_MS
        self._contacts.look(self.coordinator.there())
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
        return [n for n in numbers if self.coordinator.address(n) is not None]

    def _heard(self, data: bytes, now_ms: int) -> list[Action]:
        try:
            message = from_frame(data)
        except FrameError as error:
            log.warning("a message was dropped: %s", error.problem)
            return []
        match message:
            case Report(_, report):
                self._report(report)
            case Offer():
                if self._offered is not None:
                    self._offered(message)
            case Switched():
                if self._switched is not None:
                    self._switched(message)
            case _:
                return self.coordinator.take(message, now_ms)
        return []

    def carry_out(self, actions: Iterable[Action], now_ms: int) -> None:
        """Do what the coordinator wants done, and what follows from it."""
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
        return [Tell(task, message) for task in self.coordinator.names if self._for(task, message)]

    def _for(self, task: int, wish: Message) -> bool:
        return not isinstance(wish, Switch) or self.coordinator.names[task][0] == wish.stage

    def _tell(self, task: int, message: Message) -> None:
        if isinstance(message, Go):
            for wish in self._wishes.values():
                if self._for(task, wish):
                    self.tell(task, wish)
        self.tell(task, message)

    def tell(self, task: int, message: Message) -> None:
        """Tell a task something, if it is there."""
        address = self.coordinator.address(task)
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
