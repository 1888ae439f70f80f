"""Files to read: a file, a folder or a glob, shared among tasks, once or as they appear.

What all file sources have in common is here: which files there are, whose they are, which are read
already. How one file is read is the business of a `FileItems`.
"""

import glob
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from floodway.connectors.base import Raw, Reader, SourceConnector, Split
from floodway.core.errors import ConnectorError

_WATCH_IDLE_MS = 50.0  # how soon a new file is seen; each look lists the folder


class FileItems:
    """One open file: gives raw items and says where it is."""

    def read(self, limit: int) -> Raw | None:
        """Return about `limit` items, or None at the end."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover

    def place(self) -> Any:
        """Return where in the file the next item is, as plain data."""
        raise TypeError(f"{type(self).__name__} has no place")  # pragma: no cover

    def close(self) -> None:
        """Close the file."""


@dataclass(frozen=True)
class FilesSource(SourceConnector):
    """The base of sources that read files.

    Parameters
    ----------
    path
        A file, a folder or a glob such as ``"in/2026-*.jsonl"``.
    watch
        Whether to follow a folder: read files as they appear, oldest first, and never end.
    pattern
        Which files of a folder to read.
    """

    most = None

    path: str | Path
    _: KW_ONLY
    watch: bool = False
    pattern: str = "*"

    def check(self) -> None:
        """Refuse a path where there is nothing to read."""
        if self.watch:
            _check_watched(os.fspath(self.path))
        else:
            list_files(os.fspath(self.path), self.pattern)

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of this task's share of the files."""
        path = os.fspath(self.path)
        files: _Listed | _Watched
        if self.watch:
            files = _Watched(path, self.pattern, split, position)
        else:
            files = _Listed(path, self.pattern, split, position)
        return FilesReader(files, self.open_file, position)

    def open_file(self, file: str, place: Any) -> FileItems:
        """Open one file, at a place or at its beginning."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover


class FilesReader(Reader):
    """Reads files one after the other."""

    def __init__(
        self,
        files: "_Listed | _Watched",
        open_file: Callable[[str, Any], FileItems],
        position: Any = None,
    ) -> None:
        self._files = files
        self._open_file = open_file
        self._items: FileItems | None = None
        self._file: str | None = None
        self._closed = False
        self.idle_ms = _WATCH_IDLE_MS if isinstance(files, _Watched) else 1.0
        if position and position["file"] is not None:
            self._start(position["file"], position["place"])

    def poll(self, limit: int) -> Raw | None:
        """Return items of the current file, or of the next one."""
        while not self._closed:
            if self._items is None:
                file = self._files.next()
                if file is None:
                    return None if self._files.bounded else []
                self._start(file, None)
            raw = self._read(limit)
            if raw is not None:
                return raw
            self._finish()
        return None

    def position(self) -> Any:
        """Return the current file, the place in it, and which files are done."""
        place = self._items.place() if self._items else None
        return {"file": self._file, "place": place, **self._files.position()}

    def close(self) -> None:
        """Close the current file."""
        self._closed = True
        if self._items is not None:
            self._items.close()
            self._items = None

    def _start(self, file: str, place: Any) -> None:
        with reading(file):
            self._items = self._open_file(file, place)
        self._file = file

    def _read(self, limit: int) -> Raw | None:
        if self._items is None or self._file is None:
            return None
        with reading(self._file):
            return self._items.read(limit)

    def _finish(self) -> None:
        if self._items is not None and self._file is not None:
            self._items.close()
            self._files.done(self._file)
        self._items = self._file = None


class _Listed:
    """The files that are there now: each task has every n-th of them, in order of their names."""

    bounded = True

    def __init__(self, path: str, pattern: str, split: Split, position: Any) -> None:
        files = list_files(path, pattern)
        self._checksum = zlib.crc32("\0".join(files).encode())
        if position and position["checksum"] != self._checksum:
            raise ConnectorError(
                f"the files of {path} have changed, so reading cannot go on where it was",
                remedy="put back the files, start from the beginning, or use watch=True for a "
                "folder that changes",
            )
        self._all = files[split.index :: split.of]
        self._next = position["next"] if position else 0

    def next(self) -> str | None:
        if self._next >= len(self._all):
            return None
        self._next += 1
        return self._all[self._next - 1]

    def done(self, file: str) -> None:
        """Nothing to note: the number of the next file says it."""

    def position(self) -> dict[str, Any]:
        return {"next": self._next, "checksum": self._checksum}


class _Watched:
    """The files that appear in a folder; a file's name says which task has it.

    What is done is remembered by name, as long as the file is there. Times would not do: a file
    that is renamed into the folder keeps an older one.
    """

    bounded = False

    def __init__(self, path: str, pattern: str, split: Split, position: Any) -> None:
        _check_watched(path)
        self._path = path
        self._pattern = pattern
        self._split = split
        self._done: set[str] = set(position["done"]) if position else set()
        self._queue: deque[str] = deque()

    def next(self) -> str | None:
        if not self._queue:
            self._look()
        return self._queue.popleft() if self._queue else None

    def done(self, file: str) -> None:
        self._done.add(file)

    def position(self) -> dict[str, Any]:
        return {"done": sorted(self._done)}

    def _look(self) -> None:
        there = [file for file in _matching(self._path, self._pattern) if self._mine(file)]
        self._done.intersection_update(there)
        aged = [(_modified(file), file) for file in there if file not in self._done]
        self._queue.extend(file for age, file in sorted(aged) if age >= 0)

    def _mine(self, file: str) -> bool:
        return zlib.crc32(os.path.basename(file).encode()) % self._split.of == self._split.index


def list_files(path: str, pattern: str) -> list[str]:
    """Return the files that a path stands for, in order of their names; there is at least one."""
    if os.path.isfile(path):
        return [path]
    files = _matching(path, pattern)
    if files:
        return files
    if os.path.isdir(path):
        raise ConnectorError(
            f"there is no file {pattern!r} in {path}",
            remedy="give pattern= the names of the files, or watch=True to wait for some",
        )
    raise ConnectorError(f"there is no file {path}", remedy="check the path, or write the file")


def complete(name: str) -> bool:
    """Return whether a file name is that of a complete file, not of one that is being written.

    >>> complete("clicks.jsonl"), complete("_clicks.jsonl"), complete("clicks.jsonl.tmp")
    (True, False, False)
    """
    return not name.startswith((".", "_")) and not name.endswith(".tmp")


def open_bytes(file: str, offset: int) -> BinaryIO:
    """Open a file at an offset; one that ends in ``.gz`` is unpacked while it is read."""
    opened: BinaryIO
    if file.endswith(".gz"):
        import gzip

        opened = gzip.GzipFile(file, "rb")  # type: ignore[assignment]
    else:
        opened = open(file, "rb")  # noqa: SIM115 (the caller closes it)
    if not offset:
        return opened
    try:
        seek(opened, file, offset)
    except BaseException:
        opened.close()
        raise
    return opened


def seek(opened: BinaryIO, file: str, offset: int) -> None:
    """Go to an offset that was in the file when it was read last."""
    if opened.seek(offset) < offset or (
        not file.endswith(".gz") and os.fstat(opened.fileno()).st_size < offset
    ):
        raise ConnectorError(
            f"{file} is shorter than it was when it was read last",
            remedy="do not change files that are being read; write new ones",
        )


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Make what goes wrong with a file an error that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectorError(
            f"{file} disappeared before it was read",
            remedy="remove or rename files only after they were read",
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise ConnectorError(
            f"{file} cannot be read: {error}", remedy="check its rights and that it is whole"
        ) from error


def _matching(path: str, pattern: str) -> list[str]:
    if os.path.isdir(path):
        path = os.path.join(glob.escape(path), pattern)
    found = glob.glob(path, include_hidden=False)
    return sorted(f for f in found if complete(os.path.basename(f)) and os.path.isfile(f))


def _modified(file: str) -> int:
    """Return when a file was changed, or -1 if it is gone: whoever removed it did not want it."""
    try:
        return os.stat(file).st_mtime_ns
    except FileNotFoundError:
        return -1


def _check_watched(path: str) -> None:
    if not os.path.isdir(path):
        raise ConnectorError(
            f"{path} is not a folder, so it cannot be watched",
            remedy="make the folder first, or leave out watch=True to read a file",
        )
