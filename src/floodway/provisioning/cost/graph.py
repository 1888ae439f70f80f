"""What planning knows of a flow: its operators, what they cost, and who sends to whom.

A description is the same whether somebody wrote it down (`floodway.provisioning.paper`) or it was
measured. It says nothing of rates, parallelism or batch sizes: those are a workload and settings.

As in the thesis, chains have been fused before: an operator here is what runs in one task, and
every connection is a hand-over between tasks. Each record is processed by one task of each
consumer, and tasks share the records evenly.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from floodway.provisioning.cost import checks
from floodway.provisioning.cost.levels import levels

Partitioning = Literal["random", "hash", "range"]
"""How a producer spreads records over a consumer's tasks.

Broadcast is missing: a record that every task processes is outside of the model (thesis, 2.3.2).
"""

Workload = Mapping[str, float]
"""For each source, how many records per second are expected (definition 42)."""


class OperatorCosts(msgspec.Struct, frozen=True, kw_only=True):
    """An operator as the cost model sees it: a black box with a price.

    Attributes
    ----------
    name
        What it is called in the flow.
    c_cpu_ns
        What it costs to process one record.
    selectivity
        How many records come out for each that goes in; more than one is possible.
    record_bytes
        The average size of an output record.
    c_fetch_ns, c_emit_ns
        What it costs this operator to take a batch in and to send one; the platform's if None.
    max_dop
        The largest degree of parallelism possible: a source's partitions, or 1 for what cannot be
        shared out.
    """

    name: str
    c_cpu_ns: float
    selectivity: float = 1.0
    record_bytes: float = 0.0
    c_fetch_ns: float | None = None
    c_emit_ns: float | None = None
    max_dop: int | None = None


class Connection(msgspec.Struct, frozen=True):
    """A producer, its consumer, and how records go from the one's tasks to the other's.

    A consumer gets all of the producer's output, or its `share` of it if the output is split.
    """

    producer: str
    consumer: str
    partitioning: Partitioning = "random"
    share: float = 1.0


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """What a hand-over between two tasks costs, and what a task's network connection carries.

    Examples
    --------
    A server's bandwidth is shared by its task slots, one for each core (thesis, section 4.2):

    >>> Platform.of_servers(bits_per_s=1e9, cores=4).in_bits_per_s
    250000000.0
    """

    c_fetch_ns: float = 0.0
    c_emit_ns: float = 0.0
    in_bits_per_s: float = math.inf
    out_bits_per_s: float = math.inf

    @classmethod
    def of_servers(
        cls, *, bits_per_s: float, cores: int, c_fetch_ns: float = 0.0, c_emit_ns: float = 0.0
    ) -> "Platform":
        """Return the platform of a task slot on servers with that bandwidth and those cores."""
        each = bits_per_s / cores
        return cls(
            c_fetch_ns=c_fetch_ns, c_emit_ns=c_emit_ns, in_bits_per_s=each, out_bits_per_s=each
        )


class CostGraph(msgspec.Struct, frozen=True):
    """A checked graph of operators with costs; made by `CostGraph.of`.

    Attributes
    ----------
    operators
        The operators by name.
    inputs, outputs
        The connections that lead to an operator, and those that leave it.
    levels
        The names of the operators, level by level (definition 44).

    Examples
    --------
    >>> graph = CostGraph.of(
    ...     [OperatorCosts(name="read", c_cpu_ns=1000), OperatorCosts(name="count", c_cpu_ns=2000)],
    ...     [Connection("read", "count", "hash")],
    ...     Platform(c_fetch_ns=700, c_emit_ns=300),
    ... )
    >>> graph.levels
    (('read',), ('count',))
    >>> graph.c_fetch_ns("read"), graph.c_fetch_ns("count"), graph.fan_out("read")
    (0.0, 700, 1.0)
    """

    operators: Mapping[str, OperatorCosts]
    inputs: Mapping[str, Sequence[Connection]]
    outputs: Mapping[str, Sequence[Connection]]
    levels: Sequence[Sequence[str]]
    platform: Platform

    @classmethod
    def of(
        cls,
        operators: Sequence[OperatorCosts],
        connections: Sequence[Connection],
        platform: Platform,
    ) -> "CostGraph":
        """Check a description and put it in order."""
        checks.check_platform(platform)
        checks.check_operators(operators)
        checks.check_connections(connections, {operator.name for operator in operators})
        inputs: dict[str, list[Connection]] = {operator.name: [] for operator in operators}
        outputs: dict[str, list[Connection]] = {operator.name: [] for operator in operators}
        for connection in connections:
            inputs[connection.consumer].append(connection)
            outputs[connection.producer].append(connection)
        return cls(
            operators={operator.name: operator for operator in operators},
            inputs={name: tuple(found) for name, found in inputs.items()},
            outputs={name: tuple(found) for name, found in outputs.items()},
            levels=levels(
                {name: [c.producer for c in found] for name, found in inputs.items()},
                {name: [c.consumer for c in found] for name, found in outputs.items()},
            ),
            platform=platform,
        )

    def changed(self, operator: str, **values: Any) -> "CostGraph":
        """Return the graph with other costs for one operator.

        Examples
        --------
        >>> graph = CostGraph.of([OperatorCosts(name="read", c_cpu_ns=1000)], [], Platform())
        >>> graph.changed("read", c_cpu_ns=500).operators["read"].c_cpu_ns
        500
        """
        checks.check_known([operator], self.operators, "change")
        checks.check_changes(values, operator)
        new = msgspec.structs.replace(self.operators[operator], **values)
        checks.check_operators([new])
        return msgspec.structs.replace(self, operators={**self.operators, operator: new})

    def multiplied(self, operator: str, **factors: float) -> "CostGraph":
        """Return the graph with costs of one operator multiplied, as when a selectivity doubles.

        Examples
        --------
        >>> graph = CostGraph.of([OperatorCosts(name="read", c_cpu_ns=1000)], [], Platform())
        >>> graph.multiplied("read", selectivity=2, c_cpu_ns=1.5).operators["read"].c_cpu_ns
        1500.0
        """
        checks.check_known([operator], self.operators, "change")
        checks.check_changes(factors, operator)
        own = {"c_fetch_ns": self.c_fetch_ns(operator), "c_emit_ns": self.c_emit_ns(operator)}
        present = msgspec.structs.asdict(self.operators[operator]) | own
        return self.changed(operator, **{name: present[name] * by for name, by in factors.items()})

    @property
    def sources(self) -> Sequence[str]:
        """The operators without inputs: all of level 0."""
        return self.levels[0]

    def in_order(self) -> Iterator[str]:
        """Go through the operators, producers before their consumers."""
        for level in self.levels:
            yield from level

    def is_source(self, name: str) -> bool:
        """Return whether an operator has no inputs."""
        return not self.inputs[name]

    def is_sink(self, name: str) -> bool:
        """Return whether nobody in the flow reads an operator's output."""
        return not self.outputs[name]

    def fan_out(self, name: str) -> float:
        """Return how many copies of an output record are sent (definition 40)."""
        return sum((connection.share for connection in self.outputs[name]), start=0.0)

    def c_fetch_ns(self, name: str) -> float:
        """Return what taking in a batch costs; a source has no input queue (definition 30)."""
        if self.is_source(name):
            return 0.0
        own = self.operators[name].c_fetch_ns
        return self.platform.c_fetch_ns if own is None else own

    def c_emit_ns(self, name: str) -> float:
        """Return what sending a batch costs; a sink has no output queue (definition 30)."""
        if self.is_sink(name):
            return 0.0
        own = self.operators[name].c_emit_ns
        return self.platform.c_emit_ns if own is None else own

    def emit_ns(self, name: str) -> float:
        """Return what emitting costs per input record, s * c_emit, unless records share batches.

        The thesis counts an output record once, however many consumers get a copy of it.
        """
        return self.operators[name].selectivity * self.c_emit_ns(name)
