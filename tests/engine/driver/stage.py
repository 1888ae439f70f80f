"""A leader on its own: its tasks are words that a test says, and its vault fails if told to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import TaskRecord
from floodway.engine.checkpoint.vault import FileRef, FolderVault
from floodway.engine.control.messages import (
    Ask,
    Beat,
    Hello,
    Message,
    Offer,
    Pulse,
    Ready,
    SourceTime,
    SourceTimes,
    Stored,
    from_frame,
    to_frame,
)
from floodway.engine.control.report import TaskReport
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.driver.epoching import Epoching
from floodway.engine.driver.leader import Leader
from floodway.engine.driver.paradigms import Paradigms
from floodway.engine.transport.frame import Header, parse
from tests.engine.driver.leading import EPOCH_MS, simple


class MoodyVault(FolderVault):
    """A vault that fails as often as it is told to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.errors: list[Exception] = []
        self.tried = 0

    def write(self, name: str, data: bytes) -> FileRef:
        self.tried += 1
        if self.errors:
            raise self.errors.pop(0)
        return super().write(name, data)


class Wire:
    """A mailbox in memory: tasks are reached by address."""

    def __init__(self) -> None:
        self.inbox: list[bytes] = []
        self.sent: list[tuple[str, Message]] = []
        self.ways: dict[int, str] = {}
        self.question = 0
        self.broken: dict[int, float] = {}

    def connect(self, number: int, address: str) -> None:
        self.ways[number] = address

    def send(self, number: int, frame: bytes) -> None:
        message = from_frame(frame)
        self.sent.append((self.ways[number], message))
        if isinstance(message, Ask):
            self.question = message.number

    def drain(self, most: int) -> Iterator[tuple[Header, bytes]]:
        while self.inbox:
            frame = self.inbox.pop(0)
            yield parse(frame), frame

    def down(self) -> dict[int, float]:
        return self.broken

    def pending(self, number: int) -> bool:
        return number in self.broken


class Stage:
    """A leader with a flow of four tasks, whose words a test says."""

    def __init__(self, folder: Path, *, recovery: bool = True) -> None:
        self.plan = simple()
        self.vault = MoodyVault(folder)
        self.commits = Commits(self.vault)
        epoching = Epoching(EPOCH_MS) if recovery else None
        self.lead = Coordinator(self.plan, pulse_ms=100, epoching=epoching)
        self.post = Wire()
        self.launched: list[tuple[int, int]] = []
        self.reports: list[TaskReport] = []
        self.offers: list[Offer] = []
        self.paradigms = Paradigms(self.plan)
        self.leader = Leader(
            self.plan,
            self.lead,
            self.post,
            commits=self.commits,
            launch=lambda task, launch: self.launched.append((task, launch)),
            report=self.reports.append,
            offered=self.offers.append,
            paradigms=self.paradigms,
        )
        self.now = 0
        self.tasks = range(len(self.lead.names))
        self.launches = dict.fromkeys(self.tasks, 0)
        self.attempts = dict.fromkeys(self.tasks, 1)

    def say(self, *messages: Message) -> None:
        self.post.inbox += [to_frame(message) for message in messages]
        self.turn()

    def turn(self, by: int = 0) -> None:
        self.now += by
        self.leader.turn(self.now)

    def hello(self, task: int) -> None:
        launch = self.launches[task]
        self.say(Hello(task, launch, f"at {task}/{launch}", 100 * launch + task, "here"))

    def start(self) -> None:
        for task in self.tasks:
            self.hello(task)
        self.say(*(Ready(task, 1) for task in self.tasks))

    def told(self, kind: type[Message]) -> list[tuple[str, Any]]:
        found = [(to, message) for to, message in self.post.sent if isinstance(message, kind)]
        self.post.sent.clear()
        return found

    def mark(self, by: int = 100, latest: int | None = None) -> Pulse:
        """Have a mark made and return it."""
        self.now += by
        self.say(*(Beat(task, n, 100 * n + task) for task, n in self.launches.items()))
        for task, name in enumerate(("one", "two")):
            times = [SourceTime(name, latest, 0, ended=False)]
            self.say(SourceTimes(task, self.attempts[task], self.post.question, times))
        ((_, pulse), _) = self.told(Pulse)
        assert isinstance(pulse, Pulse)
        return pulse

    def store(self, epoch: int, *tasks: int) -> None:
        for task in tasks or self.tasks:
            name, index = self.lead.names[task]
            record = TaskRecord(name, index, [], {}, {}, None, False)
            self.say(Stored(task, self.attempts[task], epoch, record))

    def lose(self, task: int) -> None:
        self.launches[task] += 1
        self.leader.losses.append((task, self.launches[task] - 1, "killed"))
        self.turn()
