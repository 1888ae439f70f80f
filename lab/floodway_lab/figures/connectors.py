"""Sources and sinks that cost next to nothing, so that what lies between them is measured."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from floodway.connectors.base import (
    Exact,
    Format,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Writer,
)
from floodway.core.files import write_whole
from floodway.core.schema import Schema


@dataclass(frozen=True)
class Repeated(SourceConnector):
    """Gives the same values over and over, `count` of them in all."""

    values: tuple[Any, ...]
    count: int

    @property
    def format(self) -> Format:
        """The values are what they are."""
        return Exact()

    @property
    def bounded(self) -> bool:
        """It has a count."""
        return True

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader."""
        return _RepeatedReader(list(self.values), self.count)


class _RepeatedReader(Reader):
    def __init__(self, values: list[Any], count: int) -> None:
        self._values = values
        self._left = count

    def poll(self, limit: int) -> list[Any] | None:
        if not self._left:
            return None
        size = min(self._left, len(self._values))
        self._left -= size
        return self._values if size == len(self._values) else self._values[:size]


@dataclass(frozen=True)
class Paced(SourceConnector):
    """Gives the microsecond at which each value was due, `per_second` of them in every second."""

    per_second: float
    seconds: float

    @property
    def format(self) -> Format:
        """The values are what they are."""
        return Exact()

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader."""
        return _PacedReader(self.per_second, self.seconds)


class _PacedReader(Reader):
    idle_ms = 0.5

    def __init__(self, per_second: float, seconds: float) -> None:
        self._step = 1e6 / per_second
        self._start = time.time_ns() // 1000
        self._given = 0
        self._count = int(per_second * seconds)

    def poll(self, limit: int) -> list[int] | None:
        if self._given >= self._count:
            return None
        due = int((time.time_ns() // 1000 - self._start) / self._step) + 1  # the first at once
        last = min(due, self._given + limit, self._count)
        values = [self._start + int(i * self._step) for i in range(self._given, last)]
        self._given = max(last, self._given)
        return values


@dataclass(frozen=True)
class Counted(SinkConnector):
    """Counts what it is sent, and writes how many, from when to when, to a folder at the end."""

    folder: str

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer."""
        return _CountedWriter(Path(self.folder) / f"{split.index}.json")


class _CountedWriter(Writer):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0
        self._first = self._last = 0.0

    def write(self, rows: Sequence[Row]) -> None:
        now = time.monotonic()
        self._first = self._first or now
        self._last = now
        self._count += len(rows)

    def close(self) -> None:
        _write(self._path, {"count": self._count, "first": self._first, "last": self._last})


@dataclass(frozen=True)
class Delays(SinkConnector):
    """Takes values of `Paced` and keeps how long after its time each came, but for the first."""

    folder: str
    warm_up_s: float = 1.0

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer."""
        return _DelaysWriter(Path(self.folder) / f"{split.index}.json", self.warm_up_s)


class _DelaysWriter(Writer):
    def __init__(self, path: Path, warm_up_s: float) -> None:
        self._path = path
        self._histogram = HdrHistogram(1, 60_000_000, 3)
        self._warm_us = int(warm_up_s * 1e6)
        self._from = 0

    def write(self, rows: Sequence[Row]) -> None:
        now = time.time_ns() // 1000
        self._from = self._from or rows[0][2] + self._warm_us
        for row in rows:
            if row[2] >= self._from:
                self._histogram.record_value(max(now - row[2], 1))

    def close(self) -> None:
        value = self._histogram.get_value_at_percentile
        _write(
            self._path,
            {
                "count": self._histogram.get_total_count(),
                "p50_ms": value(50) / 1000,
                "p90_ms": value(90) / 1000,
                "p99_ms": value(99) / 1000,
                "p999_ms": value(99.9) / 1000,
                "max_ms": self._histogram.get_max_value() / 1000,
            },
        )


@dataclass(frozen=True)
class Slow(SinkConnector):
    """Takes at most so many records a second, and counts them."""

    folder: str
    per_second: float

    def open(self, split: Split, schema: Schema) -> Writer:
        """Return a writer."""
        return _SlowWriter(Path(self.folder) / f"{split.index}.json", self.per_second)


class _SlowWriter(_CountedWriter):
    def __init__(self, path: Path, per_second: float) -> None:
        super().__init__(path)
        self._per_second = per_second
        self._free_at = time.monotonic()

    def write(self, rows: Sequence[Row]) -> None:
        super().write(rows)
        self._free_at = max(self._free_at, time.monotonic()) + len(rows) / self._per_second
        time.sleep(max(self._free_at - time.monotonic(), 0))


def _write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(document).encode())


def results(folder: Path) -> list[dict[str, Any]]:
    """Return what the writers of a folder wrote at their end."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
