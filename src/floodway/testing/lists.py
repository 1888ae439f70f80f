"""A source that reads a list and a sink that fills one."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from floodway.connectors.base import (
    Place,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Writer,
)
from floodway.core.duration import to_ms
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing.items import Abort, At, Delete, Emitted, End, Pause


class ListSource(SourceConnector):
    """Values from a list, with in-band `End`, `Abort` and `Pause`.

    An engine reads the list in the process that starts the flow. An `Abort` is for the driver,
    which can go back; an engine refuses it.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import At, Driver, ListSink, ListSource
    >>> flow, results = Flow("double"), ListSink()
    >>> numbers = flow.source("numbers", ListSource([At(1, 10), At(2, 20)]), schema=int)
    >>> numbers.map("value * 2").to(results)
    >>> Driver(flow).run()
    'ended'
    >>> results.values
    [20, 40]
    """

    place: ClassVar[Place] = "driver"

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = list(items)

    def check(self) -> None:
        """Refuse aborts."""
        if any(isinstance(item, Abort) for item in self.items):
            raise ConnectorError(
                "an Abort in a list is for the driver alone",
                remedy="run the flow with floodway.testing.Driver, or leave it out",
            )

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of the list."""
        return _ListReader(self.items, position or 0)


class _ListReader(Reader):
    keyed = True

    def __init__(self, items: list[Any], position: int) -> None:
        self._items = items
        self._position = position
        self._paused_until = 0.0

    def poll(self, limit: int) -> list[Any] | None:
        if time.monotonic() < self._paused_until:
            return []
        rows: list[Any] = []
        while len(rows) < limit:
            if self._position == len(self._items):
                return rows or None
            item = self._items[self._position]
            match item:
                case End():
                    return rows or None
                case Pause(duration):
                    if not rows:
                        self._position += 1
                        pause = to_ms(duration, what="pause", zero=True) / 1000
                        self._paused_until = time.monotonic() + pause
                    return rows
                case At(timestamp, value, key):
                    rows.append((timestamp, key, value))
                case Delete(key, timestamp):
                    rows.append((timestamp, key, None))
                case _:
                    rows.append((None, None, item))
            self._position += 1
        return rows

    def position(self) -> int:
        return self._position


class ListSink(SinkConnector):
    """Collects what it is sent, in the process that starts the flow."""

    place: ClassVar[Place] = "driver"
    most: int | None = 1

    def __init__(self) -> None:
        self.records: list[Emitted] = []

    @property
    def values(self) -> list[Any]:
        """The values alone."""
        return [record.value for record in self.records]

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer that appends to `records`."""
        return _ListWriter(self.records)


class _ListWriter(Writer):
    def __init__(self, records: list[Emitted]) -> None:
        self._records = records

    def write(self, rows: Sequence[Row]) -> None:
        self._records.extend(Emitted(*row) for row in rows)
