"""The graph of a flow, checked and in order.

Operators know their inputs, so a graph cannot have a cycle unless a declared stream closes one;
that is found here, together with everything else that only shows when the flow is complete.
"""

from collections.abc import Iterator, Mapping

import msgspec

from floodway.core.errors import CycleError, MixedTimesError, OptionError, UndefinedError
from floodway.model.flow import Flow
from floodway.operators.base import DEAD, Consumers, Edge, Operator, TableOperator
from floodway.operators.declared import Declared
from floodway.operators.lag import Lag
from floodway.operators.sink import Sink
from floodway.operators.source import Source


class Graph(msgspec.Struct, frozen=True):
    """A flow's operators in topological order, who reads whom, and which tables keep versions.

    Attributes
    ----------
    operators
        Every operator after all of its inputs.
    inputs
        Each operator's inputs, declared streams resolved.
    consumers
        For each output port, the operators that read it and as which of their inputs.
    versioned
        The names of the tables whose versions somebody asks for.
    lags
        How far behind stream time each operator lives, because of operators before it that hold
        results back.
    """

    operators: tuple[Operator, ...]
    inputs: Mapping[str, tuple[Edge, ...]]
    consumers: Consumers
    versioned: frozenset[str]
    lags: Mapping[str, Lag]

    @classmethod
    def of(cls, flow: Flow) -> "Graph":
        """Check a flow and return its graph."""
        inputs = {operator.name: _inputs(operator, flow) for operator in flow.operators}
        order = _ordered(flow.operators, inputs)
        consumers = _consumers(order, inputs)
        _check_dead_letters(order, consumers)
        _check_times([op for op in order if isinstance(op, Source)])
        versioned = _versioned(order, inputs)
        _check_sessions(order, versioned)
        return cls(order, inputs, consumers, versioned, _lags(order, inputs))

    def keeps_versions(self, operator: Operator) -> bool:
        """Return whether an operator's table, or the table it subscribes to, keeps versions."""
        subscribes = operator.facts.emit is not None
        table = operator.inputs[0].operator if subscribes else operator
        return table.name in self.versioned

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where records come in."""
        return tuple(op for op in self.operators if isinstance(op, Source))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Where results leave."""
        return tuple(op for op in self.operators if isinstance(op, Sink))


def _inputs(operator: Operator, flow: Flow) -> tuple[Edge, ...]:
    if not isinstance(operator, Declared):
        return operator.inputs
    defined = flow.definitions.get(operator.name)
    if defined is None:
        raise UndefinedError(
            f"the stream {operator.name!r} was declared and never defined",
            remedy=f"call flow.define({operator.name!r}, stream)",
            operator=operator.name,
            place=operator.place,
        )
    return (defined,)


def _ordered(
    operators: tuple[Operator, ...], inputs: Mapping[str, tuple[Edge, ...]]
) -> tuple[Operator, ...]:
    """Return the operators after their inputs; without recursion, so that depth has no limit."""
    order: dict[str, Operator] = {}
    for start in operators:
        path: dict[str, Iterator[Edge]] = {start.name: iter(inputs[start.name])}
        trail = [start]
        while trail:
            operator = trail[-1]
            following = next(path[operator.name], None)
            if following is None:
                order.setdefault(operator.name, operator)
                trail.pop()
                del path[operator.name]
            elif following.operator.name in path:
                raise _cycle(trail, following.operator)
            elif following.operator.name not in order:
                trail.append(following.operator)
                path[following.operator.name] = iter(inputs[following.operator.name])
    return tuple(order.values())


def _cycle(trail: list[Operator], closing: Operator) -> CycleError:
    names = [operator.name for operator in trail]
    loop = names[names.index(closing.name) :]
    shown = " <- ".join([*loop, closing.name])
    return CycleError(
        f"the flow has a cycle: {shown}",
        remedy="define the declared stream from something that does not depend on it",
        operator=closing.name,
        place=closing.place,
    )


def _consumers(
    order: tuple[Operator, ...], inputs: Mapping[str, tuple[Edge, ...]]
) -> dict[Edge, tuple[tuple[Operator, int], ...]]:
    found: dict[Edge, list[tuple[Operator, int]]] = {}
    for operator in order:
        for index, edge in enumerate(inputs[operator.name]):
            found.setdefault(edge, []).append((operator, index))
    return {edge: tuple(readers) for edge, readers in found.items()}


def _check_dead_letters(
    order: tuple[Operator, ...], consumers: Mapping[Edge, tuple[tuple[Operator, int], ...]]
) -> None:
    for operator in order:
        if DEAD in operator.outputs and Edge(operator, DEAD) not in consumers:
            raise OptionError(
                "the operator's dead letters go nowhere",
                remedy="send them somewhere, e.g. stream.dead_letters.to('rejects'), or use "
                "on_error='skip'",
                operator=operator.name,
                place=operator.place,
            )


def _check_times(sources: list[Source]) -> None:
    """Refuse times of a clock beside times of events: one stream time cannot follow both."""
    clocked = next((source for source in sources if source.clocked), None)
    timed = next((source for source in sources if source.timed), None)
    if clocked is None or timed is None:
        return
    updates = clocked.brings_updates
    static = ", or static=True if its rows hold for events of any time" if updates else ""
    raise MixedTimesError(
        f"{clocked.name.removesuffix('.changelog')} is given the time at which it comes in, while "
        f"{timed.name.removesuffix('.changelog')} has event times; events that are not from now "
        "would find nothing, or be late",
        remedy=f"give it a timestamp=...{static}, or timestamp=floodway.ARRIVAL if all events are "
        "from now",
        operator=clocked.name,
        place=clocked.place,
    )


def _versioned(
    order: tuple[Operator, ...], inputs: Mapping[str, tuple[Edge, ...]]
) -> frozenset[str]:
    """Return the tables whose versions users, joins, or tables made of them ask for."""
    wanted = {op.name for op in order if isinstance(op, TableOperator) and op.versions}
    for operator in reversed(order):
        edges = inputs[operator.name]
        wanted.update(edges[port].operator.name for port in operator.facts.reads_versions)
        if operator.name in wanted:
            tables = (edge.operator for edge in edges if edge.output.kind == "changes")
            wanted.update(table.name for table in tables)
    return frozenset(wanted)


def _lags(order: tuple[Operator, ...], inputs: Mapping[str, tuple[Edge, ...]]) -> dict[str, Lag]:
    lags: dict[str, Lag] = {}
    for operator in order:
        before = [edge.operator for edge in inputs[operator.name]]
        lags[operator.name] = Lag.of([lags[each.name].behind(each.facts.held) for each in before])
    return lags


def _check_sessions(order: tuple[Operator, ...], versioned: frozenset[str]) -> None:
    for operator in order:
        if operator.name in versioned and not operator.facts.versionable:
            raise OptionError(
                "versions of a session table are asked for, and the sessions themselves move",
                remedy="use tumbling or hopping windows, or read only the latest version",
                operator=operator.name,
                place=operator.place,
            )
