"""What a connector is: a description that travels to the tasks, and what it opens there.

A *source connector* opens a `Reader` per task; a *sink connector* opens a `Writer` per task.
Descriptions are small and can be pickled: addresses, paths, formats, never an open file.

Readers hand over **raw** items, many at a time, and never wait. What is raw is made a value by the
source's `Format` inside the engine's generated code, where a failure belongs to one record and the
source's ``on_error`` decides what becomes of it. A reader that cannot even make an item of what it
has read, a key that is no text, a line that is too long, hands over an `Unreadable` in its place,
which is a record like any other that fails.

Writers take many rows at a time. One that cannot, because what it writes to is down, raises
`Unavailable`; whoever runs it keeps the rows, pauses that task and tries again with back-off.

In a flow with checkpoints, a sink that is able to opens an `EpochWriter` instead: it is handed the
rows of an epoch all at once, after the epoch is committed, and writes them exactly once. In a flow
without, which has only the recovery that every flow has, sinks show rows at once. Those that are
able to take them back say where they are at the end of each epoch.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from floodway.core.bounds import bounded, checked
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema

Delivery = Literal["exactly once", "at least once"]
"""What a sink promises in a flow with checkpoints, whatever fails and is started again."""

Place = Literal["task", "driver"]
"""Where a connector has to run: in a Spark task, or in the process that started the flow."""

Raw = list[Any] | bytes
"""What a reader hands over: a list of raw items, or a block of whole lines (``\\n``-ended).

An item that could not be read is an `Unreadable`.
"""

Row = tuple[int, Any, Any, Any]
"""What a writer takes: timestamp, key, value, and the id of the update in a stream with updates."""


class Split(msgspec.Struct, frozen=True):
    """Which part of a source or sink a task has: number `index` of `of`."""

    index: int = 0
    of: int = 1


class Lag(msgspec.Struct, frozen=True):
    """How far a reader is behind what it reads; None where that cannot be known.

    Attributes
    ----------
    records, seconds
        How many records wait, and how old the newest is that was read.
    full
        Whether more may wait than can be seen: what holds it is full.
    """

    records: int | None = None
    seconds: float | None = None
    full: bool | None = None


class Unavailable(Exception):
    """What a connector talks to is not there now; trying again later may help.

    `taken` says how many of the rows of this call need not be written again.
    """

    def __init__(self, reason: str, *, taken: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.taken = taken


class Unreadable(msgspec.Struct, frozen=True):
    """Stands for an item that a reader could not make of what it has read.

    No decoder takes it, so it fails as one record does, with this problem and remedy.

    Attributes
    ----------
    raw
        What was there, or the beginning of it, as plain data: for dead letters.
    problem, remedy
        What is wrong with it, and what to do about it.
    """

    raw: Any
    problem: str
    remedy: str

    def error(self) -> ConnectorError:
        """Return what is wrong as an error."""
        return ConnectorError(self.problem, remedy=self.remedy)


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
        decode, lines = self.decoder(schema), self.lines
        return lambda block: [decode(line) for line in lines(block)]

    def lines(self, block: bytes) -> list[bytes]:
        r"""Return the lines of a block one by one, as `block_decoder` takes them.

        >>> Format().lines(b"one\r\n\ntwo\rthree\n")
        [b'one', b'', b'two', b'three']
        """
        return block.splitlines()

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
            return _read
        python = bounded(schema.python)
        return checked(lambda item: msgspec.convert(item, python), python)


class Reader:
    """An open source, of one task.

    Attributes
    ----------
    keyed
        Whether items are ``(timestamp, key, raw)``: then a raw of None deletes the key, and an item
        with a timestamp of None is undated: it gets the latest timestamp so far, or the time at
        which it came in if there was none. A reader that gives timestamps has a connector that
        says so: `SourceConnector.timed`.
    idle_ms
        How long to wait before asking again after nothing was there, unless `fileno` tells sooner.
    there
        Whether what it reads can be reached. As long as it cannot, that nothing comes does not make
        the source idle. A reader that raises `Unavailable` need not say so here as well.
    amid
        Whether a part of a record has come and the rest is on its way. That is no silence, either.
    """

    keyed: bool = False
    idle_ms: float = 1.0
    there: bool = True
    amid: bool = False

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

    def commits_with_epochs(self) -> None:
        """Learn that `commit` will be called: whoever is told about progress is told only there."""

    def commit(self, position: Any) -> None:
        """Learn that the epoch that ended at `position` is committed: it is not read again."""

    def close(self) -> None:
        """Let go of everything."""


class Writer:
    """An open sink, of one task.

    Attributes
    ----------
    warning
        What people should know, or None; whoever runs the writer tells them, once.
    """

    warning: str | None = None

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows in their order; raise `Unavailable` if they cannot be taken now."""
        raise TypeError(f"{type(self).__name__} does not write")  # pragma: no cover

    def flush(self) -> None:
        """Hand on what was taken and is held back; raise `Unavailable` if that cannot be now."""

    def position(self) -> Any:
        """Return where the target is after all that was flushed, as plain data.

        `SinkConnector.open_eager` can take back what was written after it; None if it cannot.
        """
        return None

    def close(self) -> None:
        """Let go of everything. What was taken and not flushed may be lost."""


class EpochWriter(Writer):
    """A writer that is handed whole epochs after they are committed, each exactly once.

    While an epoch lasts, its rows are encoded to blocks, which whoever runs the writer keeps. At
    the end of the epoch `prepare` says where the target will be once it is applied. When the epoch
    is committed, `apply` makes its rows visible. `write` and `flush` are not called.
    """

    def encode(self, rows: Sequence[Row]) -> bytes:
        """Return rows as a block that `apply` understands, also in a later process."""
        raise TypeError(f"{type(self).__name__} has no epochs")  # pragma: no cover

    def prepare(self, epoch: int) -> Any:
        """End an epoch; return a token, as plain data, of where the target will be after it.

        Called in the thread of `encode`. A writer that is opened with the token goes on there.
        """
        raise TypeError(f"{type(self).__name__} has no epochs")  # pragma: no cover

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        """Make the rows of a committed epoch visible; `token` is what `prepare` returned for it.

        Called in another thread than `encode`, in the order of the epochs. An epoch may come again,
        to this writer or to one that was opened later: that changes nothing. One that cannot be
        written now raises `Unavailable`, and the same call is made again later.
        """
        raise TypeError(f"{type(self).__name__} has no epochs")  # pragma: no cover


class SourceConnector:
    """Describes where records come from.

    Attributes
    ----------
    place
        Where it has to be opened.
    most
        The largest number of tasks that can share the reading, or None for any number.
    replayable
        Whether a reader that is opened at a position gives exactly what came after it. Recovery
        needs that; without, records that were under way when a task is lost are lost with it.
    """

    place: ClassVar[Place] = "task"
    replayable: ClassVar[bool] = False
    most: int | None = 1

    @property
    def format(self) -> Format:
        """How raw items become values."""
        return Values()

    @property
    def bounded(self) -> bool | None:
        """Whether what it reads has an end, or None if nobody knows before it is there."""
        return None

    @property
    def timed(self) -> bool | None:
        """Whether items bring event times along, as keyed items can; None if nobody can say."""
        return False

    def check(self) -> None:
        """Refuse, before anything is started, what can be known to fail: a path, a port, a name."""

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of one part, from `position` on or from the beginning."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover

    def reassign(self, positions: Sequence[Any], of: int) -> list[Any]:
        """Deal the positions of all former tasks out to `of` new ones.

        Examples
        --------
        >>> SourceConnector().reassign([3, 5], 2)
        [3, 5]
        """
        if len(positions) == of:
            return list(positions)
        if all(position is None for position in positions):
            return [None] * of
        raise ConnectorError(
            f"{type(self).__name__} was read by {len(positions)} tasks and cannot go on with {of}",
            remedy=f"set the parallelism of the source to {len(positions)}, as it was",
        )


class SinkConnector:
    """Describes where results go.

    Attributes
    ----------
    place
        Where it has to be opened.
    most
        The largest number of tasks that can share the writing, or None for any number.
    delivery
        What it promises in a flow with checkpoints.
    eager
        What it promises without, when tasks are lost and replaced: exactly once, if `open_eager`
        takes back what was written after a position.
    undoes
        Whether a writer that is opened with an earlier token takes back epochs that were applied
        since. Otherwise what was applied stays applied.
    """

    place: ClassVar[Place] = "task"
    delivery: ClassVar[Delivery] = "at least once"
    eager: ClassVar[Delivery] = "at least once"
    undoes: ClassVar[bool] = False
    most: int | None = None

    def check(self) -> None:
        """Refuse, before anything is started, what can be known to fail."""

    def check_resumed(self, token: Any) -> None:
        """Do what `check` does where a flow goes on; `token` is that of one of its tasks.

        What the flow itself wrote before is no reason to refuse.
        """

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer for one task; values are of `schema`."""
        raise TypeError(f"{type(self).__name__} does not write")  # pragma: no cover

    def open_eager(self, split: Split, schema: Schema, *, name: str, position: Any) -> Writer:
        """Return a writer for one task of a flow that recovers, and shows rows at once.

        What was written after `position`, which is what `Writer.position` returned, is taken back
        first; None is the beginning. Nobody else writes there any more. A sink that does not show
        rows one by one in any case may return an `EpochWriter`, whose positions are its tokens; one
        that has no other writer does.

        Parameters
        ----------
        split, schema, name
            As for `open_epochs`.
        position
            That of the last committed epoch, or None if the task has written nothing yet.
        """
        if self.by_epochs_only:
            writer = self.open_epochs(split, schema, name=name, token=position)
            if writer is not None:
                return writer
        return self.open(split, schema)

    @property
    def by_epochs_only(self) -> bool:
        """Whether it has no writer but that of whole epochs."""
        return type(self).open is SinkConnector.open

    def open_epochs(
        self, split: Split, schema: Schema, *, name: str, token: Any
    ) -> EpochWriter | None:
        """Return a writer of whole epochs for one task, or None if the sink has none.

        Parameters
        ----------
        split
            Which task it is.
        schema
            The schema of the values.
        name
            A name for this task of this sink of this flow, which no other has and which stays the
            same when the flow is started again: for whoever has to be told who writes.
        token
            That of the last committed epoch, or None if none was committed yet.
        """
        return None

    def reassign(self, tokens: Sequence[Any], of: int) -> list[Any]:
        """Deal the tokens of all former tasks out to `of` new ones.

        Epochs of the former tasks have to be applied before, by writers with their own tokens.

        Examples
        --------
        >>> SinkConnector().reassign(["a", "b", "c"], 2), SinkConnector().reassign(["a"], 2)
        (['a', 'b'], ['a', None])
        """
        return [*tokens[:of], *([None] * (of - len(tokens)))]


def _itself(item: Any) -> Any:
    return item


def _read(item: Any) -> Any:
    if type(item) is Unreadable:
        raise item.error()
    return item
