"""The loop around a task: sockets, connectors, the clock.

One thread does everything, pass by pass: take frames that have come, read sources and work on
frames until there is nothing to do or a receiver has enough, hand results to sinks, send batches
that are due, report. When there is nothing to do it sleeps until something comes.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from floodway.connectors.base import Split
from floodway.core.errors import EngineError, FloodwayError
from floodway.engine.control import (
    Ask,
    Drain,
    Ended,
    Failed,
    Go,
    Hello,
    InputEnded,
    Message,
    Progress,
    Pulse,
    Ready,
    Report,
    Start,
    Stop,
    Throttle,
    Tune,
    Warned,
    from_frame,
    to_frame,
)
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.settings import Settings
from floodway.engine.datastream.task import Mark, Task
from floodway.engine.datastream.watchdog import Watchdog
from floodway.engine.datastream.writing import Sinks
from floodway.engine.metrics.report import TaskState
from floodway.engine.transport.frame import FrameError, Kind
from floodway.engine.transport.sockets import Mailbox, Network
from floodway.plan.stages import Plan

CONTROL = int(Kind.CONTROL)

DRIVER = -1
"""The driver's number."""

STEPS = 64
"""So often frames are worked on, at most, before the sockets are looked at again."""

FRAMES = 1024
"""So many frames are taken from the socket at a time, at most."""


class Runner:
    """Runs one task to its end."""

    def __init__(
        self,
        plan: Plan,
        stage: str,
        index: int,
        network: Network,
        driver: str,
        settings: Settings,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._clock = clock
        self._settings = settings
        own = plan.stage(stage)
        self._mailbox = Mailbox(network, f"{plan.stages.index(own)}-{index}-{os.getpid()}")
        self.task = Task(
            plan,
            own,
            index,
            self._mailbox.send,
            window=settings.input_cache,
            sampling=settings.metrics,
        )
        self._network, self._driver = network, driver
        self._mailbox.connect(DRIVER, driver)
        self._reporter = Reporter(self.task, clock())
        self._sources = Sources(self.task, self._mailbox, self._warn)
        self._sinks = Sinks(self.task, self._reporter, clock, self._warn)
        self._stopping = False
        self._draining = False
        # In a Spark slot the parent is Spark's, and without it there is nothing to live for.
        self._parent = os.getppid() if own.host == "task" else None

    # ------------------------------------------------------------------ life

    def run(self) -> None:
        """Run until everything has ended, or until told to stop."""
        task, settings = self.task, self._settings
        with (
            _rarely_collecting(own_process=task.stage.host == "task"),
            self._mailbox,
            Watchdog(self._network, self._driver, task, settings.stuck_s),
        ):
            try:
                self._join()
                self._loop()
                self._close()  # may still write, and fail
                self._tell(Ended(task.number))
            except BaseException as error:
                self._tell(failure_message(task.number, error))
                if not isinstance(error, Exception):
                    raise
            finally:
                self._close()

    def _join(self) -> None:
        """Say hello, wait for the others, open the connectors."""
        address = self._mailbox.address
        self._tell(Hello(self.task.number, address, os.getpid(), os.uname().nodename))
        start = self._await(Start)
        if start is None:
            return
        assert isinstance(start, Start)
        for number, other in enumerate(start.addresses):
            if number != self.task.number:
                self._mailbox.connect(number, other)
        split = Split(self.task.index, self.task.stage.dop)
        self._sources.open(split, self._clock())
        self._sinks.open(split)
        self._tell(Ready(self.task.number))
        go = self._await(Go)
        if go is not None:
            self._obey(go)

    def _await(self, kind: type[Message]) -> Message | None:
        """Wait for one message of the driver, or for the order to stop."""
        deadline = self._clock() + int(self._settings.patience_s * 2e6)
        while not self._stopping:
            self.task.beat += 1
            for header, data in self._mailbox.drain(1000):
                if header[1] != CONTROL:
                    self.task.receive(header, data)
                    continue
                message = from_frame(data)
                if isinstance(message, kind):
                    return message
                self._obey(message)
            if self._clock() > deadline or self._orphaned():
                raise EngineError(
                    "the driver did not answer", remedy="see its log; start the flow again"
                )
            self._mailbox.wait(self._settings.check_ms)
        return None

    def _orphaned(self) -> bool:
        return self._parent is not None and os.getppid() != self._parent

    def _close(self) -> None:
        self._sources.close()
        self._sinks.close()

    # ------------------------------------------------------------------ the loop

    def _loop(self) -> None:
        task, clock, mailbox, reporter = self.task, self._clock, self._mailbox, self._reporter
        while not self._stopping:
            now = clock()
            task.beat += 1
            busy = self._receive()
            if self._sinks.paused(now):
                state = "paused"
            elif task.blocked:
                state = "blocked"
            else:
                state = "running"
                busy |= self._work(now)
            busy |= self._sinks.write(now)
            task.flush(now)
            while task.ended_exchanges:
                self._tell(InputEnded(task.number, task.ended_exchanges.pop()))
            self._report(now)
            if task.ended and not self._sinks.pending:
                self._finish()
                return
            if not busy:
                wait = self._wait_ms(now, state)
                before = clock()
                mailbox.wait(wait)
                reporter.slept(clock() - before, state)
                if self._orphaned():
                    raise EngineError("the driver is gone", remedy="start the flow again")

    def _receive(self) -> bool:
        any_frame = False
        receive = self.task.receive
        for header, data in self._mailbox.drain(FRAMES):
            any_frame = True
            if header[1] == CONTROL:
                self._obey(from_frame(data))
            else:
                receive(header, data)
        return any_frame

    def _work(self, now: int) -> bool:
        task, sinks = self.task, self._sinks
        step, outlets = task.step, task.outlets
        busy = self._sources.read(now) if self._sources and not task.holds_sources else False
        for _ in range(STEPS):
            if not step(now):
                return busy
            busy = True
            for outlet in outlets:
                if outlet.blocked:
                    return busy
            if sinks.enough:
                return busy
        return busy

    def _wait_ms(self, now: int, state: str) -> float:
        times = [self._reporter.next_us, *self._sinks.due()]
        due = self.task.due()
        if due is not None:
            times.append(due)
        if state == "running":
            times += self._sources.due(now)
        return max(min(self._settings.check_ms, (min(times) - now) / 1000), 0)

    def _finish(self) -> None:
        """Flush the sinks, however long it takes, and report for the last time."""
        while not self._stopping and self._sinks.unflushed:
            now = self._clock()
            self._sinks.write(now)
            self._receive()
            self._report(now)
            self._mailbox.wait(1)
        self._report(self._clock(), last=True)

    # ------------------------------------------------------------------ the driver

    def _tell(self, message: Message) -> None:
        self._mailbox.send(DRIVER, to_frame(message))

    def _warn(self, text: str) -> None:
        self._tell(Warned(self.task.number, text))

    def _obey(self, message: Message) -> None:
        now = self._clock()
        match message:
            case Go(sources):
                self._sources.allow(sources, now)
            case Ask(number):
                self._tell(Progress(self.task.number, number, self._sources.times(now)))
            case Pulse(epoch, stream_time, clock):
                if self.task.stage.sources and not self.task.ended:
                    self.task.pulse(epoch, Mark(stream_time, clock))
            case Tune(operator, b_out, linger_us):
                self.task.tune(operator, b_out, linger_us)
            case Throttle(name, per_second):
                self._sources.throttle(name, per_second)
            case Drain():
                self._sources.drain(now)
                self._draining = True
            case Stop():
                self._stopping = True
            case _:
                raise FrameError(f"a task was sent {type(message).__name__}")

    def _report(self, now: int, *, last: bool = False) -> None:
        if not self._settings.metrics or (now < self._reporter.next_us and not last):
            return
        reasons = [source.away for source in self._sources] + [sink.away for sink in self._sinks]
        away = next((reason for reason in reasons if reason), None)
        state: TaskState = "draining" if self._draining else "paused" if away else "running"
        readers = {s.name: (s.reader, s.ended) for s in self._sources}
        report = self._reporter.report(
            now, "ended" if last else state, away, readers, bad_frames=self._mailbox.bad_frames
        )
        self._tell(Report(self.task.number, report))


@contextmanager
def _rarely_collecting(*, own_process: bool) -> Iterator[None]:
    """Look for garbage cycles less often: records are many, young and free of cycles."""
    thresholds = gc.get_threshold()
    if own_process:
        gc.freeze()  # what was imported stays, and need not be looked at
        gc.set_threshold(50_000, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def failure_message(task: int, error: BaseException) -> Failed:
    """Return what to tell the driver about an error."""
    if isinstance(error, FloodwayError):
        return Failed(
            task,
            type(error).__name__,
            error.problem,
            error.remedy,
            error.operator,
            error.place.file if error.place else None,
            error.place.line if error.place else None,
        )
    import traceback

    trace = "".join(traceback.format_exception(error))[-4000:]
    return Failed(
        task,
        "EngineError",
        f"the task failed: {type(error).__name__}: {error}\n{trace}",
        "report this as a fault of Floodway, with the traceback",
    )
