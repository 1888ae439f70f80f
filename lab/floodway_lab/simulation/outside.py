"""What is outside of the flow: what its sources read, and what its sinks have shown.

It outlives every process. The plan has only the number of an `Outside`; the connectors find it by
that number, as they would find a broker by its address.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple

import msgspec

from floodway.connectors.base import Row, Unavailable
from floodway.connectors.list_items import Emitted
from floodway_lab.simulation.servers import Server, ServerName

SHARDS = 6
"""Every source has so many parts, each with an order of its own."""


class Item(NamedTuple):
    """A record that waits outside: when it is there, and what it is."""

    arrival: int
    timestamp: int
    key: Any
    value: Any


Feed = list[list[Item]]
"""What a source reads: for each shard its items, in order."""


class Shown(NamedTuple):
    """An epoch that a sink has shown."""

    writer: str
    epoch: int
    rows: list[Emitted]


class Outside:
    """What the connectors of one simulation connect to.

    Parameters
    ----------
    feeds
        What every source reads.
    clock
        Returns the time, in microseconds.
    random
        Decides how much a reader hands over at a time.
    undoes
        Whether the sinks take back what they have shown when they are opened with an older token.
    redis
        The sinks that live in Redis; all others, and all sources, live with a broker.

    Attributes
    ----------
    polled
        How often each item was read: source, shard, number.
    committed
        Returns the last epoch whose record is durable.
    happened
        How often what went wrong.
    spend
        Lets time pass, in microseconds, for whoever reads or writes.
    problem
        The first thing that should never have happened.
    """

    _known: ClassVar[dict[int, "Outside"]] = {}

    def __init__(
        self,
        feeds: Mapping[str, Feed],
        clock: Callable[[], int],
        random: Random,
        *,
        undoes: bool,
        redis: Collection[str] = (),
    ) -> None:
        self.feeds, self.clock, self.random, self.undoes = feeds, clock, random, undoes
        self.polled: dict[tuple[str, int, int], int] = {}
        self.shown: dict[tuple[str, str, int], bytes] = {}
        self.applied: dict[tuple[str, str], int] = {}
        self.committed: Callable[[], int] = lambda: 0
        self.spend: Callable[[int], None] = lambda microseconds: None
        self.away_until: dict[str, int] = {}
        self.redis = set(redis)
        self.servers: dict[ServerName, Server] = {
            "broker": Server(clock, random),
            "redis": Server(clock, random),
        }
        self.happened: Counter[str] = Counter()
        self.problem: str | None = None
        self.number = max(self._known, default=0) + 1
        self._known[self.number] = self

    @classmethod
    def find(cls, number: int) -> "Outside":
        """Return the outside of a number."""
        return cls._known[number]

    def forget(self) -> None:
        """Let nobody find this any more."""
        del self._known[self.number]

    def complain(self, problem: str) -> None:
        """Take note of something that should never have happened."""
        self.problem = self.problem or problem

    def check_there(self, name: str) -> None:
        """Raise `Unavailable` if a source or sink is away, or what it lives on."""
        if self._away(name) or not self._home(name).there:
            raise Unavailable(f"{name} is away")

    def does_without_an_answer(self, name: str, writer: str) -> bool:
        """Return whether what a writer asks for is done, and nobody will say so."""
        if self._away(name) or not self._home(name).does_without_an_answer(f"{name} {writer}"):
            return False
        self.happened["lost_answers"] += 1
        return True

    def _away(self, name: str) -> bool:
        return self.clock() < self.away_until.get(name, 0)

    def _home(self, name: str) -> Server:
        return self.servers["redis" if name in self.redis else "broker"]

    # ------------------------------------------------------------------ sinks

    def show(self, sink: str, writer: str, epoch: int, block: bytes) -> None:
        """Make an epoch visible, once; whoever comes again must come with the same."""
        known = self.shown.get((sink, writer, epoch))
        if known is not None:
            if known != block:
                self.complain(f"{writer} shows epoch {epoch} again, and other rows in it")
            return
        if epoch > self.committed():
            self.complain(f"{writer} shows epoch {epoch}, which is not committed")
        if epoch > self.applied.get((sink, writer), 0):
            self.applied[sink, writer] = epoch
            self.shown[sink, writer, epoch] = block
        else:
            later = self.applied[sink, writer]
            self.complain(f"{writer} shows epoch {epoch} after epoch {later}")

    def show_at_once(self, sink: str, block: bytes) -> None:
        """Show rows that belong to no epoch."""
        number = len(self.shown) + 1
        self.shown[sink, "eager", number] = msgspec.msgpack.encode([block])

    def take_back(self, sink: str, writer: str, epoch: int) -> None:
        """Hide what a writer has shown after an epoch."""
        for place in [p for p in self.shown if p[:2] == (sink, writer) and p[2] > epoch]:
            del self.shown[place]
        if self.applied.get((sink, writer), 0) > epoch:
            self.applied[sink, writer] = epoch

    def epochs(self, sink: str) -> list[Shown]:
        """Return what a sink has shown, epoch by epoch."""
        found = [
            Shown(writer, epoch, decoded(block))
            for (name, writer, epoch), block in self.shown.items()
            if name == sink
        ]
        return sorted(found, key=lambda shown: (shown.epoch, shown.writer))

    def rows(self, sink: str) -> list[Emitted]:
        """Return everything that a sink has shown, epoch by epoch."""
        return [row for shown in self.epochs(sink) for row in shown.rows]


def encoded(rows: Sequence[Row]) -> bytes:
    """Return rows as bytes: what is a record in the flow is plain data outside."""
    return msgspec.msgpack.encode(rows)


def decoded(block: bytes) -> list[Emitted]:
    """Return the rows of blocks that were put together."""
    return [_emitted(row) for part in msgspec.msgpack.decode(block) for row in _rows(part)]


def _rows(part: bytes) -> list[Any]:
    rows: list[Any] = msgspec.msgpack.decode(part)
    return rows


def _emitted(row: list[Any]) -> Emitted:
    timestamp, key, value, number = row
    return Emitted(timestamp, key, value, tuple(number) if isinstance(number, list) else number)
