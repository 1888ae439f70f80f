"""Rows for which there is no memory: in RocksDB, on a local disk, until they are asked for.

The cold rows are no durable copy; they go with the process. So there is no log, and what is
written is written in one batch between two epochs: while kernels run, the database is only read.
Rows that have been fetched meanwhile are noted, and deleted with the next batch.

Each space, and each namespace of a windowed one, has a prefix of its own that is never used again.
Forgetting a namespace deletes a range of keys; files that it filled are cleared up in a thread, so
that the room on the disk is free again.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from floodway.core.errors import DiskFullError, EngineError
from floodway.engine.host.scratch import remove_scratch
from floodway.engine.state.exact import exact
from floodway.engine.state.pickling import Pickling, not_plain

MEBIBYTE = 1024 * 1024
LEAST_BUFFER, MOST_BUFFER = MEBIBYTE, 16 * MEBIBYTE
BUFFER_SHARE = 16
"""The database has so many times less for what it writes, and as much for what it reads."""

PREFIX_BYTES = 8
READ_ROWS = 1000
"""So many rows are read at a time when all are gone through."""

CLEAR_ROWS = 1000
"""Fewer forgotten rows are not worth clearing up."""


class ColdStore:
    """The database of one task; made when there is something to put into it.

    Parameters
    ----------
    folder
        A folder of its own, which it makes and removes.
    pickling
        How rows become bytes.
    memory
        How much memory the rows have that are not here; the database takes a small share of that.

    Attributes
    ----------
    rows
        How many rows there are.
    """

    def __init__(self, folder: Path, pickling: Pickling, *, memory: int) -> None:
        self._folder = folder
        self._buffer = min(max(memory // BUFFER_SHARE, LEAST_BUFFER), MOST_BUFFER)
        self.pack = pickling.packer()
        self.unpack = pickling.unpack
        self._database: Rdict | None = None
        self._prefixes = 0
        self._clearing: threading.Thread | None = None
        self._forgotten: list[tuple[bytes, int]] = []
        self._to_clear: list[bytes] = []
        self._rows_to_clear = 0
        self.deleted: set[bytes] = set()
        self.rows = 0

    def new_prefix(self) -> bytes:
        """Return a prefix that nobody has had."""
        self._prefixes += 1
        return self._prefixes.to_bytes(PREFIX_BYTES, "big")

    def get(self, place: bytes) -> bytes | None:
        """Return the bytes of a row, or None."""
        if self._database is None or place in self.deleted:
            return None
        try:
            return self._database.get(place)
        except Exception as error:  # rocksdict has no class for its errors
            raise self._meaning(error) from error

    def read(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Go through the rows of a prefix; nothing may be written meanwhile.

        An iterator of the database keeps it from being closed, so none lives longer than a read.
        """
        place: bytes | None = prefix
        while place is not None and self._database is not None:
            try:
                found, place = _portion(self._database, prefix, place)
            except Exception as error:
                raise self._meaning(error) from error
            yield from ((key, data) for key, data in found if key not in self.deleted)

    @property
    def pending(self) -> bool:
        """Whether rows were fetched or forgotten that are still on the disk."""
        return bool(self.deleted or self._forgotten)

    def forget(self, prefix: bytes, rows: int) -> None:
        """Forget all rows of a prefix, with the next batch."""
        self._forgotten.append((prefix, rows))
        self.rows -= rows

    def write(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Write rows, and delete those that were fetched or forgotten since the last time."""
        batch = WriteBatch(raw_mode=True)
        for place, data in rows:
            batch.put(place, data)
            self.deleted.discard(place)
            if batch.size_in_bytes() > self._buffer:  # the database would take it whole
                self._write(batch)
                batch = WriteBatch(raw_mode=True)
        for place in self.deleted:
            batch.delete(place)
        for prefix, _ in self._forgotten:
            batch.delete_range(prefix, _after(prefix))
        if not batch.is_empty():
            self._write(batch)
        self.deleted.clear()
        for prefix, count in self._forgotten:
            self._to_clear.append(prefix)
            self._rows_to_clear += count
        self._forgotten = []
        self.clear_up()

    def _write(self, batch: WriteBatch) -> None:
        try:
            if self._database is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._database = Rdict(str(self._folder), _options(self._buffer))
            self._database.write(batch, _unlogged())
        except Exception as error:
            raise self._meaning(error) from error

    def clear_up(self) -> None:
        """Begin to clear up what was forgotten, if it is worth it and nobody is at it."""
        if self._database is None or self._rows_to_clear < max(CLEAR_ROWS, self.rows // 4):
            return
        if self._clearing is not None and self._clearing.is_alive():
            return
        first, last = min(self._to_clear), _after(max(self._to_clear))
        self._to_clear, self._rows_to_clear = [], 0
        self._clearing = threading.Thread(
            target=self._database.compact_range,
            args=(first, last),
            name="floodway-clearing",
            daemon=True,
        )
        self._clearing.start()

    def _meaning(self, error: Exception) -> EngineError:
        text = str(error)
        full = "No space left" in text or "quota" in text.lower()
        return (DiskFullError if full else EngineError)(
            f"state beyond the memory budget cannot be kept in {self._folder}: {text}",
            remedy="set TMPDIR to a disk with more room, or raise the memory budget",
        )

    def settle(self) -> None:
        """Wait until all is cleared up that is worth it."""
        self.clear_up()
        while self._clearing is not None:
            self._clearing.join()
            self._clearing = None
            self.clear_up()

    def close(self) -> None:
        """Close the database for good and remove its folder."""
        database, self._database = self._database, None
        if database is not None:
            # In this order: what still works in the background would write into the folder again.
            database.cancel_all_background(True)  # noqa: FBT003 - it takes no name: wait
            if self._clearing is not None:
                self._clearing.join()
            with suppress(Exception):  # it would like to write what is to be removed
                database.close()
        if self._folder.exists():
            remove_scratch(self._folder)


class ColdRows:
    """The rows of one space, or of one namespace, that are not in memory.

    Attributes
    ----------
    used
        The keys whose rows have left since somebody took note of it, each with what was noted about
        its use when the row was put aside.
    """

    __slots__ = ("_count", "_prefix", "_store", "used")

    def __init__(self, store: ColdStore) -> None:
        self._store = store
        self._prefix = store.new_prefix()
        self._count = 0
        self.used: list[tuple[Any, Any]] = []

    def fetch(self, key: Any) -> Any:
        """Return the row of `key` and forget it here; None if there is none."""
        return self._take(key) if self._count else None

    def has(self, key: Any) -> bool:
        """Return whether there is a row of `key`."""
        return self._count > 0 and self._store.get(self._prefix + exact(key)) is not None

    def remove(self, key: Any) -> bool:
        """Forget the row of `key`; return whether there was one."""
        return self._count > 0 and self._take(key) is not None

    def _take(self, key: Any) -> Any:
        place = self._prefix + exact(key)
        data = self._store.get(place)
        if data is None:
            return None
        self._store.deleted.add(place)
        self._store.rows -= 1
        self._count -= 1
        _, row, note = self._store.unpack(data)
        self.used.append((key, note))
        return row

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Go through keys and rows; nothing else is done meanwhile."""
        if self._count:
            for _, data in self._store.read(self._prefix):
                key, row, _ = self._store.unpack(data)
                yield key, row

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Forget all rows."""
        if self._count:
            self._store.forget(self._prefix, self._count)
            self._prefix, self._count = self._store.new_prefix(), 0
        self.used.clear()

    def packed(self, rows: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[bytes, bytes]]:
        """Make keys, rows and notes about their use what is written; when it is, call `added`."""
        prefix, pack = self._prefix, self._store.pack
        for row in rows:
            try:
                packed = (prefix + exact(row[0]), pack(row))
            except TypeError as error:
                raise not_plain(error) from None
            yield packed

    def added(self, count: int) -> None:
        """Take note that so many packed rows, none of which was here, have been written."""
        self._count += count
        self._store.rows += count


def _portion(
    database: Rdict, prefix: bytes, place: bytes
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    """Return some rows of a prefix from `place` on, and where to go on, if there is more."""
    found: list[tuple[bytes, bytes]] = []
    rows = database.iter()
    rows.seek(place)
    while rows.valid():
        key = rows.key()
        if not key.startswith(prefix):
            return found, None
        if len(found) == READ_ROWS:
            return found, key
        found.append((key, rows.value()))
        rows.next()
    rows.status()  # an error ends an iterator, too
    return found, None


def _after(prefix: bytes) -> bytes:
    return (int.from_bytes(prefix, "big") + 1).to_bytes(PREFIX_BYTES, "big")


def _options(buffer: int) -> Options:
    tables = BlockBasedOptions()
    tables.set_block_cache(Cache(buffer))
    tables.set_bloom_filter(10, block_based=False)
    options = Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - rocksdict takes no names
    options.set_block_based_table_factory(tables)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(buffer)
    options.set_target_file_size_base(max(buffer, 4 * MEBIBYTE))
    options.set_max_bytes_for_level_base(max(4 * buffer, 16 * MEBIBYTE))
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(0.1)
    options.set_keep_log_file_num(1)
    options.set_stats_dump_period_sec(0)
    return options


def _unlogged() -> WriteOptions:
    options = WriteOptions()
    setattr(options, "disable_wal", True)  # noqa: B010 - its stub has a method of that name
    return options
