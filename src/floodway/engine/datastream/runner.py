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

import msgspec

from floodway.connectors.base import SinkConnector, SourceConnector, Split, Unavailable
from floodway.core.errors import ConnectorError, EngineError, FloodwayError
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
    SourceTime,
    Start,
    Stop,
    Throttle,
    Tune,
    Warned,
    from_frame,
    to_frame,
)
from floodway.engine.datastream.attachments import (
    OpenSink,
    OpenSource,
    open_sink,
    open_source,
)
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.task import Mark, Task
from floodway.engine.datastream.watchdog import Watchdog
from floodway.engine.metrics.report import TaskState
from floodway.engine.transport.frame import FrameError, Kind
from floodway.engine.transport.sockets import Mailbox, Network
from floodway.operators.sink import Sink
from floodway.operators.source import Source
from floodway.plan.stages import Plan

CONTROL = int(Kind.CONTROL)

DRIVER = -1
"""The driver's number."""

STEPS = 64
"""So often frames are worked on, at most, before the sockets are looked at again."""

FRAMES = 1024
"""So many frames are taken from the socket at a time, at most."""

ROWS_FOR_SINK = 1000
"""So many rows are handed to a sink at a time, or a few more."""


class Settings(msgspec.Struct, frozen=True):
    """How tasks run.

    Attributes
    ----------
    input_cache
        How many bytes may wait for a task, or be on their way to it.
    check_ms
        The longest a task sleeps when nothing happens.
    patience_s
        How long to wait for the others at the start.
    metrics
        Whether tasks measure and report.
    stuck_s
        After how long in one call a task is said to be stuck.
    """

    input_cache: int = 16 * 1024 * 1024
    check_ms: float = 50.0
    patience_s: float = 60.0
    metrics: bool = True
    stuck_s: float = 5.0


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
        self._sources: list[OpenSource] = []
        self._sinks: list[OpenSink] = []
        self._stopping = False
        self._draining = False
        self._reading: set[str] = set()
        # In a Spark slot the parent is Spark's, and without it there is nothing to live for.
        self._parent = os.getppid() if own.host == "task" else None
        self._reporter = Reporter(self.task, clock())

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
        self._open()
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

    def _open(self) -> None:
        now, dop = self._clock(), self.task.stage.dop
        split = Split(self.task.index, dop)
        for operator in self.task.stage.operators:
            connector = getattr(operator, "connector", None)
            if isinstance(operator, Source) and isinstance(connector, SourceConnector):
                source = open_source(operator, connector, split, now)
                self._sources.append(source)
            if isinstance(operator, Sink) and isinstance(connector, SinkConnector):
                node = self.task.program.node(operator.name)
                self._sinks.append(open_sink(operator, connector, split, node))

    def _close(self) -> None:
        for source in self._sources:
            source.reader.close()
        for sink in self._sinks:
            try:
                sink.writer.close()
            except FloodwayError as error:
                operator = sink.node.operators[-1]
                raise error.at(operator.name, operator.place) from None

    # ------------------------------------------------------------------ the loop

    def _loop(self) -> None:
        task, clock, mailbox, reporter = self.task, self._clock, self._mailbox, self._reporter
        while not self._stopping:
            now = clock()
            task.beat += 1
            busy = self._receive()
            if self._paused(now):
                state = "paused"
            elif task.blocked:
                state = "blocked"
            else:
                state = "running"
                busy |= self._work(now)
            busy |= self._write(now)
            task.flush(now)
            while task.ended_exchanges:
                self._tell(InputEnded(task.number, task.ended_exchanges.pop()))
            self._report(now)
            if task.ended and not any(sink.rows for sink in self._sinks):
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
        task = self.task
        step, outlets, sinks = task.step, task.outlets, self._sinks
        busy = self._read(now) if self._sources and not task.holds_sources else False
        for _ in range(STEPS):
            if not step(now):
                return busy
            busy = True
            for outlet in outlets:
                if outlet.blocked:
                    return busy
            for sink in sinks:
                # What waits should wait in the input cache, where it is counted and bounded.
                if sink.node.pending >= ROWS_FOR_SINK:
                    return busy
        return busy

    def _read(self, now: int) -> bool:
        busy = False
        for source in self._sources:
            if source.name in self._reading and not source.ended and source.next_us <= now:
                busy |= self._read_one(source, now)
        return busy

    def _read_one(self, source: OpenSource, now: int) -> bool:
        limit = source.allowed(now)
        if limit < 1:
            return False
        try:
            raw = source.reader.poll(limit)
        except Unavailable as error:
            source.next_us = now + int(source.backoff.next_ms() * 1000)
            self._away(source, error.reason)
            return False
        except FloodwayError as error:
            raise error.at(source.name, source.place) from None
        self._back(source)
        if raw is None:
            self._end(source, now, final=True)
            return True
        if not raw:
            self._watch(source, source.reader.fileno())
            if source.watched is None:
                source.next_us = now + int(source.reader.idle_ms * 1000)
            return False
        source.active_us = now
        count = self.task.feed_raw(source.name, raw, now, keyed=source.reader.keyed)
        if source.per_second is not None:
            source.tokens -= count
        return True

    def _watch(self, source: OpenSource, descriptor: int | None) -> None:
        """Wake up when a source's descriptor is readable; it may change with every connection."""
        if descriptor == source.watched:
            return
        if source.watched is not None:
            self._mailbox.unwatch(source.watched)
        if descriptor is not None:
            self._mailbox.watch(descriptor)
        source.watched = descriptor

    def _end(self, source: OpenSource, now: int, *, final: bool) -> None:
        source.ended = True
        self._watch(source, None)
        self.task.end_source(source.name, now, final=final)

    def _write(self, now: int) -> bool:
        busy = False
        for sink in self._sinks:
            sink.rows += sink.node.collect()
            if (sink.rows or sink.unflushed) and sink.retry_us <= now:
                busy |= self._write_one(sink, now)
        return busy

    def _write_one(self, sink: OpenSink, now: int) -> bool:
        count = len(sink.rows)
        try:
            if sink.rows:
                sink.writer.write(sink.rows)
                sink.rows, sink.unflushed = [], True
                self._reporter.delivered(sink.node.born, self._clock(), count)
                sink.node.born = 0
            elif sink.unflushed:
                # Nothing more came with this pass: what was taken should not wait.
                sink.writer.flush()
                sink.unflushed = False
        except Unavailable as error:
            del sink.rows[: error.taken]
            sink.retry_us = now + int(sink.backoff.next_ms() * 1000)
            self._away(sink, error.reason)
            return False
        except ConnectorError as error:
            operator = sink.node.operators[-1]
            raise error.at(operator.name, operator.place) from None
        self._back(sink)
        return count > 0

    def _paused(self, now: int) -> bool:
        """Return whether a sink that is away keeps this task from working."""
        return any(sink.rows and sink.retry_us > now for sink in self._sinks)

    def _away(self, connector: OpenSource | OpenSink, reason: str) -> None:
        if connector.away is None:
            self._tell(
                Warned(self.task.number, f"{connector.name} is away: {reason}; trying again")
            )
        connector.away = reason

    def _back(self, connector: OpenSource | OpenSink) -> None:
        if connector.away is not None:
            self._tell(Warned(self.task.number, f"{connector.name} is back"))
            connector.away = None
            connector.backoff.reset()

    def _wait_ms(self, now: int, state: str) -> float:
        wait = self._settings.check_ms
        times = [self._reporter.next_us]
        due = self.task.due()
        if due is not None:
            times.append(due)
        times += [sink.retry_us for sink in self._sinks if sink.rows or sink.unflushed]
        if state == "running":
            times += [s.next_us for s in self._sources if not s.ended and s.next_us > now]
            if any(s.per_second is not None for s in self._sources if not s.ended):
                times.append(now + 1000)
        soonest = min(times)
        return max(min(wait, (soonest - now) / 1000), 0)

    def _finish(self) -> None:
        """Flush the sinks, however long it takes, and report for the last time."""
        while not self._stopping and any(sink.unflushed for sink in self._sinks):
            now = self._clock()
            for sink in self._sinks:
                if sink.unflushed and sink.retry_us <= now:
                    self._write_one(sink, now)
            self._receive()
            self._report(now)
            self._mailbox.wait(1)
        self._report(self._clock(), last=True)

    # ------------------------------------------------------------------ the driver

    def _tell(self, message: Message) -> None:
        self._mailbox.send(DRIVER, to_frame(message))

    def _obey(self, message: Message) -> None:
        now = self._clock()
        match message:
            case Go(sources):
                self._reading.update(sources)
                for source in self._sources:
                    source.active_us = now
            case Ask(number):
                self._tell(Progress(self.task.number, number, self._times(now)))
            case Pulse(epoch, stream_time, clock):
                if self.task.stage.sources and not self.task.ended:
                    self.task.pulse(epoch, Mark(stream_time, clock))
            case Tune(operator, b_out, linger_us):
                self.task.tune(operator, b_out, linger_us)
            case Throttle(name, per_second):
                for source in self._sources:
                    if source.name == name:
                        source.per_second = per_second
            case Drain():
                for source in self._sources:
                    if not source.ended:
                        self._end(source, now, final=False)
                self._draining = True
            case Stop():
                self._stopping = True
            case _:
                raise FrameError(f"a task was sent {type(message).__name__}")

    def _times(self, now: int) -> list[SourceTime]:
        return [
            SourceTime(
                source.name,
                self.task.latest(source.name),
                (now - source.active_us) // 1000,
                source.ended,
            )
            for source in self._sources
        ]

    def _report(self, now: int, *, last: bool = False) -> None:
        if not self._settings.metrics or (now < self._reporter.next_us and not last):
            return
        attached: list[OpenSource | OpenSink] = [*self._sources, *self._sinks]
        away = next((each.away for each in attached if each.away), None)
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
