"""A task's part in epochs, without a runner: the task, its connectors, and what it says."""

from pathlib import Path
from typing import Any

from floodway import Flow
from floodway.connectors.base import Split
from floodway.engine.checkpoint.records import TaskRecord
from floodway.engine.control.messages import Applied, Message, Stored
from floodway.engine.datastream.epochs import Epochs
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.settings import Settings
from floodway.engine.datastream.task import Task
from floodway.engine.datastream.writing import Sinks
from floodway.engine.program.mark import Mark
from floodway.plan import Plan
from tests.engine.datastream.fakes import Feed, Hands, NoBell, Shelf, straight
from tests.engine.datastream.net import Net

COMMIT = Mark(commit=True)


class Part:
    """A task, its connectors and its epochs, as a runner has them."""

    def __init__(
        self,
        net: Net,
        task: Task,
        scratch: Path,
        *,
        vault: Shelf | None = None,
        record: TaskRecord | None = None,
        epoch: int = 0,
        quick: bool = True,
        **settings: Any,
    ) -> None:
        self.task = task
        self.now = 0
        self.vault = vault or Shelf()
        self.said: list[Message] = []
        self.storing, self.applying = Hands(quick=quick), Hands(quick=quick)
        self.sources = Sources(task, NoBell(), lambda text: None, lambda: self.now)
        self.sinks = Sinks(task, Reporter(task, 0), lambda: 0, lambda text: None)
        self.epochs = Epochs(
            task,
            self.sources,
            self.sinks,
            self.vault,
            Settings(**settings),
            scratch=scratch,
            storing=self.storing,
            applying=self.applying,
            post=net.send,
            tell=self.said.append,
            epoch=epoch,
        )
        task.on_commit = self.epochs.end_epoch
        self.progress: list[tuple[int, int]] = []
        if record is not None:
            self.epochs.load(record, lambda done, total: self.progress.append((done, total)))
        self.sources.open(Split(), record.positions if record else None)
        self.sinks.open(Split(), self.vault, record.sinks if record else None)
        self.epochs.resume()
        self.sources.allow(["numbers"])

    def work(self) -> None:
        """Do what a runner does in a turn or two."""
        for _ in range(3):
            self.now += 2000  # a source that had nothing is asked again
            self.epochs.turn(self.now)
            if not self.epochs.held:
                self.sources.read(self.now, self.task)
                while self.task.step(self.now) and not self.epochs.held:
                    pass
            self.sinks.write(self.now)
            if self.task.ended and not self.sinks.pending and not self.sinks.unflushed:
                self.epochs.end_task()
        self.epochs.turn(self.now)

    def mark(self, epoch: int) -> None:
        self.task.pulse(epoch, COMMIT)
        self.work()

    def stored(self, epoch: int | None = None) -> list[Stored]:
        return [
            message
            for message in self.said
            if isinstance(message, Stored) and epoch in (None, message.epoch)
        ]

    def record(self, epoch: int) -> TaskRecord:
        (stored,) = self.stored(epoch)
        return stored.record

    def applied(self) -> list[int]:
        return [message.epoch for message in self.said if isinstance(message, Applied)]


def alone(scratch: Path, feed: Feed, *sinks: Any, **options: Any) -> Part:
    """A task that is a flow by itself."""
    net = Net(straight(feed, *sinks), attempts=[4])
    (task,) = net.tasks
    return Part(net, task, scratch, **options)


def counting() -> Plan:
    flow = Flow("counting")
    words = flow.source("words", schema=str).isolate()
    counts = words.group_by("value AS word").count(name="counts")
    counts.changes(name="changes").isolate().to("out")
    return Plan.of(flow)


class Counts:
    """A task that counts words, between its source and who reads the counts."""

    def __init__(self, scratch: Path, **options: Any) -> None:
        self.net = Net(counting())
        (self.source,), (self.task,) = self.net.of("words"), self.net.of("counts")
        self.part = Part(self.net, self.task, scratch, **options)

    def feed(self, *words: str) -> None:
        self.source.feed("words", [(0, None, word) for word in words], 0)
        self.source.flush()
        self.net.deliver(self.task)

    def mark(self, epoch: int) -> None:
        self.source.pulse(epoch, COMMIT)
        self.net.work(self.source, steps=5)
        self.net.deliver(self.task)
        self.part.work()

    @property
    def counts(self) -> dict[str, int]:
        kernel: Any = self.task.program.node("counts").kernel
        return {key: row[1] for key, row in kernel.rows().items()}
