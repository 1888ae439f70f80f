"""A flow as the coordinator sees it: processes that pass marks, store epochs, end and are lost.

Tasks have no records here. A task passes a mark when all that come before it have, and ends when
they have; what it has stored says by which attempt and at which mark. Messages wait in queues,
those of processes that are gone as well, and whoever drives the model decides what happens next.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from floodway.engine.checkpoint.records import VERSION, CommitRecord, TaskRecord
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.control.messages import (
    Applied,
    Ask,
    Beat,
    Commit,
    Ended,
    Go,
    Hello,
    InputEnded,
    Message,
    Pulse,
    Ready,
    Replay,
    SourceTimes,
    Start,
    Stop,
    Stored,
)
from floodway.engine.driver.actions import Action, Launch, Tell, Write
from floodway.engine.driver.coordinator import Coordinator
from floodway.engine.driver.epoching import Epoching
from floodway.engine.driver.losses import MOST_TRIES
from floodway.engine.transport.batching import senders
from floodway.engine.transport.numbering import Numbering
from floodway.plan import Plan

PULSE_MS = 100
EPOCH_MS = 300

Move = Callable[[], None]


class Process:
    """A process of a task, in one of its attempts."""

    def __init__(self, model: "Model", task: int, launch: int, pid: int) -> None:
        self.model, self.task, self.launch, self.pid = model, task, launch, pid
        self.inbox: deque[Message] = deque()
        self.outbox: deque[Message] = deque()
        self.attempt = self.passed = self.stored = 0
        self.knows: list[int] = []
        self.marks: deque[Pulse] = deque()
        self.told_ends: set[int] = set()
        self.running = self.closed = self.ended = self.left = False
        self.outbox.append(Hello(task, launch, f"at {task}", pid, "here"))

    def obey(self) -> None:
        """Do what the oldest message says."""
        if not self.inbox or self.left:
            return
        match self.inbox.popleft():
            case Start() as start:
                self._start(start)
            case Go(sources):
                self.running = True
                self.model.allowed |= set(sources)
                if self.ended:
                    self._store_end()
            case Ask(number):
                self.outbox.append(SourceTimes(self.task, self.attempt, number, []))
            case Pulse() as pulse:
                self.marks.append(pulse)
            case Replay(_, attempts):
                self.knows = list(attempts)
            case Commit(epoch, ended):
                self.outbox.append(Applied(self.task, self.attempt, epoch))
                if ended:
                    assert self.ended, "it is told that its end is committed, and has not ended"
                    self.outbox.append(Ended(self.task, self.attempt))
                    self.left = True
            case Stop():
                self.left = True

    def _start(self, start: Start) -> None:
        assert start.attempts[self.task] > self.attempt
        self.attempt, self.knows = start.attempts[self.task], list(start.attempts)
        self.passed = self.stored = start.epoch
        self.marks = deque(start.marks)
        self.told_ends = set()
        self.running = False
        self.ended = self.closed = start.record is not None and start.record.ended
        self.outbox.append(Ready(self.task, self.attempt))

    # ------------------------------------------------------------------ what it may do

    def _connected(self) -> bool:
        """Return whether all before it are there and know which attempt this is."""
        before = [self.model.processes[task] for task in self.model.before[self.task]]
        return all(p.left or (p.running and p.knows[self.task] == self.attempt) for p in before)

    def next_mark(self) -> int | None:
        """Return the mark that the task may pass now, if all channels that are open have it."""
        if not self.running or self.ended or self.left or not self._connected():
            return None
        found = []
        for task in self.model.before[self.task]:
            process = self.model.processes[task]
            if process.passed > self.passed:
                found.append(min(m for m in self.model.marks if m > self.passed))
            elif not process.ended:
                return None
        if self.model.sources[self.task] and not self.closed:
            if not self.marks:
                return None
            found.append(self.marks[0].epoch)
        return min(found, default=None)

    def pass_mark(self) -> None:
        """Pass the next mark, and store the epoch that ends there."""
        mark = self.next_mark()
        if mark is None:
            return
        if self.marks and self.marks[0].epoch == mark:
            self.marks.popleft()
        self.passed = mark
        if self.model.marks[mark].commit:
            self.stored = mark
            record = self.model.part(self, mark, ended=False)
            self.outbox.append(Stored(self.task, self.attempt, mark, record))

    def may_close(self) -> bool:
        """Return whether the task's own sources may end now."""
        own = self.model.sources[self.task]
        return bool(own) and self.running and not self.closed and own <= self.model.allowed

    def close(self) -> None:
        """Let the task's own sources end."""
        self.closed = True

    def ends(self) -> list[int]:
        """Return the exchanges whose end has come and was not told yet."""
        if not self.running or self.left or not self._connected():
            return []
        return [
            number
            for number, tasks in self.model.exchanges[self.task].items()
            if number not in self.told_ends and all(map(self._has_ended, tasks))
        ]

    def _has_ended(self, task: int) -> bool:
        process = self.model.processes[task]
        return process.ended and process.passed <= self.passed

    def tell_ends(self) -> None:
        """Say which exchanges have ended."""
        for exchange in self.ends():
            self.told_ends.add(exchange)
            self.outbox.append(InputEnded(self.task, self.attempt, exchange))

    def may_end(self) -> bool:
        """Return whether there is nothing more to come."""
        if not self.running or self.ended or self.left or not self._connected():
            return False
        if self.model.sources[self.task] and not self.closed:
            return False
        return self.model.exchanges[self.task].keys() <= self.told_ends

    def end(self) -> None:
        """End, and store that."""
        if self.may_end():
            self.ended = True
            self._store_end()

    def _store_end(self) -> None:
        epoch = self.stored + 1
        record = self.model.part(self, epoch, ended=True)
        self.outbox.append(Stored(self.task, self.attempt, epoch, record))


class Model:
    """All processes of a flow, its driver and its checkpoint; checks what the driver does."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.numbering = Numbering(plan)
        self.shape = FlowShape.of(plan)
        self.sources = {
            task: {source.name for source in plan.stage(stage).sources}
            for task, (stage, _) in self.numbering.names.items()
        }
        self.exchanges = {
            task: {
                exchange.number: [
                    self.numbering.number(exchange.sender, index)
                    for index in senders(
                        exchange.partitioning, of[1], plan.stage(exchange.sender).dop
                    )
                ]
                for exchange in plan.inputs(plan.stage(of[0]))
            }
            for task, of in self.numbering.names.items()
        }
        self.before = {
            task: {sender for tasks in exchanges.values() for sender in tasks}
            for task, exchanges in self.exchanges.items()
        }
        self.record: CommitRecord | None = None
        self.now = self.losses = 0
        self.pids = iter(range(1, 10**6))
        self.start()

    def start(self) -> None:
        """Start the driver, and all processes, from the last record."""
        epoching = Epoching(EPOCH_MS, self.record)
        self.lead = Coordinator(self.plan, pulse_ms=PULSE_MS, epoching=epoching)
        self.marks: dict[int, Pulse] = {}
        self.allowed: set[str] = set()
        self.ready: set[tuple[int, int]] = set()
        self.attempts: list[int] = []
        self.write: Write | None = None
        self.requested: int | None = None
        self.zombies: list[deque[Message]] = []
        self.processes = {
            task: Process(self, task, 0, next(self.pids)) for task in self.numbering.names
        }

    def part(self, process: Process, mark: int, *, ended: bool) -> TaskRecord:
        stage, index = self.numbering.names[process.task]
        return TaskRecord(stage, index, [], {}, {}, [process.attempt, mark], ended)

    # ------------------------------------------------------------------ what may happen

    def moves(self) -> list[Move]:
        """Return what may happen next but for losses and endings; never nothing.

        What may not happen any more, because of something else that did, does nothing.
        """
        moves: list[Move] = [self.tick]
        for queue in [*self.zombies, *(p.outbox for p in self.processes.values())]:
            if queue:
                moves.append(partial(self.deliver, queue))
        for process in self.processes.values():
            if process.inbox and not process.left:
                moves.append(process.obey)
            if process.next_mark() is not None:
                moves.append(process.pass_mark)
            if process.ends():
                moves.append(process.tell_ends)
            if process.may_end():
                moves.append(process.end)
        if self.write is not None:
            moves.append(self.make_durable)
        return moves

    def tick(self) -> None:
        """Let time pass; all processes are alive."""
        self.now += PULSE_MS
        for process in self.processes.values():
            self.lead.take(Beat(process.task, process.launch, process.pid), self.now)
        self.carry_out(self.lead.tick(self.now))

    def deliver(self, queue: deque[Message]) -> None:
        """Let the driver take the oldest message of a queue."""
        if not queue:
            return
        message = queue.popleft()
        if isinstance(message, Ready):
            self.ready.add((message.task, message.attempt))
        self.carry_out(self.lead.take(message, self.now))

    def make_durable(self) -> None:
        """Write the record that is to be written, unless it was given up."""
        write, self.write = self.write, None
        if write is None or self.lead.writing != write.epoch:
            return
        self._check_write(write)  # still, although somebody may have been lost meanwhile
        self.record = CommitRecord(
            version=VERSION,
            flow=self.plan.flow,
            shape=self.shape,
            epoch=write.epoch,
            attempt=self.lead.attempt,
            stream_time=None,
            clock_ms=self.now,
            finished=write.finished,
            tasks=[write.tasks[number] for number in sorted(write.tasks)],
        )
        self.requested = None
        self.losses = 0
        self.carry_out(self.lead.written(write))

    def may_lose(self) -> bool:
        return self.losses < MOST_TRIES and not self.lead.over and self.lead.state != "stopping"

    def lose(self, task: int) -> None:
        """Kill a process; what it has sent may still come."""
        process = self.processes[task]
        if process.left:
            return
        self.losses += 1
        self.zombies.append(process.outbox)
        self.carry_out(self.lead.lost(task, process.launch, "killed"))

    def replace(self, task: int) -> None:
        """Let Spark start a process again by itself, when all has come that the former said."""
        process = self.processes[task]
        if process.left:
            return
        self.losses += 1
        while process.outbox:
            self.deliver(process.outbox)
        self.processes[task] = Process(self, task, process.launch, next(self.pids))

    # ------------------------------------------------------------------ what the driver does

    def carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Tell(task, message):
                    self._check(task, message)
                    process = self.processes[task]
                    if self.lead.roster.process(task) == ("here", process.pid):
                        process.inbox.append(message)  # otherwise it goes to one that is gone
                case Launch(task, launch):
                    assert launch > self.processes[task].launch
                    self.processes[task] = Process(self, task, launch, next(self.pids))
                case Write() as write:
                    self._check_write(write)
                    self.write = write

    def _check(self, task: int, message: Message) -> None:
        committed = self.record.epoch if self.record else 0
        match message:
            case Start(_, attempts, epoch, record, marks):
                assert epoch == self.lead.committed == committed
                assert record == self.recorded(task)
                due = [mark for number, mark in self.marks.items() if number > committed]
                assert marks == (due if self.sources[task] else [])
                self.attempts = list(attempts)
            case Replay(_, attempts, epoch):
                assert epoch == committed
                assert attempts == self.attempts
                self._check_ready()
            case Go():
                self._check_ready()
            case Commit(epoch, ended):
                assert epoch == committed
                assert ended == (self.recorded(task) or self.part_missing()).ended
            case Pulse(number, _, _, commit):
                if number not in self.marks:
                    assert number > max(self.marks, default=committed)
                    self.marks[number] = message
                    if commit:
                        assert self.requested is None, "two epochs are on their way"
                        self.requested = number
                assert self.marks[number] == message
            case _:
                pass

    def _check_ready(self) -> None:
        """See that nobody has to send anything to who is not ready for it."""
        assert self.ready >= set(enumerate(self.attempts))

    def recorded(self, task: int) -> TaskRecord | None:
        """Return what a task was at the last epoch that is durable."""
        return self.record.tasks[task] if self.record else None

    def part_missing(self) -> TaskRecord:
        raise AssertionError("an epoch is said to be committed, and none is")

    def _check_write(self, write: Write) -> None:
        """See that a record is a consistent cut, made by the attempts that are alive."""
        committed = self.record.epoch if self.record else 0
        assert write.epoch > committed
        assert set(write.tasks) == set(self.numbering.names)
        assert write.finished == all(part.ended for part in write.tasks.values())
        for task, part in write.tasks.items():
            assert (part.stage, part.index) == self.numbering.names[task]
            attempt, mark = part.progress
            former = self.recorded(task)
            if former is not None and former.ended:
                assert part.ended
            else:
                assert attempt == self.attempts[task]
                assert part.ended or mark == write.epoch
            if part.ended:
                assert all(write.tasks[sender].ended for sender in self.before[task])
