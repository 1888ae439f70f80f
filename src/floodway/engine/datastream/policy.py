"""What a policy is: it says which of the entries that wait a task works on next, and which never.

An *entry* is a frame of records. A policy sees entries and never marks, which are aligned whatever
it does: all it has been given is worked on, or dropped, before the next mark is. So it can choose
between marks only, and epochs, replay and stream time stay exact. Here is what it may change.

- Between channels any order will do, and none was ever promised.
- Within a channel an entry passes no other, unless the policy says that it `sees_all`: then order
  is its own affair. With one that lets entries pass others, records of one key may be processed in
  another order than they were sent in. Aggregates that commute do not notice; what depends on the
  order of arrival does: sequences, the first and the last of equal timestamps, `process`.
- Updates of tables, what `changes` tells of them, and partials of aggregates keep the order of
  their channel with any policy.
- Only records of streams can be dropped. A table that misses an update is wrong from then on.

What is decided is decided for whole entries: nothing is done for a single record.
"""

from collections.abc import Iterable
from typing import Protocol

from floodway.engine.datastream.inbox import Arrived
from floodway.engine.program.standing import Channel
from floodway.engine.transport.frame import EXCHANGE, RECORDS, SENDER


class Queued:
    """An entry that waits, and what a policy can go by.

    Attributes
    ----------
    entry
        The frame.
    channel
        The exchange it came over, and who sent it.
    came
        When it came, in microseconds since 1970, to the turn of the task's loop.
    records, bytes
        How many records are in it, and its size.
    group
        The key group of all its records; None where a frame may hold several.
    cost
        The cost group: entries of one group cost about the same per record. It is the number of the
        exchange.
    droppable
        Whether it may be dropped.
    there
        Whether it waits still; the inbox keeps that.
    """

    __slots__ = (
        "bytes",
        "came",
        "channel",
        "cost",
        "droppable",
        "entry",
        "group",
        "records",
        "there",
    )

    def __init__(
        self,
        entry: Arrived,
        came: int = 0,
        *,
        cost: int = 0,
        group: int | None = None,
        droppable: bool = True,
    ) -> None:
        header, data, _ = entry
        self.entry, self.came, self.cost, self.group = entry, came, cost, group
        self.channel: Channel = (header[EXCHANGE], header[SENDER])
        self.records, self.bytes = header[RECORDS], len(data)
        self.droppable, self.there = droppable, True


class Policy(Protocol):
    """Chooses among the entries that wait for one task; each task has a policy of its own.

    A policy that derives from this class needs `put` and `next`.

    Attributes
    ----------
    sees_all
        Whether it is given all that waits before the next mark. Otherwise it has the first entry of
        each channel only, and the next one when that is taken: it cannot let one pass another.
    """

    sees_all: bool = False

    def put(self, waiting: Queued) -> None:
        """Take an entry that may be worked on from now on."""

    def next(self, now: int) -> Queued:
        """Give up the entry to work on next; called only while there is one.

        It is final: an entry that was given up is worked on.
        """

    def shed(self, now: int, records: int) -> Iterable[Queued]:
        """Give up the entries that nobody shall work on.

        It is called before each step of the task, and once a turn while the task may do none: those
        after it have enough, or its sinks are away, and that is when there is something to shed.

        `records` is how many wait in all, those included that the policy has not been given yet.
        Dropped entries are counted, and whoever sent them may send as much again.
        """
        return ()
