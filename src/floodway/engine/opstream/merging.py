"""Merging: a batch is played out in a task, with results in place of what was done elsewhere."""

from collections.abc import Callable, Iterable, Mapping
from operator import add
from pathlib import Path

from floodway.engine.control.messages import error_of
from floodway.engine.datastream.task import Task
from floodway.engine.host.failpoints import reach
from floodway.engine.opstream.batch import (
    Batch,
    BatchStep,
    EndOfChannel,
    EndOfSource,
    Frames,
    Marked,
    RawUnit,
    Run,
)
from floodway.engine.opstream.blocks import (
    KEYED,
    ROWS,
    BlockRows,
    NodeCounts,
    RunResult,
    read_result,
)
from floodway.engine.opstream.halves import Halves
from floodway.engine.opstream.outlets import PARTIALS, REST
from floodway.engine.program.intake import Intake
from floodway.engine.transport.codec import Codec
from floodway.operators.base import Edge
from floodway.operators.stateless import ChainKernel

FRAMES = 16
"""So many frames are sent on at a time."""


class Merging:
    """Merges batches into a task.

    Parameters
    ----------
    read
        Told how many records a source has brought, once that is known.
    """

    def __init__(self, task: Task, read: Callable[[str, int], None] | None = None) -> None:
        self._task, self._read = task, read
        self._codecs: dict[tuple[str, str], Codec] = {}

    def load(self, batch: Batch, paths: Iterable[str]) -> int:
        """Read the results of a batch; return how long the longest piece took in microseconds.

        What made a piece fail is raised.
        """
        found: dict[int, list[RunResult]] = {}
        longest = 0
        for path in paths:
            result = read_result(path)
            longest = max(longest, result.took_us)
            Path(path).unlink(missing_ok=True)
            if result.failed is not None:
                raise error_of(result.failed)
            for run in result.runs:
                found.setdefault(run.run, []).append(run)
            self._count(result.counts)
        batch.results = found
        return longest

    def _count(self, counts: Mapping[str, NodeCounts]) -> None:
        for name, counted in counts.items():
            node = self._task.program.node(name)
            node.received += counted.received
            node.taken = list(map(add, node.taken, counted.taken))
            for port, sent in zip(node.ports, counted.sent, strict=True):
                port.sent += sent
            handlers = node.kernel.handlers
            lost = zip(handlers, counted.skipped, counted.failures, counted.errors, strict=True)
            for handler, skipped, failures, error in lost:
                handler.skipped += skipped
                handler.failures += failures
                handler.first_error = handler.first_error or error
            if isinstance(node.kernel, ChainKernel):
                node.kernel.add(counted.counted)
            if isinstance(node.kernel, Intake):
                node.kernel.undated += counted.undated
                node.kernel.ignored += counted.ignored

    def step(self, batch: Batch, step: BatchStep, now: int) -> bool:
        """Do one step, or a part of it; return whether it is done."""
        task = self._task
        match step:
            case Run(number, source):
                assert batch.results is not None
                return self._merge_run(batch.results.get(number, []), source, batch.parts, now)
            case Frames(entries):
                task.work_off(entries, now)
            case RawUnit():
                self._take(step)
            case Marked(epoch, mark, positions):
                reach("batch.before_mark")
                task.pass_mark(epoch, mark, now, positions)
            case EndOfChannel(header, data):
                task.end_channel(header, data, now)
            case EndOfSource(source, final):
                task.close_source(source, now, final=final)
        return True

    def _merge_run(
        self, results: list[RunResult], source: str | None, parts: Halves, now: int
    ) -> bool:
        """Merge results a few frames at a time: whoever receives them may have enough to do."""
        if results:
            result = results[0]
            for sent in result.sent[:FRAMES]:
                outlet, lane = self._task.wiring.route(sent.exchange, sent.target)
                outlet.forward(lane, sent.kind, sent.payload, sent.records, result.born)
            del result.sent[:FRAMES]
            if not result.sent:
                self._merge(results.pop(0), source, parts, now)
        return not results

    def _merge(self, result: RunResult, source: str | None, parts: Halves, now: int) -> None:
        task = self._task
        for rows in result.rows:
            self._deliver(rows, parts, result.born, now)
        task.program.run(result.born, now)
        if source is not None:
            intake = task.intake(source)
            if result.latest is not None:
                intake.latest = max(intake.latest, result.latest)
            if result.arrived is not None:
                intake.arrived = max(intake.arrived, result.arrived)
            self._note_read(source, result.read)

    def _take(self, item: RawUnit) -> None:
        """Let the owner take what a source has read."""
        task, source, raw = self._task, item.source, item.raw
        if item.kind == ROWS:
            assert isinstance(raw, list)
            task.feed(source, raw, item.now)
            self._note_read(source, len(raw))
        else:
            count = task.feed_raw(source, raw, item.now, keyed=item.kind == KEYED)
            self._note_read(source, count)

    def _note_read(self, source: str, count: int) -> None:
        if self._read is not None:
            self._read(source, count)

    def _deliver(self, rows: BlockRows, parts: Halves, born: int, now: int) -> None:
        """Give rows to those of the owner's operators that read them."""
        task, node = self._task, self._task.program.node(rows.operator)
        if rows.port == PARTIALS:
            task.merge_partials(node, task.unpacked(rows.payload), born, now)
            return
        if rows.port == REST:
            (edge,) = task.plan.graph.inputs[rows.operator]
            node.waiting.append((0, self._codec(rows, edge).decode(rows.payload)))
            return
        operator = next(op for op in node.operators if op.name == rows.operator)
        taken = self._codec(rows, Edge(operator, rows.port)).decode(rows.payload)
        for reader, index in task.program.port(Edge(operator, rows.port)).readers:
            if not parts.elsewhere(reader.name, index):
                reader.waiting.append((index, taken))

    def _codec(self, rows: BlockRows, edge: Edge) -> Codec:
        codec = self._codecs.get((rows.operator, rows.port))
        if codec is None:
            codec = self._codecs[rows.operator, rows.port] = self._task.wiring.codec(edge)
        return codec
