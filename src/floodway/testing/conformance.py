"""What every connector promises, as checks that can be run on any of them.

They are meant for tests of connectors, Floodway's own and everybody else's: fill a source with
known values and pass it to a check. An `AssertionError` says which promise it does not keep.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import msgspec

from floodway.connectors.base import (
    Raw,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing.conformance_eager import check_eager_sink
from floodway.testing.conformance_epochs import check_epoch_sink
from floodway.testing.demands import (
    PAUSE_S,
    arrives,
    count,
    demand,
    difference,
    in_order,
    pickled,
    same,
)

__all__ = ["check_eager_sink", "check_epoch_sink", "check_sink", "check_source"]

_LIMIT = 3  # few items at a time, so that short inputs take several polls
_POSITIONS = 8  # replays are checked from at most this many places
_QUIET_POLLS = 5  # how often an endless source is asked for what should not be there


def check_source(
    connector: SourceConnector,
    expected: Sequence[Any],
    *,
    schema: Any = object,
    splits: Sequence[int] = (1, 2, 3),
    deadline_s: float = 10,
    ordered: bool = True,
    bounded: bool = True,
    wait_ms: float = 1000,
) -> None:
    """Check that a source hands over exactly what it should, whole, shared and from the middle.

    Parameters
    ----------
    connector
        The source, which can be opened many times and gives the same each time.
    expected
        The values it gives; for a keyed source ``(key, value)`` pairs.
    schema
        The schema of the values.
    splits
        Among how many tasks the reading is shared; numbers above the source's `most` are left out.
    deadline_s
        How long each reading may take.
    ordered
        Whether values come in the order of `expected`; otherwise only their number is compared.
    bounded
        Whether the source ends by itself.
    wait_ms
        The longest time that one poll may spend waiting; generous, since on a busy machine every
        process waits now and then.

    Examples
    --------
    >>> from floodway.connectors.rate import RateSource
    >>> check_source(RateSource(1_000_000, count=10), range(10), schema=int)
    """
    check = _SourceCheck(connector, Schema.of(schema), deadline_s, wait_ms, bounded=bounded)
    connector.check()
    check.connector = pickled(connector)
    for of in splits:
        if connector.most is None or of <= connector.most:
            _check_shared(check, list(expected), of, ordered=ordered)
            if connector.replayable:
                _check_reassigned(check, list(expected), of)


def check_sink(
    connector: SinkConnector,
    schema: Any,
    rows: Sequence[Row],
    read_back: Callable[[], Sequence[Any]],
    *,
    expected: Sequence[Any] | None = None,
    visible: Literal["flush", "close"] = "flush",
    deadline_s: float = 10,
) -> None:
    """Check that a sink takes rows in order and shows them when it should.

    Parameters
    ----------
    connector
        The sink. What it writes to is empty.
    schema
        The schema of the values.
    rows
        What to write, at least two rows of ``(timestamp, key, value, id)``.
    read_back
        Returns all that is there by now, in order.
    expected
        What `read_back` returns after all rows; the values of the rows if not given.
    visible
        When rows have to be there: after each flush, or only after the writer was closed.
    deadline_s
        How long a row may take to arrive; for what is sent to another process.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from floodway.connectors.json_lines import JsonLinesSink
    >>> rows = [(1, None, 10, None), (2, None, 20, None)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "numbers.jsonl"
    ...     read_back = lambda: [int(line) for line in file.read_text().splitlines()]
    ...     check_sink(JsonLinesSink(file), int, rows, read_back)
    """
    shape = Schema.of(schema)
    wanted = [row[2] for row in rows] if expected is None else list(expected)
    connector.check()
    shipped: SinkConnector = pickled(connector)
    with _writing(shipped, shape) as writer:
        writer.write([])
        writer.flush()
    demand(list(read_back()) == [], "a run without rows leaves something")
    half = len(rows) // 2
    with _writing(shipped, shape) as writer:
        _write(writer, rows[:half], deadline_s)
        if visible == "flush":
            arrives(read_back, wanted[:half], deadline_s)
        _write(writer, rows[half:], deadline_s)
        if visible == "flush":
            arrives(read_back, wanted, deadline_s)
    arrives(read_back, wanted, deadline_s)


class _SourceCheck:
    """How to read one source; what does not change during a check."""

    def __init__(
        self,
        connector: SourceConnector,
        schema: Schema,
        deadline_s: float,
        wait_ms: float,
        *,
        bounded: bool,
    ) -> None:
        self.connector = connector
        self.bounded = bounded
        self._deadline_s = deadline_s
        self._wait_ms = wait_ms
        self._schema = schema
        self._decode = connector.format.decoder(schema)

    def opened(self, stack: ExitStack, split: Split, position: Any = None) -> Reader:
        reader = self.connector.open(split, position)
        stack.callback(reader.close)
        stack.callback(reader.close)  # twice has to be harmless
        return reader

    def read(self, readers: Sequence[Reader], count: int) -> list["_Read"]:
        """Poll readers in turn to the end, or until there are `count` values in all."""
        reads = [_Read(reader) for reader in readers]
        give_up = time.monotonic() + self._deadline_s
        quiet = 0
        while any(not read.ended for read in reads):
            got = sum(self._poll(read) for read in reads if not read.ended)
            total = sum(len(read.values) for read in reads)
            demand(total <= count, f"more values than expected: {total} instead of {count}")
            quiet = 0 if got else quiet + 1
            if not self.bounded and total == count and quiet >= _QUIET_POLLS:
                break
            missing = "no end" if total == count else f"{total} of {count} values"
            demand(time.monotonic() < give_up, f"{missing} after {self._deadline_s} s")
            if not got:
                time.sleep(PAUSE_S)
        demand(self.bounded or not any(read.ended for read in reads), "an endless source ended")
        return reads

    def begin(self, readers: Sequence[Reader], least: int) -> tuple[list[Any], list[Any]]:
        """Poll readers in turn until there are so many values; return these and the positions."""
        reads = [_Read(reader) for reader in readers]
        give_up = time.monotonic() + self._deadline_s
        while sum(len(read.values) for read in reads) < least:
            for read in reads:
                if not read.ended:
                    self._poll(read)
            demand(time.monotonic() < give_up, f"no {least} values after {self._deadline_s} s")
        values = [value for read in reads for value in read.values]
        return values, [read.reader.position() for read in reads]

    def _poll(self, read: "_Read") -> int:
        started, worked = time.monotonic(), time.thread_time()
        try:
            raw = read.reader.poll(_LIMIT)
        except Unavailable:
            return 0
        waited_ms = (time.monotonic() - started - (time.thread_time() - worked)) * 1000
        demand(waited_ms < self._wait_ms, f"a poll waited for {waited_ms:.0f} ms")
        if raw is None:
            read.ended = True
            demand(read.reader.poll(_LIMIT) is None, "after its end a reader goes on")
            return 0
        values = self._decoded(read.reader, raw)
        read.values += values
        read.positions.append((len(read.values), read.reader.position()))
        return len(values)

    def _decoded(self, reader: Reader, raw: Raw) -> list[Any]:
        if isinstance(raw, bytes):
            whole = not raw or raw.endswith(b"\n")
            demand(whole, f"a block ends within a line: {raw[-40:]!r}")
            values = self.connector.format.block_decoder(self._schema)(raw)
            lines = [self._decode(line) for line in raw.splitlines() if line]
            demand(same(values, lines), "a block and its lines are decoded differently")
            return values
        if not reader.keyed:
            return [self._decode(item) for item in raw]
        demand(
            self.connector.timed is not False or all(time is None for time, _, _ in raw),
            "items have times, and the connector says that they have none: let `timed` be true",
        )
        return [(key, None if item is None else self._decode(item)) for _, key, item in raw]


class _Read:
    """What came of one reader, and where it was after how many values."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.values: list[Any] = []
        self.positions: list[tuple[int, Any]] = [(0, reader.position())]
        self.ended = False


def _check_shared(check: _SourceCheck, expected: list[Any], of: int, *, ordered: bool) -> None:
    with ExitStack() as stack:
        readers = [check.opened(stack, Split(index, of)) for index in range(of)]
        reads = check.read(readers, len(expected))
        for read in reads:
            _check_descriptor(read.reader)
    together = [value for read in reads for value in read.values]
    demand(
        count(together) == count(expected),
        f"{of} tasks together read other values: {difference(together, expected)}",
    )
    for index, read in enumerate(reads):
        if ordered:
            demand(in_order(read.values, expected), f"task {index} of {of} is out of order")
        _check_replay(check, read, Split(index, of), ordered=ordered)


def _check_replay(check: _SourceCheck, read: _Read, split: Split, *, ordered: bool) -> None:
    step = max(1, len(read.positions) // _POSITIONS)
    for done, position in read.positions[::step]:
        if position is None:
            said = check.connector.replayable and done
            demand(not said, "a source that is replayable does not say where it is")
            continue
        again = _plain(position)
        rest = read.values[done:]
        with ExitStack() as stack:
            (replay,) = check.read([check.opened(stack, split, again)], len(rest))
        demand(
            same(replay.values, rest) if ordered else count(replay.values) == count(rest),
            f"from {position!r} on, task {split.index} of {split.of} reads something else: "
            f"{difference(replay.values, rest)}",
        )


def _check_reassigned(check: _SourceCheck, expected: list[Any], of: int) -> None:
    """Stop in the middle and go on with another number of tasks, unless the source refuses."""
    most = check.connector.most
    for others in (of + 1, of - 1):
        if not others or (most is not None and others > most):
            continue
        with ExitStack() as stack:
            readers = [check.opened(stack, Split(index, of)) for index in range(of)]
            begun, positions = check.begin(readers, len(expected) // 2)
        try:
            dealt = check.connector.reassign([_plain(position) for position in positions], others)
        except ConnectorError:
            return
        demand(len(dealt) == others, f"{of} positions became {len(dealt)} instead of {others}")
        with ExitStack() as stack:
            readers = [check.opened(stack, Split(i, others), at) for i, at in enumerate(dealt)]
            rest = check.read(readers, len(expected) - len(begun))
        together = begun + [value for read in rest for value in read.values]
        demand(
            count(together) == count(expected),
            f"{others} tasks after {of} read other values: {difference(together, expected)}",
        )


def _plain(position: Any) -> Any:
    """Return a position as it comes back from where it was kept."""
    packed = msgspec.msgpack.encode(position)
    again = msgspec.msgpack.decode(packed)
    demand(msgspec.msgpack.encode(again) == packed, f"{position!r} is not plain data")
    return again


def _check_descriptor(reader: Reader) -> None:
    descriptor = reader.fileno()
    demand(descriptor is None or descriptor >= 0, f"{descriptor} is no file descriptor")


@contextmanager
def _writing(connector: SinkConnector, schema: Schema) -> Iterator[Writer]:
    writer = connector.open(Split(), schema)
    try:
        yield writer
    finally:
        writer.close()
        writer.close()


def _write(writer: Writer, rows: Sequence[Row], deadline_s: float) -> None:
    """Write and flush as an engine does: what was not taken is kept and tried again."""
    give_up = time.monotonic() + deadline_s
    left: Sequence[Row] | None = rows
    while True:
        try:
            if left is not None:
                writer.write(left)
                left = None
            writer.flush()
            return
        except Unavailable as away:
            left = left[away.taken :] if left is not None else None
            demand(time.monotonic() < give_up, f"still not available: {away.reason}")
            time.sleep(PAUSE_S)
