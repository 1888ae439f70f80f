"""Plans, and tasks as far as the coordinator sees them: what they are told, and what they say."""

from collections.abc import Iterable
from typing import Any

from floodway import Flow
from floodway.engine.checkpoint.records import VERSION, CommitRecord, TaskRecord
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.control.messages import (
    Applied,
    Ask,
    Beat,
    Commit,
    Ended,
    Failed,
    Go,
    Hello,
    InputEnded,
    Message,
    Pulse,
    Ready,
    Replay,
    SourceTime,
    SourceTimes,
    Start,
    Stop,
    Stored,
)
from floodway.engine.driver.actions import Action, Launch, Tell, Write
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.driver.epoching import Epoching
from floodway.engine.transport.numbering import Numbering
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan

EPOCH_MS = 1000


def simple(dop: int = 1) -> Plan:
    """Two sources that are merged and counted; the sources stand alone."""
    flow = Flow("simple", idle="10s")
    one = flow.source("one", schema=str).isolate()
    two = flow.source("two", schema=str).isolate()
    one.merge(two, name="both").group_by("value AS word").count(name="counts")
    return Plan.of(flow, Configuration(Tuning(dop=dop)))


def forked(dop: int = 1) -> Plan:
    """Two sources: one is read twice, and everything is in a stage of its own."""
    flow = Flow("forked", idle="10s")
    one = flow.source("one", schema=str).isolate()
    two = flow.source("two", schema=str).isolate()
    one.map("upper(value)", name="aside").isolate()
    one.merge(two, name="both").group_by("value AS word").count(name="counts")
    return Plan.of(flow, Configuration(Tuning(dop=dop)))


def preloading() -> Plan:
    flow = Flow("preload", idle="10s")
    prices = flow.table("prices", schema=int, key=str, preload=True)
    orders = flow.source("orders", schema=str)
    orders.join(prices, on="value", joiner=lambda o, p: p, schema=int, name="joined").to("out")
    return Plan.of(flow)


def source_time(name: str, given: Any, count: int = 0) -> SourceTime:
    latest, silent, ended = given if isinstance(given, tuple) else (given, 0, False)
    return SourceTime(name, latest, silent, ended, count)


def told(actions: Iterable[Action], kind: type[Message]) -> dict[int, Any]:
    """Return who is told a message of a kind, and what it is."""
    return {
        action.task: action.message
        for action in actions
        if isinstance(action, Tell) and isinstance(action.message, kind)
    }


def pulses(actions: Iterable[Action]) -> dict[int, Pulse]:
    return told(actions, Pulse)


def writes(actions: Iterable[Action]) -> list[Write]:
    return [action for action in actions if isinstance(action, Write)]


def launches(actions: Iterable[Action]) -> list[Launch]:
    return [action for action in actions if isinstance(action, Launch)]


class Fake:
    """The tasks of a plan as far as the coordinator sees them.

    With `every_ms` the flow has a checkpoint. What a task says carries the launch and the attempt
    that it was told, unless a test says otherwise.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        every_ms: int | None = None,
        record: CommitRecord | None = None,
        silent_ms: int = 30_000,
        attempts: int = 0,
        lasting: bool = True,
    ) -> None:
        self.plan = plan
        epoching = None
        if every_ms is not None:
            epoching = Epoching(
                every_ms, record, silent_ms, attempts, lasting, "/the/folder", "machine"
            )
        self.lead = Coordinator(plan, pulse_ms=100, epoching=epoching)
        self.numbering = Numbering(plan)
        self.count = self.numbering.count
        self.now = 0
        self.launches = dict.fromkeys(range(self.count), 0)
        self.attempts = dict.fromkeys(range(self.count), 0)
        self.pids = {task: 100 + task for task in range(self.count)}
        self.quiet: set[int] = set()
        self.machine = "machine"

    def number(self, operator: str, index: int = 0) -> int:
        return self.numbering.number(self.plan.stage_of(operator).name, index)

    def numbers(self, *operators: str) -> set[int]:
        return {self.number(operator) for operator in operators}

    # ------------------------------------------------------------------ what tasks say

    def hear(self, actions: list[Action]) -> list[Action]:
        """Let the tasks take note of what they are told, and return it."""
        for action in actions:
            if isinstance(action, Launch):
                self.launches[action.task] = action.launch
                self.pids[action.task] += 1000
            elif isinstance(action, Tell) and isinstance(action.message, Start):
                self.attempts[action.task] = action.message.attempts[action.task]
        return actions

    def say(self, message: Message) -> list[Action]:
        return self.hear(self.lead.take(message, self.now))

    def hello(self, task: int, *, sees: bool = True) -> list[Action]:
        launch, pid = self.launches[task], self.pids[task]
        address = f"at {task}/{launch}"
        return self.say(Hello(task, launch, address, pid, "here", self.machine, 0, sees))

    def ready(self, task: int) -> list[Action]:
        return self.say(Ready(task, self.attempts[task]))

    def ended(self, task: int) -> list[Action]:
        return self.say(Ended(task, self.attempts[task]))

    def input_ended(self, task: int, exchange: int) -> list[Action]:
        return self.say(InputEnded(task, self.attempts[task], exchange))

    def failed(self, task: int, *words: Any) -> list[Action]:
        return self.say(Failed(task, self.launches[task], *words))

    def applied(self, task: int, epoch: int) -> list[Action]:
        return self.say(Applied(task, self.attempts[task], epoch))

    def part(self, task: int, *, epoch: int, ended: bool = False) -> TaskRecord:
        """Return what a task says it was at an epoch; it names the attempt that stored it."""
        stage, index = self.numbering.names[task]
        progress = [self.attempts[task], epoch]
        return TaskRecord(stage, index, [], {}, {}, progress, ended)

    def stored(self, task: int, epoch: int, *, ended: bool = False) -> list[Action]:
        record = self.part(task, epoch=epoch, ended=ended)
        return self.say(Stored(task, self.attempts[task], epoch, record))

    def lost(self, task: int, reason: str = "killed") -> list[Action]:
        return self.hear(self.lead.lost(task, self.launches[task], reason))

    # ------------------------------------------------------------------ all of them at once

    def start(self) -> list[Action]:
        """Let all tasks come and be ready; return what they are told then."""
        for task in range(self.count):
            self.hello(task)
        return self.all_ready(range(self.count))

    def all_ready(self, tasks: Iterable[int]) -> list[Action]:
        actions: list[Action] = []
        for task in tasks:
            actions += self.ready(task)
        return actions

    def recover(self, task: int) -> list[Action]:
        """Lose a task, and let it and the others come back; return what is said at the end."""
        self.lost(task)
        begin = told(self.hello(task), Start)
        assert task in begin
        return self.all_ready(begin)

    def tick(self, by: int = 100) -> list[Action]:
        self.now += by
        for task in set(range(self.count)) - self.quiet:
            assert self.say(Beat(task, self.launches[task], self.pids[task])) == []
        return self.hear(self.lead.tick(self.now))

    def answer(
        self, *, counts: dict[str, int] | None = None, **times: tuple[int | None, int, bool] | Any
    ) -> list[Action]:
        """Answer the question that is due: per source its latest time, silence, whether ended."""
        told: list[Action] = []
        for action in self.tick():
            assert isinstance(action, Tell)
            assert isinstance(action.message, Ask)
            sources = [
                source_time(name, given, (counts or {}).get(name, 0))
                for name, given in times.items()
                if self.number(name) == action.task
            ]
            told += self.progress(action.task, action.message.number, sources)
        return told

    def progress(self, task: int, number: int, sources: Iterable[SourceTime] = ()) -> list[Action]:
        return self.say(SourceTimes(task, self.attempts[task], number, list(sources)))

    # ------------------------------------------------------------------ epochs

    def mark(self, *, commit: bool = False, **options: Any) -> int:
        """Have a mark made, one that ends an epoch if it is said so; return its number."""
        if commit:
            self.now += EPOCH_MS
        marks = pulses(self.answer(**options))
        assert marks, "no mark was made"
        assert {mark.commit for mark in marks.values()} == {commit}
        return self.lead.epoch

    def store_all(self, epoch: int, *, but: Iterable[int] = ()) -> list[Action]:
        actions: list[Action] = []
        for task in sorted(set(range(self.count)) - set(but)):
            actions += self.stored(task, epoch)
        return actions

    def written(self, actions: list[Action]) -> list[Action]:
        """Write the one record that is to be written; return what follows."""
        (write,) = writes(actions)
        return self.hear(self.lead.written(write))

    def commit(self, **options: Any) -> int:
        """Have an epoch committed in which nothing happens; return its number."""
        epoch = self.mark(commit=True, **options)
        self.written(self.store_all(epoch))
        assert self.lead.committed == epoch
        return epoch

    def record(self, write: Write) -> CommitRecord:
        """Return the record of an epoch as the leader writes it."""
        return CommitRecord(
            version=VERSION,
            flow=self.plan.flow,
            shape=FlowShape.of(self.plan),
            epoch=write.epoch,
            attempt=self.lead.attempt,
            stream_time=self.lead.stream_time,
            clock_ms=self.now,
            finished=write.finished,
            tasks=[write.tasks[number] for number in sorted(write.tasks)],
        )


def goes(actions: Iterable[Action]) -> dict[int, tuple[str, ...]]:
    """Return who is told to go, and with which sources."""
    return {task: tuple(go.sources) for task, go in told(actions, Go).items()}


def commits(actions: Iterable[Action]) -> dict[int, Commit]:
    return told(actions, Commit)


def starts(actions: Iterable[Action]) -> dict[int, Start]:
    return told(actions, Start)


def replays(actions: Iterable[Action]) -> dict[int, Replay]:
    return told(actions, Replay)


def shown(fake: Fake) -> list[Any]:
    """Let one more epoch be committed, which is due at once, and shown; return what follows."""
    (mark, *_) = pulses(fake.answer()).values()
    assert mark.commit
    assert not told(fake.written(fake.store_all(mark.epoch)), Stop)
    actions: list[Any] = []
    for task in range(fake.count):
        assert actions == []
        actions = fake.applied(task, mark.epoch)
    return actions
