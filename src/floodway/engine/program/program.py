"""A stage's operators, ready to run on one partition: kernels, and the lists between them.

Neighbouring stateless operators are one generated function (`ChainKernel`), a source and what
follows it likewise (`Intake`). Everything else is a kernel of its own. What the kernels write goes
to other kernels of the stage, to the outlets that lead to other stages, or, at a sink, to whoever
holds the connector.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from floodway.engine.program.counts import OperatorCounts
from floodway.engine.program.intake import Intake
from floodway.engine.transport.batching import Outlet
from floodway.engine.transport.frame import Kind
from floodway.operators.base import DEAD, LATE, Edge, Kernel, Operator
from floodway.operators.lag import Lag
from floodway.operators.sink import Sink
from floodway.operators.source import Source
from floodway.operators.stateless import ChainKernel, members
from floodway.plan.chains import chains
from floodway.plan.stages import Plan, Stage

FINAL = b"\x01"
"""The payload of an end that is the end of the stream, and not of a drained flow."""


class Port:
    """An output port of an operator: what was written, and who gets it."""

    __slots__ = ("name", "operator", "outlets", "readers", "rows", "sent")

    def __init__(self, operator: str, name: str, rows: list[Any]) -> None:
        self.operator = operator
        self.name = name
        self.rows = rows
        self.readers: list[tuple[Node, int]] = []
        self.outlets: list[Outlet] = []
        self.sent = 0


class Node:
    """Operators that run as one kernel: what waits for them, and what they have done."""

    def __init__(
        self, operators: Sequence[Operator], kernel: Kernel, ports: list[Port], lag: Lag
    ) -> None:
        self.operators = tuple(operators)
        self.kernel = kernel
        self.ports = ports
        self.lag = lag
        self.waiting: list[tuple[int, list[Any]]] = []
        self.received = 0
        self.taken = [0]  # the same by input
        self.dropped = 0  # by the policy of the task's queue, before they came here
        self.open_inputs: set[int] = set()
        self.closed = False
        self.final = True  # until an input ends that is not the end of its stream
        self.collects = isinstance(operators[-1], Sink)
        self.born = 0

    @property
    def name(self) -> str:
        """The name of the first operator, which stands for all."""
        return self.operators[0].name

    def work(self, born: int, now: int) -> None:
        """Process what waits and hand the results on."""
        process = self.kernel.process
        for port, rows in self.waiting:
            self.received += len(rows)
            self.taken[port] += len(rows)
            process(port, rows)
        self.waiting.clear()
        if not self.collects:
            self.hand_on(born, now)
        elif not self.born:
            self.born = born  # of the oldest that waits to be collected

    def hand_on(self, born: int, now: int) -> None:
        """Give what the kernel wrote to whoever reads it."""
        for port in self.ports:
            rows = port.rows
            if not rows:
                continue
            port.sent += len(rows)
            if port.readers or port.outlets:
                taken = rows.copy()
                for node, index in port.readers:
                    node.waiting.append((index, taken))
                for outlet in port.outlets:
                    outlet.take(taken, born, now)
            rows.clear()

    def collect(self) -> list[Any]:
        """Return what has reached a sink, and forget it."""
        (port,) = self.ports
        rows = port.rows.copy()
        port.rows.clear()
        port.sent += len(rows)
        return rows

    @property
    def pending(self) -> int:
        """How many rows have reached a sink and wait to be collected."""
        return len(self.ports[0].rows)

    def drop(self) -> None:
        """Forget what waits and what was written and not handed on."""
        self.waiting.clear()
        for port in self.ports:
            port.rows.clear()

    def counts(self) -> list[OperatorCounts]:
        """Return what each of the operators has done."""
        sent: dict[tuple[str, str], int] = {(p.operator, p.name): p.sent for p in self.ports}
        last = self.operators[-1].name
        main = sum(n for (op, port), n in sent.items() if op == last and port not in (LATE, DEAD))
        inner = [(self.received, main)]
        if isinstance(self.kernel, ChainKernel):
            inner = self.kernel.counts(self.received, main)
        handlers = self.kernel.handlers
        lost = [(handler.skipped, handler.first_error) for handler in handlers]
        several = tuple(self.taken) if len(self.taken) > 1 else ()
        return [
            OperatorCounts(
                name=operator.name,
                records_in=taken,
                records_out=passed,
                late=sent.get((operator.name, LATE), 0),
                skipped=skipped,
                dead_letters=sent.get((operator.name, DEAD), 0),
                undated=self.kernel.undated if operator is self.operators[0] else 0,
                inputs=several,
                first_error=first_error,
                duplicates=self.kernel.duplicates,
                dropped=self.dropped if operator is self.operators[0] else 0,
            )
            for operator, (taken, passed), (skipped, first_error) in zip(
                self.operators, inner, lost or [(0, None)] * len(self.operators), strict=True
            )
        ]


class Program:
    """The nodes of one task, in topological order."""

    def __init__(self, plan: Plan, stage: Stage, index: int) -> None:
        self._plan = plan
        self.stage = stage
        self.nodes: list[Node] = []
        self._node_of: dict[str, Node] = {}
        for chain in chains(plan, stage):
            self._add(chain, index)
        for node in self.nodes:
            self._connect(node)
        self.sources = {s.name: self._node_of[s.name] for s in stage.sources}
        self.sinks = {
            op.name: self._node_of[op.name] for op in stage.operators if isinstance(op, Sink)
        }

    def _add(self, chain: tuple[Operator, ...], index: int) -> None:
        graph = self._plan.graph
        outputs: list[dict[str, list[Any]]] = [
            {name: [] for name in operator.outputs} for operator in chain
        ]
        kernel: Kernel
        if isinstance(chain[0], Source):
            kernel = Intake(members(chain), outputs)
        elif len(chain) > 1:
            kernel = ChainKernel(members(chain), outputs)
        else:
            operator, versioned = chain[0], graph.keeps_versions(chain[0])
            kernel = operator.kernel(outputs[0], versioned=versioned)
            lag, consumers = graph.lags[operator.name], graph.consumers
            operator.combine_first(kernel, lag, consumers, versioned=versioned)
        kernel.number(index, self.stage.dop)
        ports = [
            Port(operator.name, name, rows)
            for operator, own in zip(chain, outputs, strict=True)
            for name, rows in own.items()
            if operator is chain[-1] or name == DEAD
        ]
        node = Node(chain, kernel, ports, graph.lags[chain[0].name])
        node.open_inputs = set(range(len(graph.inputs[chain[0].name])))
        node.taken = [0] * max(len(node.open_inputs), 1)
        self.nodes.append(node)
        for operator in chain:
            self._node_of[operator.name] = node

    def _connect(self, node: Node) -> None:
        for port in node.ports:
            operator = next(op for op in node.operators if op.name == port.operator)
            for reader, index in self._plan.graph.consumers.get(Edge(operator, port.name), ()):
                target = self._node_of.get(reader.name)
                if target is not None:
                    port.readers.append((target, index))

    @property
    def combines(self) -> bool:
        """Whether an aggregate here combines records that come together."""
        return any(node.kernel.combines for node in self.nodes)

    def node(self, operator: str) -> Node:
        """Return the node that an operator is part of."""
        return self._node_of[operator]

    def port(self, edge: Edge) -> Port:
        """Return an operator's output port."""
        node = self._node_of[edge.operator.name]
        return next(
            p for p in node.ports if (p.operator, p.name) == (edge.operator.name, edge.port)
        )

    @property
    def outlets(self) -> list[Outlet]:
        """All outlets."""
        return [outlet for node in self.nodes for port in node.ports for outlet in port.outlets]

    def run(self, born: int, now: int) -> None:
        """Let what waits run through the stage."""
        for node in self.nodes:
            if node.waiting:
                node.work(born, now)

    def mark(self, stream_time: int | None, clock: int | None, now: int) -> None:
        """Let stream time reach `stream_time`, or the clock show `clock` milliseconds."""
        for node in self.nodes:
            if node.waiting:
                node.work(now, now)
            if stream_time is not None:
                node.kernel.advance(node.lag.time(stream_time))
            if clock is not None:
                node.kernel.tick(clock)
            node.kernel.marked()
            if not node.collects:
                node.hand_on(now, now)

    def forget_changes(self) -> None:
        """Keep no note of what kernels have changed: nobody is going to store it."""
        for node in self.nodes:
            node.kernel.forget_changes()

    def end(self, ended: Iterable[tuple[str, int]], now: int, *, final: bool) -> None:
        """End inputs, or (input -1) sources, and every operator that has no other.

        If the end is `final` an operator hands out what it held back before its readers are told.
        """
        starting = {(id(self._node_of[name]), port) for name, port in ended}
        for node in self.nodes:
            if node.waiting:
                node.work(now, now)
            for own, port in sorted(starting):
                if own == id(node) and (port in node.open_inputs or port < 0) and not node.closed:
                    node.open_inputs.discard(port)
                    node.final = node.final and final
                    if port >= 0:
                        node.kernel.ended(port)
            touched = any(own == id(node) for own, _ in starting)
            if touched and not node.open_inputs and not node.closed:
                self._close(node, now, final=node.final)
                for place in node.ports:
                    for target, index in place.readers:
                        starting.add((id(target), index))
                        target.final = target.final and node.final

    def _close(self, node: Node, now: int, *, final: bool) -> None:
        node.closed = True
        if final:
            node.kernel.finish()
        else:
            node.kernel.drain()
        if not node.collects:
            node.hand_on(now, now)
        for port in node.ports:
            for outlet in port.outlets:
                outlet.announce(Kind.END, FINAL if final else b"")

    @property
    def closed(self) -> bool:
        """Whether everything has ended."""
        return all(node.closed for node in self.nodes)

    def standing(self) -> dict[str, tuple[list[int], bool, bool]]:
        """Return for each node its inputs that are open, if it is closed, if its end is final."""
        return {
            node.name: (sorted(node.open_inputs), node.closed, node.final) for node in self.nodes
        }

    def counts(self) -> list[OperatorCounts]:
        """Return what every operator has done."""
        return [counts for node in self.nodes for counts in node.counts()]
