"""A source that reads a list and a sink that fills one."""

import io
import pickle
import pydoc
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from floodway.connectors.base import (
    ConnectorPlace,
    Delivery,
    EpochWriter,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Writer,
)
from floodway.connectors.list_items import Abort, At, Delete, Emitted, End, Pause
from floodway.core.duration import to_ms
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema


class ListSource(SourceConnector):
    """Values from a list, with in-band `End`, `Abort` and `Pause`.

    An engine reads the list in the process that starts the flow. An `Abort` is for the driver,
    which can go back; an engine refuses it.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.connectors import ListSink, ListSource
    >>> from floodway.testing import At, Driver
    >>> flow, results = Flow("double"), ListSink()
    >>> numbers = flow.source("numbers", ListSource([At(1, 10), At(2, 20)]), schema=int)
    >>> numbers.map("value * 2").to(results)
    >>> Driver(flow).run()
    'ended'
    >>> results.values
    [20, 40]
    """

    place: ClassVar[ConnectorPlace] = "driver"
    replayable: ClassVar[bool] = True

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = list(items)

    @property
    def bounded(self) -> bool:
        """A list has an end."""
        return True

    @property
    def timed(self) -> bool | None:
        """Whether an item says at what time it comes in; None if there are no items."""
        items = [item for item in self.items if not isinstance(item, Abort | Pause | End)]
        return any(isinstance(item, At | Delete) for item in items) if items else None

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
    """Collects what it is sent, in the process that starts the flow.

    With a checkpoint, exactly once as long as the list lives: a flow that goes on with the same
    list adds what is missing, and one that goes on with a new list adds what comes from then on.
    """

    place: ClassVar[ConnectorPlace] = "driver"
    delivery: ClassVar[Delivery] = "exactly once"
    eager: ClassVar[Delivery] = "exactly once"
    undoes: ClassVar[bool] = True
    most: int | None = 1

    def __init__(self) -> None:
        self.records: list[Emitted] = []
        self._applied: dict[tuple[str, int], list[Emitted]] = {}
        self._shown: dict[str, list[Emitted]] = {}

    @property
    def values(self) -> list[Any]:
        """The values alone."""
        return [record.value for record in self.records]

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer that appends to `records`."""
        return _ListWriter(self.records, [])

    def open_eager(self, split: Split, schema: Schema, *, name: str, position: Any) -> Writer:
        """Return a writer that appends to `records`, and takes back what came after a position."""
        if position is None:
            self._shown[name] = []
        shown = self._shown[name]
        self._remove(shown[position or 0 :])
        del shown[position or 0 :]
        return _ListWriter(self.records, shown)

    def open_epochs(self, split: Split, schema: Schema, *, name: str, token: Any) -> EpochWriter:
        """Return a writer that appends whole epochs, and takes back those behind the token."""
        if token is None:  # epochs are counted from one again
            self._applied = {at: rows for at, rows in self._applied.items() if at[0] != name}
        else:
            self._take_back(name, token["epoch"])
        return _ListEpochs(self, name)

    def add_epoch(self, name: str, epoch: int, rows: list[Emitted]) -> None:
        """Append the rows of an epoch unless they are there."""
        # One step, since two threads may come with the same epoch.
        if self._applied.setdefault((name, epoch), rows) is rows:
            self.records.extend(rows)

    def _take_back(self, name: str, epoch: int) -> None:
        later = [at for at in self._applied if at[0] == name and at[1] > epoch]
        self._remove([row for at in later for row in self._applied.pop(at)])

    def _remove(self, rows: list[Emitted]) -> None:
        gone = set(map(id, rows))
        self.records[:] = [row for row in self.records if id(row) not in gone]


class _ListWriter(Writer):
    def __init__(self, records: list[Emitted], shown: list[Emitted]) -> None:
        self._records, self._shown = records, shown

    def write(self, rows: Sequence[Row]) -> None:
        emitted = [Emitted(*row) for row in rows]
        self._shown.extend(emitted)
        self._records.extend(emitted)

    def position(self) -> int:
        return len(self._shown)


class _ListEpochs(EpochWriter):
    def __init__(self, sink: ListSink, name: str) -> None:
        self._sink = sink
        self._name = name

    def encode(self, rows: Sequence[Row]) -> bytes:
        with io.BytesIO() as file:
            try:
                _Pickler(file).dump(list(rows))
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                raise ConnectorError(
                    f"ListSink got a value that cannot be kept in a checkpoint: {error}",
                    remedy="turn it into a record, a scalar, a list or a dictionary with map",
                ) from error
            return file.getvalue()

    def prepare(self, epoch: int) -> Any:
        return {"epoch": epoch}

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        rows = [Emitted(*row) for block in blocks for row in pickle.loads(block)]
        self._sink.add_epoch(self._name, epoch, rows)


class _Pickler(pickle.Pickler):
    """Takes classes by name, and those that have no name outside, like tests' own, as they are."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, type):
            return NotImplemented
        name = f"{value.__module__}.{value.__qualname__}"
        _CLASSES[name, id(value)] = value
        return _class_of, (name, id(value))


_CLASSES: dict[tuple[str, int], type] = {}


def _class_of(name: str, number: int) -> Any:
    found = _CLASSES.get((name, number)) or pydoc.locate(name)
    if not isinstance(found, type):
        raise ConnectorError(
            f"a result is a {name}, and there is no such class in this process",
            remedy="define the class at the top of a module, or write to files",
        )
    return found
