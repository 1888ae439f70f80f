"""A task: one partition of a stage, as a state machine.

Frames come in through `receive`, are worked on one at a time by `step`, and what results leaves
through the function given as `send`. A task has no clock, no socket and no thread: `now` is an
argument, in microseconds since 1970. So the same task runs behind sockets in a Spark slot and, with
others, in one process under a test.

A mark brings stream time. It comes from all tasks before this one and, if the task has sources,
from the driver (`pulse`); it is passed on when it has come from all of them (`Alignment`). Which of
the frames between two marks is next is for a policy to say (`Policy`).
"""

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

from floodway.engine.datastream.alignment import Alignment
from floodway.engine.datastream.chosen import MakePolicy, inbox_of
from floodway.engine.datastream.fifo import Fifo
from floodway.engine.datastream.inbox import DATA, Arrived
from floodway.engine.program.intake import Intake
from floodway.engine.program.mark import Mark, decode_mark, encode_mark
from floodway.engine.program.program import FINAL, Node
from floodway.engine.program.standing import LOCAL, Channel, Standing
from floodway.engine.program.wiring import WINDOW, Input, Wiring
from floodway.engine.transport.batching import Lane, Send
from floodway.engine.transport.frame import (
    BORN,
    EPOCH,
    EXCHANGE,
    KIND,
    RECORDS,
    SENDER,
    FrameError,
    Header,
    Kind,
    make_frame,
    parse,
    payload,
    stamp,
)
from floodway.plan.stages import Plan, Stage

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


class Sampled:
    """What is measured on some frames, and would cost too much on all."""

    def __init__(self) -> None:
        self.records = 0
        self.fetch_ns = self.cpu_ns = self.emit_ns = 0
        self.waits_us: list[int] = []
        self.arrivals_us: list[int] = []
        self.services_us: list[int] = []
        self.hop_us = 0


Positions = dict[str, Any]
"""Where the readers of a task's sources are, by source."""

OnCommit = Callable[[int, Positions | None], None]


class Task:
    """One partition of a stage; it is the record form of itself (`Form`).

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
    policy
        Makes what chooses among frames that wait; by default they are taken as they came.
    on_commit
        Called when an epoch ends, after its mark was passed on and before anything that follows is
        processed: with the epoch, and where the sources were when its mark was made, or None for
        where they are. If there is nobody to call, what has changed in an epoch is forgotten.

    Attributes
    ----------
    inbox, alignment
        What waits, and at which channels a mark has come that others have not brought yet.
    pulsed
        The last mark that was put behind what the task's own sources have brought; it may wait yet.
    dropped
        How many records the policy has dropped.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        index: int,
        send: Send,
        *,
        window: int = WINDOW,
        attempts: Sequence[int] | None = None,
        sampling: bool = True,
        policy: MakePolicy = Fifo,
        on_commit: OnCommit | None = None,
    ) -> None:
        self.plan, self.stage, self.index = plan, stage, index
        self.wiring = Wiring(plan, stage, index, send, window=window, attempts=attempts)
        wiring, self._send = self.wiring, send
        self.program, self.inputs, self.outlets = wiring.program, wiring.inputs, wiring.outlets
        self.number, self.attempt = wiring.number, wiring.attempt
        self._most = self._together = COMBINED if self.program.combines else TOGETHER
        self._stamp = stamp(self.attempt)
        self.on_commit = on_commit
        self._lanes, self._credit_at = wiring.lanes, wiring.lane_window // 4
        self.alignment = Alignment(wiring.channels)
        self.inbox = inbox_of(wiring, self.alignment, policy, self._drop)
        self._open = set(wiring.channels)
        self._pending: Mark | None = None
        self._pending_epoch = 0
        self.epoch = self.pulsed = 0
        self.stream_time: int | None = None
        self.records_in = self.bytes_in = self.frames_in = self.dropped = 0
        self._sample_frames = SAMPLE_EVERY if sampling else NEVER_SAMPLED
        self._sample_reads = SAMPLE_READS if sampling else NEVER_SAMPLED
        self.ended_exchanges: list[int] = []
        self._drained: set[int] = set()
        self.sampled = Sampled()
        self.beat = 0
        self._reads = 0
        self._last_arrival = 0
        self._asked_at = 0

    at_once = True
    full = False

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
        if attempt != self._stamp or (exchange, sender) not in self.alignment.open:
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
        entries = self.inbox.take(self._together)
        if not entries:
            return False
        header, data, _ = entries[0]
        if header[KIND] == DATA:
            self._data(entries, now)
        elif header[KIND] == Kind.MARK:
            self._marked(header, data, now)
        elif header[KIND] == Kind.END:
            self._ended(header, data, now)
        elif header[KIND] == Kind.PARTIAL:
            self._partials(entries[0], now)
        return True

    def work_off(self, entries: list[Arrived], now: int) -> None:
        """Work on frames that were taken from the inbox before."""
        first = entries[0]
        header, _, _ = first
        if header[KIND] == Kind.PARTIAL:
            self._partials(first, now)
        else:
            self._data(entries, now)

    def _data(self, entries: list[Arrived], now: int) -> None:
        header, _, arrived = entries[0]
        given = self.inputs[header[EXCHANGE]]
        if arrived:
            self._sampled_data(entries, given, header[BORN], arrived, now)
            return
        self._process(entries, given, self._decoded(entries, given), header[BORN], now)

    def _decoded(self, entries: list[Arrived], given: Input) -> list[Any]:
        if len(entries) == 1:
            ((_, data, _),) = entries
            return given.codec.decode(payload(data))
        rows: list[Any] = []
        decode = given.codec.decode
        for _, data, _ in entries:
            rows += decode(payload(data))
        return rows

    def _process(
        self, entries: list[Arrived], given: Input, rows: list[Any], born: int, now: int
    ) -> None:
        self.records_in += len(rows)
        for node, port in given.readers:
            node.waiting.append((port, rows))
        self.program.run(born, now)
        self.give_credit(entries, given)

    def _partials(self, entry: Arrived, now: int) -> None:
        """Merge partials into an aggregate's state."""
        header, data, _ = entry
        given = self.inputs[header[EXCHANGE]]
        ((node, _),) = given.readers
        rows = self.unpacked(payload(data))
        self.records_in += len(rows)
        self.merge_partials(node, rows, header[BORN], now)
        self.give_credit([entry], given)

    def unpacked(self, data: Any) -> list[Any]:
        """Return rows that were packed by somebody of this flow."""
        try:
            rows: list[Any] = self.wiring.plain.unpack(data)
        except ValueError as error:
            raise FrameError(f"partials cannot be read: {error}") from None
        return rows

    def merge_partials(self, node: Node, rows: list[Any], born: int, now: int) -> None:
        """Merge partials into the state of the aggregate of a node."""
        node.received += sum(row[4] for row in rows)
        node.kernel.merge(rows)
        node.hand_on(born, now)
        self.program.run(born, now)

    def give_credit(self, entries: list[Arrived], given: Input) -> None:
        """Count what was processed, and tell the senders once it is worth a frame."""
        owed, taken = given.owed, 0
        for header, data, _ in entries:
            size = len(data)
            taken += size
            owed[header[SENDER]] += size
        self.bytes_in += taken
        for sender, size in owed.items():
            if size >= self._credit_at:
                self._give_back(given, sender, size)
                owed[sender] = 0

    def _drop(self, entries: list[Arrived]) -> None:
        """Count what a policy has dropped; who sent it may send as much again."""
        for entry in entries:
            header, _, _ = entry
            given = self.inputs[header[EXCHANGE]]
            self.dropped += header[RECORDS]
            for node, _ in given.readers:
                node.dropped += header[RECORDS]
            self.give_credit([entry], given)

    def _sampled_data(
        self, entries: list[Arrived], given: Input, born: int, arrived: int, now: int
    ) -> None:
        started = perf_counter_ns()
        rows = self._decoded(entries, given)
        decoded = perf_counter_ns()
        self._sample_outlets()
        self._process(entries, given, rows, born, now)
        self.sampled.waits_us.append((started - arrived) // 1000)
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
        channel = (header[EXCHANGE], header[SENDER])
        if channel not in self.alignment.open:
            return False  # its source ended while the mark waited: nobody waits for it any more
        if self._pending is not None and header[EPOCH] != self._pending_epoch:
            raise FrameError(f"mark {header[EPOCH]} came where {self._pending_epoch} was due")
        try:
            self._pending = decode_mark(payload(data))
        except (ValueError, RecursionError) as error:
            raise FrameError(f"a mark cannot be read: {error}") from None
        self._pending_epoch = header[EPOCH]
        return self.alignment.marked(channel)

    def aligned(self) -> tuple[int, Mark]:
        """Return the mark that has come from everywhere, and its number; the channels go on."""
        assert self._pending is not None
        mark, self._pending = self._pending, None
        self.inbox.release()
        return self._pending_epoch, mark

    def _pass_mark(self, now: int) -> None:
        # What was held back goes to the inbox only: nothing of it is processed before the mark is.
        self.pass_mark(*self.aligned(), now)

    def pass_mark(
        self, epoch: int, mark: Mark, now: int, positions: Positions | None = None
    ) -> None:
        """Let stream time pass, tell all that come after, and end the epoch if one ends here.

        `positions` as for `on_commit`.
        """
        self._advance(epoch, mark, now)
        if mark.commit and self.on_commit is not None:
            self.on_commit(epoch, positions)

    def _advance(self, epoch: int, mark: Mark, now: int) -> None:
        time = mark.stream_time
        if time is not None and (self.stream_time is None or time > self.stream_time):
            self.stream_time = time
        else:
            time = None
        self.program.mark(time, mark.clock, now)
        if self.on_commit is None:
            self.program.forget_changes()
        payload = encode_mark(mark)
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
        complete = self.alignment.ended((header[EXCHANGE], header[SENDER]))
        self.end_channel(header, data, now)
        if complete:
            self._pass_mark(now)

    def end_channel(self, header: Header, data: bytes, now: int) -> None:
        """Let all end that has no other input than a channel which has ended."""
        exchange, sender = header[EXCHANGE], header[SENDER]
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
        self.pulsed = epoch
        exchange, sender = LOCAL
        frame = make_frame(
            Kind.MARK,
            encode_mark(mark),
            exchange=exchange,
            sender=sender,
            attempt=self._stamp,
            epoch=epoch,
        )
        self.receive(parse(frame), frame)

    @property
    def holds_sources(self) -> bool:
        """Whether the task's sources have to wait: for a mark to come from elsewhere, too."""
        return self.alignment.holds(LOCAL)

    def end_source(self, source: str, now: int, *, final: bool = True) -> None:
        """End a source; `final` if nothing more will ever come from it."""
        self.close_source(source, now, final=final)
        if LOCAL not in self._open and self.alignment.ended(LOCAL):
            self._pass_mark(now)

    def close_source(self, source: str, now: int, *, final: bool) -> None:
        """Let all end that has no other input than a source which has ended."""
        self.program.end([(source, -1)], now, final=final)
        if all(node.closed for node in self.program.sources.values()):
            self._open.discard(LOCAL)

    # ------------------------------------------------------------------ sources

    def feed(self, source: str, rows: list[Any], now: int) -> None:
        """Bring in rows ``(timestamp, key, value)`` through a source."""
        node = self.program.sources[source]
        assert isinstance(node.kernel, Intake)
        node.kernel.now = now // 1000
        node.waiting.append((0, rows))
        self.records_in += len(rows)
        self.program.run(now, now)

    def feed_raw(self, source: str, raw: list[Any] | bytes, now: int, *, keyed: bool) -> int:
        """Bring in what a reader handed over; return how many records that was."""
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
        return Standing(
            sorted(self._open),
            sorted(self._drained),
            self.program.standing(),
            self.stream_time,
            self.epoch,
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
        self._open, self.alignment.open = set(channels), set(channels)

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
