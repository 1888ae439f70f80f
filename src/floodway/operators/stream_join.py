"""join of two streams within a window of event time (thesis, definition 67).

Two records join if they have the same key and their timestamps differ by at most the window. The
result has the later of the two timestamps. Offsets number the records of each side in the order
in which they arrive, and name the results.

Outer joins cannot know that a record has no partner while one may still come. ``eager`` sends the
outer result at once and replaces it when a partner comes (examples 21 and 22): the result is a
stream with updates. ``lazy`` waits until no partner can come any more: the result is a stream of
facts, later.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from floodway.core.duration import show_ms
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Operator, Outputs, beyond
from floodway.operators.facts import Facts, JoinKind, State, passing
from floodway.operators.history import Expiry
from floodway.operators.joiner import Joiner, has_null
from floodway.operators.keyed import GONE, Space, Windowed
from floodway.operators.lag import Held
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import BY_KEY, Partitioning

StreamJoinKind = Literal["inner", "left", "right", "full"]
OuterEmit = Literal["eager", "lazy"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class StreamJoin(Operator):
    """Joins two keyed streams within a window of event time.

    Any order of arrival gives an equivalent result. Records whose key is null, or has a null
    column, have no partner. A record older than stream time minus `retention` is late. If the
    joiner fails, `on_error` is about that one result: both records still meet others.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("meet")
    >>> left = flow.source("left", schema=str).key_by("substr(value, 1, 1) AS letter")
    >>> right = flow.source("right", schema=str).key_by("substr(value, 1, 1) AS letter")
    >>> left.join(right, within=6, joiner=lambda a, b: f"{a}-{b}", schema=str).to("out")
    >>> with Driver(flow) as driver:
    ...     driver.push("left", "E4", at=5)
    ...     driver.push("right", "E3", at=6)
    ...     [(record.timestamp, record.value) for record in driver.read("out")]
    [(6, 'E4-E3')]
    """

    how: StreamJoinKind
    emit: OuterEmit
    within_ms: int
    joiner: Joiner
    retention_ms: int
    on_error: OnError = "fail"

    @property
    def _held(self) -> Held | None:
        """Lazy outer results come when no partner can come any more."""
        lazy = self.how != "inner" and self.emit == "lazy"
        return Held(self.within_ms + self.retention_ms) if lazy else None

    @property
    def facts(self) -> Facts:
        """All about a key comes from the task that has the key."""
        joins: JoinKind | None = "streams" if self.how == "inner" else None
        return passing(keys="gathered", away="no", held=self._held, emit=None, joins=joins)

    def state(self, *, versioned: bool = False) -> State:
        """Remember both sides, for the window and the retention."""
        return State(kernel=StreamJoinKernel, layout="", versions=False, inputs="rows")

    def details(self) -> Mapping[str, str]:
        """Return kind, window, emit strategy and retention."""
        shown = {"how": self.how, "within": show_ms(self.within_ms)}
        if self.how != "inner":
            shown["emit"] = self.emit
        return {**shown, "retention": show_ms(self.retention_ms)}

    def partitioning(self, port: int) -> Partitioning:
        """All records of a key, of both sides, meet in one task."""
        return BY_KEY

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps both sides."""
        return StreamJoinKernel(self, outputs)


class Waiting:
    """A record that may still find partners, and the outer result sent for it meanwhile."""

    __slots__ = ("alone", "fact", "matched", "offset")

    def __init__(self, offset: int, fact: Fact) -> None:
        self.offset = offset
        self.fact = fact
        self.matched = False
        self.alone: Fact | None = None


Side = Space[Any, list[Waiting]]

SIDES = ("left", "right")


class StreamJoinKernel(Kernel):
    """A symmetric hash join over two buffers ordered by timestamp."""

    remembers = ("_sides", "_offsets", "_expiry", "_horizon")
    keyed = ("_sides",)
    derived = ("_expiry",)
    row_classes = (Waiting,)

    def __init__(self, operator: StreamJoin, outputs: Outputs) -> None:
        self._join, self._within = operator.joiner.function, operator.within_ms
        self._retention = operator.retention_ms
        self._outer = (operator.how in ("left", "full"), operator.how in ("right", "full"))
        self._inner = operator.how == "inner"
        self._eager = operator.emit == "eager" and operator.how != "inner"
        self._out, self._late = outputs[MAIN], outputs[LATE]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self._sides: tuple[Side, Side] = (Space(), Space())
        self._offsets, self._step = [0, 0], 1
        self._expiry = (Expiry(), Expiry())
        self._horizon: int | None = None

    def number(self, first: int, step: int) -> None:
        """Count each side from `first` in steps of `step`."""
        self._offsets, self._step = [first, first], step

    def spaces(self) -> dict[str, Space[Any, Any] | Windowed[Any, Any, Any]]:
        """Return what waits on both sides."""
        return dict(zip(SIDES, self._sides, strict=True))

    def adopt(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """Go on, and count on where no record was counted before."""
        taken = [[scalars["_offsets"][port] for scalars in saved] for port in range(2)]
        offsets = [
            beyond(numbers, first, self._step)
            for numbers, first in zip(taken, self._offsets, strict=True)
        ]
        super().adopt(saved)
        self._offsets = offsets

    def loaded(self, name: str, namespace: Any, key: Any, row: list[Waiting]) -> None:
        """See that records are back that wait on one side."""
        port = SIDES.index(name)
        for waiting in row:
            self._expiry[port].add(waiting.fact[0] + self._within, key)

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Join each record with what waits on the other side."""
        if self._inner:
            self._process_inner(port, rows)
            return
        for fact in rows:
            offset = self._offsets[port]
            self._offsets[port] += self._step
            if self._horizon is not None and fact[0] < self._horizon:
                self._late.append(fact)
                continue
            self._meet(port, Waiting(offset, fact))

    def _process_inner(self, port: int, rows: Sequence[Fact]) -> None:
        """Do the same where nobody has to know who has found a partner: in one loop."""
        mine, facing = self._sides[port], self._sides[1 - port]
        hot, dirty, faced = mine.hot, mine.dirty, facing.hot
        horizon, join, emit = self._horizon, self._join, self._out.append
        offset, step, last, due = self._offsets[port], self._step, None, []
        for fact in rows:
            timestamp, key, value = fact
            number, offset = offset, offset + step
            if horizon is not None and timestamp < horizon:
                self._late.append(fact)
                continue
            if key is None or (type(key) is tuple and None in key):
                continue  # as `has_null`; it has no partner, and will not have one
            waiting = faced.get(key)
            if waiting is None and facing.cold is not None:
                waiting = facing.fetch(key)
            for partner in () if waiting is None else self._within_reach(waiting, timestamp):
                earlier, _, other = partner.fact
                try:
                    joined = join(other, value) if port else join(value, other)
                except Exception as error:
                    self.handlers[0](error, timestamp, key, value)
                else:
                    emit((timestamp if timestamp >= earlier else earlier, key, joined))
            row = hot.get(key)
            if row is None and mine.cold is not None:
                row = mine.fetch(key)
            if row is None:
                hot[key] = dirty[key] = [Waiting(number, fact)]
            else:
                _insert(row, Waiting(number, fact))
                dirty[key] = row
            if timestamp != last:  # most have the time of the one before
                last, due = timestamp, self._expiry[port].at(timestamp + self._within)
            due.append(key)
        self._offsets[port] = offset

    def _meet(self, port: int, arrived: Waiting) -> None:
        timestamp, key, _ = arrived.fact
        partners = [] if has_null(key) else self._partners(1 - port, key, timestamp)
        if partners:
            self._sides[1 - port].touch(key)
        for partner in partners:
            self._emit(
                self._identity(port, arrived, partner),
                None if partner.matched else partner.alone,
                self._joined(port, arrived, partner),
            )
            partner.matched = arrived.matched = True
        if self._eager and self._outer[port] and not partners:
            arrived.alone = self._alone(port, arrived)
            self._emit(self._alone_identity(port, arrived), None, arrived.alone)
        _insert(self._sides[port].setdefault(key, []), arrived)
        self._sides[port].touch(key)
        self._expiry[port].add(timestamp + self._within, key)

    def _partners(self, port: int, key: Any, timestamp: int) -> list[Waiting]:
        return self._within_reach(self._sides[port].get(key, []), timestamp)

    def _within_reach(self, waiting: list[Waiting], timestamp: int) -> list[Waiting]:
        """Return those of a key that a record meets, in the order in which they came."""
        if len(waiting) == 1:
            return waiting if abs(waiting[0].fact[0] - timestamp) <= self._within else []
        start = bisect_left(waiting, timestamp - self._within, key=_timestamp)
        stop = bisect_right(waiting, timestamp + self._within, key=_timestamp)
        return sorted(waiting[start:stop], key=_offset)

    def _joined(self, port: int, arrived: Waiting, partner: Waiting) -> Fact | None:
        left, right = (arrived, partner) if port == 0 else (partner, arrived)
        timestamp = max(left.fact[0], right.fact[0])
        return self._result(timestamp, arrived.fact, (left.fact[2], right.fact[2]))

    def _alone(self, port: int, record: Waiting) -> Fact | None:
        value = record.fact[2]
        return self._result(
            record.fact[0], record.fact, (value, None) if port == 0 else (None, value)
        )

    def _result(self, timestamp: int, record: Fact, pair: tuple[Any, Any]) -> Fact | None:
        """Return a joined fact, or None if the joiner fails, which is reported for `record`."""
        try:
            return (timestamp, record[1], self._join(*pair))
        except Exception as error:
            self.handlers[0](error, *record)
            return None

    def _identity(self, port: int, arrived: Waiting, partner: Waiting) -> tuple[Any, Any]:
        """Name a result; one that replaces an outer result takes over its name."""
        if self._eager and self._outer[1 - port] and not partner.matched:
            return self._alone_identity(1 - port, partner)
        left, right = (arrived, partner) if port == 0 else (partner, arrived)
        return (left.offset, right.offset)

    def _alone_identity(self, port: int, record: Waiting) -> tuple[Any, Any]:
        return (record.offset, None) if port == 0 else (None, record.offset)

    def _emit(self, identity: Any, old: Fact | None, new: Fact | None) -> None:
        if self._eager and (old is not None or new is not None):
            self._out.append((identity, old, new))
        elif not self._eager and new is not None:
            self._out.append(new)

    def advance(self, stream_time: int) -> None:
        """Forget records that no partner can reach any more; lazy outer results are due then."""
        self._horizon = stream_time - self._retention
        before = self._horizon - self._within
        if self._inner:
            for port in range(2):
                self._drop(port, before)
            return
        due = [
            (timestamp, port, key)
            for port, expiry in enumerate(self._expiry)
            for timestamp, key in expiry.due(self._horizon - 1)
        ]
        for _, port, key in sorted(due, key=_first):
            self._forget(port, key, before)

    def _drop(self, port: int, before: int) -> None:
        """Forget the records of one side that are older; nobody is told."""
        side = self._sides[port]
        hot, dirty = side.hot, side.dirty
        for _, keys in self._expiry[port].lists(before + self._within - 1):
            for key in keys:
                row = hot.get(key)
                if row is not None and row[-1].fact[0] < before:
                    del hot[key]
                    dirty[key] = GONE
                else:
                    self._forget(port, key, before)

    def finish(self) -> None:
        """No partner can come any more."""
        for port, side in enumerate(self._sides):
            for key in list(side):
                self._forget(port, key, None)

    def _forget(self, port: int, key: Any, before: int | None) -> None:
        side = self._sides[port]
        waiting = side.get(key)
        if waiting is None:
            return
        if before is None or waiting[-1].fact[0] < before:
            stop = len(waiting)
        else:
            stop = bisect_left(waiting, before, key=_timestamp)
        if self._outer[port] and not self._eager:
            for record in waiting[:stop]:
                if not record.matched:
                    self._emit(None, None, self._alone(port, record))
        if stop == len(waiting):
            del side[key]
        elif stop:
            del waiting[:stop]
            side.touch(key)


def _insert(row: list[Waiting], arrived: Waiting) -> None:
    """Keep a row in the order of timestamps and arrival; most records come in that order."""
    if row and arrived.fact[0] < row[-1].fact[0]:
        insort(row, arrived, key=_order)
    else:
        row.append(arrived)


def _first(due: tuple[int, int, Any]) -> int:
    return due[0]


def _timestamp(waiting: Waiting) -> int:
    return waiting.fact[0]


def _offset(waiting: Waiting) -> int:
    return waiting.offset


def _order(waiting: Waiting) -> tuple[int, int]:
    return (waiting.fact[0], waiting.offset)
