"""Blocks: what a task has collected, in a file that Spark's tasks read where it lies.

A block is a sequence of *units*, each a frame's payload or what a source's reader handed over,
still encoded, behind a small header. It can be *cut* between units, so that several tasks share it
evenly; a part of a block is a *piece*. What came of a piece is a file too: see `Result`.
"""

import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from floodway.core.errors import EngineError
from floodway.engine.control.messages import Failed

FRAME, LINES, ITEMS, KEYED, ROWS = 1, 2, 3, 4, 5
"""What a unit holds: a frame's payload; lines, as one string of bytes; items; items that bring
their own time and key; rows that need no decoding. All but the first two are packed."""

UNIT = struct.Struct("<BHIIQI")
"""kind, place, run, records, born (microseconds), size."""

MOST_CUTS = 256
"""So many places to cut a block are remembered, at most."""

WRITE_BYTES = 128 * 1024
"""A block is written in parts of about this size."""

_MOST_BUFFERS = 1024
"""So many buffers the system writes at a time."""


class Unit(NamedTuple):
    """A frame, or one read of a source.

    Attributes
    ----------
    place
        The number of the exchange or, for what a source has read, of the source in its stage.
    run
        The number of the run within the batch: units of one place with nothing in between.
    """

    kind: int
    place: int
    run: int
    records: int
    born: int
    data: bytes | memoryview


Cut = tuple[int, int]
"""Where a block can be cut: the offset, and how many records lie before it."""


class BlockWriter:
    """Writes a block while it is collected.

    What is written need not be kept in memory, and memory that is used again is cheaper than new.
    So is a file: if there is one, it is written over, and what it had behind the block stays.

    Attributes
    ----------
    records, bytes
        How much is in the block.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = self.bytes = 0
        self._cuts: list[Cut] = [(0, 0)]
        self._buffers: list[bytes | memoryview] = []
        self._waiting = self._written = 0
        self._descriptor: int | None = None

    def add(self, unit: Unit) -> bool:
        """Take a unit; return whether enough waits to be written."""
        kind, place, run, records, born, data = unit
        self._buffers += (UNIT.pack(kind, place, run, records, born, len(data)), data)
        size = UNIT.size + len(data)
        self.bytes += size
        self.records += records
        self._waiting += size
        self._cuts.append((self.bytes, self.records))
        return self._waiting >= WRITE_BYTES

    def flush(self) -> None:
        """Write what waits; if there is no room for it, it waits on, and an OSError is raised."""
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Not cut off: somebody who still looks at what was there would not survive that.
            self._descriptor = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600)
        os.lseek(self._descriptor, self._written, os.SEEK_SET)  # some of it may be there already
        for start in range(0, len(self._buffers), _MOST_BUFFERS):
            _write_all(self._descriptor, self._buffers[start : start + _MOST_BUFFERS])
        self._written, self._waiting = self.bytes, 0
        self._buffers.clear()

    def close(self) -> list[Cut]:
        """Write the rest; return where the block can be cut, from its beginning to its end."""
        self.flush()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        return thinned(self._cuts, MOST_CUTS)

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def write_file(path: Path, buffers: Sequence[bytes | memoryview]) -> None:
    """Write a new file that only its owner reads."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        for start in range(0, len(buffers), _MOST_BUFFERS):
            _write_all(descriptor, buffers[start : start + _MOST_BUFFERS])
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, buffers: Sequence[bytes | memoryview]) -> None:
    written, whole = os.writev(descriptor, buffers), sum(map(len, buffers))
    if written < whole:  # a large write is done in parts
        rest = memoryview(b"".join(buffers))[written:]
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def thinned(cuts: list[Cut], most: int) -> list[Cut]:
    """Return at most so many of the cuts, the first and the last among them.

    >>> thinned([(0, 0), (5, 1), (9, 2), (12, 3), (20, 4)], 3)
    [(0, 0), (9, 2), (20, 4)]
    """
    last = len(cuts) - 1
    if last < most:
        return cuts
    return [cuts[last * step // (most - 1)] for step in range(most)]


def read_block(path: str, start: int, stop: int) -> Iterator[Unit]:
    """Return the units of a block between two cuts."""
    data = _mapped(path, start, stop)
    offset = 0
    while offset < len(data):
        try:
            kind, place, run, records, born, size = UNIT.unpack_from(data, offset)
        except struct.error:
            raise damaged(path) from None
        offset += UNIT.size
        content = data[offset : offset + size]
        if len(content) < size:
            raise damaged(path)
        yield Unit(kind, place, run, records, born, content)
        offset += size


def _mapped(path: str, start: int, stop: int) -> memoryview:
    """Return a part of a file where it lies in the system's memory: nothing is copied."""
    if start == stop:
        return memoryview(b"")
    first = start - start % mmap.ALLOCATIONGRANULARITY
    with open(path, "rb") as file:
        try:
            whole = mmap.mmap(file.fileno(), stop - first, access=mmap.ACCESS_READ, offset=first)
        except ValueError:  # there is less than that
            raise damaged(path) from None
    return memoryview(whole)[start - first :]


def damaged(path: str) -> EngineError:
    """Return the error for a file that ends too early."""
    return EngineError(
        f"the block {path} is not complete", remedy="see if the disk of the temporary files is full"
    )


class Sent(msgspec.Struct, array_like=True, gc=False):
    """Rows, encoded, for a task of another stage."""

    exchange: int
    target: int
    kind: int
    records: int
    payload: bytes


class BlockRows(msgspec.Struct, array_like=True, gc=False):
    """Rows, encoded, of an operator's port, for those of the same task who read it."""

    operator: str
    port: str
    records: int
    payload: bytes


class RunResult(msgspec.Struct, array_like=True):
    """What came of a run, as far as it lay in one piece.

    Attributes
    ----------
    born
        When its oldest record came into the flow.
    sent, rows
        Results for other stages, and for the owner.
    read, latest, arrived
        Of a source: how many records it has brought, the latest event time to which it has come,
        and when the last came in that had none.
    """

    run: int
    born: int
    sent: list[Sent]
    rows: list[BlockRows]
    read: int = 0
    latest: int | None = None
    arrived: int | None = None


class NodeCounts(msgspec.Struct, array_like=True):
    """What a node of the remote half has done."""

    received: int
    sent: list[int]
    skipped: list[int]
    failures: list[int]
    counted: list[int]
    taken: list[int]
    errors: list[str | None]
    undated: int = 0
    ignored: int = 0


class Result(msgspec.Struct, array_like=True):
    """What came of a piece.

    Attributes
    ----------
    runs
        The results, run by run.
    counts
        What each node has done, by name.
    failed
        The error that ended the work, if one did; the runs are those before it.
    took_us
        How long the work took.
    """

    runs: list[RunResult]
    counts: dict[str, NodeCounts]
    failed: Failed | None = None
    took_us: int = 0


encode_result = msgspec.msgpack.Encoder().encode
_RESULT = msgspec.msgpack.Decoder(Result)


def read_result(path: str) -> Result:
    """Return the result that lies in a file."""
    try:
        return _RESULT.decode(Path(path).read_bytes())
    except msgspec.DecodeError:
        raise damaged(path) from None
