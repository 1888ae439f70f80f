"""A scenario: a flow, what it reads, and what it has to show in the end.

What has to come out is computed by a plain fold over the input, in a few lines that know nothing of
the engine. Every record of the input has a number of its own, so nothing can be lost or doubled
without a trace.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.connectors.list_items import Emitted
from floodway.core.record import Record
from floodway.model.flow import Flow
from floodway_lab.simulation.backlog import BacklogSource, RemoteSource
from floodway_lab.simulation.connectors import (
    DirectSink,
    EagerSink,
    SimulatedSink,
    SimulatedSource,
    UndoingSink,
)
from floodway_lab.simulation.outside import SHARDS, Feed, Item, Outside
from floodway_lab.simulation.outside import Shown as Epoch
from floodway_lab.simulation.timeline import START_US

EVENT_TIME = 1_000_000
"""The event time of the first records, in milliseconds."""

DISORDER = 400
"""No record is further behind the latest before it than this, in milliseconds of event time."""


Shown = Mapping[str, Sequence[Emitted]]
"""What each sink has shown, epoch by epoch."""

Epochs = Mapping[str, Sequence[Epoch]]
"""The same, with its epochs, in their order; those of a writer for themselves."""


class Reading(Record):
    """A record of every scenario: its number, its key, and something that makes it larger."""

    n: int
    name: str
    pad: str = ""


class Connections:
    """Where a scenario's flow is connected to."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def source(self, name: str) -> SourceConnector:
        """Return the connector of a source."""
        return SimulatedSource(self._outside.number, name)

    def backlog(self, name: str, *, remote: bool) -> SourceConnector:
        """Return the connector of a source that takes its time, and always has more."""
        kind = RemoteSource if remote else BacklogSource
        return kind(self._outside.number, name)

    def sink(self, name: str) -> SinkConnector:
        """Return the connector of a sink."""
        kind = UndoingSink if self._outside.undoes else SimulatedSink
        return kind(self._outside.number, name)

    def eager_sink(self, name: str) -> SinkConnector:
        """Return the connector of a sink that takes rows as they come."""
        return EagerSink(self._outside.number, name)

    def direct_sink(self, name: str) -> SinkConnector:
        """Return the connector of a sink in Redis that shows rows as they come."""
        self._outside.redis.add(name)
        return DirectSink(self._outside.number, name)


class Scenario(ABC):
    """A flow, what it reads, and what it has to show.

    Attributes
    ----------
    name
        What people call it.
    retention_ms
        How late its records may be.
    idle_ms
        After which silences a source of it may be idle: only one that always has more survives a
        short one.
    """

    name: ClassVar[str]
    retention_ms: ClassVar[int] = DISORDER
    idle_ms: ClassVar[tuple[int, ...]] = (3_600_000,)

    @abstractmethod
    def feeds(self, random: Random) -> dict[str, Feed]:
        """Return what every source reads."""

    @abstractmethod
    def build(self, flow: Flow, world: Connections) -> None:
        """Put the operators into a flow; each time the same."""

    @abstractmethod
    def problem(self, feeds: Mapping[str, Feed], shown: Shown) -> str | None:
        """Return what is wrong with what the sinks have shown; None if nothing is."""

    def problem_between(self, epochs: Epochs) -> str | None:
        """Return what was wrong after some epoch, by the epochs that each sink has shown."""
        return None

    @abstractmethod
    def sinks(self) -> Sequence[str]:
        """Return the names of the sinks."""


# ---------------------------------------------------------------------- input


class Stream:
    """How the records of a source come: how many, in how many milliseconds, and how large."""

    def __init__(self, random: Random, *, most: int = 220, keys: int = 9) -> None:
        self.count = random.randint(50, most)
        self.millis = random.randint(500, 3_000)
        self.keys = random.randint(1, keys)
        self.pad = random.choice([0, 0, 0, 40, 1_500])
        self._random = random

    def readings(self, prefix: str = "k", *, ordered: bool = False) -> list[tuple[int, Reading]]:
        """Return records and their event times, in order of arrival."""
        random = self._random
        found = []
        for n in range(self.count):
            name = f"{prefix}{int(self.keys * random.random() ** 2)}"
            late = 0 if ordered else random.randint(0, DISORDER)
            time = EVENT_TIME + n * 10_000 // self.count - late
            found.append((time, Reading(n, name, "x" * random.randint(0, self.pad))))
        return found

    def feed(self, rows: Iterable[tuple[int, Any, Any]], *, delay_ms: int = 0) -> Feed:
        """Let rows (time, key, value) arrive one after another; those of a name in one shard."""
        rows = list(rows)
        shards: Feed = [[] for _ in range(SHARDS)]
        step = self.millis * 1000 / max(len(rows), 1)
        for number, (time, key, value) in enumerate(rows):
            arrival = START_US + delay_ms * 1000 + int(number * step)
            name = key if key is not None else value.name
            shards[shard_of(name)].append(Item(arrival, time, key, value))
        return shards


def shard_of(name: str) -> int:
    """Return the shard that has all records of a name."""
    return sum(name.encode()) % SHARDS


def items(feed: Feed) -> list[Item]:
    """Return what is in a feed, in order of arrival."""
    return sorted((item for shard in feed for item in shard), key=lambda item: item.arrival)


# ---------------------------------------------------------------------- output


def differing(expected: Iterable[Any], found: Iterable[Any], what: str) -> str | None:
    """Compare two bags; return what is missing and what is too much, or None."""
    left = sorted(map(repr, expected))
    right = sorted(map(repr, found))
    if left == right:
        return None
    lost, extra = list(left), []
    for row in right:
        if row in lost:
            lost.remove(row)
        else:
            extra.append(row)
    return (
        f"{what}: {len(lost)} of {len(left)} missing, {len(extra)} too many; "
        f"missing {lost[:3]}, too many {extra[:3]}"
    )


def out_of_order(
    expected: Mapping[Any, Sequence[Any]], found: Mapping[Any, Sequence[Any]], what: str
) -> str | None:
    """Compare sequences key by key; return the first difference, or None."""
    for key in sorted({*expected, *found}, key=repr):
        wanted, got = list(expected.get(key, ())), list(found.get(key, ()))
        if wanted != got:
            at = next(
                (i for i, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b), None
            )
            at = min(len(wanted), len(got)) if at is None else at
            return (
                f"{what} of {key}: number {at} of {len(wanted)} should be {wanted[at : at + 3]}, "
                f"and is {got[at : at + 3]} ({len(got)} in all)"
            )
    return None


def by_name(rows: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return values by name, in their order."""
    found: dict[Any, list[Any]] = {}
    for name, value in rows:
        found.setdefault(name, []).append(value)
    return found


def latest(rows: Iterable[Emitted]) -> list[Emitted]:
    """Return what holds in the end of a stream with updates."""
    facts = [row for row in rows if row.id is None]
    by_id = {repr(row.id): row for row in rows if row.id is not None}
    return facts + [row for row in by_id.values() if row.value is not None]
