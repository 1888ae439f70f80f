"""Parquet files."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from floodway.connectors.arrow import arrow_schema, columns_of
from floodway.connectors.base import (
    Delivery,
    EpochWriter,
    Format,
    Raw,
    Row,
    SinkConnector,
    Split,
    Unreadable,
    Writer,
)
from floodway.connectors.parquet_epochs import NamedByRun, ParquetEpochs
from floodway.connectors.parts import new_run
from floodway.connectors.paths import FileItems, FilesSource
from floodway.core.bounds import bounded, checked
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.core.types import StructType

_BATCH_ROWS = 4096  # decoded at a time; bounds memory whatever the size of a row group


@dataclass(frozen=True)
class ParquetSource(FilesSource):
    """Reads Parquet files.

    Columns are found by their names. Memory is bounded by what one row group needs, and a few
    thousand rows. Can go on from any row: replayable.

    Parameters
    ----------
    path
        A file, a folder or a glob. Several tasks share the files, not the rows of one file.
    columns
        Which columns to read; all if not given.
    watch
        Whether to follow a folder and never end; see `JsonLinesSource`.
    pattern
        Which files of a folder to read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "numbers.parquet"
    ...     pq.write_table(pa.table({"n": [1, 2]}), file)
    ...     reader = ParquetSource(file).open(Split())
    ...     reader.poll(10), reader.poll(10)
    ([{'n': 1}, {'n': 2}], None)
    """

    _: KW_ONLY
    columns: Sequence[str] | None = None
    pattern: str = "*.parquet"

    @property
    def format(self) -> Format:
        """Columns to values."""
        return Columns()

    def open_file(self, file: str, place: Any) -> FileItems:
        """Open one file, at a row or at its beginning."""
        return _Rows(file, self.columns, place or 0)


@dataclass(frozen=True)
class Columns(Format):
    """Dictionaries of typed columns to values of a schema; what `ParquetSource` reads with."""

    def decoder(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the function from columns to a value."""
        python, column = bounded(schema.python), schema.column
        if schema.opaque:
            return _columns
        if isinstance(schema.type, StructType):
            return checked(lambda row: msgspec.convert(row, python), python)

        def decode(row: dict[str, Any]) -> Any:
            if column not in row:
                raise ValueError(f"there is no column {column!r}, only {', '.join(row)}")
            return msgspec.convert(row[column], python)

        return checked(decode, python)


def _columns(row: Any) -> dict[str, Any]:
    if type(row) is not dict:
        raise TypeError(f"{row!r} are no columns")
    return row


class _Rows(FileItems):
    """Reads one file in batches; its place is the number of the next row."""

    def __init__(self, file: str, columns: Sequence[str] | None, row: int) -> None:
        self._name = file
        self._row = row
        try:
            self._file = pq.ParquetFile(file, pre_buffer=False)
        except pa.ArrowException as error:
            raise self._bad(error) from error
        try:
            self._columns = self._known(columns)
            self._batches = self._from_row(row)
            self._batch: Any = None
        except BaseException:
            self._file.close()
            raise

    def read(self, limit: int) -> Raw | None:
        try:
            while self._batch is None or not self._batch.num_rows:
                self._batch = next(self._batches, None)
                if self._batch is None:
                    return None
        except (pa.ArrowException, ValueError) as error:
            raise self._bad(error) from error
        taken = self._batch.slice(0, limit)
        try:
            rows: list[Any] = taken.to_pylist(maps_as_pydicts="strict")
        except (pa.ArrowException, ValueError, OverflowError):
            # One row has no Python form. Taken one by one, it is that row which fails, no other.
            rows = [self._one(taken, number) for number in range(taken.num_rows)]
        self._batch = self._batch.slice(len(rows))
        self._row += len(rows)
        return rows

    def _one(self, batch: Any, number: int) -> dict[str, Any] | Unreadable:
        try:
            (row,) = batch.slice(number, 1).to_pylist(maps_as_pydicts="strict")
        except (pa.ArrowException, ValueError, OverflowError) as error:
            row = self._row + number
            return Unreadable(
                {"file": self._name, "row": row},
                f"row {row} of {self._name} has a value that cannot be read: {error}",
                remedy="correct the file, or leave out the column with columns=",
            )
        return row  # type: ignore[no-any-return]

    def place(self) -> Any:
        return self._row

    def close(self) -> None:
        self._file.close()

    def _known(self, columns: Sequence[str] | None) -> list[str] | None:
        there = self._file.schema_arrow.names
        missing = [name for name in columns or () if name not in there]
        if missing:
            raise ConnectorError(
                f"{self._name} has no column {', '.join(map(repr, missing))}",
                remedy=f"use some of: {', '.join(there)}",
            )
        return None if columns is None else list(columns)

    def _from_row(self, row: int) -> Any:
        """Return an iterator of batches from a row on; row groups before it are not touched."""
        groups = self._file.metadata.num_row_groups
        first = 0
        while first < groups and row >= (rows := self._file.metadata.row_group(first).num_rows):
            row -= rows
            first += 1
        batches = self._file.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=list(range(first, groups)), columns=self._columns
        )
        return _skipping(batches, row)

    def _bad(self, error: Exception) -> ConnectorError:
        return ConnectorError(
            f"{self._name} cannot be read as Parquet: {error}",
            remedy="check that it is a Parquet file and whole, or narrow pattern=",
        )


def _skipping(batches: Any, rows: int) -> Any:
    for batch in batches:
        yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


@dataclass(frozen=True)
class ParquetSink(SinkConnector):
    """Writes Parquet files to a folder.

    A file is written under a hidden name and gets its own, ``part-<task>-<run>-<number>.parquet``,
    when it is complete: after `rows_per_file` rows and at the end. So readers only see whole files.

    In a flow that recovers, exactly once: each epoch that has rows is one file, which appears when
    the epoch is committed; its number is that of the epoch. A flow without results leaves no file.
    Without recovery, the rows of the file that is being written are lost if the task dies.

    Parameters
    ----------
    folder
        Where to write; it is created if it is missing.
    rows_per_group
        How many rows are kept in memory and written as one row group.
    rows_per_file
        After how many rows a file is complete, in a flow without recovery; otherwise the epoch
        decides.
    overwrite
        Whether results of an earlier run may be replaced. Otherwise they are an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = ParquetSink(folder).open(Split(), Schema.of(int))
    ...     writer.write([(1, None, 10, None), (2, None, 20, None)])
    ...     writer.close()
    ...     pq.read_table(folder).to_pylist()
    [{'value': 10}, {'value': 20}]
    """

    delivery: ClassVar[Delivery] = "exactly once"
    eager: ClassVar[Delivery] = "exactly once"
    undoes: ClassVar[bool] = True

    folder: str | Path
    _: KW_ONLY
    rows_per_group: int = 50_000
    rows_per_file: int = 1_000_000
    overwrite: bool = False
    run: str = field(default_factory=new_run, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.rows_per_group <= self.rows_per_file:
            raise OptionError(
                f"{self.rows_per_group} rows do not go into a file of {self.rows_per_file}",
                remedy="let 0 < rows_per_group <= rows_per_file",
            )

    def check(self) -> None:
        """Refuse a folder that cannot be written to, and results of an earlier run."""
        self._files(self.run).check()

    def check_resumed(self, token: Any) -> None:
        """Refuse a folder that cannot be written to; results are the flow's own."""
        self._files(self.run).check_folder()

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer of this task's files."""
        arrow = arrow_schema(schema)
        files = self._files(self.run)
        files.prepare(split)
        prefix = f"part-{split.index}-{self.run}"
        return _ParquetWriter(self, os.path.join(files.folder, prefix), schema, arrow)

    def open_eager(self, split: Split, schema: Schema, *, name: str, position: Any) -> Writer:
        """Return a writer of files per epoch: a file that is not finished dies with its task.

        Epochs are counted from one with every start, and files of a former one are to stay.
        """
        if position is not None:
            return self.open_epochs(split, schema, name=name, token=position)
        files, run = self._files(self.run), f"{self.run}{new_run()[:4]}"
        files.prepare(split)
        size = self.rows_per_group
        return ParquetEpochs(files, split, schema, run=run, epoch=None, rows_per_group=size)

    def open_epochs(self, split: Split, schema: Schema, *, name: str, token: Any) -> EpochWriter:
        """Return a writer of files per epoch, which removes those behind the token's epoch."""
        run, epoch = (self.run, None) if token is None else (token["run"], token["epoch"])
        files = self._files(run)
        if token is None:
            files.prepare(split, fresh=True)
        else:
            files.make_folder()
        size = self.rows_per_group
        return ParquetEpochs(files, split, schema, run=run, epoch=epoch, rows_per_group=size)

    def reassign(self, tokens: Sequence[Any], of: int) -> list[Any]:
        """Let further tasks go on with the same run."""
        known = [token for token in tokens if token is not None]
        further = max(known, key=lambda token: token["epoch"], default=None)
        return [*tokens[:of], *([further] * (of - len(tokens)))]

    def _files(self, run: str) -> NamedByRun:
        folder = os.fspath(self.folder)
        return NamedByRun(folder, ".parquet", run, overwrite=self.overwrite)


class _ParquetWriter(Writer):
    """Collects rows to row groups, and row groups to files."""

    def __init__(self, sink: ParquetSink, prefix: str, schema: Schema, arrow: pa.Schema) -> None:
        self._sink = sink
        self._prefix = prefix
        self._arrow = arrow
        self._columns = columns_of(schema, "ParquetSink")
        self._rows: list[dict[str, Any]] = []
        self._in_file = 0
        self._opened: tuple[pq.ParquetWriter, str, str] | None = None
        self._closed = False

    def write(self, rows: Sequence[Row]) -> None:
        self._rows += self._columns(rows)
        while len(self._rows) >= self._sink.rows_per_group:
            self._write_group()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._rows or self._opened is None:
            self._write_group()
        self._complete()

    def _write_group(self) -> None:
        group = self._rows[: self._sink.rows_per_group]
        try:
            batch = pa.RecordBatch.from_pylist(group, schema=self._arrow)
            self._file().write_batch(batch)
        except (pa.ArrowException, OSError) as error:
            self._abandon()
            raise self._failed(error) from error
        del self._rows[: len(group)]
        self._in_file += len(group)
        if self._in_file + self._sink.rows_per_group > self._sink.rows_per_file:
            self._complete()

    def _file(self) -> pq.ParquetWriter:
        if self._opened is None:
            names = (f"{self._prefix}-{number}.parquet" for number in count())
            name = next(name for name in names if not os.path.exists(name))
            hidden = os.path.join(os.path.dirname(name), f".{os.path.basename(name)}.tmp")
            self._opened = pq.ParquetWriter(hidden, self._arrow), hidden, name
        return self._opened[0]

    def _complete(self) -> None:
        if self._opened is None:
            return
        (writer, hidden, name), self._opened, self._in_file = self._opened, None, 0
        try:
            writer.close()
            os.replace(hidden, name)
        except OSError as error:
            with contextlib.suppress(FileNotFoundError):
                os.remove(hidden)
            raise self._failed(error) from error

    def _abandon(self) -> None:
        """Leave nothing behind that could be taken for a whole file."""
        self._closed = True
        if self._opened is not None:
            writer, hidden, _ = self._opened
            self._opened = None
            with contextlib.suppress(pa.ArrowException, OSError):
                writer.close()
            os.remove(hidden)

    def _failed(self, error: Exception) -> ConnectorError:
        return ConnectorError(
            f"{self._prefix} cannot be written: {error}",
            remedy="check the disk, and that the values are of the schema",
        )
