"""A task: one partition of a stage, as a state machine.

Frames come in through `receive`, are worked on one at a time by `step`, and what results leaves
through the function given as `send`. A task has no clock, no socket and no thread: `now` is an
argument, in microseconds since 1970. So the same task runs behind sockets in a Spark slot and, with
others, in one process under a test.

A mark brings stream time. It comes from all tasks before this one and, if the task has sources,
from the driver (`pulse`); it is passed on when it has come from all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import msgspec

from floodway.engine.datastream.inbox import DATA, Channel, Entry, Inbox
from floodway.engine.datastream.intake import Intake
from floodway.engine.datastream.program import FINAL, Node, Program
from floodway.engine.datastream.standing import LOCAL, Standing
from floodway.engine.numbering import Numbering
from floodway.engine.transport.batching import (
    Consumer,
    Lane,
    Outlet,
    Send,
    make_outlets,
    receivers,
    senders,
)
from floodway.engine.transport.codec import Codec
from floodway.engine.transport.frame import (
    FrameError,
    Header,
    Kind,
    make_frame,
    parse,
    payload,
    stamp,
)
from floodway.engine.transport.plain import Plain, record_classes
from floodway.operators.aggregate_latest import LatestKernel
from floodway.operators.base import Edge
from floodway.plan.stages import Exchange, Plan, Stage
from floodway.plan.windowed import windowed

if TYPE_CHECKING:
    from floodway.engine.opstream.batches import Batches

SAMPLE_EVERY = 64
"""Every so many frames one is timed."""

SAMPLE_READS = 16
"""Every so many reads of a source one is timed."""

ASK_EVERY = 5
"""Every so many marks one asks how long it takes."""

NEVER_SAMPLED = 2**62

TOGETHER, COMBINED = 1000, 4000
"""About so many records that wait are processed together; more where an aggregate combines them, so
that it works the faster the more there is to do."""

CREDIT, MARK = int(Kind.CREDIT), int(Kind.MARK)


class Mark(msgspec.Struct, frozen=True):
    """What a mark says: stream time, what the clock shows (milliseconds), if an epoch ends here."""

    stream_time: int | None = None
    clock: int | None = None
    commit: bool = False


_MARK = msgspec.msgpack.Decoder(Mark)
_encode = msgspec.msgpack.Encoder().encode


class Input:
    """An exchange as its receiver sees it: how to decode, and whom to give the rows to."""

    __slots__ = ("codec", "exchange", "owed", "readers", "senders")

    def __init__(
        self,
        exchange: Exchange,
        codec: Codec,
        readers: list[tuple[Node, int]],
        numbers: Mapping[int, int],
    ) -> None:
        self.exchange = exchange
        self.codec = codec
        self.readers = readers
        self.senders = numbers
        self.owed = dict.fromkeys(numbers, 0)
        """Bytes of each sender that were processed, and that it has not been told of."""


class Sampled:
    """What is measured on some frames, and would cost too much on all."""

    def __init__(self) -> None:
        self.records = 0
        self.fetch_ns = self.cpu_ns = self.emit_ns = 0
        self.waits_us: list[int] = []
        self.arrivals_us: list[int] = []
        self.services_us: list[int] = []
        self.hop_us = 0


class Task:
    """One partition of a stage.

    Parameters
    ----------
    plan, stage, index
        Which task of which plan.
    send
        Hands a frame to the task of a number.
    window
        How many bytes may be on their way to this task in all, divided among the senders.
    attempts
        The attempt of every task, by number; frames that were meant for another are dropped.

    Attributes
    ----------
    on_commit
        Called with the epoch when it ends, after its mark was passed on and before anything that
        follows is processed.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        index: int,
        send: Send,
        *,
        window: int = 16 * 1024 * 1024,
        attempts: Sequence[int] | None = None,
        sampling: bool = True,
    ) -> None:
        self.plan, self.stage, self.index = plan, stage, index
        self.program = Program(plan, stage, index)
        self._most = self._together = COMBINED if self.program.combines else TOGETHER
        self._send = send
        self._numbering = Numbering(plan)
        self.number = self._numbering.number(stage.name, index)
        self.plain = Plain(classes_of(plan))
        self._attempts = attempts or [0] * self._numbering.count
        self.attempt = self._attempts[self.number]
        self._stamp = stamp(self.attempt)
        self.on_commit: Callable[[int], None] | None = None
        self._window = window
        self.router_sources: dict[str, str] = {}
        self.inputs = {e.number: self._input(e) for e in plan.inputs(stage)}
        self._lanes: dict[tuple[int, int], Lane] = {}
        self._make_outlets()
        self.outlets = self.program.outlets
        channels = [(n, sender) for n, given in self.inputs.items() for sender in given.senders]
        # The task's own sources are one more channel: their marks come from the driver.
        self.inbox = Inbox([*channels, LOCAL] if stage.sources else channels)
        self._open = set(self.inbox.open)
        self.batches: Batches | None = None
        self.collecting: Batches | None = None
        """The same while what comes is collected: looked at with every frame."""
        self.captured: dict[str, Any] | None = None
        self._routes = {
            (lane.exchange, lane.target): (outlet, lane)
            for outlet in self.outlets
            for lane in outlet.lanes
        }
        self._credit_at = lane_window(plan, stage, index, window) // 4
        self._pending: Mark | None = None
        self._pending_epoch = 0
        self.epoch = 0
        self.stream_time: int | None = None
        self.records_in = self.bytes_in = self.frames_in = 0
        self._sample_frames = SAMPLE_EVERY if sampling else NEVER_SAMPLED
        self._sample_reads = SAMPLE_READS if sampling else NEVER_SAMPLED
        self.ended_exchanges: list[int] = []
        self._drained: set[int] = set()
        self.sampled = Sampled()
        self.beat = 0
        self._reads = 0
        self._last_arrival = 0
        self._asked_at = 0

    # ------------------------------------------------------------------ building

    def _input(self, exchange: Exchange) -> Input:
        sender = self.plan.stage(exchange.sender)
        readers = [(self.program.node(r.operator), r.port) for r in exchange.readers]
        numbers = {
            index: self._numbering.number(sender.name, index)
            for index in senders(exchange.partitioning, self.index, sender.dop)
        }
        return Input(exchange, self.codec(exchange.edge), readers, numbers)

    def codec(self, edge: Edge) -> Codec:
        """Return how rows of an output port are encoded."""
        return Codec(edge, self.plain, windowed=windowed(self.plan.graph, edge))

    def _make_outlets(self) -> None:
        by_port: dict[tuple[str, str], list[Exchange]] = {}
        for exchange in self.plan.outputs(self.stage):
            by_port.setdefault((exchange.edge.operator.name, exchange.edge.port), []).append(
                exchange
            )
        for exchanges in by_port.values():
            edge = exchanges[0].edge
            consumers = [self._consumer(exchange) for exchange in exchanges]
            name = edge.operator.name
            shared = self.plan.batching(name) == "shared" and edge.output.kind == "records"
            outlets = make_outlets(self.codec(edge), self.index, consumers, shared=shared)
            for outlet in outlets:
                outlet.b_out = self.plan.b_out(name)
                outlet.linger_us = self.plan.linger_ms(name) * 1000
            self.program.port(edge).outlets = outlets

    def _consumer(self, exchange: Exchange) -> Consumer:
        receiver = self.plan.stage(exchange.receiver)
        targets = receivers(exchange.partitioning, self.index, receiver.dop)
        lanes = [self._lane(exchange, receiver, target) for target in targets]
        consumer = Consumer(
            exchange.partitioning, exchange.edge.output.kind, lanes, self.plan.key_groups
        )
        if consumer.source:
            self.router_sources[f"to {receiver.name}: {exchange.partitioning}"] = consumer.source
        return consumer

    def _lane(self, exchange: Exchange, receiver: Stage, target: int) -> Lane:
        window = lane_window(self.plan, receiver, target, self._window)
        number = self._numbering.number(receiver.name, target)
        attempt = stamp(self._attempts[number])
        lane = Lane(exchange.number, number, window, self._send, attempt=attempt)
        self._lanes[exchange.number, target] = lane
        return lane

    # ------------------------------------------------------------------ frames

    def receive(self, header: Header, data: bytes) -> None:
        """Take a frame that has come: credit at once, everything else in its turn."""
        _, kind, exchange, sender, attempt, _, records, born = header
        if kind == CREDIT:
            lane = self._lanes.get((exchange, sender))
            if lane is not None and lane.attempt == attempt:
                lane.outstanding = max(lane.outstanding - records, 0)
            if born and born == self._asked_at:
                self.sampled.hop_us = (perf_counter_ns() // 1000 - born) // 2
            return
        if attempt != self._stamp or (exchange, sender) not in self.inbox.open:
            return  # for an earlier attempt, from nobody we know, or from one that has ended
        if kind == MARK and born:
            self._give_back(self.inputs[exchange], sender, 0, born)
        self.frames_in += 1
        phase = self.frames_in % self._sample_frames
        sampled = phase == 0 or (phase == 1 and self._last_arrival)
        self.inbox.put(header, data, self._arrival(phase, records) if sampled else 0)

    def _arrival(self, phase: int, records: int) -> int:
        """Note when a frame came, for one in `SAMPLE_EVERY` and the one after it."""
        arrived = perf_counter_ns()
        if phase == 0:
            self._last_arrival = arrived
            return arrived
        # The time between two frames, per record of the second.
        between = (arrived - self._last_arrival) // (1000 * max(records, 1))
        self.sampled.arrivals_us.append(between)
        return 0

    def take_at_once(self, records: int) -> None:
        """Process no more than about so many records together."""
        self._together = min(self._most, records)

    def step(self, now: int) -> bool:
        """Work on the next frame, or on several that belong together; return if there was one."""
        self.beat += 1
        if self.collecting is not None:
            return self.collecting.step(now)
        entries = self.inbox.take(self._together)
        if not entries:
            return False
        header, data, _ = entries[0]
        if header[1] == DATA:
            self._data(entries, now)
        elif header[1] == Kind.MARK:
            self._marked(header, data, now)
        elif header[1] == Kind.END:
            self._ended(header, data, now)
        elif header[1] == Kind.PARTIAL:
            self._partials(entries[0], now)
        return True

    def work_off(self, entries: list[Entry], now: int) -> None:
        """Work on frames that were taken from the inbox before."""
        if entries[0][0][1] == Kind.PARTIAL:
            self._partials(entries[0], now)
        else:
            self._data(entries, now)

    def _data(self, entries: list[Entry], now: int) -> None:
        given = self.inputs[entries[0][0][2]]
        if entries[0][2]:
            self._sampled_data(entries, given, now)
            return
        self._process(entries, given, self._decoded(entries, given), now)

    def _decoded(self, entries: list[Entry], given: Input) -> list[Any]:
        if len(entries) == 1:
            return given.codec.decode(payload(entries[0][1]))
        rows: list[Any] = []
        decode = given.codec.decode
        for _, data, _ in entries:
            rows += decode(payload(data))
        return rows

    def _process(self, entries: list[Entry], given: Input, rows: list[Any], now: int) -> None:
        self.records_in += len(rows)
        for node, port in given.readers:
            node.waiting.append((port, rows))
        self.program.run(entries[0][0][7], now)
        self.give_credit(entries, given)

    def _partials(self, entry: Entry, now: int) -> None:
        """Merge partials into an aggregate's state."""
        header, data, _ = entry
        given = self.inputs[header[2]]
        ((node, _),) = given.readers
        rows = self.unpacked(payload(data))
        self.records_in += len(rows)
        self.merge_partials(node, rows, header[7], now)
        self.give_credit([entry], given)

    def unpacked(self, data: Any) -> list[Any]:
        """Return rows that were packed by somebody of this flow."""
        try:
            rows: list[Any] = self.plain.unpack(data)
        except ValueError as error:
            raise FrameError(f"partials cannot be read: {error}") from None
        return rows

    def merge_partials(self, node: Node, rows: list[Any], born: int, now: int) -> None:
        """Merge partials into the state of the aggregate of a node."""
        assert isinstance(node.kernel, LatestKernel)
        node.received += sum(row[4] for row in rows)
        node.kernel.merge(rows)
        node.hand_on(born, now)
        self.program.run(born, now)

    def give_credit(self, entries: list[Entry], given: Input) -> None:
        """Count what was processed, and tell the senders once it is worth a frame."""
        owed, taken = given.owed, 0
        for header, data, _ in entries:
            size = len(data)
            taken += size
            owed[header[3]] += size
        self.bytes_in += taken
        for sender, size in owed.items():
            if size >= self._credit_at:
                self._give_back(given, sender, size)
                owed[sender] = 0

    def _sampled_data(self, entries: list[Entry], given: Input, now: int) -> None:
        started = perf_counter_ns()
        rows = self._decoded(entries, given)
        decoded = perf_counter_ns()
        self._sample_outlets()
        self._process(entries, given, rows, now)
        self.sampled.waits_us.append((started - entries[0][2]) // 1000)
        self._sampled_work(len(rows), started, decoded)

    def _sample_outlets(self) -> None:
        for outlet in self.outlets:
            outlet.sampling, outlet.emit_ns = True, 0

    def _sampled_work(self, records: int, started: int, decoded: int) -> None:
        """Note where the time of some records went."""
        done, emitting = perf_counter_ns(), 0
        for outlet in self.outlets:
            outlet.sampling = False
            emitting += outlet.emit_ns
        sampled = self.sampled
        sampled.records += records
        sampled.fetch_ns += decoded - started
        sampled.cpu_ns += done - decoded - emitting
        sampled.emit_ns += emitting
        sampled.services_us.append((done - started) // 1000)

    def _give_back(self, given: Input, sender: int, owed: int, asked_at: int = 0) -> None:
        """Tell a sender how much of what it sent has been processed, or that its question came."""
        credit = make_frame(
            Kind.CREDIT,
            exchange=given.exchange.number,
            sender=self.index,
            attempt=self._stamp,
            records=owed,
            born=asked_at,
        )
        self._send(given.senders[sender], credit)

    # ------------------------------------------------------------------ marks and ends

    def _marked(self, header: Header, data: bytes, now: int) -> None:
        if self.align(header, data):
            self._pass_mark(now)

    def align(self, header: Header, data: bytes) -> bool:
        """Take a mark; return whether it has come from everywhere now."""
        channel = (header[2], header[3])
        if channel not in self.inbox.open:
            return False  # its source ended while the mark waited: nobody waits for it any more
        if self._pending is not None and header[5] != self._pending_epoch:
            raise FrameError(f"mark {header[5]} came where {self._pending_epoch} was due")
        try:
            self._pending = _MARK.decode(payload(data))
        except (ValueError, RecursionError) as error:
            raise FrameError(f"a mark cannot be read: {error}") from None
        self._pending_epoch = header[5]
        return self.inbox.marked(channel)

    def aligned(self) -> tuple[int, Mark]:
        """Return the mark that has come from everywhere, and its number; the channels go on."""
        assert self._pending is not None
        mark, self._pending = self._pending, None
        self.inbox.release()
        return self._pending_epoch, mark

    def _pass_mark(self, now: int) -> None:
        # What was held back goes to the inbox only: nothing of it is processed before the mark is.
        self.pass_mark(*self.aligned(), now)

    def pass_mark(self, epoch: int, mark: Mark, now: int) -> None:
        """Let stream time pass, tell all that come after, and end the epoch if one ends here."""
        self._advance(epoch, mark, now)
        if mark.commit and self.on_commit is not None:
            self.on_commit(epoch)

    def _advance(self, epoch: int, mark: Mark, now: int) -> None:
        time = mark.stream_time
        if time is not None and (self.stream_time is None or time > self.stream_time):
            self.stream_time = time
        else:
            time = None
        self.program.mark(time, mark.clock, now)
        if self.on_commit is None:
            self.program.forget_changes()
        payload = _encode(mark)
        asked_at = self._ask(epoch)
        for outlet in self.outlets:
            outlet.announce(Kind.MARK, payload, epoch=epoch, born=asked_at)
        self.epoch = epoch

    def _ask(self, epoch: int) -> int:
        """Return what makes a mark a question, now and then: it asks how long a hop takes.

        Receivers answer as soon as they take the frame in. The time is this task's own, there and
        back, so that clocks of other hosts do not matter.
        """
        if self._sample_frames == NEVER_SAMPLED or epoch % ASK_EVERY:
            return 0
        self._asked_at = perf_counter_ns() // 1000
        return self._asked_at

    def _ended(self, header: Header, data: bytes, now: int) -> None:
        complete = self.inbox.ended((header[2], header[3]))
        self.end_channel(header, data, now)
        if complete:
            self._pass_mark(now)

    def end_channel(self, header: Header, data: bytes, now: int) -> None:
        """Let all end that has no other input than a channel which has ended."""
        exchange, sender = header[2], header[3]
        if payload(data) != FINAL:
            self._drained.add(exchange)
        self._open.discard((exchange, sender))
        given = self.inputs[exchange]
        self._give_back(given, sender, given.owed[sender] + len(data))
        given.owed[sender] = 0
        if not self._is_open(exchange):
            ended = [(node.operators[0].name, port) for node, port in given.readers]
            self.program.end(ended, now, final=exchange not in self._drained)
            self.ended_exchanges.append(exchange)

    def _is_open(self, exchange: int) -> bool:
        return any(channel[0] == exchange for channel in self._open)

    def pulse(self, epoch: int, mark: Mark) -> None:
        """Put a mark after all that the task's own sources have brought so far."""
        if self.collecting is not None:
            self.collecting.pulsed(epoch)
        exchange, sender = LOCAL
        frame = make_frame(
            Kind.MARK,
            _encode(mark),
            exchange=exchange,
            sender=sender,
            attempt=self._stamp,
            epoch=epoch,
        )
        self.receive(parse(frame), frame)

    @property
    def holds_sources(self) -> bool:
        """Whether the task's sources have to wait: for a mark to come from elsewhere, too."""
        return self.inbox.holds(LOCAL) or self.batching

    @property
    def batching(self) -> bool:
        """Whether as much as may be is in micro-batches, and nothing more can be collected."""
        return self.collecting is not None and self.collecting.full

    def end_source(self, source: str, now: int, *, final: bool = True) -> None:
        """End a source; `final` if nothing more will ever come from it."""
        if self.collecting is not None:
            self.collecting.end_source(source, final=final)
            return
        self.close_source(source, now, final=final)
        if LOCAL not in self._open and self.inbox.ended(LOCAL):
            self._pass_mark(now)

    def close_source(self, source: str, now: int, *, final: bool) -> None:
        """Let all end that has no other input than a source which has ended."""
        self.program.end([(source, -1)], now, final=final)
        if all(node.closed for node in self.program.sources.values()):
            self._open.discard(LOCAL)

    # ------------------------------------------------------------------ sources

    def feed(self, source: str, rows: list[Any], now: int) -> None:
        """Bring in rows ``(timestamp, key, value)`` through a source."""
        if self.collecting is not None:
            self.collecting.feed(source, rows, now)
        else:
            self.take_rows(source, rows, now)

    def take_rows(self, source: str, rows: list[Any], now: int) -> None:
        """Process rows of a source."""
        node = self.program.sources[source]
        assert isinstance(node.kernel, Intake)
        node.kernel.now = now // 1000
        node.waiting.append((0, rows))
        self.records_in += len(rows)
        self.program.run(now, now)

    def feed_raw(self, source: str, raw: list[Any] | bytes, now: int, *, keyed: bool) -> int:
        """Bring in what a reader handed over; return how many records that was."""
        if self.collecting is not None:
            return self.collecting.feed_raw(source, raw, now, keyed=keyed)
        return self.take_raw(source, raw, now, keyed=keyed)

    def take_raw(self, source: str, raw: list[Any] | bytes, now: int, *, keyed: bool) -> int:
        """Process what a reader handed over; return how many records that was."""
        self._reads += 1
        sampled = self._reads % self._sample_reads == 0
        started = perf_counter_ns() if sampled else 0
        if sampled:
            self._sample_outlets()
        node = self.program.sources[source]
        assert isinstance(node.kernel, Intake)
        count = node.kernel.take(raw, now // 1000, keyed=keyed)
        node.received += count
        self.records_in += count
        node.hand_on(now, now)
        self.program.run(now, now)
        if sampled:
            self._sampled_work(count, started, started)
        return count

    def latest(self, source: str) -> int | None:
        """Return the event time that a source has come to, or None."""
        return self.intake(source).come_to

    def intake(self, source: str) -> Intake:
        """Return the head of a source's chain."""
        kernel = self.program.sources[source].kernel
        assert isinstance(kernel, Intake)
        return kernel

    # ------------------------------------------------------------------ going on elsewhere

    def standing(self) -> Standing:
        """Return how far the task is; between marks nothing is on its way within it."""
        nodes = {
            node.name: (sorted(node.open_inputs), node.closed, node.final)
            for node in self.program.nodes
        }
        return Standing(
            sorted(self._open), sorted(self._drained), nodes, self.stream_time, self.epoch
        )

    def resume(self, standing: Standing) -> None:
        """Go on where a task stood."""
        self.channels = {(exchange, sender) for exchange, sender in standing.channels}
        self._drained = set(standing.drained)
        for node in self.program.nodes:
            inputs, node.closed, node.final = standing.nodes[node.name]
            node.open_inputs = set(inputs)
        self.stream_time, self.epoch = standing.stream_time, standing.epoch
        self.ended_exchanges = [n for n in self.inputs if not self._is_open(n)]
        for outlet in self.outlets:
            outlet.epoch = standing.epoch

    @property
    def channels(self) -> set[Channel]:
        """The channels whose end has not been processed."""
        return set(self._open)

    @channels.setter
    def channels(self, channels: set[Channel]) -> None:
        self._open, self.inbox.open = set(channels), set(channels)

    def route(self, exchange: int, target: int) -> tuple[Outlet, Lane]:
        """Return the outlet and the lane that lead to a task on an exchange."""
        return self._routes[exchange, target]

    @property
    def lanes(self) -> list[Lane]:
        """All ways that lead to other tasks."""
        return list(self._lanes.values())

    @property
    def bytes_out(self) -> int:
        """How many bytes were sent."""
        return sum(outlet.bytes_out for outlet in self.outlets)

    # ------------------------------------------------------------------ output

    def flush(self, now: int | None = None) -> None:
        """Send what has lingered long enough, or everything."""
        for outlet in self.outlets:
            outlet.flush(now)

    def due(self) -> int | None:
        """Return when a batch has lingered long enough, or None."""
        times = [due for outlet in self.outlets if (due := outlet.due()) is not None]
        return min(times, default=None)

    @property
    def blocked(self) -> bool:
        """Whether a receiver has enough to do, so that nothing more should be made for it."""
        return any(outlet.blocked for outlet in self.outlets)

    @property
    def ended(self) -> bool:
        """Whether everything has ended."""
        return self.program.closed

    @property
    def taken(self) -> bool:
        """Whether all that was sent, ends included, has been processed where it went."""
        return not any(lane.outstanding for lane in self._lanes.values())

    def tune(self, operator: str, b_out: int | None, linger_us: int | None) -> None:
        """Change how an operator's output is batched, from now on."""
        for node in self.program.nodes:
            for port in node.ports:
                if port.operator != operator:
                    continue
                for outlet in port.outlets:
                    outlet.b_out = outlet.b_out if b_out is None else b_out
                    outlet.linger_us = outlet.linger_us if linger_us is None else linger_us


def lane_window(plan: Plan, stage: Stage, index: int, window: int) -> int:
    """Return how many bytes each sender may have on the way to a task."""
    count = sum(
        len(senders(exchange.partitioning, index, plan.stage(exchange.sender).dop))
        for exchange in plan.inputs(stage)
    )
    return max(window // max(count, 1), 64 * 1024)


def classes_of(plan: Plan) -> tuple[type[msgspec.Struct], ...]:
    """Return the record classes that travel in a flow, in the same order in every process."""
    from floodway.operators.changelog import Change
    from floodway.operators.on_error import DeadLetter
    from floodway.operators.windows import Window

    outputs = [output for op in plan.graph.operators for output in op.outputs.values()]
    types = [output.schema.type for output in outputs]
    keys = [field.type for output in outputs if output.key for field in output.key.fields]
    known: tuple[type[msgspec.Struct], ...] = (Window, Change, DeadLetter)
    return tuple(dict.fromkeys((*known, *record_classes([*types, *keys]))))
