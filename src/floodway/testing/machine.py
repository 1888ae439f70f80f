"""The driver's engine room: kernels, the lists between them, and stream time."""

from typing import Any

import msgspec

from floodway.core.errors import DriverError
from floodway.core.schema import Schema
from floodway.operators.base import DEAD, LATE, MAIN, Edge, Operator, TableOperator, View
from floodway.operators.map_values import MapValues
from floodway.operators.sink import Sink
from floodway.operators.source import Changelog, Source
from floodway.operators.table_join import TableJoin
from floodway.operators.windows import Windows
from floodway.plan import Graph
from floodway.testing.clock import VirtualClock
from floodway.testing.items import Emitted
from floodway.testing.lists import ListSink


class Stats(msgspec.Struct, frozen=True):
    """What an operator has done: records in, records out, and those that did not make it."""

    received: int
    sent: int
    late: int
    skipped: int
    dead_letters: int


class Node:
    """An operator at work: its kernel, what waits for it, what it has done."""

    def __init__(self, operator: Operator, *, versioned: bool, lag: int) -> None:
        self.operator = operator
        self.lag = lag
        self.outputs: dict[str, list[Any]] = {port: [] for port in operator.outputs}
        self.kernel = operator.kernel(self.outputs, versioned=versioned)
        self.waiting: list[tuple[int, list[Any]]] = []
        self.readers: list[tuple[str, list[tuple[Node, int]]]] = []
        self.received = 0
        self.sent: dict[str, int] = dict.fromkeys(operator.outputs, 0)
        self.open_inputs: set[int] = set()
        self.collected: list[Emitted] | None = None

    def counts(self) -> Any:
        """Return what the node has counted."""
        skipped = [handler.skipped for handler in getattr(self.kernel, "handlers", ())]
        return self.received, dict(self.sent), skipped

    def recount(self, counts: Any) -> None:
        """Go back to what the node had counted."""
        self.received, sent, skipped = counts
        self.sent = dict(sent)
        for handler, count in zip(getattr(self.kernel, "handlers", ()), skipped, strict=True):
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


class Inlet:
    """A source's place in the machine: how far it is, and whether it still counts."""

    def __init__(self, node: Node, source: Source, now: int) -> None:
        self.node = node
        self.source = source
        self.schema = source.outputs[MAIN].schema
        self.latest: int | None = None
        self.active_at = now
        self.ended = False

    def holds_back(self, now: int) -> bool:
        """Return whether stream time has to wait for this source."""
        return not self.ended and now - self.active_at < self.source.idle_ms


class Machine:
    """Runs a graph's kernels on one partition."""

    def __init__(self, graph: Graph, clock: VirtualClock) -> None:
        self._clock = clock
        self.stream_time: int | None = None
        self._nodes = {
            op.name: Node(op, versioned=graph.keeps_versions(op), lag=graph.lags[op.name])
            for op in graph.operators
        }
        self._order = list(self._nodes.values())
        self._inlets = {
            source.name: Inlet(self._nodes[source.name], source, clock.now)
            for source in graph.sources
        }
        for sink in graph.sinks:
            self._nodes[sink.name].collected = _records_of(sink)
        for node in self._order:
            self._connect(node, graph)
        self._graph = graph
        self._finished = False
        self.tick()

    def _connect(self, node: Node, graph: Graph) -> None:
        for port in node.operator.outputs:
            readers = graph.consumers.get(Edge(node.operator, port), ())
            targets = [(self._nodes[operator.name], index) for operator, index in readers]
            node.readers.append((port, targets))
            for target, index in targets:
                target.open_inputs.add(index)

    def inlet(self, name: str) -> Inlet:
        """Return the source of that name, or of the table of that name."""
        found = self._inlets.get(name) or self._inlets.get(f"{name}.changelog")
        if found is None:
            known = ", ".join(key.removesuffix(".changelog") for key in self._inlets)
            raise DriverError(
                f"the flow has no source {name!r}", remedy=f"use one of: {known or 'none'}"
            )
        return found

    def sources(self) -> tuple[str, ...]:
        """Return what can be pushed to."""
        return tuple(name.removesuffix(".changelog") for name in self._inlets)

    def connectors(self) -> dict[str, Any]:
        """Return the connector of each source."""
        return {name: inlet.source.connector for name, inlet in self._inlets.items()}

    def push(self, inlet: Inlet, rows: list[tuple[int, Any, Any]]) -> None:
        """Bring rows in through a source and let them run through the graph."""
        if inlet.ended:
            raise DriverError(
                f"the source {inlet.source.name} has ended",
                remedy="push before end(...) or finish()",
                operator=inlet.source.name,
            )
        deletes = isinstance(inlet.source, Changelog)
        checked = _checked(rows, inlet.schema, inlet.source.name, deletes=deletes)
        inlet.active_at = self._clock.now
        before = len(inlet.node.outputs[MAIN])
        inlet.node.received += len(checked)
        inlet.node.kernel.process(0, checked)
        written = inlet.node.outputs[MAIN][before:]
        if written:
            latest = max(row[0] for row in written)
            inlet.latest = latest if inlet.latest is None else max(inlet.latest, latest)
        self._flow()

    def _flow(self) -> None:
        try:
            for node in self._order:
                node.work()
        except Exception:
            # What failed must not run again with the next push.
            for node in self._order:
                node.drop()
            raise

    def mark(self) -> None:
        """Move stream time to where the sources are."""
        time = self._time()
        if time is None or (self.stream_time is not None and time <= self.stream_time):
            return
        self.stream_time = time
        for node in self._order:
            node.work()
            node.kernel.advance(time - node.lag)
            node.hand_on()

    def _time(self) -> int | None:
        waiting = [inlet for inlet in self._inlets.values() if inlet.holds_back(self._clock.now)]
        times = [inlet.latest for inlet in waiting]
        if not times:
            times = [inlet.latest for inlet in self._inlets.values() if inlet.latest is not None]
            return max((time for time in times if time is not None), default=None)
        known = [time for time in times if time is not None]
        return min(known) if len(known) == len(times) else None

    def holding_back(self) -> tuple[str, ...]:
        """Return the sources that stream time waits for."""
        waited = {n: i for n, i in self._inlets.items() if i.holds_back(self._clock.now)}
        furthest = max(
            (i.latest for i in self._inlets.values() if i.latest is not None), default=None
        )
        behind = [n for n, i in waited.items() if i.latest is None or i.latest != furthest]
        return tuple(name.removesuffix(".changelog") for name in behind)

    def tick(self) -> None:
        """Tell every kernel what the clock shows."""
        for node in self._order:
            node.work()
            node.kernel.tick(self._clock.now)
            node.hand_on()

    def end(self, inlet: Inlet) -> None:
        """End a source, and what reads it and nothing else.

        An operator whose inputs have all ended hands out what it held back before its own readers
        are told; after that nothing more comes from it.
        """
        inlet.ended = True
        closing = {id(inlet.node): inlet.node}
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
        for inlet in self._inlets.values():
            if not inlet.ended:
                self.end(inlet)
        self.mark()
        for node in self._order:
            node.work()
            node.kernel.finish()
            node.hand_on()

    def collected(self, sink: str) -> list[Emitted]:
        """Return all that reached a sink."""
        node = self._nodes.get(sink)
        if node is None or node.collected is None:
            sinks = [n.operator.name for n in self._order if n.collected is not None]
            raise DriverError(
                f"the flow has no sink {sink!r}",
                remedy=f"use one of: {', '.join(sinks) or 'none'}",
            )
        return node.collected

    def view(self, table: str) -> View:
        """Return a view of a table."""
        node = self._nodes.get(table)
        if node is None or not isinstance(node.operator, TableOperator):
            tables = [n.operator.name for n in self._order if isinstance(n.operator, TableOperator)]
            raise DriverError(
                f"the flow has no table {table!r}",
                remedy=f"use one of: {', '.join(tables) or 'none'}",
            )
        inputs = [
            self.view(edge.operator.name) if edge.output.kind == "changes" else None
            for edge in self._graph.inputs[table]
        ]
        return node.operator.view(node.kernel, inputs)

    def windows(self, table: str) -> Windows | None:
        """Return the windows of a table, if it has any."""
        operator = self._nodes[table].operator
        own: Windows | None = getattr(operator, "windows", None)
        if own is not None:
            return own
        edges = self._graph.inputs[table]
        if edges and edges[0].output.kind == "changes" and _keeps_keys(operator):
            return self.windows(edges[0].operator.name)
        return None

    def versioned(self, table: str) -> bool:
        """Return whether a table keeps versions."""
        return table in self._graph.versioned

    def stats(self, name: str) -> Stats:
        """Return an operator's counts."""
        node = self._nodes.get(name)
        if node is None:
            raise DriverError(
                f"the flow has no operator {name!r}",
                remedy=f"use one of: {', '.join(self._nodes)}",
            )
        handlers = getattr(node.kernel, "handlers", ())
        aside = (LATE, DEAD)
        return Stats(
            received=node.received,
            sent=sum(count for port, count in node.sent.items() if port not in aside),
            late=node.sent.get(LATE, 0),
            skipped=sum(handler.skipped for handler in handlers),
            dead_letters=node.sent.get(DEAD, 0),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return all that the machine remembers."""
        return {
            "kernels": {name: node.kernel.snapshot() for name, node in self._nodes.items()},
            "inlets": {n: (i.latest, i.active_at, i.ended) for n, i in self._inlets.items()},
            "sinks": {n: len(node.collected or ()) for n, node in self._nodes.items()},
            "inputs": {n: set(node.open_inputs) for n, node in self._nodes.items()},
            "counts": {n: node.counts() for n, node in self._nodes.items()},
            "stream_time": self.stream_time,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot; what reached the sinks since then is undone."""
        for name, node in self._nodes.items():
            node.kernel.restore(snapshot["kernels"][name])
            node.open_inputs = set(snapshot["inputs"][name])
            node.recount(snapshot["counts"][name])
            node.waiting.clear()
            if node.collected is not None:
                del node.collected[snapshot["sinks"][name] :]
        for name, inlet in self._inlets.items():
            inlet.latest, inlet.active_at, inlet.ended = snapshot["inlets"][name]
        self.stream_time = snapshot["stream_time"]


def _records_of(sink: Sink) -> list[Emitted]:
    if sink.connector is None:
        return []
    if isinstance(sink.connector, ListSink):
        return sink.connector.records
    raise DriverError(
        f"the driver cannot write to {type(sink.connector).__name__}",
        remedy="give the sink a name or a ListSink in tests",
        operator=sink.name,
        place=sink.place,
    )


def _keeps_keys(operator: Operator) -> bool:
    return isinstance(operator, MapValues | TableJoin)


def _checked(
    rows: list[tuple[int, Any, Any]], schema: Schema, source: str, *, deletes: bool
) -> list[tuple[int, Any, Any]]:
    """Return rows whose values have the source's type; mappings become records."""
    if schema.opaque:
        return rows
    python = schema.python
    exact = python if isinstance(python, type) else None
    checked = []
    for time, key, value in rows:
        if type(value) is exact or (value is None and (deletes or schema.nullable)):
            checked.append((time, key, value))
            continue
        try:
            converted = msgspec.convert(value, python, from_attributes=False)
        except msgspec.ValidationError as error:
            raise DriverError(
                f"{value!r} is not a value of this source: {error}",
                remedy=f"push values of {schema}",
                operator=source,
            ) from None
        checked.append((time, key, converted))
    return checked
