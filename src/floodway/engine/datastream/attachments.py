"""Connectors at work in a task: a source with its reader, a sink with its writer."""

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import (
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.core.errors import ConnectorError, FloodwayError
from floodway.engine.datastream.program import Node
from floodway.operators.sink import Sink
from floodway.operators.source import Source

READ = 1000
"""About so many records are read from a source at a time."""


class OpenSource:
    """A source and its reader, at work."""

    def __init__(self, source: Source, reader: Reader, now: int) -> None:
        self.name = source.name
        self.place = source.place
        self.reader = reader
        self.ended = False
        self.active_us = now
        self.watched: int | None = None
        self.next_us = 0
        self.backoff = Backoff()
        self.away: str | None = None
        self.per_second: float | None = None
        self.tokens = 0.0
        self.refilled_us = now

    def allowed(self, now: int) -> int:
        """Return how many records may be read now."""
        if self.per_second is None:
            return READ
        self.tokens += (now - self.refilled_us) / 1e6 * self.per_second
        self.tokens = min(self.tokens, max(self.per_second * 0.1, 1.0))
        self.refilled_us = now
        return min(int(self.tokens), READ)


class OpenSink:
    """A sink and its writer, at work, and rows that it could not take yet."""

    def __init__(self, name: str, node: Node, writer: Writer) -> None:
        self.name = name
        self.node = node
        self.writer = writer
        self.rows: list[Row] = []
        self.unflushed = False
        self.retry_us = 0
        self.backoff = Backoff()
        self.away: str | None = None


def open_source(operator: Source, connector: SourceConnector, split: Split, now: int) -> OpenSource:
    """Open a task's part of a source; what goes wrong says which operator, and where."""
    try:
        return OpenSource(operator, connector.open(split), now)
    except FloodwayError as error:
        raise error.at(operator.name, operator.place) from None
    except Unavailable as error:
        raise _cannot_open(operator, error) from None


def open_sink(operator: Sink, connector: SinkConnector, split: Split, node: Node) -> OpenSink:
    """Open a task's part of a sink."""
    try:
        schema = operator.inputs[0].output.schema
        return OpenSink(operator.name, node, connector.open(split, schema))
    except FloodwayError as error:
        raise error.at(operator.name, operator.place) from None
    except Unavailable as error:
        raise _cannot_open(operator, error) from None


def _cannot_open(operator: Source | Sink, error: Unavailable) -> ConnectorError:
    return ConnectorError(
        f"{operator.name} cannot be opened: {error.reason}",
        remedy="see that what it connects to is there",
        operator=operator.name,
        place=operator.place,
    )
