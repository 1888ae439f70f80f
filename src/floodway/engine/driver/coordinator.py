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
from typing import Literal

from floodway.core.errors import FloodwayError
from floodway.engine.checkpoint.controller import Controller
from floodway.engine.checkpoint.records import TaskRecord
from floodway.engine.control.messages import (
    Applied,
    Beat,
    Commit,
    Ended,
    Failed,
    Go,
    Hello,
    InputEnded,
    Message,
    Reached,
    Ready,
    Replay,
    Restoring,
    SourceTime,
    SourceTimes,
    Start,
    Stop,
    Stored,
    Stuck,
    Unreachable,
    Wait,
    Warned,
    error_of,
)
from floodway.engine.driver.actions import Action, Launch, Tell, Write
from floodway.engine.driver.attempts import Attempts
from floodway.engine.driver.cadence import SLOW_MS, Cadence
from floodway.engine.driver.draining import Draining
from floodway.engine.driver.epoching import Epoching, Origin
from floodway.engine.driver.loading import Loading
from floodway.engine.driver.losses import Losses
from floodway.engine.driver.pulses import Pulses
from floodway.engine.driver.recovery import Loss, Recovery
from floodway.engine.driver.roster import Roster
from floodway.engine.driver.stream_time import StreamTime
from floodway.engine.transport.numbering import Numbering
from floodway.plan.stages import Plan

FlowState = Literal[
    "gathering", "opening", "running", "recovering", "draining", "stopping", "ended", "failed"
]

WAIT_MS = 1_000
"""How often tasks that wait for others hear that the driver is there."""


class Coordinator:
    """Leads the tasks of a plan through their lives.

    Attributes
    ----------
    roster
        Which process each task is, and who is there.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        pulse_ms: int = 100,
        epoching: Epoching | None = None,
        silent_ms: int = 30_000,
    ) -> None:
        self.silent_ms = silent_ms if epoching is None else epoching.silent_ms
        self._numbering = Numbering(plan)
        self.names = self._numbering.names
        self.roster = Roster(self.names)
        self._asked = {n for n, (stage, _) in self.names.items() if plan.stage(stage).sources}
        self.state: FlowState = "gathering"
        self.failure: FloodwayError | None = None
        self.warnings: list[str] = []
        self.recoveries = 0
        self.restoring: dict[int, tuple[int, int]] = {}
        origin = Origin.of(epoching)
        self._controller = Controller(
            self.names,
            origin.epoch,
            {self._numbering.number(task.stage, task.index): task for task in origin.tasks},
        )
        self._attempts = Attempts(self.names, origin.attempt)
        sources = [source for stage in plan.stages for source in stage.sources]
        self._time = StreamTime(
            {source.name: source.idle_ms for source in sources if source.moves_time},
            origin.stream_time,
        )
        self._pulses = Pulses(self._time, pulse_ms, epoch=origin.epoch, clock=origin.clock_ms)
        self._loading = Loading(plan, self._numbering, [source.name for source in sources])
        self._losses = Losses(self.silent_ms)
        self._recovery = Recovery(plan, self.roster, epoching)
        self._next_wait = 0
        self._cadence = Cadence(epoching.every_ms if epoching is not None else 0)
        self._draining = Draining(lasting=self._recovery.lasting)
        self.writing: int | None = None
        self._begin(self.names)

    # ------------------------------------------------------------------ what others may know

    @property
    def over(self) -> bool:
        """Whether there is nothing left to lead."""
        return self.state in ("ended", "failed")

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
        return self._attempts.latest

    @property
    def attempts(self) -> Mapping[int, int]:
        """In which attempt each task is, by number."""
        return self._attempts.of

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

    @property
    def recovers(self) -> bool:
        """Whether the loss of a task is survived."""
        return self._recovery.possible

    @property
    def queued(self) -> list[str]:
        """The tasks that wait for a slot of Spark, by name."""
        return [self.roster.name(task) for task in sorted(self._losses.queued)]

    # ------------------------------------------------------------------ messages

    def take(self, message: Message, now_ms: int) -> list[Action]:
        """Take a message of a task; return what to do."""
        match message:
            case Hello(task, launch):
                return self._hello(message, now_ms) if launch == self.roster.launch(task) else []
            case Beat(task, launch, pid):
                hello = self.roster.hello(task)
                if hello is not None and (hello.launch, hello.pid) == (launch, pid):
                    self._losses.heard(task, now_ms)
                return []
            case Stuck(task, launch, where) if launch == self.roster.launch(task):
                self._losses.stuck(task, where)
                if where:
                    stage, index = self.names[task]
                    self.warnings.append(f"task {index} of {stage} {where}")
                return []
            case Warned(_, text):
                self.warnings.append(text)
                return []
            case Failed(task, launch):
                return self._fail(error_of(message)) if launch == self.roster.launch(task) else []
            case (
                Ready(task, attempt)
                | InputEnded(task, attempt)
                | SourceTimes(task, attempt)
                | Stored(task, attempt)
                | Applied(task, attempt)
                | Restoring(task, attempt)
                | Unreachable(task, attempt)
                | Reached(task, attempt)
                | Ended(task, attempt)
            ) if attempt == self._attempts.of[task]:
                self._losses.heard(task, now_ms)
                return self._told(message, now_ms)
            case _:
                return []  # of an attempt that is over

    def _told(self, message: Message, now_ms: int) -> list[Action]:
        match message:
            case Ready(task):
                self.restoring.pop(task, None)
                self._attempts.ready(task)
                return self._go(now_ms)
            case InputEnded(task, _, exchange):
                self._loading.ended(task, exchange)
                return [] if self._attempts.beginning else self._loaded()
            case SourceTimes(task, _, number, sources):
                last = self._pulses.answer(task, number, sources)
                self.warnings += self._time.warnings()
                return self._pulse(now_ms) if last else []
            case Stored(task, _, epoch, record):
                return self._stored(task, epoch, record)
            case Applied(task, _, epoch):
                self._draining.applied(task, epoch)
                return self._stop_if_drained()
            case Restoring(task, _, done, total):
                self.restoring[task] = (done, total)
            case Unreachable(task, _, target, lost):
                return self.unreachable(self.roster.name(task), target, lost=lost)
            case Reached(task, _, target):
                self.reached(self.roster.name(task), target)
            case Ended(task, _, sources):
                return self._one_ended(task, sources, now_ms)
            case _:
                pass
        return []

    # ------------------------------------------------------------------ beginning

    def _begin(self, tasks: Iterable[int]) -> None:
        """Let tasks begin an attempt, once all of them are there."""
        beginning = self._attempts.begin(tasks)
        self._draining.again(beginning)
        self._controller.forget(beginning)
        self._loading.again(beginning)
        self._pulses.forget_question()  # asked anew when all go on
        self.writing = None  # what some of them have stored does not count any more

    def _hello(self, hello: Hello, now_ms: int) -> list[Action]:
        self._losses.heard(hello.task, now_ms)
        if not hello.sees and self.recovers:
            # Nobody has asked for what is no checkpoint, and before the start it can be left out.
            if self._recovery.lasting or self.state != "gathering":
                return self._fail(self._recovery.unseen(hello))
            self.warnings.append(self._recovery.do_without(hello))
        replaced = self.roster.came(hello)
        if replaced and hello.task not in self._attempts.waiting:
            # Spark has started the task again by itself.
            loss = self._loss(hello.task, "its process was replaced")
            hopeless = self._recovery.hopeless(loss)
            return self._fail(hopeless) if hopeless else self._go_back(loss)
        return self._start()

    def _start(self) -> list[Action]:
        called = [] if self.over else self._attempts.call(self.roster.come)
        if called and self.state == "gathering":
            self.state = "opening"
        return [Tell(task, self._start_of(task)) for task in called]

    def _start_of(self, task: int) -> Start:
        marks, counts = self._pulses.kept(task) if task in self._asked else ([], {})
        return Start(
            self.roster.addresses,
            self._attempts.numbers,
            self._controller.committed,
            self._controller.record(task),
            marks,
            counts,
            self.recovers,
        )

    def _go(self, now_ms: int) -> list[Action]:
        """Let everybody go on if all who begin are ready."""
        if not self._attempts.all_ready or self.over or self.state == "stopping":
            return []
        begun = self._attempts.go()
        actions: list[Action] = []
        if self.state == "opening":
            self.state = "running"
            self.warnings += self._recovery.run()
            self._cadence.start(now_ms)
            self._pulses.start(now_ms)
        else:
            self.state = "draining" if self._draining.begun else "running"
            replay = Replay(self.roster.addresses, self._attempts.numbers, self.committed)
            others = self.roster.staying - begun
            actions += [Tell(task, replay) for task in sorted(others)]
        actions += [Tell(task, Go(self._loading.allowed())) for task in sorted(begun)]
        if self._draining.begun:
            # Sources that went back read again what they had read, and then no more.
            actions += [Tell(task, self._draining.order) for task in sorted(begun & self._asked)]
        return actions + self._loaded() + self._complete()

    def _loaded(self) -> list[Action]:
        """Let the other sources go if the preloaded tables are complete.

        With a checkpoint the tables are committed first: once others have read, nobody may go back
        to before the tables were complete.
        """
        if not self._loading.complete:
            return []
        if self.recovers and self.committed <= self._loading.complete_at(self.epoch):
            self._cadence.hasten()
            return []
        sources = self._loading.release()
        if self._draining.begun:
            return []
        return [Tell(task, Go(sources)) for task in sorted(self.roster.staying)]

    # ------------------------------------------------------------------ losing tasks

    def lost(self, task: int, launch: int, reason: str) -> list[Action]:
        """Take note that the process of a task is gone although the task has not ended."""
        if self.over or self.state == "stopping" or task not in self.roster.staying:
            return []
        if launch != self.roster.launch(task):
            return []
        loss = self._loss(task, self._losses.reason(task, reason))
        hopeless = self._recovery.hopeless(loss)
        if hopeless is not None:
            return self._fail(hopeless)
        self._losses.forget(task)
        return [Launch(task, self.roster.relaunch(task)), *self._go_back(loss)]

    def _loss(self, task: int, reason: str) -> Loss:
        """Return what the loss of a task means: it goes back, and all that come after it."""
        affected = {task}
        if not self._controller.ended(task):
            affected |= self._numbering.after(task)
        affected &= self.roster.staying
        return Loss(task, reason, affected, self.committed, self._losses.tries(task))

    def _go_back(self, loss: Loss) -> list[Action]:
        """Let a task and all that come after it begin anew."""
        self.warnings += self._recovery.going_back(loss)
        self._losses.lost(loss.task)
        self.recoveries += 1
        self._begin(loss.affected)
        if self.state in ("running", "draining"):
            self.state = "recovering"
        return self._start()

    def _silent(self, now_ms: int) -> list[Action]:
        """Give up tasks of whose process nothing has been heard for long."""
        if self.over or self.state == "stopping":
            return []
        # Before the flow has started, whoever starts it has a deadline.
        expected = self.roster.there if self.state == "gathering" else self.roster.staying
        found = self._losses.silent(expected, self.roster.come.__contains__, now_ms)
        if found is None:
            return []
        return self._give_up(*found)

    def _give_up(self, task: int, reason: str) -> list[Action]:
        """Replace a task that may still be there, if that does no harm."""
        at_large = self._recovery.at_large(task, reason)
        if at_large:
            return self._fail(at_large)
        return self.lost(task, self.roster.launch(task), reason)

    def unreachable(self, sender: str, task: int, *, lost: bool) -> list[Action]:
        """Take note that a task does not get what another, or the driver, sends it.

        It may well be heard. What was sent to one that has left nobody misses.
        """
        if self.over or self.state == "stopping" or task not in self.roster.there:
            return []
        link = f"the link {sender} -> {self.roster.name(task)} is down"
        if lost:
            return self._give_up(task, link)
        self.warnings.append(f"{link}; trying again")
        return []

    def reached(self, sender: str, task: int) -> None:
        """Take note that a task gets again what it is sent."""
        if task in self.roster.there:
            self.warnings.append(f"the link {sender} -> {self.roster.name(task)} is up again")

    def queue(self, tasks: Iterable[int], now_ms: int) -> None:
        """Take note of which tasks wait for a slot of Spark."""
        for task in self._losses.queue(tasks, now_ms):
            self.warnings.append(f"{self.roster.name(task)} waits for a free slot of Spark")

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
        alive = self._asked & self.roster.staying
        ask = self._pulses.ask(alive, now_ms)
        return [] if ask is None else [Tell(task, ask) for task in sorted(alive)]

    def _reassure(self, now_ms: int) -> list[Action]:
        """Tell those who wait for others that the driver is there."""
        waiting = self._attempts.waiting
        if now_ms < self._next_wait or not waiting or self.over:
            return []
        self._next_wait = now_ms + WAIT_MS
        return [Tell(task, Wait()) for task in sorted(waiting & self.roster.come)]

    def _pulse(self, now_ms: int) -> list[Action]:
        alive = sorted(self._asked & self.roster.staying)
        if not alive or self.state not in ("running", "draining"):
            return []
        epoch, commit = self._pulses.number(), self._epoch_due(now_ms)
        if commit:
            self._controller.request(epoch)
        mark = self._pulses.mark(now_ms, commit=commit)
        if self.recovers:
            self._pulses.keep(mark, alive)
        return [Tell(task, mark) for task in alive]

    def _epoch_due(self, now_ms: int) -> bool:
        if not self.recovers or self._controller.requested is not None:
            return False
        return self._cadence.end(now_ms)

    def _see_if_slow(self, now_ms: int) -> None:
        """Say so, once, if an epoch takes very long."""
        epoch = self._controller.requested
        if epoch is None or not self._cadence.slow(now_ms):
            return
        names = [self.roster.name(task) for task in self._controller.missing[:5]]
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
        if found is None or self.writing is not None or self._attempts.beginning:
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
        there = sorted(self.roster.staying)
        actions: list[Action] = [
            Tell(task, Commit(write.epoch, ended=write.tasks[task].ended)) for task in there
        ]
        return actions + self._loaded() + self._complete()

    # ------------------------------------------------------------------ the end

    def _one_ended(self, task: int, sources: list[SourceTime], now_ms: int) -> list[Action]:
        self.roster.leave(task)
        answered = self._pulses.leave(task, sources)
        self.warnings += self._time.warnings()
        if not self.roster.staying and self.state != "failed":
            self.state = "ended"
            return []
        return (self._pulse(now_ms) if answered else []) + self._stop_if_drained()

    def drain(self) -> list[Action]:
        """Let the sources read no more, and what they have read come out."""
        if self.state in ("gathering", "opening"):
            return self.stop()
        if self.state not in ("running", "recovering") or self._draining.begun:
            return []
        self._draining.begin(self.epoch)
        self._cadence.hasten()
        if self.state == "running":
            self.state = "draining"
        there = sorted((self._asked & self.roster.staying) - self._attempts.beginning)
        return [Tell(task, self._draining.order) for task in there]

    def _stop_if_drained(self) -> list[Action]:
        """Stop when what was read is committed, and known to be out."""
        if self.state != "draining":
            return []
        if not self._draining.shown(self.roster.staying, self.committed):
            return []
        if self._draining.once_more(self.epoch):
            self._cadence.hasten()
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
        return [Tell(task, Stop()) for task in self.roster.there]
