"""Files with one JSON value per line."""

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from floodway.connectors.base import (
    Delivery,
    EpochWriter,
    Format,
    Raw,
    Row,
    SinkConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.connectors.formats import MAX_BYTES, Json
from floodway.connectors.line_epochs import LineEpochs
from floodway.connectors.lines import LineCutter, row_encoder
from floodway.connectors.parts import FULL, PartFiles, new_run
from floodway.connectors.paths import FileItems, FilesSource, open_line
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema


@dataclass(frozen=True)
class JsonLinesSource(FilesSource):
    r"""Reads files of JSON, one value per line.

    Files whose names end in ``.gz`` are unpacked while they are read. A last line without a line
    end counts as a line. Can go on from any line: replayable.

    Parameters
    ----------
    path
        A file, a folder or a glob. Several tasks share the files, not the lines of one file.
    watch
        Whether to follow a folder and never end. Files have to be complete when they appear: write
        them under a name that starts with ``.`` or ``_`` or ends in ``.tmp``, then rename them.
    pattern
        Which files of a folder to read.
    max_bytes
        The longest line that is accepted.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "numbers.jsonl"
    ...     _ = file.write_text('{"n": 1}\n{"n": 2}')
    ...     reader = JsonLinesSource(file).open(Split())
    ...     reader.poll(10), reader.poll(10), reader.poll(10)
    (b'{"n": 1}\n', b'{"n": 2}\n', None)
    """

    _: KW_ONLY
    pattern: str = "*.jsonl"
    max_bytes: int = MAX_BYTES

    @property
    def format(self) -> Format:
        """JSON."""
        return Json()

    def open_file(self, file: str, place: Any) -> FileItems:
        """Open one file, at an offset or at its beginning."""
        return _Lines(file, place or 0, self.max_bytes)


class _Lines(FileItems):
    """Reads one file in large pieces; its place is the offset of the next line."""

    def __init__(self, file: str, offset: int, max_bytes: int) -> None:
        self._file, self._offset, inside = open_line(file, offset)
        self._cutter = LineCutter(file, max_bytes, inside=inside)

    def read(self, limit: int) -> Raw | None:
        while chunk := self._file.read(self._cutter.want(limit)):
            self._offset += len(chunk)
            if block := self._cutter.feed(chunk):
                return block
        return self._cutter.rest() or None

    def place(self) -> Any:
        return self._offset - self._cutter.held

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class JsonLinesSink(SinkConnector):
    r"""Writes JSON, one value per line.

    A task writes to the file ``part-<number>.jsonl`` of a folder, or, if the path itself ends in
    ``.jsonl``, there is one task and one file. Rows are with the operating system as soon as they
    are written.

    Exactly once when tasks are lost and replaced: the successor cuts off what came after the last
    committed epoch, and writes it again.

    With a checkpoint, exactly once, whatever fails: the rows of an epoch are written when it is
    committed, each epoch to its own place in the file, and are on the disk when the epoch is over.

    Parameters
    ----------
    path
        A folder, which is made if it is missing, or a file that ends in ``.jsonl``.
    overwrite
        Whether results of an earlier run may be replaced. Otherwise they are an error.
    envelope
        Whether to write ``{"timestamp": ..., "key": ..., "value": ..., "id": ...}`` instead of the
        value alone. A stream with updates needs it: a value of null takes back what was written
        under the same id.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = JsonLinesSink(folder).open(Split(), Schema.of(int))
    ...     writer.write([(1, None, 10, None), (2, None, 20, None)])
    ...     writer.close()
    ...     (Path(folder) / "part-0.jsonl").read_text()
    '10\n20\n'
    """

    delivery: ClassVar[Delivery] = "exactly once"
    eager: ClassVar[Delivery] = "exactly once"
    undoes: ClassVar[bool] = True

    path: str | Path
    _: KW_ONLY
    overwrite: bool = False
    envelope: bool = False
    most: int | None = field(init=False, compare=False, repr=False)
    run: str = field(default_factory=new_run, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        single = os.fspath(self.path).endswith(".jsonl")
        object.__setattr__(self, "most", 1 if single else None)

    def check(self) -> None:
        """Refuse a path that cannot be written to, and results of an earlier run."""
        self._files(self.run).check()

    def check_resumed(self, token: Any) -> None:
        """Refuse a path that cannot be written to; results are the flow's own."""
        self._files(self.run).check_folder()

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer of one file."""
        return LinesWriter(
            io.FileIO(self._files(self.run).claim(split), "r+"), self._encode(schema)
        )

    def open_eager(self, split: Split, schema: Schema, *, name: str, position: Any) -> Writer:
        """Return a writer of one file, which cuts off what is behind the position."""
        if position is None:
            return self.open(split, schema)
        file = self._files(self.run).resume(split, expected=bool(position))
        return LinesWriter(io.FileIO(file, "r+"), self._encode(schema), end=position)

    def open_epochs(self, split: Split, schema: Schema, *, name: str, token: Any) -> EpochWriter:
        """Return a writer of one file, which cuts off what is behind the token's place."""
        encode = self._encode(schema)
        if token is None:
            file = self._files(self.run).claim(split, fresh=True)
            return LineEpochs(file, encode, run=self.run, end=0)
        run, end = token["run"], token["end"]
        file = self._files(run).resume(split, expected=bool(end))
        return LineEpochs(file, encode, run=run, end=end)

    def reassign(self, tokens: Sequence[Any], of: int) -> list[Any]:
        """Let further tasks go on behind what is in their files, if they had some before."""
        known = [{**token, "end": None} for token in tokens if token is not None]
        further = known[0] if known else None
        return [*tokens[:of], *([further] * (of - len(tokens)))]

    def _encode(self, schema: Schema) -> Callable[[Sequence[Row]], bytes]:
        return row_encoder(Json(), schema, envelope=self.envelope, sink="JsonLinesSink")

    def _files(self, run: str) -> PartFiles:
        path, single = os.fspath(self.path), self.most == 1
        return PartFiles(path, ".jsonl", run, overwrite=self.overwrite, single=single)


class LinesWriter(Writer):
    """Appends to one file; each write is whole lines or nothing.

    Parameters
    ----------
    file
        The file, open for reading and writing; the writer closes it.
    encode
        The function from rows to lines.
    end
        Where to go on; what is behind is cut off. By default, behind the last whole line.
    """

    def __init__(
        self,
        file: io.FileIO,
        encode: Callable[[Sequence[Row]], bytes],
        *,
        end: int | None = None,
    ) -> None:
        self._file = file
        self._encode = encode
        there = _end_of_lines(file.fileno())
        self._size = there if end is None else end
        if there < self._size:
            file.close()
            raise ConnectorError(
                f"{file.name} has only {there:,} of {self._size:,} bytes that the flow wrote to it",
                remedy="leave files alone that a flow writes to, and start it anew",
            )
        self._file.truncate(self._size)
        self._file.seek(self._size)

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows as lines."""
        left = memoryview(self._encode(rows))
        whole = len(left)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._file.truncate(self._size)
            self._file.seek(self._size)
            raise self._failed(error) from error
        self._size += whole

    def position(self) -> int:
        """Return the end of the file."""
        return self._size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _failed(self, error: OSError) -> Exception:
        if error.errno in FULL:
            return Unavailable(f"{self._file.name} cannot grow: {error.strerror}")
        return ConnectorError(
            f"{self._file.name} cannot be written: {error}", remedy="check the disk it is on"
        )


def _end_of_lines(descriptor: int) -> int:
    """Return the offset behind the last whole line; a task that died may have left half a one."""
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - 65_536)
        cut = os.pread(descriptor, end - start, start).rfind(b"\n")
        if cut >= 0:
            return start + cut + 1
        end = start
    return 0
