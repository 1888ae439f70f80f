"""The remote half of a stage at work: a piece of a block in, its result out.

It is wired as the task is whose work it does, with the same nodes, codecs, routers and buffers. So
what comes out is what the task would have made, already encoded for whoever gets it. It remembers
nothing between pieces, and no connector is opened: a piece can be done anywhere, and done again.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import msgspec

from floodway.engine.control.messages import failure_message
from floodway.engine.datastream.task import TOGETHER
from floodway.engine.opstream.blocks import (
    FRAME,
    KEYED,
    LINES,
    ROWS,
    BlockRows,
    NodeCounts,
    Result,
    RunResult,
    Sent,
    Unit,
    encode_result,
    read_block,
)
from floodway.engine.opstream.halves import Halves, combines, halves
from floodway.engine.opstream.outlets import REST, Boundary, Combining
from floodway.engine.program.intake import NEVER, Intake
from floodway.engine.program.program import Node, Port
from floodway.engine.program.wiring import Wiring, classes_of
from floodway.engine.state.pickling import Pickling
from floodway.engine.transport.batching import Outlet, SharedOutlet
from floodway.engine.transport.frame import EXCHANGE, KIND, RECORDS, parse, payload
from floodway.operators.base import CopyKernel, Edge, Operator
from floodway.operators.partials import Combines
from floodway.operators.stateless import ChainKernel
from floodway.plan.stages import Plan, Stage

B_OUT = 10_000
"""How many records travel in a frame made here, unless it is too large."""


class Context(msgspec.Struct, array_like=True):
    """What a piece has to know of the task whose work it is.

    Attributes
    ----------
    times
        Stream time during each run.
    tables
        For each look-up that is done here, the file with the copy of its table.
    without
        The look-ups that the task does itself this time.
    latest
        How far the task's sources had come when all before this was merged. It may be a little
        behind what is on its way, and never ahead.
    """

    times: list[int | None]
    tables: dict[str, str] = {}
    without: list[str] = []
    latest: dict[str, int] = {}


encode_context = msgspec.msgpack.Encoder().encode
decode_context = msgspec.msgpack.Decoder(Context).decode


class Remote:
    """The remote half of one task's work."""

    def __init__(self, plan: Plan, stage: Stage, index: int, without: Iterable[str] = ()) -> None:
        self._plan = plan
        self._sent: list[Sent] = []
        self._wiring = Wiring(plan, stage, index, self._capture)
        self.halves: Halves = halves(plan, stage, tuple(without))
        self._nodes = [n for n in self._wiring.program.nodes if n.name in self.halves.remote]
        self._boundaries: list[Boundary] = []
        self._combining: list[Combining] = []
        self._inputs = {e.number: self._input(e.number) for e in plan.inputs(stage)}
        for node in self._nodes:
            for port in node.ports:
                self._cut(node, port)
        self._outlets = [o for n in self._nodes for p in n.ports for o in p.outlets]
        self._sources = [self._wiring.program.sources[s.name] for s in stage.sources]
        self._pickling = Pickling(classes_of(plan))
        self._loaded: dict[str, str] = {}

    # ------------------------------------------------------------------ building

    def _input(self, number: int) -> tuple[list[tuple[Node, int]], list[Combining]]:
        """Return who takes what comes on an exchange: remote nodes, and first halves."""
        readers = self._wiring.inputs[number].readers
        inside = [(node, port) for node, port in readers if self.halves.takes(node.name, port)]
        others = [node for node, port in readers if not self.halves.takes(node.name, port)]
        return inside, [self._first_half(node) for node in others if self._combines(node)]

    def _combines(self, node: Node) -> bool:
        return node.name in self.halves.combined

    def _first_half(self, node: Node) -> Combining:
        """Return what combines records for an aggregate that the owner has in this stage."""
        (operator,) = node.operators
        (edge,) = self._plan.graph.inputs[operator.name]
        rest = Boundary(self._wiring.codec(edge), operator.name, REST)
        self._boundaries.append(rest)
        found = Combining(self._combiner(operator), rest, self._wiring.plain)
        self._combining.append(found)
        return found

    def _combiner(self, operator: Operator) -> Combines:
        graph = self._plan.graph
        return operator.combiner(graph.lags[operator.name], graph.consumers)

    def _cut(self, node: Node, port: Port) -> None:
        """Let what leaves the remote half through a port be kept, encoded."""
        local = [(n, i) for n, i in port.readers if not self.halves.takes(n.name, i)]
        port.readers = [(n, i) for n, i in port.readers if self.halves.takes(n.name, i)]
        port.outlets = [self._outlet(outlet) for outlet in port.outlets]
        combined = [n for n, _ in local if self._combines(n)]
        port.outlets += [self._first_half(n) for n in combined]
        if len(combined) < len(local):
            operator = next(op for op in node.operators if op.name == port.operator)
            codec = self._wiring.codec(Edge(operator, port.name))
            boundary = Boundary(codec, port.operator, port.name)
            self._boundaries.append(boundary)
            port.outlets.append(boundary)

    def _outlet(self, outlet: Outlet) -> Outlet:
        outlet.b_out = B_OUT
        number = outlet.lanes[0].exchange
        exchange = next(e for e in self._plan.exchanges if e.number == number)
        if isinstance(outlet, SharedOutlet) or not combines(exchange, self.halves.combined):
            return outlet
        name = exchange.readers[0].operator
        operator = next(op for op in self._plan.graph.operators if op.name == name)
        groups = self._plan.key_groups
        found = Combining(self._combiner(operator), outlet, self._wiring.plain, groups=groups)
        self._combining.append(found)
        return found

    # ------------------------------------------------------------------ working

    def run(self, block: str, start: int, stop: int, context: bytes) -> bytes:
        """Return the encoded result of a piece."""
        began = perf_counter_ns()
        around = decode_context(context)
        units = list(read_block(block, start, stop))  # what is wrong here may be right elsewhere
        for name, path in around.tables.items():
            self._load(name, path)
        self._stand(around.latest)
        done: list[RunResult] = []
        failed = None
        try:
            for number, run in groupby(units, key=_run):
                self._begin(around.times[number])
                done.append(self._work(number, run))
        except Exception as error:  # not Spark's to try again: it would fail again
            failed = failure_message(0, 0, error)
        took_us = (perf_counter_ns() - began) // 1000
        result = Result(done, self._counts(), failed, took_us)
        self._forget()
        return encode_result(result)

    def _load(self, name: str, path: str) -> None:
        """Have the copy of a look-up's table that a piece needs."""
        if self._loaded.get(name) == path:
            return
        kernel = self._wiring.program.node(name).kernel
        assert isinstance(kernel, CopyKernel)
        kernel.replace_table(self._pickling.loads(Path(path).read_bytes()))
        self._loaded[name] = path

    def _stand(self, latest: Mapping[str, int]) -> None:
        """Let sources be where those of the task were."""
        for node in self._nodes:
            if isinstance(node.kernel, Intake):
                node.kernel.latest = latest.get(node.operators[0].name, NEVER)

    def _begin(self, stream_time: int | None) -> None:
        """Let all who ask for stream time see that of a run."""
        for combining in self._combining:
            combining.begin(stream_time)
        for node in self._nodes:
            if isinstance(node.kernel, CopyKernel):
                node.kernel.look_from(None if stream_time is None else node.lag.time(stream_time))

    def _work(self, number: int, units: Iterable[Unit]) -> RunResult:
        """Process the units of a run."""
        run = list(units)
        place, born = run[0].place, run[0].born
        if run[0].kind != FRAME:
            return self._work_raw(number, run)
        rows: list[Any] = []
        for unit in run:
            rows += self._wiring.inputs[place].codec.decode(unit.data)
            if len(rows) >= TOGETHER:
                self._enter(place, rows, born)
                rows = []
        if rows:
            self._enter(place, rows, born)
        return self._taken(number, born)

    def _work_raw(self, number: int, run: list[Unit]) -> RunResult:
        """Process what a source has read."""
        node = self._sources[run[0].place]
        assert isinstance(node.kernel, Intake)
        node.kernel.arrived = NEVER
        read = sum(self._read(node, node.kernel, unit) for unit in run)
        taken = self._taken(number, run[0].born)
        taken.read = read
        taken.latest = None if node.kernel.latest == NEVER else node.kernel.latest
        taken.arrived = None if node.kernel.arrived == NEVER else node.kernel.arrived
        return taken

    def _enter(self, exchange: int, rows: list[Any], born: int) -> None:
        readers, combining = self._inputs[exchange]
        for node, port in readers:
            node.waiting.append((port, rows))
        for half in combining:
            half.take(rows, born, born)
        self._pass_on(born)

    def _read(self, node: Node, kernel: Intake, unit: Unit) -> int:
        raw: Any = bytes(unit.data) if unit.kind == LINES else self._wiring.plain.unpack(unit.data)
        if unit.kind == ROWS:
            kernel.now = unit.born // 1000
            kernel.process(0, raw)
            count = len(raw)
        else:
            count = kernel.take(raw, unit.born // 1000, keyed=unit.kind == KEYED)
        node.received += count
        node.hand_on(unit.born, unit.born)
        self._pass_on(unit.born)
        return count

    def _pass_on(self, born: int) -> None:
        for node in self._nodes:
            if node.waiting:
                node.work(born, born)

    # ------------------------------------------------------------------ results

    def _capture(self, target: int, frame: bytes) -> None:
        header = parse(frame)
        self._sent.append(
            Sent(header[EXCHANGE], target, header[KIND], header[RECORDS], bytes(payload(frame)))
        )

    def _taken(self, number: int, born: int) -> RunResult:
        """Return what has come out since the last time."""
        for outlet in self._outlets:
            outlet.flush()
        rows: list[BlockRows] = []
        for combining in self._combining:
            if combining.inside:
                rows += combining.rows()
        for boundary in self._boundaries:
            rows += boundary.rows()
        sent, self._sent = self._sent, []
        return RunResult(number, born, sent, rows)

    def _counts(self) -> dict[str, NodeCounts]:
        return {
            node.name: NodeCounts(
                node.received,
                [port.sent for port in node.ports],
                [handler.skipped for handler in node.kernel.handlers],
                [handler.failures for handler in node.kernel.handlers],
                list(node.kernel.counted),
                list(node.taken),
                [handler.first_error for handler in node.kernel.handlers],
                node.kernel.undated,
                node.kernel.ignored,
            )
            for node in self._nodes
        }

    def _forget(self) -> None:
        """Begin anew, whatever has happened."""
        self._sent = []
        for node in self._nodes:
            node.drop()
            node.received = 0
            node.taken = [0] * len(node.taken)
            for port in node.ports:
                port.sent = 0
            for handler in node.kernel.handlers:
                handler.skipped = handler.failures = 0
                handler.first_error = None
            if isinstance(node.kernel, ChainKernel):
                node.kernel.add([-count for count in node.kernel.counted])
            if isinstance(node.kernel, Intake):
                node.kernel.undated = node.kernel.ignored = 0
        for outlet in (*self._outlets, *self._boundaries, *self._combining):
            outlet.forget()


class Remotes:
    """The remote halves of a plan's tasks, each made when it is first needed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._made: dict[tuple[str, int, tuple[str, ...]], Remote] = {}

    def get(self, stage: str, index: int, without: tuple[str, ...] = ()) -> Remote:
        """Return the remote half of a task; look-ups in `without` are done by the task."""
        remote = self._made.get((stage, index, without))
        if remote is None:
            remote = Remote(self._plan, self._plan.stage(stage), index, without)
            self._made[stage, index, without] = remote
        return remote

    def run(
        self, stage: str, index: int, block: str, start: int, stop: int, context: bytes
    ) -> bytes:
        """Return the encoded result of a piece of a task's block."""
        remote = self.get(stage, index, tuple(decode_context(context).without))
        return remote.run(block, start, stop, context)

    def clear(self) -> None:
        """Forget all: who knows what one that was interrupted remembers."""
        self._made.clear()


def _run(unit: Unit) -> int:
    return unit.run
