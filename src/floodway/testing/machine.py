"""The reference engine: kernels on one partition, and the lists between them."""

from typing import Any

from floodway.connectors.list_items import Emitted
from floodway.operators.base import DEAD, LATE, MAIN, Edge, Operator, TableOperator, View
from floodway.operators.lag import Lag
from floodway.plan import Graph
from floodway.testing.clock import VirtualClock
from floodway.testing.runtime import Inlet, PushedRow, Runtime, Stats


class OperatorNode:
    """An operator at work: its kernel, what waits for it, what it has done."""

    def __init__(self, operator: Operator, *, versioned: bool, lag: Lag) -> None:
        self.operator = operator
        self.lag = lag
        self.outputs: dict[str, list[Any]] = {port: [] for port in operator.outputs}
        self.kernel = operator.kernel(self.outputs, versioned=versioned)
        self.waiting: list[tuple[int, list[Any]]] = []
        self.readers: list[tuple[str, list[tuple[OperatorNode, int]]]] = []
        self.received = 0
        self.sent: dict[str, int] = dict.fromkeys(operator.outputs, 0)
        self.open_inputs: set[int] = set()
        self.collected: list[Emitted] | None = None

    def counts(self) -> Any:
        """Return what the node has counted."""
        skipped = [handler.skipped for handler in self.kernel.handlers]
        return self.received, dict(self.sent), skipped, self.kernel.duplicates

    def recount(self, counts: Any) -> None:
        """Go back to what the node had counted."""
        self.received, sent, skipped, self.kernel.duplicates = counts
        self.sent = dict(sent)
        for handler, count in zip(self.kernel.handlers, skipped, strict=True):
            handler.skipped = count

    def work(self) -> None:
        """Process what waits and hand the results on."""
        for port, rows in self.waiting:
            self.received += len(rows)
            self.kernel.process(port, rows)
        self.waiting.clear()
        self.hand_on()

    def drop(self) -> None:
        """Forget what waits and what was written and not handed on."""
        self.waiting.clear()
        for written in self.outputs.values():
            written.clear()

    def hand_on(self) -> None:
        """Give what the kernel wrote to whoever reads it."""
        for port, readers in self.readers:
            written = self.outputs[port]
            if written:
                rows = written.copy()
                written.clear()
                self.sent[port] += len(rows)
                for node, index in readers:
                    node.waiting.append((index, rows))
                if self.collected is not None:
                    self.collected.extend(Emitted(*row) for row in rows)


class KernelRuntime(Runtime):
    """Runs a graph's kernels on one partition."""

    def __init__(self, graph: Graph, clock: VirtualClock) -> None:
        super().__init__(graph, clock)
        self._nodes = {
            op.name: OperatorNode(op, versioned=graph.keeps_versions(op), lag=graph.lags[op.name])
            for op in graph.operators
        }
        self._order = list(self._nodes.values())
        for name in self._sinks:
            self._nodes[name].collected = self._sinks[name]
        for node in self._order:
            self._connect(node, graph)
        self._finished = False
        self.tick()

    def _connect(self, node: OperatorNode, graph: Graph) -> None:
        for port in node.operator.outputs:
            readers = graph.consumers.get(Edge(node.operator, port), ())
            targets = [(self._nodes[operator.name], index) for operator, index in readers]
            node.readers.append((port, targets))
            for target, index in targets:
                target.open_inputs.add(index)

    def _push(self, inlet: Inlet, rows: list[PushedRow]) -> None:
        node = self._nodes[inlet.source.name]
        node.received += len(rows)
        before = inlet.dated, inlet.arrived
        try:
            for row in rows:
                self._bring(inlet, node, row)
        except Exception:
            inlet.dated, inlet.arrived = before
            raise
        self._flow()

    def _bring(self, inlet: Inlet, node: OperatorNode, row: PushedRow) -> None:
        """Let one row in; what it does to the source's time counts for the next."""
        before = len(node.outputs[MAIN])
        node.kernel.process(0, [(inlet.date(row, self.clock.now), *row[1:])])
        for came in node.outputs[MAIN][before:]:
            inlet.seen(row, came[0])

    def _flow(self) -> None:
        try:
            for node in self._order:
                node.work()
        except Exception:
            # What failed must not run again with the next push.
            for node in self._order:
                node.drop()
            raise

    def _mark(self, time: int | None) -> None:
        for node in self._order:
            node.work()
            if time is not None:
                node.kernel.advance(node.lag.time(time))
            node.kernel.marked()
            node.hand_on()

    def tick(self) -> None:
        """Tell every kernel what the clock shows."""
        for node in self._order:
            node.work()
            node.kernel.tick(self.clock.now)
            node.kernel.marked()
            node.hand_on()

    def _end(self, inlet: Inlet) -> None:
        # An operator whose inputs have all ended hands out what it held back before its own
        # readers are told; after that nothing more comes from it.
        first = self._nodes[inlet.source.name]
        closing = {id(first): first}
        for node in self._order:
            node.work()
            if id(node) not in closing:
                continue
            node.kernel.finish()
            node.hand_on()
            for _, readers in node.readers:
                for target, index in readers:
                    if index in target.open_inputs:
                        target.work()
                        target.open_inputs.discard(index)
                        target.kernel.ended(index)
                        if not target.open_inputs:
                            closing[id(target)] = target

    def finish(self) -> None:
        """End all sources and let everything out."""
        if self._finished:
            return
        self._finished = True
        for inlet in self.inlets.values():
            if not inlet.ended:
                self.end(inlet)
        self.mark()
        for node in self._order:
            node.work()
            node.kernel.finish()
            node.hand_on()

    def _view(self, operator: TableOperator, inputs: list[View | None]) -> View:
        return operator.view(self._nodes[operator.name].kernel, inputs)

    def _stats(self, name: str) -> Stats:
        node = self._nodes[name]
        handlers = node.kernel.handlers
        aside = (LATE, DEAD)
        return Stats(
            received=node.received,
            sent=sum(count for port, count in node.sent.items() if port not in aside),
            late=node.sent.get(LATE, 0),
            skipped=sum(handler.skipped for handler in handlers),
            dead_letters=node.sent.get(DEAD, 0),
            duplicates=node.kernel.duplicates,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return all that the machine remembers."""
        return super().snapshot() | {
            "kernels": {name: node.kernel.snapshot() for name, node in self._nodes.items()},
            "inputs": {n: set(node.open_inputs) for n, node in self._nodes.items()},
            "counts": {n: node.counts() for n, node in self._nodes.items()},
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot; what reached the sinks since then is undone."""
        super().restore(snapshot)
        for name, node in self._nodes.items():
            node.kernel.restore(snapshot["kernels"][name])
            node.open_inputs = set(snapshot["inputs"][name])
            node.recount(snapshot["counts"][name])
            node.waiting.clear()
