"""The micro-batch form of a task, at the owner: collecting, offering, merging.

What comes is not processed but collected, in order: frames and reads of sources that the remote
half takes, those it does not take, marks, ends. A *batch* is a stretch of that order. What the
remote half takes is written to a block and offered to the driver; when the results are there, the
batch is *merged*: everything is done in the order in which it came, with results in place of what
was sent away. So nobody can tell afterwards in which paradigm a task was. A mark ends no batch, and
no state moves when the paradigm is switched.
"""

import shutil
from collections import deque
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from floodway.connectors.lines import about_lines
from floodway.core.errors import EngineError
from floodway.engine.control.messages import Made, Offer
from floodway.engine.control.report import BatchCounts
from floodway.engine.datastream.form import Form
from floodway.engine.datastream.inbox import DATA, Arrived
from floodway.engine.datastream.settings import Settings
from floodway.engine.datastream.task import TOGETHER, Positions, Task
from floodway.engine.host.failpoints import reach
from floodway.engine.opstream.batch import (
    Batch,
    ChangedTables,
    EndOfChannel,
    EndOfSource,
    Frames,
    Marked,
    RawUnit,
    Run,
)
from floodway.engine.opstream.blocks import FRAME, ITEMS, KEYED, LINES, ROWS, BlockWriter
from floodway.engine.opstream.halves import Halves, halves
from floodway.engine.opstream.merging import Merging
from floodway.engine.opstream.remote import Context, encode_context
from floodway.engine.opstream.tables import Tables, reached
from floodway.engine.program.mark import Mark
from floodway.engine.program.standing import LOCAL
from floodway.engine.program.wiring import classes_of
from floodway.engine.state.pickling import Pickling
from floodway.engine.transport.frame import (
    BORN,
    EPOCH,
    EXCHANGE,
    KIND,
    RECORDS,
    SENDER,
    Header,
    Kind,
    payload,
)
from floodway.model.tuning import Paradigm

DEPTH = 2
"""So many blocks may be offered at a time: one is processed, and the next one is ready. The first
after a switch is alone: the first ones of other stages should not have to wait for the second."""

SHORTEST_US, LONGEST_US = 20_000, 1_000_000
"""The bounds of the interval between two blocks."""

MOST_US, FIRST_US, LEAST_RECORDS = 200_000, 15_000, 1_000
"""A batch should take no longer than the first, unless it has fewer records than the last. Before
one has been processed, what records cost here must do for a guess; the very first should take the
second only, since nothing comes out until it is done."""

QUIET_US = 500_000
"""If nothing comes for so long after a switch, nobody waits for it."""

RETRY_US = 500_000
"""How long to wait before a block is written again that did not find room."""

PARTIAL = int(Kind.PARTIAL)

_SIMPLE = frozenset({bytes, str, int, float, bool, type(None)})

_encode = msgspec.msgpack.Encoder().encode


class HeldBack(NamedTuple):
    """What a source brought while its task waited for a mark, and the last one made before it."""

    behind: int
    item: RawUnit | EndOfSource


class Inflow(Protocol):
    """The sources of a task, as far as they have to agree with what is collected."""

    def where(self) -> Positions:
        """Return where their readers are."""

    def have_brought(self, name: str, count: int) -> None:
        """Take note that so many records, which were read before, have come in."""


class Batches:
    """Collects what comes to a task, and merges what came of it: its micro-batch form (`Form`).

    Parameters
    ----------
    offer
        Hands an offer to the driver.
    switched
        Told the paradigm when the task works in it, and how long it stood still before.
    folder
        Where blocks go; it need not be durable.
    sources
        The task's sources; None if nobody wants to know where they are.
    clock
        The time in microseconds.
    most_bytes
        A block is not collected beyond this.

    Attributes
    ----------
    wanted
        The paradigm that was asked for last.
    away
        Why no block can be written, if so.
    """

    def __init__(
        self,
        task: Task,
        offer: Callable[[Offer], None],
        switched: Callable[[Paradigm, int], None],
        folder: Path,
        clock: Callable[[], int],
        *,
        sources: Inflow | None = None,
        most_bytes: int = Settings().block_bytes,
    ) -> None:
        self._most_bytes, self._most_records = most_bytes, LEAST_RECORDS
        self._task, self._offer, self._switched = task, offer, switched
        self._folder, self._clock = folder, clock
        self._inflow, self._active = sources, False
        self.wanted: Paradigm = "data"
        self.away: str | None = None
        self.work = BatchCounts()
        self.interval_us = SHORTEST_US
        self.merging = Merging(task, None if sources is None else sources.have_brought)
        self._tables = Tables(task.program, Pickling(classes_of(task.plan)), folder)
        self._halves: dict[tuple[str, ...], Halves] = {}
        self._sources = {s.name: place for place, s in enumerate(task.stage.sources)}
        self._readers = {
            number: [(node.name, port) for node, port in given.readers]
            for number, given in task.inputs.items()
        }
        self._changes_on = {
            number: frozenset(name for node, port in given.readers for name in reached(node, port))
            for number, given in task.inputs.items()
        }
        self._changes_by = {
            name: frozenset(reached(node, 0)) for name, node in task.program.sources.items()
        }
        self._pending: Batch | None = None
        self._out: deque[Batch] = deque()
        self._held: deque[HeldBack] = deque()
        self._closing: set[str] = set()
        self._captured: Positions | None = None
        self._made: dict[int, Positions | None] = {}
        self._stream_time: int | None = None
        self._ordered_us: int | None = None
        self._closed_us = self._retry_us = 0
        self._numbered = self._files = 0
        self._free: list[Path] = []  # files of blocks that are done, to be written over

    at_once = False

    # ------------------------------------------------------------------ switching

    def switch(self, paradigm: Paradigm) -> None:
        """Work in a paradigm from now on, or as soon as what was collected is merged."""
        if paradigm == self.wanted:
            return
        self.wanted = paradigm
        self._ordered_us = self._clock()
        if paradigm == "operation" and not self.active:
            self._active = True
            self._most_records = self._worth(FIRST_US)
            self._closed_us = self._ordered_us
            self._stream_time = self._task.stream_time
            # Marks that are on their way already were made before anything is read from now on.
            self._captured = self._where()
            self._closing = {n for n, s in self._task.program.sources.items() if s.closed}

    def _worth(self, microseconds: int) -> int:
        """Return about how many records the task itself could process in some time."""
        sampled = self._task.sampled
        spent_ns = sampled.fetch_ns + sampled.cpu_ns + sampled.emit_ns
        worth = sampled.records * microseconds * 1000 // max(spent_ns, 1)
        return max(worth, LEAST_RECORDS)

    @property
    def active(self) -> bool:
        """Whether what comes is collected, or was and is not merged yet."""
        return self._active

    @property
    def form(self) -> Form:
        """The form in which the task works now."""
        return self if self._active else self._task

    @property
    def paradigm(self) -> Paradigm:
        """The paradigm in which the task works now."""
        return "operation" if self.active else "data"

    @property
    def holds_sources(self) -> bool:
        """Whether the task's sources have to wait: for a mark from elsewhere, or for Spark."""
        return self._task.holds_sources or self.full

    @property
    def full(self) -> bool:
        """Whether nothing more should be collected for now."""
        if self.away is not None:
            return True
        if self.wanted == "data":
            return not self._held  # those wait for a mark that has to be collected, too
        return self._pending is not None and self._is_large(self._pending)

    def _is_large(self, batch: Batch) -> bool:
        return batch.bytes >= self._most_bytes or batch.records >= self._most_records

    @property
    def records(self) -> int:
        """How many records have been collected and not merged."""
        pending = self._pending.records if self._pending is not None else 0
        return pending + sum(batch.records for batch in self._out)

    @property
    def quiet(self) -> bool:
        """Whether everything that was collected is merged."""
        return not self._out and self._pending is None and not self._held

    def _told(self, since: int) -> None:
        """Say that the switch is done, and that the task stood still for it since then."""
        if self._ordered_us is not None:
            self._ordered_us = None
            self._switched(self.paradigm, max(self._clock() - since, 0))

    # ------------------------------------------------------------------ collecting

    def feed_raw(self, source: str, raw: list[Any] | bytes, now: int, *, keyed: bool) -> int:
        """Collect what a source has read; return about how many records that is."""
        if isinstance(raw, bytes):
            kind, records = LINES, about_lines(raw)
        else:
            kind, records = KEYED if keyed else ITEMS, len(raw)
        self._collect_own(RawUnit(source, raw, now, kind, records, self._changes_by[source]))
        return records

    def feed(self, source: str, rows: list[Any], now: int) -> None:
        """Collect rows ``(timestamp, key, value)`` of a source."""
        self._collect_own(RawUnit(source, rows, now, ROWS, len(rows), self._changes_by[source]))

    def end_source(self, source: str, now: int, *, final: bool = True) -> None:
        """Collect the end of a source."""
        self._collect_own(EndOfSource(source, final))

    def _collect_own(self, item: RawUnit | EndOfSource) -> None:
        """Collect what comes from the task's own sources, after marks that were made before."""
        while self._collect_next():  # even if that is too much: what was read cannot be put back
            pass
        if self._task.alignment.holds(LOCAL):
            self._held.append(HeldBack(self._task.pulsed, item))
        else:
            self._add_own(item)

    def _add_own(self, item: RawUnit | EndOfSource) -> None:
        if isinstance(item, RawUnit):
            self._add_raw(item)
        else:
            self._end_source(item)

    def _end_source(self, end: EndOfSource) -> None:
        self._batch().add(end)
        self._closing.add(end.source)
        if self._closing == self._sources.keys():
            self._captured = self._where()  # no mark of its own will say so any more
            if self._task.alignment.ended(LOCAL):
                self._aligned()

    def _add_raw(self, item: RawUnit) -> None:
        batch = self._batch(item.changes)
        node = self._task.program.sources[item.source]
        away = node.name in batch.parts.remote and not self._task.intake(item.source).looks_back
        packed = self._packed(item.raw) if away else None
        if packed is None:
            self._tables.coming(item.changes)
            batch.add(item)
            return
        place = self._sources[item.source]
        self._begin_run(batch, item.kind, place, item.source, item.changes)
        self._send_away(batch, item.kind, place, [(item.records, item.now, packed)])
        batch.guessed += item.records
        self._task.records_in += item.records

    def _send_away(self, batch: Batch, kind: int, place: int, units: Any) -> None:
        if batch.send_away(kind, place, units):
            self._written(batch)

    def _written(self, batch: Batch) -> bool:
        """Write what waits to be written; return whether there was room for it."""
        assert batch.block is not None
        try:
            batch.block.flush()
        except OSError as error:
            self.away = f"there is no room for a block: {error.strerror}"
            self._retry_us = self._clock() + RETRY_US
            return False
        self.away = None
        return True

    def _packed(self, raw: list[Any] | bytes) -> bytes | None:
        """Return what a source has read as bytes; None if it cannot travel."""
        if isinstance(raw, bytes):
            return raw
        try:
            return _encode(raw if is_simple(raw) else self._task.wiring.plain.pack(raw))
        except (TypeError, ValueError, OverflowError, RecursionError):
            return None

    def _begin_run(
        self, batch: Batch, kind: int, place: int, source: str | None, changes: ChangedTables
    ) -> None:
        if batch.begins_run(kind, place):
            self._tables.coming(changes)
            run = Run(len(batch.times), source, changes)
            batch.begin_run(kind, place, run, self._stream_time)

    def _batch(self, changes: ChangedTables = frozenset()) -> Batch:
        """Return the batch to collect into; one ends where a table changes that it looks into."""
        batch = self._pending
        if batch is not None and changes & batch.parts.tables:
            if not self._close(batch):
                raise EngineError(
                    f"a block cannot be written: {self.away}",
                    remedy="make room on the disk of the temporary files",
                )
            batch = None
        if batch is None:
            now = self._clock()
            without = sorted({*self._tables.stale(now), *changes})
            parts = self._parts(tuple(without))
            batch = self._pending = Batch(self._file, parts, without, now)
        return batch

    def _file(self) -> Path:
        """Return where a block can go."""
        if self._free:
            return self._free.pop()
        self._files += 1
        return self._folder / f"{self._files}.block"

    def _parts(self, without: tuple[str, ...]) -> Halves:
        parts = self._halves.get(without)
        if parts is None:
            parts = halves(self._task.plan, self._task.stage, without)
            self._halves[without] = parts
        return parts

    def _collect_next(self) -> bool:
        """Take what comes next from the inbox; return whether there was something."""
        entries = self._task.inbox.take(TOGETHER)
        if not entries:
            return False
        header, data, _ = entries[0]
        if header[KIND] in (DATA, PARTIAL):
            self._collect_data(entries)
        elif header[KIND] == Kind.MARK:
            self._collect_mark(header, data)
        elif header[KIND] == Kind.END:
            self._batch().add(EndOfChannel(header, data))
            if self._task.alignment.ended((header[EXCHANGE], header[SENDER])):
                self._aligned()
        return True

    def _collect_data(self, entries: list[Arrived]) -> None:
        header, _, _ = entries[0]
        given, changes = self._task.inputs[header[EXCHANGE]], self._changes_on[header[EXCHANGE]]
        batch = self._batch(changes)
        if header[KIND] != DATA or not batch.parts.enters(self._readers[header[EXCHANGE]]):
            self._tables.coming(changes)
            batch.add(Frames(entries, changes))
            return
        self._begin_run(batch, FRAME, header[EXCHANGE], None, changes)
        units = [(h[RECORDS], h[BORN], payload(data)) for h, data, _ in entries]
        self._send_away(batch, FRAME, header[EXCHANGE], units)
        self._task.records_in += sum(h[RECORDS] for h, _, _ in entries)
        self._task.give_credit(entries, given)

    def pulse(self, epoch: int, mark: Mark) -> None:
        """Put a mark after all that the task's own sources have brought so far.

        Where they are is remembered: they may read on before it counts.
        """
        self._made[epoch] = self._where()
        self._task.pulse(epoch, mark)

    def _where(self) -> Positions | None:
        return None if self._inflow is None else self._inflow.where()

    def _collect_mark(self, header: Header, data: bytes) -> None:
        if (header[EXCHANGE], header[SENDER]) == LOCAL:
            self._captured = self._made.pop(header[EPOCH], self._captured)
        if self._task.align(header, data):
            self._aligned()

    def _aligned(self) -> None:
        """Put a mark where it has come from everywhere, and what was held back behind it.

        What was read behind the task's next mark as well waits for that one: where the sources were
        then, they had not read it.
        """
        epoch, mark = self._task.aligned()
        self._batch().add(Marked(epoch, mark, self._captured))
        time = mark.stream_time
        if time is not None and (self._stream_time is None or time > self._stream_time):
            self._stream_time = time
        while self._held and self._held[0].behind <= epoch:
            self._add_own(self._held.popleft().item)

    # ------------------------------------------------------------------ offering

    def turn(self, now: int) -> None:
        """Close the batch that is collected if it is time, and go back if there is nothing left."""
        batch = self._pending
        if batch is not None and batch.steps and self._may_close(batch, now):
            self._close(batch)
        if self._ordered_us is None or not self.quiet:
            return
        if self.wanted == "data":
            self._active = False
            self._tidy()
            self._told(self._ordered_us)
        elif now - self._ordered_us >= QUIET_US:
            self._told(now)  # nobody has come who could have waited

    def _may_close(self, batch: Batch, now: int) -> bool:
        if batch.block is None:
            return True
        if now < self._retry_us or self._enough_out:
            return False
        due = now - self._closed_us >= self.interval_us
        return due or self._is_large(batch) or self.wanted == "data"

    def due(self) -> list[int]:
        """Return when a batch will be closed, or tried to be."""
        waits = self._pending is not None and self._pending.block and not self._enough_out
        return [max(self._closed_us + self.interval_us, self._retry_us)] if waits else []

    @property
    def _enough_out(self) -> bool:
        out = sum(batch.results is None for batch in self._out)
        return out >= (1 if self._beginning else DEPTH)

    @property
    def _beginning(self) -> bool:
        """Whether no block has come back since the switch."""
        return self._ordered_us is not None and self.wanted == "operation"

    def _close(self, batch: Batch) -> bool:
        """Offer a batch's block; return whether that could be done."""
        if batch.block is not None and not self._offered(batch, batch.block):
            return False
        self._pending = None
        self._out.append(batch)
        if not batch.number:
            batch.results = {}
        return True

    def _offered(self, batch: Batch, block: BlockWriter) -> bool:
        """Complete a block and offer it; return whether there was room for all of it."""
        if not self._written(batch):
            return False
        self._numbered += 1
        batch.number = self._numbered
        self._closed_us = batch.offered_us = self._clock()
        cuts = block.close()
        tables = self._tables.paths(batch.parts.tables)
        latest = {name: self._task.intake(name).latest for name in self._sources}
        context = encode_context(Context(batch.times, tables, batch.without, latest))
        reach("batch.before_offer")
        task = self._task
        path = str(block.path)
        self._offer(Offer(task.number, task.attempt, batch.number, path, cuts, context))
        if self._beginning:  # while it is away more may gather
            self._most_records = self._worth(MOST_US)
        return True

    def _tidy(self) -> None:
        """Remove the files that nobody needs for now."""
        for path in self._free:
            path.unlink(missing_ok=True)
        self._free.clear()

    def close(self) -> None:
        """Remove what need not outlive the attempt."""
        shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------------ merging

    def made(self, made: Made) -> None:
        """Take the results of a block."""
        batch = next((b for b in self._out if b.number == made.batch), None)
        if batch is None or batch.results is not None or made.attempt != self._task.attempt:
            return  # said twice, or of an attempt that is over
        if made.problem:
            raise EngineError(
                f"a micro-batch of {batch.records} records could not be processed on Spark: "
                f"{made.problem}",
                remedy="see Spark's log; with paradigm='data' the operators of the stage do "
                "without micro-batches",
            )
        reach("batch.before_merge")
        processed_us = self.merging.load(batch, made.results)
        if batch.block is not None:
            self._free.append(batch.block.path)
        self._correct(batch)
        # As long as a job takes: then one is always ready when the other is done.
        self.interval_us = min(max(made.ran_us, SHORTEST_US), LONGEST_US)
        # What is collected beyond what can be done in a moment would wait here, and not outside.
        # Only the own work counts: a small block may be in one job with a large one of others.
        most = batch.records * MOST_US // max(processed_us, 1)
        self._most_records = max(most, LEAST_RECORDS)
        self._account(batch, processed_us)

    def _correct(self, batch: Batch) -> None:
        """Count what sources have read by what was found in it: lines were guessed."""
        assert batch.results is not None
        read = sum(run.read for pieces in batch.results.values() for run in pieces)
        batch.records += read - batch.guessed
        self._task.records_in += read - batch.guessed

    def _account(self, batch: Batch, processed_us: int) -> None:
        took, work = self._clock() - batch.offered_us, self.work
        self.work = msgspec.structs.replace(
            work,
            batches=work.batches + 1,
            records=work.records + batch.records,
            waited_us=work.waited_us + batch.offered_us - batch.since,
            scheduled_us=work.scheduled_us + max(took - processed_us, 0),
            processed_us=work.processed_us + processed_us,
        )

    def step(self, now: int) -> bool:
        """Merge or collect something; return whether there was something."""
        self._task.beat += 1
        batch = self._out[0] if self._out else None
        if batch is None or batch.results is None:
            return not self.full and self._collect_next()
        if batch.steps:
            began = self._clock()
            if self.merging.step(batch, batch.steps[0], now):
                step = batch.steps.popleft()
                self._tables.came(getattr(step, "changes", ()))
            took = self._clock() - began
            merged_us = self.work.merged_us + took
            self.work = msgspec.structs.replace(self.work, merged_us=merged_us)
        if not batch.steps:
            self._merged(batch)
        return True

    def _merged(self, batch: Batch) -> None:
        self._out.popleft()
        if not self._out:
            self._tables.tidy()
        if self.wanted == "operation" and batch.number:
            self._told(batch.since)


def is_simple(items: list[Any]) -> bool:
    """Return whether items, or rows of them, mean the same after any encoding.

    Readers of messages bring bytes, and looking at each singly would cost more than decoding it.

    >>> is_simple([b"one", "two", None]), is_simple([(7, b"key", None)]), is_simple([{1, 2}])
    (True, True, False)
    """
    kinds = set(map(type, items))
    if kinds == {tuple}:
        return all(set(map(type, column)) <= _SIMPLE for column in zip_longest(*items))
    return kinds <= _SIMPLE
