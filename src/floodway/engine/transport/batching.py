"""The batching layer: rows become frames of at most b_out records (thesis, section 3.4).

*Random* and *broadcast* need one buffer: a full batch goes to the next task, or to all. *Hash* and
*range* need one buffer for each receiving task, the **distinct** scheme. With several consumers the
**shared** scheme has one buffer for each combination of their tasks instead: each batch is encoded
once and sent to one task of every consumer.

A buffer is sent when it is full, or when its oldest record has lingered long enough. How much may
be on its way to a task and not yet processed there is bounded in bytes; see `Lane`.
"""

from collections.abc import Callable, Sequence
from itertools import product
from time import perf_counter_ns
from typing import Any

from floodway.engine.transport.codec import Codec
from floodway.engine.transport.frame import MAX_BYTES, SIZE, VERSION, Kind, pack_header
from floodway.engine.transport.routing import Router, make_router
from floodway.operators.base import Kind as MessageKind
from floodway.operators.partitioning import (
    Broadcast,
    ById,
    Forward,
    Hash,
    Partitioning,
    Range,
    Single,
)

DATA = int(Kind.DATA)

MAX_PAYLOAD = MAX_BYTES - SIZE

Send = Callable[[int, bytes], None]
"""Hands a frame to the task of a number; never waits."""


class Lane:
    """The way from one task to one task on one exchange, and what is on it.

    Attributes
    ----------
    attempt
        The receiver's attempt: it drops what was meant for an earlier one.
    send
        How frames leave; an output cache puts itself in between.
    """

    __slots__ = ("attempt", "exchange", "outstanding", "send", "target", "window")

    def __init__(
        self, exchange: int, target: int, window: int, send: Send, *, attempt: int = 0
    ) -> None:
        self.attempt = attempt
        self.exchange = exchange
        self.target = target
        self.window = window
        self.outstanding = 0
        self.send = send

    @property
    def full(self) -> bool:
        """Whether the receiver has enough to do: nothing more should be made for it."""
        return self.outstanding > self.window


class Buffer:
    """Rows that wait to be sent together, and the lanes they go to."""

    __slots__ = ("born", "lanes", "rows", "since")

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self.rows: list[Any] = []
        self.born = 0
        self.since = 0


class Outlet:
    """What leaves a task through one output port.

    Attributes
    ----------
    b_out, linger_us
        How many records travel together at most, and how long one may wait for others; both may
        be changed at any time.
    """

    def __init__(self, codec: Codec, sender: int, lanes: Sequence[Sequence[Lane]]) -> None:
        self.codec = codec
        self.sender = sender
        self.lanes = [lane for group in lanes for lane in group]
        self.batches: list[Buffer] = []
        self.b_out = 1
        self.linger_us = 0
        self.epoch = 0
        self.records_out = self.bytes_out = self.frames_out = 0
        self.sampling = False
        self.emit_ns = 0

    def take(self, rows: list[Any], born: int, now: int) -> None:
        """Take rows that came into the flow at `born`; send batches that are full."""
        raise TypeError(f"{type(self).__name__} takes nothing")  # pragma: no cover

    def flush(self, now: int | None = None) -> None:
        """Send what has lingered long enough at `now`, or everything."""
        for batch in self.batches:
            if batch.rows and (now is None or now - batch.since >= self.linger_us):
                self._send(batch)

    def due(self) -> int | None:
        """Return when something has lingered long enough, or None if nothing waits."""
        times = [batch.since + self.linger_us for batch in self.batches if batch.rows]
        return min(times, default=None)

    @property
    def blocked(self) -> bool:
        """Whether some receiver has enough to do."""
        return any(lane.outstanding > lane.window for lane in self.lanes)

    @property
    def waiting(self) -> int:
        """How many records wait in buffers."""
        return sum(len(batch.rows) for batch in self.batches)

    def forget(self) -> None:
        """Forget what waits."""
        for batch in self.batches:
            batch.rows.clear()

    def forward(self, lane: Lane, kind: int, payload: bytes, records: int, born: int) -> None:
        """Send rows that were routed and encoded elsewhere as this outlet would have done."""
        header = pack_header(
            VERSION, kind, lane.exchange, self.sender, lane.attempt, self.epoch, records, born
        )
        size = len(header) + len(payload)
        lane.outstanding += size
        self.bytes_out += size
        self.frames_out += 1
        self.records_out += records
        lane.send(lane.target, header + payload)

    def announce(self, kind: Kind, payload: bytes = b"", *, epoch: int = 0, born: int = 0) -> None:
        """Send everything, and then a mark or an end to all."""
        self.flush()
        for lane in self.lanes:
            header = pack_header(
                VERSION, kind, lane.exchange, self.sender, lane.attempt, epoch, 0, born
            )
            if kind == Kind.END:  # given back like data: so its sender knows that it came
                lane.outstanding += len(header) + len(payload)
            lane.send(lane.target, header + payload)
        self.epoch = epoch or self.epoch

    def _send_full(self, batch: Buffer) -> None:
        """Send all full batches of the rows; they have the same header."""
        started = perf_counter_ns() if self.sampling else 0
        rows, size, encode = batch.rows, self.b_out, self.codec.encode
        whole = len(rows) - len(rows) % size
        lanes = self._chosen(batch)
        ways = [
            (lane, lane.send, lane.target, header)
            for lane, header in zip(lanes, self._headers(batch, lanes, size), strict=True)
        ]
        frames = sent = 0
        for start in range(0, whole, size):
            payload = encode(rows[start : start + size])
            if len(payload) > MAX_PAYLOAD:
                self._send_parts(batch, rows[start : start + size], payload, lanes)
                continue
            for lane, send, target, header in ways:
                frame = header + payload
                length = len(frame)
                lane.outstanding += length
                sent += length
                frames += 1
                send(target, frame)
        self.frames_out += frames
        self.bytes_out += sent
        self.records_out += whole
        del rows[:whole]
        if started:
            self.emit_ns += perf_counter_ns() - started

    def _send(self, batch: Buffer) -> None:
        """Send all rows of a batch, however few."""
        started = perf_counter_ns() if self.sampling else 0
        rows = batch.rows
        self._send_parts(batch, rows, self.codec.encode(rows), self._chosen(batch))
        self.records_out += len(rows)
        rows.clear()
        if started:
            self.emit_ns += perf_counter_ns() - started

    def _send_parts(
        self, batch: Buffer, rows: list[Any], payload: bytes, lanes: Sequence[Lane]
    ) -> None:
        """Send rows as one frame, or as several if they are too large for one."""
        if len(payload) > MAX_PAYLOAD:
            if len(rows) == 1:
                raise self.codec.too_large(rows[0], len(payload), MAX_PAYLOAD)
            half = len(rows) // 2
            for part in (rows[:half], rows[half:]):
                self._send_parts(batch, part, self.codec.encode(part), lanes)
            return
        for lane, header in zip(lanes, self._headers(batch, lanes, len(rows)), strict=True):
            frame = header + payload
            lane.outstanding += len(frame)
            self.bytes_out += len(frame)
            lane.send(lane.target, frame)
        self.frames_out += len(lanes)

    def _headers(self, batch: Buffer, lanes: Sequence[Lane], count: int) -> list[bytes]:
        sender, epoch, born = self.sender, self.epoch, batch.born
        return [
            pack_header(VERSION, DATA, lane.exchange, sender, lane.attempt, epoch, count, born)
            for lane in lanes
        ]

    def _chosen(self, batch: Buffer) -> Sequence[Lane]:
        return batch.lanes


class PlainOutlet(Outlet):
    """One buffer: everything to one task, or to all of them."""

    def __init__(self, codec: Codec, sender: int, lanes: Sequence[Lane]) -> None:
        super().__init__(codec, sender, [lanes])
        self._batch = Buffer(lanes)
        self.batches = [self._batch]

    def take(self, rows: list[Any], born: int, now: int) -> None:
        """Take rows."""
        batch = self._batch
        if not batch.rows:
            batch.born, batch.since = born, now
        batch.rows += rows
        if len(batch.rows) >= self.b_out:
            self._send_full(batch)
            batch.born, batch.since = born, now


class RandomOutlet(PlainOutlet):
    """One buffer: each batch to the next task, past those that have enough to do."""

    _next = 0

    @property
    def blocked(self) -> bool:
        """Whether all receivers have enough to do."""
        return all(lane.outstanding > lane.window for lane in self.lanes)

    def _send_full(self, batch: Buffer) -> None:
        rows, size = batch.rows, self.b_out
        part = Buffer(batch.lanes)
        part.born, part.since = batch.born, batch.since
        while len(rows) >= size:
            part.rows = rows[:size]
            del rows[:size]
            self._send(part)

    def forward(self, lane: Lane, kind: int, payload: bytes, records: int, born: int) -> None:
        """Send rows that were encoded elsewhere, to whichever task is next."""
        (chosen,) = self._chosen(self._batch)
        super().forward(chosen, kind, payload, records, born)

    def _chosen(self, batch: Buffer) -> Sequence[Lane]:
        count = len(batch.lanes)
        order = [(self._next + step) % count for step in range(count)]
        # A slow task gets less; if all are full the first in turn it is, and the task will pause.
        chosen = next((i for i in order if not batch.lanes[i].full), order[0])
        self._next = (chosen + 1) % count
        return (batch.lanes[chosen],)


class KeyedOutlet(Outlet):
    """A buffer for each receiving task, filled by a router."""

    def __init__(self, codec: Codec, sender: int, lanes: Sequence[Lane], route: Router) -> None:
        super().__init__(codec, sender, [lanes])
        self._route = route
        self.batches = [Buffer((lane,)) for lane in lanes]
        self._appends = [batch.rows.append for batch in self.batches]

    def take(self, rows: list[Any], born: int, now: int) -> None:
        """Take rows, each into the buffer of its task."""
        for batch in self.batches:
            if not batch.rows:
                batch.born, batch.since = born, now
        self._route(rows, self._appends)
        size = self.b_out
        for batch in self.batches:
            if len(batch.rows) >= size:
                self._send_full(batch)
                batch.born, batch.since = born, now


class SharedOutlet(Outlet):
    """A buffer for each combination of the consumers' tasks; batches are encoded once."""

    def __init__(
        self,
        codec: Codec,
        sender: int,
        consumers: Sequence[Sequence[Lane]],
        routes: Sequence[Router | None],
    ) -> None:
        super().__init__(codec, sender, consumers)
        self._routes = routes
        sizes = [len(lanes) if route else 1 for lanes, route in zip(consumers, routes, strict=True)]
        self._sizes = sizes
        combinations = product(*(range(size) for size in sizes))
        self.batches = [
            Buffer(tuple(lanes[i] for lanes, i in zip(consumers, combination, strict=True)))
            for combination in combinations
        ]

    def take(self, rows: list[Any], born: int, now: int) -> None:
        """Take rows, each into the buffer of the tasks that will have it."""
        numbers = [0] * len(rows)
        for route, size in zip(self._routes, self._sizes, strict=True):
            places = self._places(route, rows)
            numbers = [number * size + p for number, p in zip(numbers, places, strict=True)]
        for number, row in zip(numbers, rows, strict=True):
            batch = self.batches[number]
            if not batch.rows:
                batch.born, batch.since = born, now
            batch.rows.append(row)
            if len(batch.rows) >= self.b_out:
                self._send(batch)

    def _places(self, route: Router | None, rows: list[Any]) -> list[int]:
        if route is None:
            return [0] * len(rows)
        return [_place(route, row) for row in rows]


def _place(route: Router, row: Any) -> int:
    found: list[int] = []
    marks = _Marks(found)
    route((row,), marks)
    return found[0]


class _Marks(Sequence[Callable[[Any], None]]):
    """Stands for a router's buffers and notes which one a row goes to."""

    def __init__(self, found: list[int]) -> None:
        self._found = found

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: Any) -> Any:
        return lambda row: self._found.append(index)


class Consumer:
    """One exchange as its sender sees it: how rows are spread, and the lanes to the tasks."""

    def __init__(
        self,
        spread: Partitioning,
        kind: MessageKind,
        lanes: Sequence[Lane],
        groups: int,
    ) -> None:
        self.spread = spread
        self.lanes = lanes
        self.route: Router | None = None
        self.source = ""
        if isinstance(spread, Hash | ById | Range) and len(lanes) > 1:
            self.route, self.source = make_router(spread, kind, groups, len(lanes))

    def outlet(self, codec: Codec, sender: int) -> Outlet:
        """Return the outlet that serves this consumer alone."""
        if self.route is not None:
            return KeyedOutlet(codec, sender, self.lanes, self.route)
        if len(self.lanes) == 1 or isinstance(self.spread, Broadcast):
            return PlainOutlet(codec, sender, self.lanes)
        return RandomOutlet(codec, sender, self.lanes)


def make_outlets(
    codec: Codec, sender: int, consumers: Sequence[Consumer], *, shared: bool
) -> list[Outlet]:
    """Return the outlets of a port: one for each consumer, or one that they share."""
    alike = all(
        consumer.route is not None or len(consumer.lanes) == 1 for consumer in consumers
    ) and not any(isinstance(consumer.spread, Broadcast) for consumer in consumers)
    if shared and alike and len(consumers) > 1:
        routes = [consumer.route for consumer in consumers]
        return [SharedOutlet(codec, sender, [c.lanes for c in consumers], routes)]
    return [consumer.outlet(codec, sender) for consumer in consumers]


def receivers(spread: Partitioning, index: int, dop: int) -> Sequence[int]:
    """Return the tasks of the receiving stage that task `index` of the sender talks to."""
    if isinstance(spread, Forward):
        return (index,)
    return (0,) if isinstance(spread, Single) else range(dop)


def senders(spread: Partitioning, index: int, dop: int) -> Sequence[int]:
    """Return the tasks of the sending stage that task `index` of the receiver hears from."""
    return (index,) if isinstance(spread, Forward) else range(dop)
