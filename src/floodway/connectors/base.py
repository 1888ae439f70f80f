"""What a connector is: a description that travels to the tasks, and what it opens there.

A *source connector* opens a `Reader` per task; a *sink connector* opens a `Writer` per task.
Descriptions are small and can be pickled: addresses, paths, formats, never an open file.

Readers hand over **raw** items, many at a time, and never wait. The source's `Format` turns them
into values inside the engine's generated code, where a failure belongs to one record and the
source's ``on_error`` decides what becomes of it. A reader that cannot even make an item from what
it has read (a key that is not text, a line that is too long) hands over an `Unreadable` in its
place, which fails like any other record.

Writers take many rows at a time. A writer that cannot, because what it writes to is down, raises
`Unavailable`; the engine keeps the rows, pauses that task and tries again with back-off.

In a flow with a checkpoint, a sink that can opens an `EpochWriter` instead: it is handed the rows
of an epoch all at once, after the epoch is committed, and writes them exactly once. In a flow
without one, which has only the recovery that every flow has, sinks show rows at once. Those that
can take them back say where they are at the end of each epoch.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import msgspec

from floodway.connectors.encoding import Exact, Format, Unreadable, Values
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema

__all__ = [
    "ConnectorPlace",
    "Delivery",
    "EpochWriter",
    "Exact",
    "Format",
    "Lag",
    "Raw",
    "Reader",
    "Row",
    "SinkConnector",
    "SourceConnector",
    "Split",
    "Unavailable",
    "Unreadable",
    "Values",
    "Writer",
]
"""All that a connector is made of, so that whoever writes one looks here alone."""

Delivery = Literal["exactly once", "at least once"]
"""What a sink promises in a flow with checkpoints, whatever fails and is started again."""

ConnectorPlace = Literal["task", "driver"]
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
        How many records wait, and how old the newest record is that was read.
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
        Whether what it reads can be reached. While it cannot, the source is not idle, although
        nothing comes. A reader that raises `Unavailable` need not say so here as well.
    amid
        Whether a part of a record has come and the rest is on its way. Then the source is not idle,
        either.
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
        """Learn that `commit` will be called: progress is to be reported only from there."""

    def commit(self, position: Any) -> None:
        """Learn that the epoch that ended at `position` is committed: it is not read again."""

    def close(self) -> None:
        """Let go of everything."""


class Writer:
    """An open sink, of one task.

    Attributes
    ----------
    warning
        What people should know, or None; the engine tells them, once.
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

    While an epoch lasts, its rows are encoded into blocks, which the engine keeps. At the end of
    the epoch, `prepare` says where the target will be once the epoch is applied. When the epoch is
    committed, `apply` makes its rows visible. `write` and `flush` are not called.
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
        needs that; without it, records that are in flight when a task is lost are lost with it.
    """

    place: ClassVar[ConnectorPlace] = "task"
    replayable: ClassVar[bool] = False
    most: int | None = 1

    @property
    def format(self) -> Format:
        """How raw items become values."""
        return Values()

    @property
    def bounded(self) -> bool | None:
        """Whether what it reads has an end, or None if that is not known before it comes."""
        return None

    @property
    def timed(self) -> bool | None:
        """Whether items carry event times, as keyed items can; None if that is not known."""
        return False

    def check(self) -> None:
        """Refuse, before anything is started, what is bound to fail: a path, a port, a name."""

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of one part, from `position` on or from the beginning."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover

    def reassign(self, positions: Sequence[Any], of: int) -> list[Any]:
        """Redistribute the positions of all former tasks to `of` new ones.

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
        What it promises in a flow with a checkpoint.
    eager
        What it promises without one, when tasks are lost and replaced: exactly once, if
        `open_eager` takes back what was written after a position.
    undoes
        Whether a writer that is opened with an earlier token takes back epochs that were applied
        since. Otherwise what was applied stays applied.
    """

    place: ClassVar[ConnectorPlace] = "task"
    delivery: ClassVar[Delivery] = "at least once"
    eager: ClassVar[Delivery] = "at least once"
    undoes: ClassVar[bool] = False
    most: int | None = None

    def check(self) -> None:
        """Refuse, before anything is started, what is bound to fail."""

    def check_resumed(self, token: Any) -> None:
        """Do what `check` does, for a flow that goes on; `token` is that of one of its tasks.

        What the flow itself wrote before is no reason to refuse.
        """

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer for one task; values are of `schema`."""
        raise TypeError(f"{type(self).__name__} does not write")  # pragma: no cover

    def open_eager(self, split: Split, schema: Schema, *, name: str, position: Any) -> Writer:
        """Return a writer for one task of a flow that recovers, and shows rows at once.

        What was written after `position`, which is what `Writer.position` returned, is taken back
        first; None is the beginning. No other task writes there any more. A sink that never shows
        rows one by one may return an `EpochWriter`, whose positions are its tokens; a sink that has
        no other writer does.

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
            same when the flow is started again. It can tell an outside system who writes.
        token
            That of the last committed epoch, or None if none was committed yet.
        """
        return None

    def reassign(self, tokens: Sequence[Any], of: int) -> list[Any]:
        """Redistribute the tokens of all former tasks to `of` new ones.

        Epochs of the former tasks have to be applied before, by writers with their own tokens.

        Examples
        --------
        >>> SinkConnector().reassign(["a", "b", "c"], 2), SinkConnector().reassign(["a"], 2)
        (['a', 'b'], ['a', None])
        """
        return [*tokens[:of], *([None] * (of - len(tokens)))]
