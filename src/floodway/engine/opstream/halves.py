"""The two halves of a stage in the operation paradigm.

The *remote half* is what can be done anywhere: decoding, operators without state, look-ups in a
copy of a table, and the first half of an aggregate. The *local half* is what needs the task that
owns the state, or a connector. Records go through the one and then the other, never back.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from floodway.engine.datastream.intake import Intake
from floodway.engine.datastream.program import Node, Program
from floodway.operators.aggregate_partials import combinable
from floodway.operators.lookup_facts import LookupFactsKernel
from floodway.plan.stages import Exchange, Plan, Stage

STREAM = 0
"""The input of a look-up that brings records; the other brings the table."""


class Halves(NamedTuple):
    """Which nodes of a stage are remote, and what comes before and after them.

    Attributes
    ----------
    remote
        The remote nodes, by name.
    tables
        Those of them that look into a copy of a table.
    combined
        The aggregates, in this stage and in those after it, that take partials.
    """

    remote: frozenset[str]
    tables: frozenset[str]
    combined: frozenset[str]

    def takes(self, node: Node, port: int) -> bool:
        """Return whether a node's input belongs to the remote half."""
        return node.name in self.remote and (port == STREAM or node.name not in self.tables)

    def enters(self, readers: Collection[tuple[Node, int]]) -> bool:
        """Return whether what comes in for these readers goes through the remote half first."""
        return bool(readers) and all(
            self.takes(node, port) or node.name in self.combined for node, port in readers
        )


def halves(plan: Plan, program: Program, without: Collection[str] = ()) -> Halves:
    """Divide a stage; look-ups in `without` have to be done by the owner."""
    remote: set[str] = set()
    tables: set[str] = set()
    for node in program.nodes:
        table = isinstance(node.kernel, LookupFactsKernel)
        if node.name in without or not (_stateless(node) or table):
            continue
        if all(name in remote for name in _before(plan, program, node, streams_only=table)):
            remote.add(node.name)
            if table:
                tables.add(node.name)
    return Halves(frozenset(remote), frozenset(tables), frozenset(_combined(plan, program)))


def _stateless(node: Node) -> bool:
    return not node.collects and (isinstance(node.kernel, Intake) or not node.kernel.remembers)


def _before(plan: Plan, program: Program, node: Node, *, streams_only: bool) -> list[str]:
    """Return the nodes of the same stage that a node reads from."""
    edges = plan.graph.inputs[node.operators[0].name]
    inside = {operator.name for operator in program.stage.operators}
    return [
        program.node(edge.operator.name).name
        for port, edge in enumerate(edges)
        if edge.operator.name in inside and (port == STREAM or not streams_only)
    ]


def _combined(plan: Plan, program: Program) -> set[str]:
    graph = plan.graph
    near = {op.name for op in program.stage.operators}
    near |= {r.operator for e in plan.outputs(program.stage) for r in e.readers}
    return {
        op.name
        for op in graph.operators
        if op.name in near and combinable(op, graph.consumers, versioned=graph.keeps_versions(op))
    }


def combines(exchange: Exchange, combined: Collection[str]) -> bool:
    """Return whether an exchange can carry partials: all who read it take them."""
    return len(exchange.readers) == 1 and exchange.readers[0].operator in combined


def takes_partials(plan: Plan, exchange: Exchange) -> bool:
    """Return whether micro-batches of the sender of an exchange combine what goes over it."""
    sender = plan.stage(exchange.sender)
    return able(plan, sender) and combines(exchange, _combined(plan, Program(plan, sender, 0)))


def able(plan: Plan, stage: Stage) -> bool:
    """Return whether a stage has a remote half, so that its paradigm can be switched."""
    if stage.host != "task":
        return False
    program = Program(plan, stage, 0)
    parts = halves(plan, program)
    entries: Mapping[int, list[tuple[Node, int]]] = {
        e.number: [(program.node(r.operator), r.port) for r in e.readers]
        for e in plan.inputs(stage)
    }
    sources = any(program.sources[s.name].name in parts.remote for s in stage.sources)
    return sources or any(parts.enters(readers) for readers in entries.values())


def returning(plan: Plan, stage: Stage) -> frozenset[str]:
    """Return the operators of the local half to which records come back from the remote half.

    Aggregates that take partials are not among them: those are few.
    """
    program = Program(plan, stage, 0)
    parts = halves(plan, program)
    return frozenset(
        reader.operators[0].name
        for node in program.nodes
        if node.name in parts.remote
        for port in node.ports
        for reader, index in port.readers
        if not parts.takes(reader, index) and reader.name not in parts.combined
    )
