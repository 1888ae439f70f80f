"""Sources that always have more to give, and are slow: nothing but the engine makes them pause.

Whoever takes one of them for idle has not asked it, or has not listened: it was in a call, it was
stopped, it waited for a switch, a sink or a slower task, or it has just been started.
"""

from typing import Any

from floodway.connectors.base import Reader, Split
from floodway_lab.simulation.connectors import Position, SimulatedReader, SimulatedSource
from floodway_lab.simulation.outside import Outside

ROWS = 4
"""So many items are handed over at a time, at most."""

SHORT_US, LONG_US = (1_000, 30_000), (300_000, 900_000)
"""How long a call takes, at least and at most: most of them, and a few."""

LONG = 0.02
"""So likely a call takes long: longer than a source may be silent."""

EMPTY = 0.2
"""So likely the next items have not been fetched when they are asked for."""

FETCHED_US = 40_000
"""What has to be fetched is there after so long."""

FORGOTTEN_US = 300_000
"""Who does not ask for so long has lost the connection, and with it what was under way."""


class BacklogSource(SimulatedSource):
    """Has had all its items for long, and hands them over slowly."""

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of some shards."""
        inner = super().open(split, position)
        assert isinstance(inner, SimulatedReader)
        return BacklogReader(inner, Outside.find(self.outside))


class RemoteSource(SimulatedSource):
    """The same from afar: its items have to be fetched, and it has nothing until they are there."""

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of some shards."""
        inner = super().open(split, position)
        assert isinstance(inner, SimulatedReader)
        return RemoteReader(inner, Outside.find(self.outside))


class BacklogReader(Reader):
    """Takes its time whenever it is asked."""

    keyed = True
    idle_ms = SimulatedReader.idle_ms

    def __init__(self, inner: SimulatedReader, outside: Outside) -> None:
        self._inner, self._outside = inner, outside

    def poll(self, limit: int) -> list[Any] | None:
        """Return some items, after a while; None after the last one."""
        rows = self._inner.poll(min(limit, ROWS))
        random = self._outside.random
        least, most = LONG_US if random.random() < LONG else SHORT_US
        self._outside.spend(random.randint(least, most))
        return rows

    def position(self) -> Position:
        """Return the next item of every shard."""
        return self._inner.position()


class RemoteReader(BacklogReader):
    """Has nothing until something was fetched; who pauses for long has to fetch it again."""

    def __init__(self, inner: SimulatedReader, outside: Outside) -> None:
        super().__init__(inner, outside)
        self._asked_us = outside.clock()
        self._there_us: int | None = None

    def poll(self, limit: int) -> list[Any] | None:
        """Return what has been fetched, if anything has."""
        outside = self._outside
        outside.check_there(self._inner.name)
        fetched = self._fetched(outside.clock())
        rows = super().poll(limit) if fetched else []
        if fetched and outside.random.random() < EMPTY:
            self._there_us = None
        self._asked_us = outside.clock()
        return rows

    def _fetched(self, now: int) -> bool:
        if self._there_us is None or now - self._asked_us > FORGOTTEN_US:
            self._there_us = now + self._outside.random.randint(0, FETCHED_US)
        return now >= self._there_us
