"""The sinks of a task at work: writers, rows they could not take yet, and when to flush."""

from collections.abc import Callable, Iterator

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import Row, SinkConnector, Split, Unavailable, Writer
from floodway.core.errors import FloodwayError
from floodway.engine.datastream.opening import opened
from floodway.engine.datastream.program import Node
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.task import Task
from floodway.operators.sink import Sink

ROWS_FOR_SINK = 1000
"""So many rows are handed to a sink at a time, or a few more."""

FLUSH_US = 200_000
"""What a sink has taken waits no longer than this, even if more keeps coming."""


class OpenSink:
    """A sink and its writer, at work, and rows that it could not take yet."""

    def __init__(self, operator: Sink, node: Node, writer: Writer) -> None:
        self.operator = operator
        self.node = node
        self.writer = writer
        self.rows: list[Row] = []
        self.unflushed = False
        self.flushed_us = 0
        self.retry_us = 0
        self.backoff = Backoff()
        self.away: str | None = None


class Sinks:
    """All sinks of one task.

    `warn` tells people what they should know: a sink is away, or back.
    """

    def __init__(
        self,
        task: Task,
        reporter: Reporter,
        clock: Callable[[], int],
        warn: Callable[[str], None],
    ) -> None:
        self._task = task
        self._reporter = reporter
        self._clock = clock
        self._warn = warn
        self._open: list[OpenSink] = []

    def open(self, split: Split) -> None:
        """Open the task's part of every sink."""
        for operator in self._task.stage.operators:
            if isinstance(operator, Sink) and isinstance(operator.connector, SinkConnector):
                node = self._task.program.node(operator.name)
                schema = operator.inputs[0].output.schema
                with opened(operator):
                    writer = operator.connector.open(split, schema)
                    self._open.append(OpenSink(operator, node, writer))

    def __iter__(self) -> Iterator[OpenSink]:
        return iter(self._open)

    @property
    def enough(self) -> bool:
        """Whether a sink has enough rows; more should wait in the input cache, which is bounded."""
        return any(sink.node.pending >= ROWS_FOR_SINK for sink in self._open)

    @property
    def pending(self) -> bool:
        """Whether a sink has rows that it could not take yet."""
        return any(sink.rows for sink in self._open)

    @property
    def unflushed(self) -> bool:
        """Whether a sink has taken rows that it has not handed on yet."""
        return any(sink.unflushed for sink in self._open)

    def paused(self, now: int) -> bool:
        """Return whether a sink that is away keeps this task from working."""
        return any(sink.rows and sink.retry_us > now for sink in self._open)

    def write(self, now: int) -> bool:
        """Hand over what has reached the sinks; return whether that was something."""
        busy = False
        for sink in self._open:
            sink.rows += sink.node.collect()
            if (sink.rows or sink.unflushed) and sink.retry_us <= now:
                busy |= self._write(sink, now)
        return busy

    def _write(self, sink: OpenSink, now: int) -> bool:
        count = len(sink.rows)
        try:
            if sink.rows:
                sink.writer.write(sink.rows)
                sink.rows, sink.unflushed = [], True
                self._reporter.delivered(sink.node.born, self._clock(), count)
                sink.node.born = 0
            # If nothing more came with this pass, what was taken should not wait.
            if sink.unflushed and (not count or now - sink.flushed_us >= FLUSH_US):
                sink.writer.flush()
                sink.unflushed, sink.flushed_us = False, now
        except Unavailable as error:
            del sink.rows[: error.taken]
            sink.retry_us = now + int(sink.backoff.next_ms() * 1000)
            if sink.away is None:
                self._warn(f"{sink.operator.name} is away: {error.reason}; trying again")
            sink.away = error.reason
            return False
        except FloodwayError as error:
            raise error.at(sink.operator.name, sink.operator.place) from None
        if sink.away is not None:
            self._warn(f"{sink.operator.name} is back")
            sink.away = None
            sink.backoff.reset()
        return count > 0

    def due(self) -> list[int]:
        """Return when sinks that have something to do should be tried again."""
        return [sink.retry_us for sink in self._open if sink.rows or sink.unflushed]

    def close(self) -> None:
        """Close all writers, which may still write, and fail."""
        for sink in self._open:
            try:
                sink.writer.close()
            except FloodwayError as error:
                raise error.at(sink.operator.name, sink.operator.place) from None
