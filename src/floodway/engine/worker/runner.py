"""The loop around a task: sockets, connectors, the clock.

One thread does everything, turn by turn: take frames that have come, read sources and work on
frames until there is nothing to do or a receiver has enough, hand results to sinks, send batches
that are due, report. When there is nothing to do it sleeps until something comes.

A process may run several *attempts* of its task, one after the other: when another task is lost,
all that come after it begin anew, each in its own process, from the last committed epoch.
"""

import os
from collections.abc import Callable

import msgspec

from floodway.connectors.base import Split
from floodway.core.errors import EngineError
from floodway.engine.checkpoint.commits import newest_epoch
from floodway.engine.control.messages import (
    Ask,
    Commit,
    Drain,
    Ended,
    Go,
    Hello,
    InputEnded,
    Made,
    Message,
    PauseReading,
    Pulse,
    Reached,
    Ready,
    Replay,
    Report,
    Restoring,
    SourceTimes,
    Start,
    Stop,
    Switch,
    Throttle,
    Tune,
    Unreachable,
    Wait,
    Warned,
    failure_message,
    from_frame,
    to_frame,
)
from floodway.engine.control.report import TaskState
from floodway.engine.datastream.chosen import MakePolicy
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.reporting import REPORT_US
from floodway.engine.datastream.settings import Settings
from floodway.engine.datastream.task import Task
from floodway.engine.host.whereabouts import Whereabouts
from floodway.engine.program.mark import Mark
from floodway.engine.transport.contacts import Contacts
from floodway.engine.transport.frame import KIND, FrameError, Kind
from floodway.engine.transport.numbering import Numbering
from floodway.engine.worker.attempt import Attempt
from floodway.engine.worker.pace import PLENTY
from floodway.engine.worker.surroundings import Surroundings
from floodway.plan.stages import Plan

CONTROL = int(Kind.CONTROL)

DRIVER = -1
"""The driver's number."""

STEPS = 64
"""So often frames are worked on, at most, before the sockets are looked at again."""

FRAMES = 1024
"""So many frames are taken from the socket at a time, at most."""


class Orphaned(Exception):
    """The process that made this one is gone. The task is lost, and others go on without it."""

    def __init__(self) -> None:
        super().__init__("Spark's Python daemon died")


class Runner:
    """Runs one task to its end, in as many attempts as it takes.

    Attributes
    ----------
    over
        Whether there is nothing more to do.
    beat
        Grows with every turn: somebody who watches sees that the thread is alive.
    """

    def __init__(
        self,
        plan: Plan,
        stage: str,
        index: int,
        around: Surroundings,
        settings: Settings,
        *,
        launch: int = 0,
        policy: MakePolicy = Fifo,
    ) -> None:
        self.plan, self.stage, self.index = plan, stage, index
        self.policy = policy
        self.around, self.settings = around, settings
        self.launch = launch
        self._post = around.post
        self.number = Numbering(plan).number(stage, index)
        # Not the driver: who does not reach it is silent there.
        self._others = set(Numbering(plan).names) - {self.number}
        self._contacts = Contacts(
            around.post,
            lambda task: self.tell(Unreachable(self.number, self.attempt, task, lost=False)),
            lambda task: self.tell(Unreachable(self.number, self.attempt, task)),
            lambda task: self.tell(Reached(self.number, self.attempt, task)),
            silent_s=settings.silent_s,
        )
        self.over = self._stopped = False
        self._attempt: Attempt | None = None
        self._running = self._draining = self._said_end = False
        self._told_away: str | None = None
        self._beats = 0
        self._looked_us = 0
        self._heard_us = around.now()

    # ------------------------------------------------------------------ life

    def hello(self) -> None:
        """Say that the process is there."""
        own, host = Whereabouts.here(), os.uname().nodename
        self.tell(
            Hello(
                self.number,
                self.launch,
                self._post.address,
                own.pid,
                host,
                own.machine,
                own.began,
                self.around.sees,
            )
        )

    def run(self, wait: Callable[[float], None]) -> None:
        """Run until everything has ended, or until told to stop; `wait` sleeps milliseconds."""
        try:
            self.hello()
            while not self.over:
                pause = self.turn()
                if pause > 0:
                    before = self.around.now()
                    wait(pause)
                    self.slept(self.around.now() - before)
            self.close()  # may still write, and fail
        except Orphaned:
            raise  # no failure of the flow: Spark says that the task is gone, and it is replaced
        except BaseException as error:
            self.tell(failure_message(self.number, self.launch, error))
            if not isinstance(error, Exception):
                raise
        finally:
            self.close()

    @property
    def attempt(self) -> int:
        """The number of the attempt, 0 before the first."""
        return self._attempt.task.attempt if self._attempt is not None else 0

    @property
    def beat(self) -> int:
        """Grows as long as the thread goes on."""
        return self._beats + (self._attempt.task.beat if self._attempt is not None else 0)

    @property
    def task(self) -> Task | None:
        """The task in its present attempt."""
        return self._attempt.task if self._attempt is not None else None

    def close(self) -> None:
        """Let go of everything."""
        attempt, self._attempt = self._attempt, None
        number, times = 0, []
        if attempt is not None:
            self._last_words(attempt)
            number, times = attempt.task.attempt, attempt.sources.times()
            attempt.close(stopped=self._stopped)
        if self._said_end:
            self._said_end = False
            self.tell(Ended(self.number, number, times))

    def _last_words(self, attempt: Attempt) -> None:
        if self._said_end:
            self._report(attempt, self.around.now(), last=True)

    # ------------------------------------------------------------------ one turn

    def turn(self) -> float:
        """Do what there is to do; return for how many milliseconds there is nothing more."""
        now = self.around.now()
        self._beats += 1
        if self._attempt is not None:
            self._attempt.task.inbox.now = now
        busy = self._receive()
        if now - self._looked_us > REPORT_US:
            self._looked_us = now
            self._look_around(now)
        attempt = self._attempt
        if self.over or attempt is None or not self._running:
            return 0.0 if busy or self.over else self.settings.check_ms
        busy |= self._go_on(attempt, now)
        if busy or self.over:
            return 0.0
        attempt.pace.rest()
        return self._wait_ms(attempt, now)

    def _look_around(self, now: int) -> None:
        if self.around.orphaned():
            raise Orphaned
        # The driver has a word for everybody who waits, about once a second.
        if self._attempt is None and now - self._heard_us > self.settings.patience_s * 2e6:
            raise EngineError(
                "the driver did not answer", remedy="see its log; start the flow again"
            )

        if self._attempt is not None and self._running:
            self._contacts.look(self._others)

    def _receive(self) -> bool:
        any_frame = False
        for header, data in self._post.drain(FRAMES):
            any_frame = True
            if header[KIND] == CONTROL:
                self._heard_us = self.around.now()
                self._obey(from_frame(data))
            elif self._attempt is not None:
                self._attempt.task.receive(header, data)
        return any_frame

    def _go_on(self, attempt: Attempt, now: int) -> bool:
        task, sinks, epochs = attempt.task, attempt.sinks, attempt.epochs
        self._overdue_marks(attempt)
        busy = epochs.turn(now) if epochs is not None else False
        attempt.turn(now)
        if self._state(attempt, now) == "running":
            busy |= self._work(attempt, now)
        else:
            task.inbox.shed()
        busy |= sinks.write(now)
        task.flush(now)
        while task.ended_exchanges:
            exchange = task.ended_exchanges.pop()
            self.tell(InputEnded(self.number, task.attempt, exchange))
        self._report(attempt, now)
        if task.ended and not sinks.pending and not sinks.unflushed:
            self._end(attempt)
        return busy

    def _state(self, attempt: Attempt, now: int) -> str:
        epochs = attempt.epochs
        away = (epochs.away if epochs is not None else None) or attempt.batches.away
        if away != self._told_away:
            self._told_away = away
            self.warn(f"{self.stage}/{self.index}: {away or 'goes on'}")
        if attempt.sinks.paused(now) or (epochs is not None and epochs.held):
            return "paused"
        return "blocked" if attempt.task.blocked else "running"

    def _work(self, attempt: Attempt, now: int) -> bool:
        task, sinks, sources = attempt.task, attempt.sinks, attempt.sources
        form = attempt.form
        step, outlets = form.step, task.outlets
        enough = task.records_in + self._paced(attempt, now)
        busy = sources.read(now, form) if sources and not form.holds_sources else False
        for _ in range(STEPS):
            if task.records_in >= enough or not step(now):
                return busy
            busy = True
            for outlet in outlets:
                if outlet.blocked:
                    return busy
            if sinks.enough or (attempt.epochs is not None and attempt.epochs.held):
                return busy
        return busy

    def _paced(self, attempt: Attempt, now: int) -> int:
        """Return about how many records to work on in this turn."""
        task, pace = attempt.task, attempt.pace
        if attempt.form.at_once:
            pace.turn(now, task.records_in)
            records = pace.records
        else:
            pace.rest()  # what is only collected says nothing of how long records take
            records = PLENTY
        task.take_at_once(records)
        attempt.sources.at_once = records
        return records

    def _overdue_marks(self, attempt: Attempt) -> None:
        """Make the marks that others have made already, once as much is read as was then."""
        if attempt.marks and attempt.sources.reached(attempt.counts):
            while attempt.marks:
                self._mark(attempt, attempt.marks.popleft())
        if attempt.ending is not None and not attempt.marks:
            if isinstance(attempt.ending, PauseReading):
                attempt.sources.pause()
            else:
                attempt.sources.drain(self.around.now(), attempt.form)
            attempt.ending = None

    def _mark(self, attempt: Attempt, pulse: Pulse) -> None:
        if attempt.task.stage.sources and not attempt.task.ended:
            mark = Mark(pulse.stream_time, pulse.clock, pulse.commit)
            attempt.form.pulse(pulse.epoch, mark)

    def _end(self, attempt: Attempt) -> None:
        """Leave, once nobody can need this task any more."""
        if attempt.epochs is not None:
            attempt.epochs.end_task()
            if not attempt.epochs.left:
                return
        elif not attempt.task.taken:
            return  # what is on its way would be lost with this process
        self.over = self._said_end = True

    def _wait_ms(self, attempt: Attempt, now: int) -> float:
        times = attempt.sinks.due()
        if self.settings.metrics:
            times.append(attempt.reporter.next_us)
        due = attempt.task.due()
        if due is not None:
            times.append(due)
        if attempt.epochs is not None:
            times += attempt.epochs.due()
        times += attempt.batches.due()
        if self._state(attempt, now) == "running" and not attempt.form.holds_sources:
            times += attempt.sources.due(now)
        else:
            attempt.sources.ignore()
        soonest = min(times, default=now + 1_000_000)
        return max(min(self.settings.check_ms, (soonest - now) / 1000), 0.01)

    def slept(self, microseconds: int) -> None:
        """Note a time without work."""
        if self._attempt is not None and self._running:
            state = self._state(self._attempt, self.around.now())
            if state == "running" and self._attempt.form.full:
                return  # as much as may be is at work on Spark
            self._attempt.reporter.slept(microseconds, state)

    # ------------------------------------------------------------------ the driver

    def tell(self, message: Message) -> None:
        """Hand a message to the driver."""
        self._post.send(DRIVER, to_frame(message))

    def warn(self, text: str) -> None:
        """Tell people what they should know."""
        self.tell(Warned(self.number, text))

    def _obey(self, message: Message) -> None:
        match message:
            case Start():
                self._start(message)
            case Stop():
                self.over = self._stopped = True
            case Wait():
                pass
            case _ if self._attempt is not None:
                self._obey_running(self._attempt, message)
            case _:
                pass  # meant for an attempt that has not begun

    def _obey_running(self, attempt: Attempt, message: Message) -> None:
        task, epochs = attempt.task, attempt.epochs
        match message:
            case Go(sources):
                self._running = True
                attempt.sources.allow(sources)
            case Ask(number):
                times = attempt.sources.times()
                self.tell(SourceTimes(self.number, task.attempt, number, times))
            case Pulse():
                attempt.expect(message)
                self._overdue_marks(attempt)
            case Replay():
                self._replay(attempt, message)
            case Commit(epoch, ended):
                if epochs is not None:
                    epochs.committed(epoch, ended=ended)
            case Tune(operator, b_out, linger_us):
                task.tune(operator, b_out, linger_us)
            case Switch(stage, paradigm):
                if stage == self.stage:
                    attempt.switch(paradigm)
            case Made():
                attempt.batches.made(message)
            case Throttle(name, per_second):
                attempt.sources.throttle(name, per_second)
            case PauseReading() | Drain():
                attempt.ending = message
                self._draining = True
                self._overdue_marks(attempt)
            case _:
                raise FrameError(f"a task was sent {type(message).__name__}")

    def _start(self, start: Start) -> None:
        """Begin an attempt: connect, read what was, open the connectors."""
        if start.attempts[self.number] <= self.attempt and self._attempt is not None:
            return  # said twice
        if self._outdated(start):
            self.over = True
            return
        if self._attempt is not None:
            self._attempt.close()
        self._running = False
        self._connect(start.addresses)
        attempt = self._attempt = Attempt(
            self.plan,
            self.plan.stage(self.stage),
            self.index,
            start,
            self.around,
            self.settings,
            tell=self.tell,
            warn=self.warn,
            policy=self.policy,
        )
        self._contacts.again()  # what a former attempt says, the driver does not take
        task, record = attempt.task, start.record
        split = Split(self.index, task.stage.dop)
        if attempt.epochs is not None and record is not None:
            attempt.epochs.load(record, self._restoring)
        positions = record.positions if record else None
        with_epochs = attempt.epochs is not None
        attempt.sources.open(split, positions, with_epochs=with_epochs)
        attempt.sinks.open(
            split,
            attempt.vault,
            record.sinks if record else None,
            lasting=self.settings.lasting,
        )
        if attempt.epochs is not None:
            attempt.epochs.resume()
        self.tell(Ready(self.number, task.attempt))

    def _outdated(self, start: Start) -> bool:
        """Return whether the flow has gone on without this process.

        One that was given up, and hears only now what it was told then, must not open sinks: to go
        on at an old place they would take back what others have shown since.
        """
        vault = self.around.vault
        return vault is not None and newest_epoch(vault) > start.epoch

    def _restoring(self, done: int, total: int) -> None:
        self.tell(Restoring(self.number, self.attempt, done, total))

    def _connect(self, addresses: list[str]) -> None:
        for number, address in enumerate(addresses):
            if number != self.number:
                self._post.connect(number, address)

    def _replay(self, attempt: Attempt, replay: Replay) -> None:
        assert attempt.epochs is not None
        self._connect(replay.addresses)
        for target in {lane.target for lane in attempt.task.lanes}:
            if replay.attempts[target] > attempt.attempts[target]:
                attempt.epochs.cache.replay(target, replay.epoch, replay.attempts[target])
        attempt.attempts = list(replay.attempts)

    def _report(self, attempt: Attempt, now: int, *, last: bool = False) -> None:
        if not self.settings.metrics or (now < attempt.reporter.next_us and not last):
            return
        sources, sinks, epochs = attempt.sources, attempt.sinks, attempt.epochs
        batches = attempt.batches
        reasons = [source.away for source in sources] + [sink.away for sink in sinks]
        reasons.append(epochs.away if epochs is not None else None)
        away = next((reason for reason in reasons if reason), None)
        state: TaskState = "draining" if self._draining else "paused" if away else "running"
        readers = {s.name: (s.reader, s.ended) for s in sources}
        report = attempt.reporter.report(
            now,
            "ended" if last else state,
            away,
            readers,
            bad_frames=self._post.bad_frames,
            again=self._post.sent_again,
            behind=sources.behind(),
            paradigm=batches.paradigm,
            collected=batches.records,
            batches=msgspec.structs.replace(batches.work, interval_us=batches.interval_us),
            size=None if epochs is None else epochs.size,
        )
        self.tell(Report(self.number, report))
