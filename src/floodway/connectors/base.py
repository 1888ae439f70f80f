"""What a connector is: a description that travels to the tasks, and what it opens there.

A *source connector* opens a `Reader` per task; a *sink connector* opens a `Writer` per task.
Descriptions are small and can be pickled: addresses, paths, formats, never an open file.

Readers hand over **raw** items, many at a time, and never wait. What is raw is made a value by the
source's `Format` inside the engine's generated code, where a failure belongs to one record and the
source's ``on_error`` decides what becomes of it.

Writers take many rows at a time. One that cannot, because what it writes to is down, raises
`Unavailable`; whoever runs it keeps the rows, pauses that task and tries again with back-off.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from floodway.core.schema import Schema

Place = Literal["task", "driver"]
"""Where a connector has to run: in a Spark task, or in the process that started the flow."""

Raw = list[Any] | bytes
"""What a reader hands over: a list of raw items, or a block of whole lines (``\\n``-ended)."""

Row = tuple[int, Any, Any, Any]
"""What a writer takes: timestamp, key, value, and the id of the update in a stream with updates."""


class Split(msgspec.Struct, frozen=True):
    """Which part of a source or sink a task has: number `index` of `of`."""

    index: int = 0
    of: int = 1


class Lag(msgspec.Struct, frozen=True):
    """How far a reader is behind what it reads; None where that cannot be known."""

    records: int | None = None
    seconds: float | None = None


class Unavailable(Exception):
    """What a connector talks to is not there now; trying again later may help.

    `taken` says how many of the rows of this call need not be written again.
    """

    def __init__(self, reason: str, *, taken: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.taken = taken


class Format:
    """How values look outside: raw item to value, value to raw item.

    Attributes
    ----------
    decodes
        Whether items need decoding at all.
    """

    decodes: bool = True

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function from one raw item to a value of `schema`; it raises on bad input."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover

    def block_decoder(self, schema: Schema) -> Callable[[bytes], list[Any]]:
        """Return the function from a block of whole lines to values; it raises if any is bad."""
        decode = self.decoder(schema)
        return lambda block: [decode(line) for line in block.splitlines()]

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the function from a value to bytes, without a line end."""
        raise TypeError(f"{type(self).__name__} does not write")  # pragma: no cover


class Exact(Format):
    """Items that are values of the schema already. Nobody looks whether that is true."""

    decodes = False

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function that returns its argument."""
        return _itself


class Values(Format):
    """Items that are values, or plain data that can become one."""

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function that turns plain data into the schema's type where it is not."""
        if schema.opaque:
            return _itself
        python = schema.python
        return lambda item: msgspec.convert(item, python)


class Reader:
    """An open source, of one task.

    Attributes
    ----------
    keyed
        Whether items are ``(timestamp, key, raw)``: then a raw of None deletes the key, and a
        timestamp of None means the time at which it came in.
    idle_ms
        How long to wait before asking again after nothing was there, unless `fileno` tells sooner.
    """

    keyed: bool = False
    idle_ms: float = 1.0

    def poll(self, limit: int) -> Raw | None:
        """Return about `limit` items that are there now, or none, or None at the end for good.

        Never waits. A source that is away for a while raises `Unavailable`.
        """
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover

    def fileno(self) -> int | None:
        """Return a file descriptor that becomes readable when there is something to poll."""
        return None

    def position(self) -> Any:
        """Return where the next item is, as plain data, so that `Source.open` can go on there."""
        return None

    def lag(self) -> Lag:
        """Return how far behind the reader is."""
        return Lag()

    def close(self) -> None:
        """Let go of everything."""


class Writer:
    """An open sink, of one task."""

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows in their order; raise `Unavailable` if they cannot be taken now."""
        raise TypeError(f"{type(self).__name__} does not write")  # pragma: no cover

    def flush(self) -> None:
        """Hand on what was taken and is held back; raise `Unavailable` if that cannot be now."""

    def close(self) -> None:
        """Let go of everything. What was taken and not flushed may be lost."""


class SourceConnector:
    """Describes where records come from.

    Attributes
    ----------
    place
        Where it has to be opened.
    most
        The largest number of tasks that can share the reading, or None for any number.
    """

    place: ClassVar[Place] = "task"
    most: int | None = 1

    @property
    def format(self) -> Format:
        """How raw items become values."""
        return Values()

    def check(self) -> None:
        """Refuse, before anything is started, what can be known to fail: a path, a port, a name."""

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of one part, from `position` on or from the beginning."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover


class SinkConnector:
    """Describes where results go."""

    place: ClassVar[Place] = "task"
    most: int | None = None

    def check(self) -> None:
        """Refuse, before anything is started, what can be known to fail."""

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer for one task; values are of `schema`."""
        raise TypeError(f"{type(self).__name__} does not write")  # pragma: no cover


def _itself(item: Any) -> Any:
    return item
