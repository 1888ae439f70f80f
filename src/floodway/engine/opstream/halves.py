"""The two halves of a stage in the operation paradigm.

The *remote half* is what can be done anywhere: decoding, operators without state, look-ups in a
copy of a table, and the first half of an aggregate. The *local half* is what needs the task that
owns the state, or a connector. Records go through the one and then the other, never back.
"""

from collections.abc import Collection
from typing import NamedTuple

from floodway.operators.base import DEAD, Edge, Operator
from floodway.operators.facts import Away
from floodway.plan.chains import chains
from floodway.plan.stages import Exchange, Plan, Stage

STREAM = 0
"""The input of a look-up that brings records; the other brings the table."""


class Halves(NamedTuple):
    """Which chains of a stage are remote, and what comes before and after them.

    A chain is known by the name of its first operator, as the node that runs it is.

    Attributes
    ----------
    remote
        The remote chains.
    tables
        Those of them that look into a copy of a table.
    combined
        The aggregates, in this stage and in those after it, that take partials.
    """

    remote: frozenset[str]
    tables: frozenset[str]
    combined: frozenset[str]

    def takes(self, chain: str, port: int) -> bool:
        """Return whether a chain's input belongs to the remote half."""
        return chain in self.remote and (port == STREAM or chain not in self.tables)

    def elsewhere(self, chain: str, port: int) -> bool:
        """Return whether a chain gets its rows in the remote half, or as partials."""
        return self.takes(chain, port) or chain in self.combined

    def enters(self, readers: Collection[tuple[str, int]]) -> bool:
        """Return whether what comes in for these readers goes through the remote half first."""
        return bool(readers) and all(self.elsewhere(chain, port) for chain, port in readers)


def halves(plan: Plan, stage: Stage, without: Collection[str] = ()) -> Halves:
    """Divide a stage; look-ups in `without` have to be done by the owner."""
    remote: set[str] = set()
    tables: set[str] = set()
    known_by = _known_by(plan, stage)
    for first, *_ in chains(plan, stage):
        away = _away(plan, first)  # of a chain of several, it is that of all
        if first.name in without or away == "no":
            continue
        edges = enumerate(plan.graph.inputs[first.name])
        before = [edge.operator.name for port, edge in edges if away == "yes" or port == STREAM]
        if all(known_by[name] in remote for name in before if name in known_by):
            remote.add(first.name)
            if away == "with a copy":
                tables.add(first.name)
    return Halves(frozenset(remote), frozenset(tables), frozenset(_combined(plan, stage)))


def _away(plan: Plan, operator: Operator) -> Away:
    """Return where an operator's work can be done; what remembers something stays where it is."""
    away = operator.facts.away
    state = operator.state(versioned=plan.graph.keeps_versions(operator))
    return "no" if away == "yes" and state is not None else away


def _known_by(plan: Plan, stage: Stage) -> dict[str, str]:
    """Return the name of the chain of each operator of a stage."""
    return {op.name: chain[0].name for chain in chains(plan, stage) for op in chain}


def _combined(plan: Plan, stage: Stage) -> set[str]:
    graph = plan.graph
    near = {op.name for op in stage.operators}
    near |= {r.operator for e in plan.outputs(stage) for r in e.readers}
    return {
        op.name
        for op in graph.operators
        if op.name in near and op.combinable(graph.consumers, versioned=graph.keeps_versions(op))
    }


def combines(exchange: Exchange, combined: Collection[str]) -> bool:
    """Return whether an exchange can carry partials: all who read it take them."""
    return len(exchange.readers) == 1 and exchange.readers[0].operator in combined


def takes_partials(plan: Plan, exchange: Exchange) -> bool:
    """Return whether micro-batches of the sender of an exchange combine what goes over it."""
    sender = plan.stage(exchange.sender)
    return able(plan, sender) and combines(exchange, _combined(plan, sender))


def able(plan: Plan, stage: Stage) -> bool:
    """Return whether a stage has a remote half, so that its paradigm can be switched."""
    if stage.host != "task":
        return False
    parts, known_by = halves(plan, stage), _known_by(plan, stage)
    entries = [[(known_by[r.operator], r.port) for r in e.readers] for e in plan.inputs(stage)]
    sources = any(known_by[source.name] in parts.remote for source in stage.sources)
    return sources or any(parts.enters(readers) for readers in entries)


def returning(plan: Plan, stage: Stage) -> frozenset[str]:
    """Return the operators of the local half to which records come back from the remote half.

    Aggregates that take partials are not among them: those are few.
    """
    parts, known_by = halves(plan, stage), _known_by(plan, stage)
    read = [
        (known_by[reader.name], index)
        for chain in chains(plan, stage)
        if chain[0].name in parts.remote
        for operator in chain
        for port in operator.outputs
        if operator is chain[-1] or port == DEAD
        for reader, index in plan.graph.consumers.get(Edge(operator, port), ())
        if reader.name in known_by
    ]
    return frozenset(chain for chain, index in read if not parts.elsewhere(chain, index))
