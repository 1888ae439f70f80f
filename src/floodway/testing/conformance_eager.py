"""Checks of sinks that show rows at once, and take them back when a task is lost."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from floodway.connectors.base import Row, SinkConnector, Split, Writer
from floodway.core.schema import Schema
from floodway.testing.demands import arrives, demand, pickled


def check_eager_sink(
    connector: SinkConnector,
    schema: Any,
    rows: Sequence[Row],
    read_back: Callable[[], Sequence[Any]],
    *,
    deadline_s: float = 30.0,
) -> None:
    """Check that a sink takes back what was written after a position, and nothing else.

    Parameters
    ----------
    connector
        The sink, whose target may have something in it already.
    schema
        The type of the values.
    rows
        At least four.
    read_back
        Returns the values that are there, in their order.
    deadline_s
        How long rows may take to be seen.

    Examples
    --------
    >>> from floodway.connectors.lists import ListSink
    >>> results = ListSink()
    >>> rows = [(number, None, number, None) for number in range(8)]
    >>> check_eager_sink(results, int, rows, lambda: results.values)
    """
    demand(connector.eager == "exactly once", f"{connector} does not say that it takes rows back")
    connector.check()
    before = list(read_back())
    half = len(rows) // 2
    values = [row[2] for row in rows]

    def shows(count: int) -> None:
        arrives(read_back, before + values[:count], deadline_s)

    def opened(position: Any) -> Writer:
        shipped = connector if connector.place == "driver" else pickled(connector)
        writer: Writer = shipped.open_eager(
            Split(), Schema.of(schema), name="flow.sink.0", position=position
        )
        return writer

    writer = opened(None)
    beginning = _position(writer)
    _write(writer, rows[:half])
    middle = _position(writer)
    _write(writer, rows[half:])
    shows(len(rows))
    writer.close()
    for position, left in ((middle, half), (beginning, 0), (beginning, 0)):
        writer = opened(position)
        shows(left)
        demand(_position(writer) == position, "a sink that has gone back says it is elsewhere")
        _write(writer, rows[left:])
        shows(len(rows))
        writer.close()


def _write(writer: Writer, rows: Sequence[Row]) -> None:
    writer.write(rows)
    writer.flush()


def _position(writer: Writer) -> Any:
    """Return where a writer is, the way that it takes from one process to another."""
    position = writer.position()
    demand(position is not None, "a sink that takes rows back does not say where it is")
    return msgspec.msgpack.decode(msgspec.msgpack.encode(position))
