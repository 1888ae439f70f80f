"""Files to read: a file, a folder or a glob, shared among tasks, once or as they appear.

What all file sources have in common is here: which files there are, whose they are, which are read
already. How one file is read is the business of a `FileItems`.
"""

import glob
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from floodway.connectors.base import Raw, Reader, SourceConnector, Split
from floodway.core.errors import ConnectorError

_Task = tuple[str, Any]
"""A file to read, and where to begin in it; None is the beginning."""

BOM = b"\xef\xbb\xbf"
"""The mark that some editors write at the beginning of a file in UTF-8."""

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

    replayable: ClassVar[bool] = True
    most = None

    path: str | Path
    _: KW_ONLY
    watch: bool = False
    pattern: str = "*"

    @property
    def bounded(self) -> bool:
        """Files that are there have an end; a folder that is followed has none."""
        return not self.watch

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
        return FilesReader(files, self.open_file, resumed=bool(position and position["open"]))

    def reassign(self, positions: Sequence[Any], of: int) -> list[Any]:
        """Put together what all tasks have done; each new one finds its share of the rest."""
        given = [position for position in positions if position is not None]
        if len(positions) == of or not given:
            return super().reassign(positions, of)
        merged = (_Watched if self.watch else _Listed).merged(given)
        return [merged] * of

    def open_file(self, file: str, place: Any) -> FileItems:
        """Open one file, at a place or at its beginning."""
        raise TypeError(f"{type(self).__name__} does not read")  # pragma: no cover


class FilesReader(Reader):
    """Reads files one after the other."""

    def __init__(
        self,
        files: "_Listed | _Watched",
        open_file: Callable[[str, Any], FileItems],
        *,
        resumed: bool = False,
    ) -> None:
        self._files = files
        self._open_file = open_file
        self._items: FileItems | None = None
        self._file: str | None = None
        self._closed = False
        self.idle_ms = _WATCH_IDLE_MS if isinstance(files, _Watched) else 1.0
        if resumed:  # a file that was begun and is gone should be missed at once
            self._start()

    def poll(self, limit: int) -> Raw | None:
        """Return items of the current file, or of the next one."""
        while not self._closed:
            if self._items is None and not self._start():
                return None if self._files.bounded else []
            raw = self._read(limit)
            if raw is not None:
                return raw
            self._finish()
        return None

    def position(self) -> Any:
        """Return which files are done, and the places in those that are begun."""
        if self._items is None or self._file is None:
            return self._files.position(None)
        return self._files.position((self._file, self._items.place()))

    def close(self) -> None:
        """Close the current file."""
        self._closed = True
        if self._items is not None:
            self._items.close()
            self._items = None

    def _start(self) -> bool:
        """Open the next file; return whether there is one."""
        task = self._files.next()
        if task is None:
            return False
        file, place = task
        with reading(file):
            self._items = self._open_file(file, place)
        self._file = file
        return True

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
    """The files that are there now: each task has every n-th of them, in order of their names.

    Files go by their numbers in the list, so that a position stays small. What is done is a few
    ranges of numbers: what this task has done, and what tasks had done before their number was
    changed.
    """

    bounded = True

    def __init__(self, path: str, pattern: str, split: Split, position: Any) -> None:
        self._files = list_files(path, pattern)
        self._checksum = zlib.crc32("\0".join(self._files).encode())
        if position and position["checksum"] != self._checksum:
            raise ConnectorError(
                f"the files of {path} have changed, so reading cannot go on where it was",
                remedy="put back the files, start from the beginning, or use watch=True for a "
                "folder that changes",
            )
        self._first, self._step = split.index, split.of
        ranges = {(first, step): stop for first, stop, step in position["done"]} if position else {}
        self._at = ranges.pop((self._first, self._step), self._first)
        self._done = [range(first, stop, step) for (first, step), stop in ranges.items()]
        places = position["open"] if position else []
        self._places = {at: place for at, place in places if at % split.of == split.index}

    def next(self) -> _Task | None:
        while any(self._at in done for done in self._done):
            self._at += self._step
        if self._at >= len(self._files):
            return None
        return self._files[self._at], self._places.get(self._at)

    def done(self, file: str) -> None:
        self._at += self._step

    def position(self, begun: _Task | None) -> dict[str, Any]:
        """Return what is done; `begun` is the file that `next` gave last, if it is not done."""
        ranges = [*self._done, range(self._first, self._at, self._step)]
        places = {number: place for number, place in self._places.items() if number >= self._at}
        if begun is not None:
            places[self._at] = begun[1]
        return {
            "checksum": self._checksum,
            "done": [[done.start, done.stop, done.step] for done in ranges if done],
            "open": [list(item) for item in places.items()],
        }

    @staticmethod
    def merged(positions: Sequence[Any]) -> dict[str, Any]:
        """Return what several tasks have done together."""
        if len({position["checksum"] for position in positions}) > 1:
            raise ConnectorError(
                "the files changed while tasks began to read them, so they cannot be dealt anew",
                remedy="keep the number of tasks, or use watch=True for a folder that changes",
            )
        ranges: dict[tuple[int, int], int] = {}
        places: dict[int, Any] = {}
        for position in positions:
            for first, stop, step in position["done"]:
                ranges[first, step] = max(stop, ranges.get((first, step), first))
            places.update(position["open"])
        return {
            "checksum": positions[0]["checksum"],
            "done": [[first, stop, step] for (first, step), stop in sorted(ranges.items())],
            "open": [list(item) for item in sorted(places.items())],
        }


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
        done, places = (position["done"], position["open"]) if position else ([], {})
        self._done = set(filter(self._mine, done))
        self._places = {file: place for file, place in places.items() if self._mine(file)}
        self._queue = deque(sorted(self._places))

    def next(self) -> _Task | None:
        if not self._queue:
            self._look()
        if not self._queue:
            return None
        file = self._queue.popleft()
        return file, self._places.get(file)

    def done(self, file: str) -> None:
        self._done.add(file)
        self._places.pop(file, None)

    def position(self, begun: _Task | None) -> dict[str, Any]:
        places = dict([*self._places.items(), *([begun] if begun else [])])
        return {"done": sorted(self._done), "open": places}

    @staticmethod
    def merged(positions: Sequence[Any]) -> dict[str, Any]:
        """Return what several tasks have done together."""
        done = {file for position in positions for file in position["done"]}
        places = {file: place for position in positions for file, place in position["open"].items()}
        return {"done": sorted(done), "open": places}

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


def open_bytes(file: str) -> BinaryIO:
    """Open a file; one that ends in ``.gz`` is unpacked while it is read."""
    if file.endswith(".gz"):
        import gzip

        return gzip.GzipFile(file, "rb")  # type: ignore[return-value]
    return open(file, "rb")


def open_line(file: str, offset: int) -> tuple[BinaryIO, int, bool]:
    """Open a file of lines at an offset, or behind the mark that some editors begin it with.

    Returns the file, the offset at which it is, and whether that is inside a line. Then the line
    was too long when it was read last, and the rest of it is not a line.
    """
    opened = open_bytes(file)
    try:
        first = len(BOM) if opened.read(len(BOM)) == BOM else 0
        if offset <= first:
            seek(opened, file, first)
            return opened, first, False
        seek(opened, file, offset - 1)
        inside = opened.read(1) != b"\n"
        seek(opened, file, offset)
    except BaseException:
        opened.close()
        raise
    return opened, offset, inside


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
