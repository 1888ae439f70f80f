"""The coordinator: who is there, when all may start, what time it is, when all is over.

A pure state machine: messages and the time go in, actions come out: messages for tasks, tasks to
launch, records to write.

At every pulse the sources are asked how far they are; when all have answered, all are told to make
a mark with stream time. So the mark of a number carries the same time everywhere. With a
checkpoint, some marks end an epoch; see `Controller`.

When a task is lost, it and all that come after it *begin* a new attempt from the last committed
epoch, and the others send them again what came after it. The start of a flow is the same, with
everybody in it.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from floodway.core.errors import EngineError, FloodwayError
from floodway.engine.actions import Action, Launch, Tell, Write
from floodway.engine.control import (
    Applied,
    Beat,
    Commit,
    Drain,
    Ended,
    Failed,
    Go,
    Hello,
    InputEnded,
    Message,
    Pause,
    Progress,
    Reached,
    Ready,
    Replay,
    Restoring,
    SourceTime,
    Start,
    Stop,
    Stored,
    Stuck,
    Unreachable,
    Wait,
    Warned,
    error_of,
)
from floodway.engine.coverage import Coverage
from floodway.engine.loading import Loading
from floodway.engine.losses import MOST_TRIES, Losses
from floodway.engine.numbering import Numbering
from floodway.engine.pulses import Pulses
from floodway.engine.rud.controller import Controller
from floodway.engine.rud.records import CommitRecord, TaskRecord
from floodway.engine.stream_time import StreamTime
from floodway.engine.whereabouts import Whereabouts
from floodway.plan.stages import Plan

State = Literal[
    "gathering", "opening", "running", "recovering", "draining", "stopping", "ended", "failed"
]

WAIT_MS = 1_000
"""How often tasks that wait for others hear that the driver is there."""

SLOW_MS = 60_000
"""An epoch that takes longer is worth a warning."""


class Epoching(NamedTuple):
    """How a flow that can go back commits: how often, and from where it goes on.

    The run's attempts are numbered from after `attempts` on: nobody of a former run had those.
    What is in `folder` is `lasting` if it outlives the driver, that is, if it is a checkpoint.
    `machine` is the one the driver is on.
    """

    every_ms: int
    record: CommitRecord | None = None
    silent_ms: int = 30_000
    attempts: int = 0
    lasting: bool = True
    folder: str = ""
    machine: str = ""


class Coordinator:
    """Leads the tasks of a plan through their lives."""

    def __init__(
        self,
        plan: Plan,
        *,
        pulse_ms: int = 100,
        epoching: Epoching | None = None,
        silent_ms: int = 30_000,
    ) -> None:
        self._plan = plan
        self.silent_ms = silent_ms if epoching is None else epoching.silent_ms
        self._numbering = Numbering(plan)
        self._epoching = epoching
        self.names = self._numbering.names
        self._asked = {n for n, (stage, _) in self.names.items() if plan.stage(stage).sources}
        self.state: State = "gathering"
        self.failure: FloodwayError | None = None
        self.warnings: list[str] = []
        self.recoveries = 0
        self.restoring: dict[int, tuple[int, int]] = {}
        record = epoching.record if epoching is not None else None
        self._controller = Controller(
            self.names, record.epoch if record else 0, self._numbering.by_task(record)
        )
        attempts = epoching.attempts if epoching is not None else 0
        self._attempt = max(attempts, record.attempt if record else 0)
        sources = [source for stage in plan.stages for source in stage.sources]
        self._time = StreamTime(
            {source.name: source.idle_ms for source in sources if source.moves_time},
            record.stream_time if record else None,
        )
        self._pulses = Pulses(
            self._time,
            pulse_ms,
            epoch=record.epoch if record else 0,
            clock=record.clock_ms if record else 0,
        )
        self._loading = Loading(plan, self._numbering, [source.name for source in sources])
        self._attempts = dict.fromkeys(self.names, 0)
        self._launches = dict.fromkeys(self.names, 0)
        self._hellos: dict[int, Hello] = {}
        self._losses = Losses(self.silent_ms)
        self._lasting = epoching is not None and epoching.lasting
        self._coverage = Coverage(plan, lasting=self._lasting)
        self._has_run = False
        self._next_wait = 0
        self._ready: set[int] = set()
        self._gone: set[int] = set()
        self._beginning: set[int] = set()
        self._told_to_start = False
        self._next_epoch = 0
        self._applied: dict[int, int] = {}
        self._drained_at: int | None = None
        self._settled = False
        self.writing: int | None = None
        self._slow_since: int | None = None
        self._begin(self.names)

    # ------------------------------------------------------------------ what others may know

    @property
    def over(self) -> bool:
        """Whether there is nothing left to lead."""
        return self.state in ("ended", "failed")

    @property
    def missing(self) -> list[tuple[str, int]]:
        """The tasks that have not said hello."""
        return [name for number, name in self.names.items() if number not in self._hellos]

    @property
    def epoch(self) -> int:
        """The number of the last mark."""
        return self._pulses.epoch

    @property
    def committed(self) -> int:
        """The last committed epoch."""
        return self._controller.committed

    @property
    def attempt(self) -> int:
        """The number of the flow's latest attempt."""
        return self._attempt

    @property
    def stream_time(self) -> int | None:
        """The latest stream time."""
        return self._time.time

    @property
    def returns(self) -> Mapping[str, int]:
        """How often each source was idle and came back behind stream time."""
        return self._time.returns

    @property
    def clock_ms(self) -> int:
        """What the clock of the last mark showed."""
        return self._pulses.clock

    def time_at(self, epoch: int) -> int | None:
        """Return what stream time was at the end of an epoch that is not committed yet."""
        return self._pulses.time_at(epoch)

    def address(self, task: int) -> str | None:
        """Return where a task listens, once it has said hello."""
        hello = self._hellos.get(task)
        return None if hello is None else hello.address

    @property
    def processes(self) -> list[tuple[str, int]]:
        """Host and process of every task that has said hello."""
        return [(hello.host, hello.pid) for hello in self._hellos.values()]

    def process(self, task: int) -> tuple[str, int] | None:
        """Return host and process of a task that has said hello."""
        hello = self._hellos.get(task)
        return None if hello is None else (hello.host, hello.pid)

    def whereabouts(self, task: int) -> Whereabouts | None:
        """Return which process a task that has said hello is."""
        hello = self._hellos.get(task)
        return None if hello is None else Whereabouts(hello.machine, hello.pid, hello.began)

    @property
    def recovers(self) -> bool:
        """Whether the loss of a task is survived."""
        return self._epoching is not None

    @property
    def queued(self) -> list[str]:
        """The tasks that wait for a slot of Spark, by name."""
        return [self._name(task) for task in sorted(self._losses.queued)]

    def _name(self, task: int) -> str:
        stage, index = self.names[task]
        return f"{stage}/{index}"

    # ------------------------------------------------------------------ messages

    def take(self, message: Message, now_ms: int) -> list[Action]:
        """Take a message of a task; return what to do."""
        match message:
            case Hello(task, launch):
                return self._hello(message, now_ms) if launch == self._launches[task] else []
            case Beat(task, launch, pid):
                hello = self._hellos.get(task)
                if hello is not None and (hello.launch, hello.pid) == (launch, pid):
                    self._losses.heard(task, now_ms)
                return []
            case Stuck(task, launch, where) if launch == self._launches[task]:
                self._losses.stuck(task, where)
                if where:
                    stage, index = self.names[task]
                    self.warnings.append(f"task {index} of {stage} {where}")
                return []
            case Warned(_, text):
                self.warnings.append(text)
                return []
            case Failed(task, launch):
                return self._fail(error_of(message)) if launch == self._launches[task] else []
            case (
                Ready(task, attempt)
                | InputEnded(task, attempt)
                | Progress(task, attempt)
                | Stored(task, attempt)
                | Applied(task, attempt)
                | Restoring(task, attempt)
                | Unreachable(task, attempt)
                | Reached(task, attempt)
                | Ended(task, attempt)
            ) if attempt == self._attempts[task]:
                self._losses.heard(task, now_ms)
                return self._told(message, now_ms)
            case _:
                return []  # of an attempt that is over

    def _told(self, message: Message, now_ms: int) -> list[Action]:
        match message:
            case Ready(task):
                self.restoring.pop(task, None)
                self._ready.add(task)
                return self._go(now_ms)
            case InputEnded(task, _, exchange):
                self._loading.ended(task, exchange)
                return [] if self._beginning else self._loaded()
            case Progress(task, _, number, sources):
                last = self._pulses.answer(task, number, sources)
                self.warnings += self._time.warnings()
                return self._pulse(now_ms) if last else []
            case Stored(task, _, epoch, record):
                return self._stored(task, epoch, record)
            case Applied(task, _, epoch):
                self._applied[task] = epoch
                return self._stop_if_drained()
            case Restoring(task, _, done, total):
                self.restoring[task] = (done, total)
            case Unreachable(task, _, target, lost):
                return self.unreachable(self._name(task), target, lost=lost)
            case Reached(task, _, target):
                self.reached(self._name(task), target)
            case Ended(task, _, sources):
                return self._one_ended(task, sources, now_ms)
            case _:
                pass
        return []

    # ------------------------------------------------------------------ beginning

    def _begin(self, tasks: Iterable[int]) -> None:
        """Let tasks begin an attempt, once all of them are there.

        Those that were about to begin start again: they have to know the others anew.
        """
        self._attempt += 1
        self._beginning |= set(tasks)
        for task in self._beginning:
            self._attempts[task] = self._attempt
            self._applied.pop(task, None)
        self._ready -= self._beginning
        self._controller.forget(self._beginning)
        self._loading.again(self._beginning)
        self._told_to_start = False
        self._pulses.forget_question()  # asked anew when all go on
        self.writing = None  # what some of them have stored does not count any more

    def _hello(self, hello: Hello, now_ms: int) -> list[Action]:
        self._losses.heard(hello.task, now_ms)
        if not hello.sees and (failed := self._unseen(hello)):
            return failed
        former = self._hellos.get(hello.task)
        self._hellos[hello.task] = hello
        awaited = hello.task in self._beginning and not self._told_to_start
        if former is not None and former.pid != hello.pid and not awaited:
            # Spark has started the task again by itself.
            reason = "its process was replaced"
            hopeless = self._hopeless(hello.task, reason)
            return self._fail(hopeless) if hopeless else self._go_back(hello.task, reason)
        return self._start()

    def _unseen(self, hello: Hello) -> list[Action]:
        """Refuse a folder that a task does not see; do without one that nobody has asked for."""
        if self._epoching is None:
            return []
        folder, lasting = self._epoching.folder, self._epoching.lasting
        if not lasting and self.state == "gathering":
            self._epoching = None
            self.warnings.append(
                f"{hello.host} does not see {folder}: a lost task or executor ends the flow; "
                "--checkpoint DIR, on a file system that all hosts see, lets it go on"
            )
            return []
        what = "the checkpoint" if lasting else "what the flow goes back to"
        return self._fail(
            EngineError(
                f"{self._name(hello.task)} on the host {hello.host} does not see {what} in "
                f"{folder}",
                remedy="give --checkpoint a folder on a file system that all hosts see under the "
                "same path, and may write to",
            )
        )

    def _start(self) -> list[Action]:
        if self._told_to_start or not self._beginning <= self._hellos.keys() or self.over:
            return []
        self._told_to_start = True
        if self.state == "gathering":
            self.state = "opening"
        return [Tell(task, self._start_of(task)) for task in sorted(self._beginning)]

    def _start_of(self, task: int) -> Start:
        marks, counts = self._pulses.kept(task) if task in self._asked else ([], {})
        return Start(
            self._addresses(),
            [self._attempts[number] for number in self.names],
            self._controller.committed,
            self._controller.record(task),
            marks,
            counts,
            self._epoching is not None,
        )

    def _addresses(self) -> list[str]:
        return [hello.address if (hello := self._hellos.get(n)) else "" for n in self.names]

    def _go(self, now_ms: int) -> list[Action]:
        """Let everybody go on if all who begin are ready."""
        if not self._beginning or not self._beginning <= self._ready:
            return []
        if self.over or self.state == "stopping":
            return []
        begun, self._beginning = self._beginning, set()
        actions: list[Action] = []
        if self.state == "opening":
            self.state = "running"
            self._begin_to_run()
            self._next_epoch = now_ms + (self._epoching.every_ms if self._epoching else 0)
            self._pulses.start(now_ms)
        else:
            self.state = "running" if self._drained_at is None else "draining"
            attempts = [self._attempts[number] for number in self.names]
            replay = Replay(self._addresses(), attempts, self._controller.committed)
            others = self.names.keys() - begun - self._gone
            actions += [Tell(task, replay) for task in sorted(others)]
        actions += [Tell(task, Go(self._loading.allowed())) for task in sorted(begun)]
        if self._drained_at is not None:
            # Sources that went back read again what they had read, and then no more.
            actions += [Tell(task, self._end_order) for task in sorted(begun & self._asked)]
        return actions + self._loaded() + self._complete()

    def _begin_to_run(self) -> None:
        self._has_run = True
        once = self._coverage.in_tasks
        if once and self._epoching is not None and not self._lasting:
            self.warnings.append(
                f"what {_and(once)} has read cannot be read again: the loss of a task that reads "
                "it ends the flow"
            )

    def _loaded(self) -> list[Action]:
        """Let the other sources go if the preloaded tables are complete.

        With a checkpoint the tables are committed first: once others have read, nobody may go back
        to before the tables were complete.
        """
        if not self._loading.complete:
            return []
        if self._epoching is not None and self.committed <= self._loading.complete_at(self.epoch):
            self._next_epoch = 0
            return []
        sources = self._loading.release()
        if self._drained_at is not None:
            return []
        return [Tell(task, Go(sources)) for task in sorted(self.names.keys() - self._gone)]

    # ------------------------------------------------------------------ losing tasks

    def lost(self, task: int, launch: int, reason: str) -> list[Action]:
        """Take note that the process of a task is gone although the task has not ended."""
        if self.over or self.state == "stopping" or task in self._gone:
            return []
        if launch != self._launches[task]:
            return []
        reason = self._losses.reason(task, reason)
        hopeless = self._hopeless(task, reason)
        if hopeless is not None:
            return self._fail(hopeless)
        self._launches[task] += 1
        self._hellos.pop(task, None)
        self._losses.forget(task)
        return [Launch(task, self._launches[task]), *self._go_back(task, reason)]

    def _affected(self, task: int) -> set[int]:
        """Return who goes back when a task is lost: it, and all that come after it."""
        affected = {task}
        if not self._controller.ended(task):
            affected |= self._numbering.after(task)
        return affected - self._gone

    def _go_back(self, task: int, reason: str) -> list[Action]:
        """Let a task and all that come after it begin anew."""
        self.warnings.append(
            f"{self._name(task)} was lost ({reason}); going back to epoch {self.committed}"
        )
        self._losses.lost(task)
        self.recoveries += 1
        affected = self._affected(task)
        if self._has_run:
            self._say_what_is_not_covered(affected)
        self._begin(affected)
        if self.state in ("running", "draining"):
            self.state = "recovering"
        return self._start()

    def _say_what_is_not_covered(self, affected: set[int]) -> None:
        stages = {self.names[task][0] for task in affected}
        once = self._coverage.read_once(stages)
        if once:
            self.warnings.append(
                f"what {_and(once)} had read since epoch {self.committed} may be lost: it cannot "
                "be read again"
            )
        again = self._coverage.shown_again(stages)
        if again:
            self.warnings.append(
                f"{_and(again)} may show again what came since epoch {self.committed}: at least "
                "once is all that is promised there"
            )

    def _hopeless(self, task: int, reason: str) -> EngineError | None:
        """Return why the flow cannot go on without a task; None if it can."""
        if self._epoching is None or self._losses.tries(task) >= MOST_TRIES:
            return self._lost_error(task, reason)
        stages = {self.names[each][0] for each in self._affected(task)}
        once = self._coverage.read_once(stages)
        if self._lasting or not once or not self._has_run:
            return None
        return EngineError(
            f"{self._name(task)} was lost ({reason}), and what {_and(once)} had read cannot be "
            "read again",
            remedy="see the log for what killed it (memory is the usual cause); let a source that "
            "can go back, such as files or Kafka, be between that input and the flow",
        )

    def _lost_error(self, task: int, reason: str) -> EngineError:
        stage, index = self.names[task]
        if self._epoching is None:
            return EngineError(
                f"task {index} of the stage {stage} was lost: {reason}",
                remedy="see the log for what killed it (memory is the usual cause), and whether "
                "its host is there and lets connections in; with recovery, or a checkpoint "
                "(--checkpoint DIR), a flow goes on by itself",
            )
        safe = (
            "what is committed is safe, and the flow goes on from there when it is started again"
            if self._lasting
            else "with a checkpoint (--checkpoint DIR) what is committed would be safe"
        )
        return EngineError(
            f"task {index} of the stage {stage} was lost, as it was {self._losses.tries(task)} "
            f"times since epoch {self.committed}: {reason}",
            remedy=f"see the log for what kills it (memory is the usual cause); {safe}",
        )

    def _silent(self, now_ms: int) -> list[Action]:
        """Give up tasks of whose process nothing has been heard for long."""
        if self.over or self.state == "stopping":
            return []
        # Before the flow has started, whoever starts it has a deadline.
        expected = self._hellos.keys() if self.state == "gathering" else self.names.keys()
        found = self._losses.silent(expected - self._gone, self._hellos.__contains__, now_ms)
        if found is None:
            return []
        return self._give_up(*found)

    def _give_up(self, task: int, reason: str) -> list[Action]:
        """Replace a task that may still be there, if that does no harm."""
        at_large = self._at_large(task, reason)
        return self._fail(at_large) if at_large else self.lost(task, self._launches[task], reason)

    def there(self) -> list[int]:
        """Return the tasks that have said hello and have not left."""
        return sorted(self._hellos.keys() - self._gone)

    def unreachable(self, sender: str, task: int, *, lost: bool) -> list[Action]:
        """Take note that a task does not get what another, or the driver, sends it.

        It may well be heard. What was sent to one that has left nobody misses.
        """
        if self.over or self.state == "stopping" or task not in self.there():
            return []
        link = f"the link {sender} -> {self._name(task)} is down"
        if lost:
            return self._give_up(task, link)
        self.warnings.append(f"{link}; trying again")
        return []

    def reached(self, sender: str, task: int) -> None:
        """Take note that a task gets again what it is sent."""
        if task in self.there():
            self.warnings.append(f"the link {sender} -> {self._name(task)} is up again")

    def _at_large(self, task: int, reason: str) -> EngineError | None:
        """Return why such a task cannot be replaced: nobody knows whether it is dead.

        With a checkpoint it may live: sinks let no zombie write. Those that show rows at once are
        safe only from processes that are dead, and the driver can kill those of its own machine.
        """
        hello = self._hellos.get(task)
        sinks = self._coverage.taken_back([self.names[task][0]])
        if hello is None or not sinks or self._epoching is None:
            return None
        if hello.machine == self._epoching.machine:
            return None
        return EngineError(
            f"{self._name(task)} on the host {hello.host} cannot be heard ({reason}), and nobody "
            f"can tell whether it still writes to {_and(sinks)}",
            remedy="see whether that host can be reached; with a checkpoint (--checkpoint DIR) the "
            "flow would go on",
        )

    def queue(self, tasks: Iterable[int], now_ms: int) -> None:
        """Take note of which tasks wait for a slot of Spark."""
        for task in self._losses.queue(tasks, now_ms):
            self.warnings.append(f"{self._name(task)} waits for a free slot of Spark")

    def excuse(self, ms: int) -> None:
        """Do not take it for silence that the driver itself stood still."""
        self._losses.excuse(ms)

    # ------------------------------------------------------------------ pulses

    def tick(self, now_ms: int) -> list[Action]:
        """Let time pass: ask the sources when a pulse is due."""
        if not self._pulses.due(now_ms):
            return []
        silent = self._silent(now_ms)
        if silent or self.state not in ("running", "draining"):
            return silent + self._reassure(now_ms)
        self._see_if_slow(now_ms)
        alive = self._asked - self._gone
        ask = self._pulses.ask(alive, now_ms)
        return [] if ask is None else [Tell(task, ask) for task in sorted(alive)]

    def _reassure(self, now_ms: int) -> list[Action]:
        """Tell those who wait for others that the driver is there."""
        if now_ms < self._next_wait or self._told_to_start or self.over:
            return []
        self._next_wait = now_ms + WAIT_MS
        return [Tell(task, Wait()) for task in sorted(self._beginning & self._hellos.keys())]

    def _pulse(self, now_ms: int) -> list[Action]:
        alive = sorted(self._asked - self._gone)
        if not alive or self.state not in ("running", "draining"):
            return []
        epoch, commit = self._pulses.number(), self._epoch_due(now_ms)
        if commit:
            self._controller.request(epoch)
        mark = self._pulses.mark(now_ms, commit=commit)
        if self._epoching is not None:
            self._pulses.keep(mark, alive)
        return [Tell(task, mark) for task in alive]

    def _epoch_due(self, now_ms: int) -> bool:
        if self._epoching is None or self._controller.requested is not None:
            return False
        if now_ms < self._next_epoch:
            return False
        self._next_epoch = now_ms + self._epoching.every_ms
        self._slow_since = now_ms
        return True

    def _see_if_slow(self, now_ms: int) -> None:
        """Say so, once, if an epoch takes very long."""
        since, epoch = self._slow_since, self._controller.requested
        if epoch is None or since is None or now_ms - since < SLOW_MS:
            return
        self._slow_since = None
        names = [f"{s}/{i}" for s, i in (self.names[n] for n in self._controller.missing[:5])]
        self.warnings.append(
            f"epoch {epoch} has been on its way for {SLOW_MS // 1000} s; waiting for "
            f"{', '.join(names) or 'its record to be written'}"
        )

    # ------------------------------------------------------------------ epochs

    def _stored(self, task: int, epoch: int, record: TaskRecord) -> list[Action]:
        if record.ended and self._controller.ended(task):
            # It has begun anew after its end was committed, and waits to hear that it was.
            return [Tell(task, Commit(self.committed, ended=True))]
        self._controller.stored(task, epoch, record)
        return self._complete()

    def _complete(self) -> list[Action]:
        """Have an epoch written if everybody has stored it."""
        found = self._controller.complete()
        if found is None or self.writing is not None or self._beginning:
            return []
        epoch = self._controller.requested
        if epoch is None:  # all have ended, and no mark can reach anybody any more
            epoch = self._pulses.number()
        self.writing = epoch
        return [Write(epoch, found, all(record.ended for record in found.values()))]

    def written(self, write: Write) -> list[Action]:
        """Take note that an epoch is durable: it is committed."""
        self.writing = None
        self._losses.committed()
        self._controller.commit(write.epoch, write.tasks)
        self._pulses.committed(write.epoch)
        there = sorted(self.names.keys() - self._gone)
        actions: list[Action] = [
            Tell(task, Commit(write.epoch, ended=write.tasks[task].ended)) for task in there
        ]
        return actions + self._loaded() + self._complete()

    # ------------------------------------------------------------------ the end

    def _one_ended(self, task: int, sources: list[SourceTime], now_ms: int) -> list[Action]:
        self._gone.add(task)
        answered = self._pulses.leave(task, sources)
        self.warnings += self._time.warnings()
        if len(self._gone) == self._numbering.count and self.state != "failed":
            self.state = "ended"
            return []
        return (self._pulse(now_ms) if answered else []) + self._stop_if_drained()

    def drain(self) -> list[Action]:
        """Let the sources read no more, and everything else come to its end.

        With a checkpoint nothing comes to its end: the flow stops when what was read is committed
        and shown, and can go on from there.
        """
        if self.state in ("gathering", "opening"):
            return self.stop()
        if self.state not in ("running", "recovering") or self._drained_at is not None:
            return []
        self._drained_at = self.epoch
        self._next_epoch = 0
        if self.state == "running":
            self.state = "draining"
        there = sorted(self._asked - self._gone - self._beginning)
        return [Tell(task, self._end_order) for task in there]

    @property
    def _end_order(self) -> Drain | Pause:
        """What sources are told that are to read no more."""
        return Pause() if self._lasting else Drain()

    def _stop_if_drained(self) -> list[Action]:
        """Stop when an epoch that began after the sources were stopped is out of all sinks.

        That is known to the checkpoint only with one more epoch. Without it a sink would have to
        find out when the flow goes on, and by then its target may have forgotten.
        """
        if not self._lasting or self._drained_at is None or self.state != "draining":
            return []
        there = self.names.keys() - self._gone
        if self.committed <= self._drained_at:
            return []
        if any(self._applied.get(task, 0) < self.committed for task in there):
            return []
        if not self._settled:
            self._settled, self._drained_at, self._next_epoch = True, self.epoch, 0
            return []
        return self.stop()

    def stop(self) -> list[Action]:
        """Stop all tasks now."""
        if self.over:
            return []
        self.state = "stopping"
        return self._stop_all()

    def fail(self, error: FloodwayError) -> list[Action]:
        """Stop everything because of an error."""
        return [] if self.over else self._fail(error)

    def _fail(self, error: FloodwayError) -> list[Action]:
        if self.failure is None:
            self.failure = error
        self.state = "failed"
        return self._stop_all()

    def _stop_all(self) -> list[Action]:
        there = self._hellos.keys() - self._gone
        return [Tell(task, Stop()) for task in sorted(there)]


def _and(names: list[str]) -> str:
    return " and ".join(names)
