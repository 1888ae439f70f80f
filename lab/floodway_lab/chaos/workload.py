"""What runs while processes are killed: a flow of which every result can be checked.

Numbers come in, each once. One branch hands every number on: what is missing or there twice was
lost or doubled. Two others count and add up per key and write every change: a count that was lost
or doubled leaves a gap or a repetition in the row 1, 2, 3 and so on. One counts in windows, and
forgives no late record: who is taken for idle, because it was stopped or is replaced, and comes
back, lacks some. If stages change their paradigm, another one adds up as well, from partials, and
writes what has changed now and then.

If Kafka's broker is killed, a second source brings letters, which are items in a topic, and every
one of them is written to another topic. If Redis is, the counts go there as well, as a list.

Every stage is a task of its own: a source, a stateless stage, sinks, and tables with state.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

import floodway as fw
from floodway.connectors.base import Exact, Format, Raw, Reader, SourceConnector, Split
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.kafka import KafkaSink, KafkaSource
from floodway.connectors.rate import Schedule
from floodway.connectors.redis import RedisSink
from floodway.engine.datastream.settings import Settings

LETTERS, ECHOED, COUNTED = "letters", "echoed", "counted"
"""The topic that is read, the one that is written, and the list in Redis."""

KEYS = 1000
"""Among so many keys the items are spread."""

HELD_BACK = 0.1
"""This part of the items is left when the planned time is over, and comes slowly until the release.

Faults mostly take longer than planned, and each has to hit a flow that is at work.
"""

WINDOW, DIGITS = 1000, 10
"""Windows have so many numbers, and so many counts."""

IDLE_MS = 2000
"""A source that has nothing for so long is idle: less than it takes to replace a task, and than a
process is stopped, and more than any source waits for its next item, where there are enough."""

SLOWLY = 0.05
"""This part of the rate is slow."""


class Item(fw.Record, frozen=True):
    """What comes in."""

    number: int
    key: int
    amount: int


class Workload(msgspec.Struct, frozen=True):
    """How a flow is run while processes are killed.

    Attributes
    ----------
    folder
        Where everything is: results, checkpoint, and the file that releases the last items.
    records
        How many items come in.
    per_second
        How many a second, until they are released.
    dop
        Tasks per stage.
    epoch_ms
        How often an epoch is committed.
    state_memory
        How many bytes of state a task keeps in memory; None for all.
    switches
        Whether stages change their paradigm all the time; then there is a branch more, which takes
        partials.
    kafka, redis
        The servers that are killed as well: where they are; empty for none.
    letters
        How many items wait in a topic.
    master
        Spark's master; empty for Spark within the driver.
    announce
        The host of the relay through which all processes talk to each other; empty for none.
    silent_s
        After how long a silence a task is given up.
    """

    folder: str
    records: int
    per_second: float
    dop: int = 2
    epoch_ms: int = 200
    state_memory: int | None = None
    switches: bool = False
    kafka: str = ""
    redis: str = ""
    letters: int = 0
    master: str = ""
    announce: str = ""
    silent_s: float = Settings().silent_s

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoint."""
        return Path(self.folder) / "checkpoint"

    @property
    def release(self) -> Path:
        """The file that lets the last items in, once it is there."""
        return Path(self.folder) / "release"

    @property
    def dry(self) -> bool:
        """Whether all items have come in before the release, so that the flow is idle."""
        return all(_dry(self.release, index).exists() for index in range(self.dop))

    @property
    def idle_ms(self) -> int:
        """After how long a silence a source is idle: longer where items are rare."""
        slowest = max(self.per_second * SLOWLY / self.dop, 0.001)
        return max(IDLE_MS, int(3000 / slowest))

    def out(self, branch: str) -> Path:
        """Return the folder with the results of a branch."""
        return Path(self.folder) / "out" / branch


def item(number: int) -> Item:
    """Return the item of a number; always the same.

    >>> item(3)
    Item(number=3, key=590, amount=2)
    """
    mixed = number * 2_654_435_761 % 2**32
    return Item(number, (mixed >> 12) % KEYS, mixed % 97 + 1)


def build(workload: Workload) -> fw.Flow:
    """Return the flow."""
    flow = fw.Flow("chaos", idle=workload.idle_ms)
    source = Items(workload.records, workload.per_second, str(workload.release))
    items = flow.source("items", source, schema=Item, timestamp="number").isolate()
    passed = items.select("number", "key", "amount * 2 AS doubled", name="passed").isolate()
    passed.to(JsonLinesSink(workload.out("seen")), name="seen")
    counts = passed.group_by("key").count(name="counts").isolate()
    counts.changes(name="count_changes").to(JsonLinesSink(workload.out("counts")), name="counted")
    sums = passed.group_by("key").sum("doubled", name="sums").isolate()
    sums.changes(name="sum_changes").to(JsonLinesSink(workload.out("sums")), name="summed")
    windows = passed.group_by(f"key % {DIGITS} AS digit").window(fw.tumbling(WINDOW))
    closed = windows.count(name="windows", retention=0).changes(emit=fw.emit.final(), name="closed")
    closed.to(JsonLinesSink(workload.out("windows")), name="windowed")
    if workload.switches:
        totals = passed.group_by("key").sum("doubled", name="totals").isolate()
        now_and_then = totals.changes(emit=fw.emit.at_most_every("100ms"), name="total_changes")
        now_and_then.to(JsonLinesSink(workload.out("totals")), name="totalled")
    if workload.redis:
        pushed = RedisSink(workload.redis, prefix=COUNTED, kind="list")
        counts.changes(name="pushed_changes").to(pushed, name="pushed")
    if workload.kafka:
        _correspond(flow, workload.kafka)
    return flow


def _correspond(flow: fw.Flow, servers: str) -> None:
    """Let letters come from one topic, and all of them go to another one."""
    written = KafkaSource(LETTERS, servers=servers, end="current")
    letters = flow.source(LETTERS, written, schema=Item, timestamp="number").isolate()
    read = letters.select("number", "key", "amount * 2 AS doubled", name="read").isolate()
    read.to(KafkaSink(ECHOED, servers=servers), name=ECHOED)


def plain_fold(records: int) -> tuple[Counter[int], Counter[int]]:
    """Return counts and sums per key, by one loop without any engine."""
    counts: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    for number in range(records):
        given = item(number)
        counts[given.key] += 1
        sums[given.key] += 2 * given.amount
    return counts, sums


def plain_windows(records: int) -> Counter[tuple[int, int]]:
    """Return counts by digit and start of the window, by one loop as well."""
    return Counter(
        (item(number).key % DIGITS, number - number % WINDOW) for number in range(records)
    )


def _dry(release: Path, index: int) -> Path:
    """Return the file that says that a task of the source has no more items."""
    return release.with_name(f"dry-{index}")


@dataclass(frozen=True)
class Items(SourceConnector):
    """Gives items at a steady rate, the last ones slowly, and the end only after the release.

    Parameters
    ----------
    count
        How many items in all.
    per_second
        How many a second, of all tasks together; as many as are taken after the release.
    release
        The file whose appearance is the release.
    """

    replayable: ClassVar[bool] = True
    most = None

    count: int
    per_second: float
    release: str

    @property
    def format(self) -> Format:
        """Items are what they are."""
        return Exact()

    def open(self, split: Split, position: Any = None) -> Reader:
        """Return a reader of every n-th item."""
        return _ItemsReader(self, split, position or 0)


class _ItemsReader(Reader):
    def __init__(self, source: Items, split: Split, done: int) -> None:
        self._source, self._split = source, split
        self._release = Path(source.release)
        self._released = self._release.exists()
        early = int(source.count * (1 - HELD_BACK))
        self._slow = False
        self._schedule = (
            self._rest(done, None)
            if self._released
            else Schedule(split, source.per_second, early, done)
        )
        self._dry = _dry(self._release, split.index)
        self._dry.unlink(missing_ok=True)  # after a loss some items come again

    def _rest(self, done: int, per_second: float | None) -> Schedule:
        return Schedule(self._split, per_second, self._source.count, done)

    def poll(self, limit: int) -> Raw | None:
        if not self._released and self._release.exists():
            self._released = True
            self._schedule = self._rest(self._schedule.done, None)
        if self._schedule.ended:
            if self._released:
                return None
            if self._slow:
                self._dry.touch()
                return []
            self._slow = True
            self._schedule = self._rest(self._schedule.done, self._source.per_second * SLOWLY)
        return [item(number) for number in self._schedule.take(limit)]

    def position(self) -> int:
        return self._schedule.done
