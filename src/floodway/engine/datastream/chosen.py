"""The input cache of a task with a policy: marks are aligned here, and the policy chooses between.

Each channel is a line. What is in it comes to the policy in order, up to the channel's next mark or
end: that closes the line until the mark has come from everywhere. A mark or an end is taken only
when the policy has nothing left. Nothing can pass it then, and nobody waits in vain: as soon as all
lines are closed the policy gets nothing more, and what it has grows less.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from floodway.core.errors import EngineError
from floodway.engine.datastream.alignment import Alignment
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.inbox import DATA, Arrived, Inbox
from floodway.engine.datastream.policy import Policy, Queued
from floodway.engine.program.standing import Channel
from floodway.engine.program.wiring import Wiring
from floodway.engine.transport.frame import EXCHANGE, KIND, RECORDS, SENDER, Header, Kind
from floodway.operators.base import Output
from floodway.operators.changelog import Change
from floodway.operators.partitioning import ById, Hash

PARTIAL = int(Kind.PARTIAL)

MakePolicy = Callable[[], Policy]
"""Makes a policy for one task, as the class of one does."""

Drop = Callable[[list[Arrived]], None]
"""Told which entries a policy has dropped."""


class Way(NamedTuple):
    """What a policy may know of an exchange: its cost group, its key group if it has but one.

    `stream` says whether records of a stream travel on it, which are the only ones that may be
    dropped, or pass each other.
    """

    cost: int = 0
    group: int | None = None
    stream: bool = False


class ChannelQueue:
    """What waits of one channel and is not at the policy's hand yet.

    Attributes
    ----------
    one_by_one
        Whether an entry has to be taken before the policy gets the next.
    closed
        Whether a mark, or the end, is next or was taken: what follows has to wait.
    given
        How many entries the policy has.
    """

    __slots__ = ("closed", "given", "one_by_one", "rest", "way")

    def __init__(self, way: Way, *, one_by_one: bool, closed: bool = False) -> None:
        self.way, self.one_by_one, self.closed = way, one_by_one, closed
        self.rest: deque[Queued] = deque()
        self.given = 0


class Chosen(Inbox):
    """Frames that wait, in the order that a policy chooses.

    Parameters
    ----------
    ways
        What the policy may know of each exchange.
    drop
        Told what the policy drops.
    """

    def __init__(
        self, alignment: Alignment, policy: MakePolicy, ways: Mapping[int, Way], drop: Drop
    ) -> None:
        super().__init__(alignment)
        self._make, self._ways, self._drop = policy, ways, drop
        self._begin()

    def _begin(self) -> None:
        self._policy = self._make()
        self._given = 0
        self._lines: dict[Channel, ChannelQueue] = {}
        self._marks: deque[Queued] = deque()
        self._chosen: Queued | None = None  # but it did not go with what was taken before it

    def _line(self, channel: Channel) -> ChannelQueue:
        line = self._lines.get(channel)
        if line is None:
            way = self._ways.get(channel[0], Way())
            one_by_one = not (self._policy.sees_all and way.stream)
            line = ChannelQueue(way, one_by_one=one_by_one, closed=channel in self._held)
            self._lines[channel] = line
        return line

    # ------------------------------------------------------------------ coming

    def put(self, header: Header, data: bytes, arrived: int = 0) -> None:
        """Add a frame that has come."""
        self.records += header[RECORDS]
        self.bytes += len(data)
        line = self._line((header[EXCHANGE], header[SENDER]))
        way = line.way
        line.rest.append(
            Queued(
                (header, data, arrived),
                self.now,
                cost=way.cost,
                group=way.group,
                droppable=way.stream and header[KIND] == DATA,
            )
        )
        self._let_through(line)

    def _let_through(self, line: ChannelQueue) -> None:
        """Give the policy what it may have of a line."""
        rest = line.rest
        while rest and not line.closed and not (line.given and line.one_by_one):
            waiting = rest.popleft()
            header, _, _ = waiting.entry
            if header[KIND] in (DATA, PARTIAL):
                line.given += 1
                self._given += 1
                self._policy.put(waiting)
            else:
                line.closed = True
                self._marks.append(waiting)

    def release(self) -> None:
        """Let the channels go on that were held at a mark."""
        for channel in self._alignment.release():
            self._go_on(self._line(channel))

    def _go_on(self, line: ChannelQueue) -> None:
        line.closed = False
        self._let_through(line)

    # ------------------------------------------------------------------ going

    def take(self, most: int) -> list[Arrived]:
        """Return the next frame that may be processed, or none.

        If it is data, return also what the policy chooses next, as long as that is of the same
        exchange, up to `most` records.
        """
        self.shed()
        waiting = self._choose()
        if waiting is None:
            return self._take_mark()
        header, _, _ = waiting.entry
        taken, records = [waiting], waiting.records
        while header[KIND] == DATA and records < most:
            waiting = self._choose()
            if waiting is None:
                break
            other, _, _ = waiting.entry
            if other[KIND] != DATA or other[EXCHANGE] != header[EXCHANGE]:
                self._chosen = waiting
                break
            taken.append(waiting)
            records += waiting.records
        return [self._gone(waiting) for waiting in taken]

    def _gone(self, waiting: Queued) -> Arrived:
        self.records -= waiting.records
        self.bytes -= waiting.bytes
        return waiting.entry

    def _take_mark(self) -> list[Arrived]:
        """Return the next mark or end: the policy has nothing left."""
        if not self._marks:
            return []
        waiting = self._marks.popleft()
        if waiting.channel not in self._alignment.open:  # nobody will hold it, nor let it go on
            self._go_on(self._line(waiting.channel))
        return [self._gone(waiting)]

    def _choose(self) -> Queued | None:
        """Return what the policy has chosen, or None if there is nothing to choose from."""
        chosen, self._chosen = self._chosen, None
        if chosen is None and self._given:
            chosen = self._policy.next(self.now)
            self._given_up(chosen)
        return chosen

    def shed(self) -> None:
        """Drop what the policy gives up."""
        if not self._given:
            return
        dropped = list(self._policy.shed(self.now, self.records))
        for waiting in dropped:
            if not waiting.droppable:
                raise self._broken("drops what is no record of a stream")
            self._given_up(waiting)
        if dropped:
            self._drop([self._gone(waiting) for waiting in dropped])

    def _given_up(self, waiting: Queued) -> None:
        if not waiting.there:
            raise self._broken("gives up an entry twice")
        waiting.there = False
        self._given -= 1
        line = self._lines[waiting.channel]
        line.given -= 1
        if line.one_by_one:
            self._let_through(line)

    def _broken(self, problem: str) -> EngineError:
        return EngineError(
            f"the queue policy {type(self._policy).__name__} {problem}",
            remedy="correct the policy, or do without: the order of arrival is the default",
        )

    def clear(self) -> None:
        """Forget everything that waits."""
        self._begin()
        self.records = self.bytes = 0


def inbox_of(wiring: Wiring, alignment: Alignment, policy: MakePolicy, drop: Drop) -> Inbox:
    """Return the input cache of a task; the order of arrival needs nobody to be asked."""
    if policy is Fifo:
        return Inbox(alignment)
    return Chosen(alignment, policy, ways_of(wiring), drop)


def ways_of(wiring: Wiring) -> dict[int, Way]:
    """Return what a policy may know of the exchanges that lead to a task."""
    ways = {}
    for number, given in wiring.inputs.items():
        spread = given.exchange.partitioning
        group = _only_group(wiring) if isinstance(spread, Hash | ById) else None
        ways[number] = Way(number, group, _is_stream(given.exchange.edge.output))
    return ways


def _is_stream(output: Output) -> bool:
    """Return whether rows are records of a stream: neither updates of a table nor news of them."""
    kind = output.schema.type
    return output.kind == "records" and getattr(kind, "python", None) is not Change


def _only_group(wiring: Wiring) -> int | None:
    """Return the key group of a task that has no other."""
    groups, dop = wiring.plan.key_groups, wiring.stage.dop
    mine = [group for group in range(groups) if group * dop // groups == wiring.index]
    return mine[0] if len(mine) == 1 else None
