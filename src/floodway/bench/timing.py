"""From when a probe was due to its result: a sink that writes down the one and the other.

Engines can measure from the entry of a record, but not how long it stood at the door.
"""

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from floodway.connectors.base import Row, SinkConnector, Split, Writer
from floodway.core.schema import Schema

PROBE = "probe-"
"""How the keys begin whose results are timed."""

_SIZE = 16  # two numbers of eight bytes


class Timed(NamedTuple):
    """When an event was due, in milliseconds since 1970, and how many milliseconds it took."""

    due_ms: int
    took_ms: float


@dataclass(frozen=True)
class TimingSink(SinkConnector):
    """Takes everything, and writes into a file of its own when each probe was due and came.

    Parameters
    ----------
    folder
        Where the files go, one for each task.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = TimingSink(folder).open(Split(), Schema.of(int))
    ...     writer.write([(5, "probe-0001", 1, None), (6, "shoes", 1, None)])
    ...     writer.close()
    ...     [timed.due_ms for timed in Timings(folder).new()]
    [5]
    """

    folder: str

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer with a file of its own."""
        return _TimingWriter(Path(self.folder) / f"timings-{split.index}")


class _TimingWriter(Writer):
    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, rows: Sequence[Row]) -> None:
        now_us = time.time_ns() // 1000
        found = array("q")
        for timestamp, key, _, _ in rows:
            if key.startswith(PROBE):
                found.append(timestamp)
                found.append(now_us)
        if found:
            self._file.write(found.tobytes())

    def close(self) -> None:
        self._file.close()


class Timings:
    """Reads what the tasks of a `TimingSink` write, while they do."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._read: dict[Path, int] = {}

    def new(self) -> list[Timed]:
        """Return what has come since this was last asked."""
        found: list[Timed] = []
        for path in sorted(self._folder.glob("timings-*")):
            start = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(start)
                data = file.read()
            whole = len(data) - len(data) % _SIZE  # what is half written comes next time
            self._read[path] = start + whole
            numbers = array("q", data[:whole])
            found += [
                Timed(due_ms, now_us / 1000 - due_ms)
                for due_ms, now_us in zip(numbers[::2], numbers[1::2], strict=True)
            ]
        return found
