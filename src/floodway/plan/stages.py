"""From the graph to stages: what is fused, what is shipped, and to whom.

Two neighbours are fused into one stage when records need not move between them: the second takes
what the first has (`Forward`), both have the same degree of parallelism and run in the same place,
and nobody asked for either to be isolated. Every other edge is an *exchange*.

Stages must not wait for each other in a circle. So two operators are not fused if records also
take another way from the one to the other, through an exchange. A stage's *level* is the length of
the longest way to it; every exchange leads to a higher one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from floodway.core.duration import to_ms
from floodway.core.errors import OptionError
from floodway.model.flow import Flow
from floodway.model.tuning import Batching, Pin, Tuning
from floodway.operators.base import DEAD, LATE, Edge, Kind, Operator
from floodway.operators.facts import Host
from floodway.operators.partitioning import (
    BY_KEY,
    FORWARD,
    Broadcast,
    ById,
    Hash,
    Partitioning,
    Random,
    Range,
    Single,
)
from floodway.operators.source import Source
from floodway.plan.configuration import Configuration
from floodway.plan.graph import Graph

ANYWHERE: dict[Kind, Partitioning] = {"records": Random(), "revisions": ById(), "changes": BY_KEY}
"""How messages go to whatever task; those about one thing must stay together, and in order."""


class Reader(msgspec.Struct, frozen=True):
    """Who reads an exchange: an operator, as which of its inputs."""

    operator: str
    port: int


class Exchange(msgspec.Struct, frozen=True):
    """An edge between stages: what travels, to whom, spread how, and why."""

    number: int
    edge: Edge
    readers: tuple[Reader, ...]
    partitioning: Partitioning
    sender: str
    receiver: str
    why: str


class Stage(msgspec.Struct, frozen=True):
    """Operators that run together, and the number of tasks that share the work."""

    name: str
    operators: tuple[Operator, ...]
    dop: int
    level: int
    host: Host

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources in this stage."""
        return tuple(op for op in self.operators if isinstance(op, Source))


class Plan(msgspec.Struct, frozen=True):
    """Everything that is decided before a flow runs.

    Attributes
    ----------
    stages
        Each stage after those it reads from.
    tunings
        For each operator, how it runs.
    """

    flow: str
    key_groups: int
    graph: Graph
    stages: tuple[Stage, ...]
    exchanges: tuple[Exchange, ...]
    tunings: Mapping[str, Tuning]

    @classmethod
    def of(cls, flow: Flow, configuration: Configuration | None = None) -> "Plan":
        """Plan a flow."""
        configuration = configuration or Configuration()
        graph = Graph.of(flow)
        tunings = configuration.of(flow)
        return _Planner(flow, graph, tunings, configuration.dop).plan()

    def stage(self, name: str) -> Stage:
        """Return the stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    def stage_of(self, operator: str) -> Stage:
        """Return the stage that an operator is in."""
        return next(s for s in self.stages if any(op.name == operator for op in s.operators))

    def inputs(self, stage: Stage) -> tuple[Exchange, ...]:
        """Return the exchanges a stage reads."""
        return tuple(e for e in self.exchanges if e.receiver == stage.name)

    def outputs(self, stage: Stage) -> tuple[Exchange, ...]:
        """Return the exchanges a stage writes."""
        return tuple(e for e in self.exchanges if e.sender == stage.name)

    @property
    def preloaded(self) -> frozenset[str]:
        """The sources that the others wait for."""
        return frozenset(source.name for source in self.graph.sources if source.preload)

    def fed_by(self, sources: frozenset[str]) -> frozenset[int]:
        """Return the exchanges on which everything comes from some sources, and ends with them."""
        fed: set[str] = set(sources)
        for operator in self.graph.operators:
            edges = self.graph.inputs[operator.name]
            if edges and all(edge.operator.name in fed for edge in edges):
                fed.add(operator.name)
        return frozenset(e.number for e in self.exchanges if e.edge.operator.name in fed)

    def linger_ms(self, operator: str) -> int:
        """Return how long a record of an operator may wait in an output buffer."""
        return to_ms(self.tunings[operator].linger or 0, what="linger", zero=True)

    def b_out(self, operator: str) -> int:
        """Return an operator's output batch size."""
        return self.tunings[operator].b_out or 1

    def pin(self, stage: Stage) -> Pin:
        """Return the paradigm that is wanted for a stage; its operators have the same."""
        return self.tunings[stage.operators[0].name].paradigm or "auto"

    def batching(self, operator: str) -> Batching:
        """Return an operator's batching scheme."""
        return self.tunings[operator].batching or "distinct"

    def most(self, stage: Stage) -> int | None:
        """Return how many tasks a stage can have at the most; None for any number."""
        found = [most_tasks(op, self.graph, self.key_groups)[0] for op in stage.operators]
        return min((most for most in found if most is not None), default=None)

    @property
    def tasks(self) -> int:
        """How many task slots the flow needs on Spark."""
        return sum(stage.dop for stage in self.stages if stage.host == "task")


class _Planner:
    """One pass over the operators, in topological order, and then over the edges."""

    def __init__(
        self, flow: Flow, graph: Graph, tunings: Mapping[str, Tuning], default_dop: int
    ) -> None:
        self._flow = flow
        self._graph = graph
        self._tunings = tunings
        self._default = default_dop
        self._dop: dict[str, int] = {}
        self._stage: dict[str, str] = {}  # operator to the operator that its stage is known by
        self._after: dict[str, set[str]] = {}  # stage to the stages that read from it
        self._apart: dict[str, set[str]] = {}  # stage to those an exchange parts it from
        self._by_key: dict[str, bool] = {}

    def plan(self) -> Plan:
        for operator in self._graph.operators:
            self._dop[operator.name] = self._parallelism(operator)
            self._by_key[operator.name] = self._keeps_keys_together(operator)
            self._place(operator)
        stages = self._stages()
        return Plan(
            self._flow.name,
            self._flow.key_groups,
            self._graph,
            stages,
            self._exchanges(),
            self._tunings,
        )

    # ------------------------------------------------------------------ dop

    def _parallelism(self, operator: Operator) -> int:
        asked = self._tunings[operator.name].dop
        most, why = most_tasks(operator, self._graph, self._flow.key_groups)
        if asked is not None:
            if most is not None and asked > most:
                raise OptionError(
                    f"the operator cannot run {asked} times side by side: {why}",
                    remedy=f"give it dop={most} or less",
                    operator=operator.name,
                    place=operator.place,
                )
            return asked
        inputs = self._graph.inputs[operator.name]
        moves = [type(operator.partitioning(port)) for port in range(len(inputs))]
        wanted = self._default
        if inputs and type(FORWARD) in moves:
            wanted = self._dop[inputs[moves.index(type(FORWARD))].operator.name]
        return wanted if most is None else min(wanted, most)

    # ------------------------------------------------------------------ stages

    def _place(self, operator: Operator) -> None:
        """Give an operator a stage of its own, and unite it with those of its inputs."""
        edges = self._graph.inputs[operator.name]
        self._stage[operator.name] = operator.name
        self._after[operator.name] = set()
        self._apart[operator.name] = set()
        for port, edge in enumerate(edges):
            before = self._stage[edge.operator.name]
            self._after[before].add(operator.name)
            if not self._fusable(operator, port):
                self._apart[before].add(operator.name)
                self._apart[operator.name].add(before)
        for edge in edges:
            first, second = self._stage[edge.operator.name], self._stage[operator.name]
            if first == second or second in self._apart[first]:
                continue
            if not (self._another_way(first, second) or self._another_way(second, first)):
                self._unite(first, second)

    def _another_way(self, start: str, goal: str) -> bool:
        """Return whether a way leads from one stage to another through a third."""
        ahead = [stage for stage in self._after[start] if stage not in (start, goal)]
        seen = set(ahead)
        while ahead:
            stage = ahead.pop()
            if goal in self._after[stage]:
                return True
            fresh = self._after[stage] - seen
            seen |= fresh
            ahead.extend(fresh)
        return False

    def _fusable(self, operator: Operator, port: int) -> bool:
        before = self._graph.inputs[operator.name][port].operator
        alone = self._tunings[operator.name].isolate or self._tunings[before.name].isolate
        return (
            not alone
            and isinstance(self._spread(operator, port), type(FORWARD))
            and self._dop[before.name] == self._dop[operator.name]
            and before.facts.host == operator.facts.host == "task"
            and self._tunings[before.name].paradigm == self._tunings[operator.name].paradigm
        )

    def _unite(self, keep: str, drop: str) -> None:
        for name, stage in self._stage.items():
            if stage == drop:
                self._stage[name] = keep
        self._after[keep] |= self._after.pop(drop)
        self._apart[keep] |= self._apart.pop(drop)
        for stages in (*self._after.values(), *self._apart.values()):
            if drop in stages:
                stages.discard(drop)
                stages.add(keep)
        self._after[keep].discard(keep)

    def _spread(self, operator: Operator, port: int) -> Partitioning:
        """Return how an input is spread; what lies right already need not move."""
        edge = self._graph.inputs[operator.name][port]
        need = operator.partitioning(port)
        settled = need == BY_KEY and self._settled(edge)
        if settled and self._dop[edge.operator.name] == self._dop[operator.name]:
            return FORWARD
        return need

    def _settled(self, edge: Edge) -> bool:
        """Return whether what comes through a port lies where its key belongs."""
        # Late records and dead letters have the key that the operator's input had.
        return edge.port not in (LATE, DEAD) and self._by_key[edge.operator.name]

    def _keeps_keys_together(self, operator: Operator) -> bool:
        """Return whether all an operator sends about one key comes from one of its tasks."""
        edges = self._graph.inputs[operator.name]
        keys = operator.facts.keys
        if keys != "kept":
            return keys == "gathered"
        same = self._dop[edges[0].operator.name] == self._dop[operator.name]
        return same and self._settled(edges[0])

    def _stages(self) -> tuple[Stage, ...]:
        members: dict[str, list[Operator]] = {}
        for operator in self._graph.operators:
            members.setdefault(self._stage[operator.name], []).append(operator)
        levels = self._levels(members)
        stages = [
            Stage(
                operators[0].name,
                tuple(operators),
                self._dop[operators[0].name],
                levels[stage],
                operators[0].facts.host,
            )
            for stage, operators in members.items()
        ]
        return tuple(sorted(stages, key=lambda stage: stage.level))

    def _levels(self, stages: Iterable[str]) -> dict[str, int]:
        """Return the length of the longest way to each stage."""
        levels = dict.fromkeys(stages, 0)
        waiting = dict.fromkeys(levels, 0)
        for readers in self._after.values():
            for reader in readers:
                waiting[reader] += 1
        free = [stage for stage, count in waiting.items() if not count]
        while free:
            stage = free.pop()
            for reader in self._after[stage]:
                levels[reader] = max(levels[reader], levels[stage] + 1)
                waiting[reader] -= 1
                if not waiting[reader]:
                    free.append(reader)
        return levels

    # ------------------------------------------------------------------ exchanges

    def _exchanges(self) -> tuple[Exchange, ...]:
        first_of = {self._stage[op.name]: op.name for op in reversed(self._graph.operators)}
        found: dict[Any, list[Any]] = {}
        for operator in self._graph.operators:
            for port, edge in enumerate(self._graph.inputs[operator.name]):
                sender, receiver = self._stage[edge.operator.name], self._stage[operator.name]
                if sender == receiver:
                    continue
                spread, why = self._moved(operator, port)
                # Readers in one stage that want the same share what is sent.
                same = (edge.operator.name, edge.port, receiver, str(spread))
                slot = same if _comparable(spread) else (*same, operator.name, port)
                entry = found.setdefault(slot, [edge, [], spread, sender, receiver, why])
                entry[1].append(Reader(operator.name, port))
        return tuple(
            Exchange(
                number, edge, tuple(readers), spread, first_of[sender], first_of[receiver], why
            )
            for number, (edge, readers, spread, sender, receiver, why) in enumerate(found.values())
        )

    def _moved(self, operator: Operator, port: int) -> tuple[Partitioning, str]:
        edge = self._graph.inputs[operator.name][port]
        before = edge.operator
        spread = self._spread(operator, port)
        mine, theirs = self._dop[operator.name], self._dop[before.name]
        match spread:
            case Hash():
                return spread, f"{operator.name} keeps state per {_what(spread)}"
            case Single():
                return spread, f"{operator.name} has to see everything"
            case Broadcast():
                return spread, f"every task of {operator.name} has a copy"
            case Random():
                return ANYWHERE[edge.output.kind], "the flow says so"
            case Range():
                return spread, "the flow says so"
        if mine != theirs:
            return ANYWHERE[edge.output.kind], f"dop {theirs} before, {mine} after"
        if operator.facts.host != before.facts.host:
            does = "reads" if before.facts.host == "driver" else "writes"
            return FORWARD, f"{does} at the driver"
        alone = next((n for n in (operator.name, before.name) if self._tunings[n].isolate), None)
        return FORWARD, f"{alone} is isolated" if alone else "records also take another way"


def most_tasks(operator: Operator, graph: Graph, key_groups: int) -> tuple[int | None, str]:
    """Return how many tasks an operator can have at the most, None for any number, and why."""
    inputs = range(len(graph.inputs[operator.name]))
    if any(isinstance(operator.partitioning(port), Single) for port in inputs):
        return 1, "it has to see everything"
    if any(isinstance(operator.partitioning(port), Hash) for port in inputs):
        return key_groups, f"the flow has {key_groups} key groups"
    return operator.facts.most or (None, "")


def _comparable(spread: Partitioning) -> bool:
    return spread == BY_KEY or not isinstance(spread, Hash | Range)


def _what(spread: Hash) -> str:
    return ", ".join(part.text for part in spread.by) or "key"
