"""From when an event was due to its result: a sink that writes down the one and the other.

A result is as old as the latest event in it. Engines can measure from the entry of a record, but
not how long it stood at the door.
"""

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from floodway.connectors.base import Row, SinkConnector, Split, Writer
from floodway.core.schema import Schema

_SIZE = 16  # two numbers of eight bytes


class Timed(NamedTuple):
    """When an event was due, in milliseconds since 1970, and how many milliseconds it took."""

    due_ms: int
    took_ms: float


@dataclass(frozen=True)
class TimingSink(SinkConnector):
    """Takes results, and writes into files when their events were due, and when they came.

    Of results that come together and whose events were due in the same millisecond one is enough.

    Parameters
    ----------
    folder
        Where the files go, one for each task.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = TimingSink(folder).open(Split(), Schema.of(int))
    ...     writer.write([(5, "hats", 1, None), (6, "shoes", 1, None), (6, "coats", 2, None)])
    ...     writer.close()
    ...     [timed.due_ms for timed in Timings(folder).new()]
    [5, 6]
    """

    folder: str

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer with a file of its own."""
        return _TimingWriter(Path(self.folder) / f"times-{split.index}")


class _TimingWriter(Writer):
    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, rows: Sequence[Row]) -> None:
        now_us = time.time_ns() // 1000
        times = sorted({row[0] for row in rows})
        self._file.write(
            array("q", [each for due_ms in times for each in (due_ms, now_us)]).tobytes()
        )

    def close(self) -> None:
        self._file.close()


class Timings:
    """Reads what the tasks of a `TimingSink`, or of a benchmark, write, while they do."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._read: dict[Path, int] = {}

    def new(self) -> list[Timed]:
        """Return what has come since this was last asked."""
        found: list[Timed] = []
        for path in sorted(self._folder.glob("times-*")):
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
