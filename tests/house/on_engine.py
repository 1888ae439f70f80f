"""Flows that a page of the documentation builds, run once more on the engine.

A page may do with a flow what it likes: start it, drive it with the reference driver, look at it.
Its `Flow` and `Driver` take notes meanwhile. When the page is over, each of its flows that has not
run on the engine does so, and is fed what the page has pushed, where the page has not given it a
connector. Between two marks of the driver everything is waited for, so that what is late there is
late here. Then both must have given the same.

A value that was pushed without a time gets the time at which it comes in on the engine, which is
now, as it would in production. So times and windows are not compared where that was so.
"""

import contextlib
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import msgspec

import floodway
import floodway.testing
from floodway.connectors.base import ConnectorPlace, Reader, SourceConnector, Split
from floodway.connectors.list_items import Abort
from floodway.core.errors import FloodwayError
from floodway.engine.driver.job import Job
from floodway.operators.base import MAIN
from floodway.operators.changelog import Change
from floodway.operators.sink import Sink
from floodway.operators.source import Source
from floodway.testing import Driver, Emitted, ListSink, ListSource, equivalent, fold
from tests.waiting import wait_for

FOR_EVER_MS = 10**12


class Push(NamedTuple):
    """Rows were pushed into a source; None for a timestamp is the present."""

    source: str
    rows: list[tuple[int | None, Any, Any]]


class Mark(NamedTuple):
    """A mark was made, and stream time was there afterwards."""

    stream_time: int | None


class Ending(NamedTuple):
    """A source has ended."""

    source: str


Step = Push | Mark | Ending


class NotingFlow(floodway.Flow):
    """A flow of a page."""

    built: ClassVar[list["NotingFlow"]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.line = _line_of_page()
        self.started = False
        self.driver: NotingDriver | None = None
        self.built.append(self)

    def start(self, **options: Any) -> Job:
        self.started = True
        return super().start(**options)


class NotingDriver(Driver):
    """A driver of a page: notes what is done to it, and keeps what comes out."""

    def __init__(self, flow: NotingFlow, **options: Any) -> None:
        self.steps: list[Step] = []
        self.clocked = "clock" in options
        self.finished = self.ran = False
        self.failure: FloodwayError | None = None
        self.emitted: dict[str, list[Emitted]] = {}
        super().__init__(flow, **options)
        flow.driver = self

    def push(self, source: str, *values: Any, at: int | None = None) -> None:
        rows = [(at, None, value) for value in values]
        with self._noting(Push(source, rows)):
            super().push(source, *values, at=at)

    def push_at(self, source: str, *values: tuple[int, Any]) -> None:
        with self._noting(Push(source, [(time, None, value) for time, value in values])):
            super().push_at(source, *values)

    def update(self, table: str, key: Any, value: Any, *, at: int | None = None) -> None:
        with self._noting(Push(table, [(at, key, value)])):
            super().update(table, key, value, at=at)

    def mark(self) -> None:
        super().mark()
        # On the engine nobody lets the clock go on.
        self.steps.append(Mark(None if self.clocked else self.stream_time))

    def advance(self, by: Any) -> None:
        self.clocked = True
        super().advance(by)

    def end(self, source: str) -> None:
        self.steps.append(Ending(source))
        super().end(source)

    def finish(self) -> None:
        self.finished = True
        super().finish()

    def run(self, *, every: int = 1) -> Any:
        self.ran = True
        return super().run(every=every)

    def read(self, sink: str) -> list[Emitted]:
        fresh = super().read(sink)
        self.emitted.setdefault(sink, []).extend(fresh)
        return fresh

    @contextlib.contextmanager
    def _noting(self, step: Step) -> Iterator[None]:
        self.steps.append(step)
        try:
            yield
        except FloodwayError as error:
            self.failure = error
            raise

    @property
    def dated(self) -> bool:
        """Whether everything that was pushed had a time of its own."""
        sources = {op.name: op for op in self.flow.operators if isinstance(op, Source)}
        return all(
            time is not None or _source(sources, step.source).timestamp is not None
            for step in self.steps
            if isinstance(step, Push)
            for time, _, _ in step.rows
        )


def _source(sources: dict[str, Source], name: str) -> Source:
    return sources.get(name) or sources[f"{name}.changelog"]


def _line_of_page() -> int:
    """Return the line of the page that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not frame.f_code.co_filename.endswith(".md"):
        frame = frame.f_back
    return frame.f_lineno


@contextlib.contextmanager
def noting() -> Iterator[list[NotingFlow]]:
    """Let `floodway.Flow` and `floodway.testing.Driver` take notes; give the flows."""
    flow, driver = floodway.Flow, floodway.testing.Driver
    NotingFlow.built = []
    floodway.Flow, floodway.testing.Driver = NotingFlow, NotingDriver  # type: ignore[misc]
    try:
        yield NotingFlow.built
    finally:
        floodway.Flow, floodway.testing.Driver = flow, driver  # type: ignore[misc]


# ---------------------------------------------------------------------- the engine


def run_the_rest(flows: Iterable[NotingFlow]) -> list[int]:
    """Run flows that have not run on the engine there; return their lines.

    Of several that a line has built, as in a property, one runs: that which got most.
    """
    by_line: dict[int, NotingFlow] = {}
    for flow in flows:
        if _steps(flow) >= _steps(by_line.get(flow.line)) and not flow.started and flow.operators:
            by_line[flow.line] = flow
    return [line for line, flow in by_line.items() if _run(flow)]


def run_once(flow: NotingFlow) -> None:
    """Run a flow that has connectors of its own until every stage has worked, and drain it."""
    with flow.start(metrics_port=None, epoch="100ms") as job:
        wait_for(lambda: job.wait(0) or _all_worked(job), "every stage to have a record")
        job.drain()
        job.wait()


def _all_worked(job: Job) -> bool:
    stages = job.status.stages
    return bool(stages) and all(stage.counters.records_in for stage in stages)


def _steps(flow: NotingFlow | None) -> int:
    return -1 if flow is None else 0 if flow.driver is None else len(flow.driver.steps)


def _run(flow: NotingFlow) -> bool:
    driver = flow.driver
    if driver is None:
        try:
            flow.check()
        except FloodwayError:
            return False  # the page shows what is refused
    sinks = {op.name: op for op in flow.operators if isinstance(op, Sink)}
    expected = {} if driver is None else _collected(driver, sinks)
    pace = Pace()
    results = _bind(flow, sinks, pace)
    failure = _failure(flow, pace)
    wanted = None if driver is None else driver.failure
    assert _about(failure) == _about(wanted), f"line {flow.line}: {failure}, not {wanted}"
    if driver is not None and failure is None and not driver.clocked:
        for name, sink in results.items():
            _compare(f"line {flow.line}, {name}", sink.records, expected[name], dated=driver.dated)
    return True


def _failure(flow: NotingFlow, pace: "Pace") -> FloodwayError | None:
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            flow.start(metrics_port=None, checkpoint=folder, epoch="100ms") as job,
        ):
            _replay(job, flow.driver, pace)
    except FloodwayError as error:
        return error
    return None


def _about(failure: FloodwayError | None) -> tuple[type, str | None] | None:
    return None if failure is None else (type(failure), failure.operator)


def _collected(driver: NotingDriver, sinks: Iterable[str]) -> dict[str, list[Emitted]]:
    for name in sinks:
        driver.read(name)
    return {name: list(driver.emitted[name]) for name in sinks}


def _bind(flow: NotingFlow, sinks: dict[str, Sink], pace: "Pace") -> dict[str, ListSink]:
    """Give connectors to sources and sinks that the page has left to the driver."""
    steps = flow.driver.steps if flow.driver is not None else []
    for source in flow.operators:
        if isinstance(source, Source) and source.connector is None:
            name = source.name.removesuffix(".changelog")
            own = [
                (number, _records(step.rows, source) if isinstance(step, Push) else None)
                for number, step in enumerate(steps)
                if not isinstance(step, Mark) and step.source in (name, source.name)
            ]
            _set(source, connector=Replay(own, pace), idle_ms=FOR_EVER_MS)
        elif isinstance(source, Source) and isinstance(source.connector, ListSource):
            items = [item for item in source.connector.items if not isinstance(item, Abort)]
            _set(source, connector=ListSource(items))
    results = {}
    for name, sink in sinks.items():
        if sink.connector is None or isinstance(sink.connector, ListSink):
            results[name] = ListSink()
            _set(sink, connector=results[name])
    return results


def _records(rows: list[Any], source: Source) -> list[Any]:
    """Return rows with records where mappings were pushed."""
    kind: Any = source.outputs[MAIN].schema.python
    return [
        (time, key, msgspec.convert(value, kind) if isinstance(value, dict) else value)
        for time, key, value in rows
    ]


def _set(operator: Any, **fields: Any) -> None:
    """Change a description that is done with otherwise."""
    for name, value in fields.items():
        object.__setattr__(operator, name, value)


def _replay(job: Job, driver: NotingDriver | None, pace: "Pace") -> None:
    time: int | None = None
    source: str | None = None
    for number, step in enumerate(driver.steps if driver is not None else []):
        if isinstance(step, Mark):
            if step.stream_time not in (None, time):
                time, source = step.stream_time, None
                wait_for(lambda time=time: _reached(job, time), f"stream time {time}")
            continue
        if source not in (None, step.source):
            _let_through(job, pace)  # nobody promises anything about the order of two sources
        source = step.source
        pace.allow(number)
    if driver is None or driver.finished or driver.ran:
        pace.end()
    else:
        wait_for(lambda: job.wait(0) or pace.all_read, "the last record")
        job.drain()
    job.wait()


def _let_through(job: Job, pace: "Pace") -> None:
    """Wait until all that may be read has been processed: some epochs later that is so."""
    wait_for(lambda: job.wait(0) or pace.rests, "reading")
    committed = job.committed
    wait_for(lambda: job.wait(0) or job.committed >= committed + 3, "epochs")


def _reached(job: Job, time: int) -> bool:
    if job.wait(0):
        return True
    tasks = [task for stage in job.status.stages for task in stage.tasks]
    return all(
        task.state == "ended" or (task.stream_time is not None and task.stream_time >= time)
        for task in tasks
    )


class Pace:
    """How far the sources of a flow may go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[int] = set()
        self._allowed = -1
        self.ended = False

    def allow(self, step: int) -> None:
        self._allowed = step

    def end(self) -> None:
        self.ended = True

    def allows(self, step: int) -> bool:
        return self.ended or step <= self._allowed

    def expect(self, step: int) -> None:
        self._waiting.add(step)

    def done(self, step: int) -> None:
        with self._lock:
            self._waiting.discard(step)

    @property
    def all_read(self) -> bool:
        return not self._waiting

    @property
    def rests(self) -> bool:
        """Whether all that may be read has been read."""
        with self._lock:
            return min(self._waiting, default=self._allowed + 1) > self._allowed


class Replay(SourceConnector):
    """Brings what a page has pushed, step by step."""

    place: ClassVar[ConnectorPlace] = "driver"
    replayable: ClassVar[bool] = True

    def __init__(self, steps: list[tuple[int, list[Any] | None]], pace: Pace) -> None:
        self.steps, self.pace = steps, pace
        for number, _ in steps:
            pace.expect(number)

    def open(self, split: Split, position: Any = None) -> Reader:
        return _ReplayReader(self, position or 0)


class _ReplayReader(Reader):
    keyed = True
    idle_ms = 5.0

    def __init__(self, source: Replay, position: int) -> None:
        self._source, self._position = source, position

    def poll(self, limit: int) -> list[Any] | None:
        steps, pace = self._source.steps, self._source.pace
        if self._position == len(steps):
            return None if pace.ended else []
        number, rows = steps[self._position]
        if not pace.allows(number):
            return []
        self._position += 1
        pace.done(number)
        return rows

    def position(self) -> int:
        return self._position


# ---------------------------------------------------------------------- comparing


def _compare(where: str, found: list[Emitted], expected: list[Emitted], *, dated: bool) -> None:
    """Fail unless both say the same: tables in the end, other streams record by record."""
    if expected and isinstance(expected[0].value, Change):
        if dated:
            assert fold(found) == fold(expected), where
        else:
            assert _undated(fold(found)) == _undated(fold(expected)), where
    elif dated:
        assert equivalent(found, expected), f"{where}: {found} is not {expected}"
    else:
        values = [Counter(repr(each.value) for each in both) for both in (found, expected)]
        assert values[0] == values[1], where


def _undated(rows: dict[Any, Any]) -> Counter[str]:
    """Return rows without their windows."""
    return Counter(
        repr((key[0] if isinstance(key, tuple) else key, value)) for key, value in rows.items()
    )
