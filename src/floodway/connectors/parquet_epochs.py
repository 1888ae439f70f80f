"""Whole epochs as Parquet files, one file per epoch and task."""

import contextlib
import os
import re
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from floodway.connectors.arrow import arrow_schema, columns_of
from floodway.connectors.base import EpochWriter, Row, Split, Unavailable
from floodway.connectors.parts import FULL, RUN_CHARACTERS, PartFiles
from floodway.core.errors import ConnectorError
from floodway.core.folders import sync_folder
from floodway.core.schema import Schema

_NAME = re.compile(r"part-(\d+)-(\w+)-(\d+)\.parquet")
_HIDDEN = re.compile(r"\.part-(\d+)-(\w+)-(\d+)\.parquet\.\w+\.tmp")


class NamedByRun(PartFiles):
    """Files whose names say which run wrote them."""

    def owner(self, file: str) -> str | None:
        """Return the run that wrote a file; what follows its name tells starts of it apart."""
        match = _NAME.fullmatch(os.path.basename(file))
        return match[2][:RUN_CHARACTERS] if match else None


class ParquetEpochs(EpochWriter):
    """Writes an epoch as the file ``part-<task>-<run>-<epoch>.parquet``.

    It is written under a hidden name and gets its own when it is complete and on the disk; if it
    is there already, it is replaced by the same. An epoch without rows makes no file.

    Parameters
    ----------
    files
        The folder.
    split
        Which task it is.
    schema
        The schema of the values.
    run
        The name of the run to which the files belong; part of the token.
    epoch
        The last epoch of that run which counts; files of later ones are removed. None is none.
    rows_per_group
        How many rows make a row group.
    """

    def __init__(
        self,
        files: PartFiles,
        split: Split,
        schema: Schema,
        *,
        run: str,
        epoch: int | None,
        rows_per_group: int,
    ) -> None:
        self._folder = files.folder
        self._prefix = f"part-{split.index}-{run}"
        self._run = run
        self._arrow = arrow_schema(schema)
        self._columns = columns_of(schema, "ParquetSink")
        self._rows_per_group = rows_per_group
        _clean(files, split, run, epoch)

    def encode(self, rows: Sequence[Row]) -> bytes:
        """Return rows as a stream of Arrow."""
        try:
            batch = pa.RecordBatch.from_pylist(self._columns(rows), schema=self._arrow)
        except pa.ArrowException as error:
            raise ConnectorError(
                f"{self._folder} cannot be written: {error}",
                remedy="check that the values are of the schema",
            ) from error
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, self._arrow) as writer:
            writer.write_batch(batch)
        return stream.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def prepare(self, epoch: int) -> Any:
        """Return the number of the epoch."""
        return {"run": self._run, "epoch": epoch}

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        """Write the file of an epoch."""
        tables = [pa.ipc.open_stream(block).read_all() for block in blocks]
        if not any(table.num_rows for table in tables):
            return
        name = f"{self._prefix}-{epoch:012}.parquet"
        # Somebody who was given up for dead may be writing the same, so the name is nobody else's.
        hidden = os.path.join(self._folder, f".{name}.{uuid.uuid4().hex[:12]}.tmp")
        try:
            pq.write_table(pa.concat_tables(tables), hidden, row_group_size=self._rows_per_group)
            _sync(hidden)
            os.replace(hidden, os.path.join(self._folder, name))
            sync_folder(self._folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.remove(hidden)
            raise self._failed(name, error) from error

    def _failed(self, name: str, error: OSError) -> Exception:
        if error.errno in FULL:
            return Unavailable(f"{self._folder} has no room for {name}: {error.strerror}")
        return ConnectorError(
            f"{name} cannot be written to {self._folder}: {error}",
            remedy="check the disk and the rights of the folder",
        )


def _clean(files: PartFiles, split: Split, run: str, epoch: int | None) -> None:
    """Remove a task's files of later epochs, and what it never completed."""
    for name in os.listdir(files.folder):
        whole, hidden = _NAME.fullmatch(name), _HIDDEN.fullmatch(name)
        match = whole or hidden
        if match is None or match[2] != run or int(match[1]) != split.index:
            continue
        if hidden or epoch is None or int(match[3]) > epoch:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(files.folder, name))


def _sync(file: str) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
