"""Sources and sinks of a simulation: ordinary connectors whose other end is an `Outside`."""

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from floodway.connectors.base import (
    Delivery,
    EpochWriter,
    Exact,
    Format,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.core.schema import Schema
from floodway_lab.simulation.outside import SHARDS, Item, Outside, encoded

Position = list[list[int]]
"""For each shard of a reader its number, and the number of its next item."""


class SimulatedSource(SourceConnector):
    """Reads the shards of a feed; each task has some, and reads what has come first."""

    replayable: ClassVar[bool] = True
    most: int | None = None

    def __init__(self, outside: int, name: str) -> None:
        self.outside, self.name = outside, name

    @property
    def format(self) -> Format:
        """Items are values already."""
        return Exact()

    @property
    def timed(self) -> bool:
        """Every item has its time."""
        return True

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of some shards."""
        if position is None:
            position = _dealt([[shard, 0] for shard in range(SHARDS)], split.of)[split.index]
        return SimulatedReader(Outside.find(self.outside), self.name, position)

    def reassign(self, positions: Sequence[Any], of: int) -> list[Any]:
        """Deal the shards out to another number of tasks."""
        if all(position is None for position in positions):
            return [None] * of
        return _dealt(sorted(pair for position in positions for pair in position), of)


def _dealt(pairs: Position, of: int) -> list[Position]:
    return [[pair for pair in pairs if pair[0] % of == index] for index in range(of)]


class SimulatedReader(Reader):
    """Reads some shards of a feed."""

    keyed = True
    idle_ms = 5.0

    def __init__(self, outside: Outside, name: str, position: Position) -> None:
        self._outside, self.name = outside, name
        self._next = {pair[0]: pair[1] for pair in position}
        self._feed = outside.feeds[name]

    def poll(self, limit: int) -> list[Any] | None:
        """Return some items that have arrived, the oldest first; None after the last one."""
        outside = self._outside
        outside.check_there(self.name)
        rows: list[Any] = []
        for _ in range(min(limit, outside.random.randint(1, 12))):
            first = self._first()
            if first is None:
                return rows or None
            shard, item = first
            if item.arrival > outside.clock():
                break
            place = (self.name, shard, self._next[shard])
            outside.polled[place] = outside.polled.get(place, 0) + 1
            self._next[shard] += 1
            rows.append((item.timestamp, item.key, item.value))
        return rows

    def _first(self) -> tuple[int, Item] | None:
        waiting = [
            (self._feed[shard][number].arrival, shard)
            for shard, number in self._next.items()
            if number < len(self._feed[shard])
        ]
        if not waiting:
            return None
        _, shard = min(waiting)
        return shard, self._feed[shard][self._next[shard]]

    def position(self) -> Position:
        """Return the next item of every shard."""
        return [[shard, number] for shard, number in self._next.items()]


class SimulatedSink(SinkConnector):
    """Shows whole epochs, each once, and takes nothing back."""

    delivery: ClassVar[Delivery] = "exactly once"
    most: int | None = None

    def __init__(self, outside: int, name: str) -> None:
        self.outside, self.name = outside, name

    def open_epochs(self, split: Split, schema: Schema, *, name: str, token: Any) -> EpochWriter:
        """Return a writer of whole epochs."""
        outside = Outside.find(self.outside)
        if self.undoes:
            outside.take_back(self.name, name, token or 0)
        return SimulatedWriter(outside, self.name, name)


class UndoingSink(SimulatedSink):
    """Shows whole epochs, and takes back those behind its token when it is opened."""

    undoes: ClassVar[bool] = True

    def reassign(self, tokens: Sequence[Any], of: int) -> list[Any]:
        """Let further tasks go on behind what was shown by tasks of their number before."""
        further = max((token for token in tokens if token is not None), default=None)
        return [*tokens[:of], *([further] * (of - len(tokens)))]


class EagerSink(SinkConnector):
    """Shows rows as they come, each at least once."""

    most: int | None = None

    def __init__(self, outside: int, name: str) -> None:
        self.outside, self.name = outside, name

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer that shows what it has taken when it is flushed."""
        return EagerWriter(Outside.find(self.outside), self.name)


class EagerWriter(Writer):
    """Takes rows, and shows them when it is flushed; what it has not shown dies with it."""

    def __init__(self, outside: Outside, sink: str) -> None:
        self._outside, self._sink = outside, sink
        self._rows: list[Row] = []

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows."""
        self._outside.check_there(self._sink)
        self._rows += rows

    def flush(self) -> None:
        """Show what was taken; without an answer nobody knows how much of it is there."""
        outside, rows = self._outside, self._rows
        if outside.does_without_an_answer(self._sink, "eager"):
            outside.show_at_once(self._sink, encoded(rows[: outside.random.randint(0, len(rows))]))
            raise _unanswered(self._sink)
        outside.check_there(self._sink)
        outside.show_at_once(self._sink, encoded(rows))
        self._rows = []


class DirectSink(SinkConnector):
    """Shows rows as they come, each at least once, as Redis does without epochs."""

    most: int | None = None

    def __init__(self, outside: int, name: str) -> None:
        self.outside, self.name = outside, name

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer that shows what it takes."""
        return DirectWriter(Outside.find(self.outside), self.name)


class DirectWriter(Writer):
    """Shows rows when it takes them: all, or the first of them if what it writes to dies."""

    def __init__(self, outside: Outside, sink: str) -> None:
        self._outside, self._sink = outside, sink

    def write(self, rows: Sequence[Row]) -> None:
        """Show rows; more may be there than it knows of."""
        outside = self._outside
        if not outside.does_without_an_answer(self._sink, "direct"):
            outside.check_there(self._sink)
            outside.show_at_once(self._sink, encoded(rows))
            return
        known = outside.random.randrange(len(rows))
        there = outside.random.randint(known, len(rows))
        outside.show_at_once(self._sink, encoded(rows[:there]))
        raise _unanswered(self._sink, taken=known)


def _unanswered(sink: str, *, taken: int = 0) -> Unavailable:
    return Unavailable(f"{sink} is away: it has not answered", taken=taken)


class SimulatedWriter(EpochWriter):
    """Shows whole epochs."""

    def __init__(self, outside: Outside, sink: str, name: str) -> None:
        self._outside, self._sink, self._name = outside, sink, name

    def encode(self, rows: Sequence[Row]) -> bytes:
        """Return rows as bytes."""
        return encoded(rows)

    def prepare(self, epoch: int) -> Any:
        """Return the epoch itself."""
        return epoch

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        """Show an epoch. Without an answer it is there all the same, and nobody knows."""
        outside = self._outside
        unanswered = outside.does_without_an_answer(self._sink, self._name)
        if not unanswered:
            outside.check_there(self._sink)
        outside.show(self._sink, self._name, epoch, msgspec.msgpack.encode(list(blocks)))
        if unanswered:
            raise _unanswered(self._sink)
