"""An operator under load: what arrives, what it costs, and what there is to pay with.

The arithmetic of chapter 3 put together for one operator of a graph. All algorithms use it.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from floodway.provisioning.cost import equations
from floodway.provisioning.cost.equations import Arrival
from floodway.provisioning.cost.graph import CostGraph, Workload
from floodway.provisioning.cost.rounding import exceeds
from floodway.provisioning.cost.settings import Setting, Settings

Kind = Literal["cpu", "input network", "output network"]
"""What can limit an operator (definition 43)."""


class Load(msgspec.Struct, frozen=True):
    """An operator's input, and its capacities under its setting.

    Attributes
    ----------
    operator, setting
        Which operator, with what dop and b_out.
    rate_in
        Records per second that arrive, R_in.
    b_in, bytes_in
        The effective size of input batches and of input records; 1 and 0 for a source.
    cost_ns
        What one record costs, c_p.
    selectivity
        How many records come out for each that goes in.
    capacities
        For each kind of limit, how many input records per second one task can cope with:
        C_p, C_i and C_o.
    headroom
        The share of the capacity to be kept free.
    """

    operator: str
    setting: Setting
    rate_in: float
    b_in: float
    bytes_in: float
    cost_ns: float
    selectivity: float
    capacities: Mapping[Kind, float]
    headroom: float = 0.0

    @property
    def task_capacity(self) -> float:
        """Input records per second that one task can cope with (equation 3.4)."""
        return min(self.capacities.values())

    @property
    def capacity(self) -> float:
        """Input records per second that all tasks can cope with (equation 3.3)."""
        return self.setting.dop * self.task_capacity

    @property
    def rate_processed(self) -> float:
        """Input records per second that get through."""
        # Not simply the minimum: what rounding takes away must not look like back-pressure.
        return self.capacity if exceeds(self.rate_in, self.capacity) else self.rate_in

    @property
    def rate_out(self) -> float:
        """Records per second that come out, with a bottleneck or without (equation 4.6)."""
        return self.selectivity * self.rate_processed

    @property
    def utilisations(self) -> Mapping[Kind, float]:
        """For each kind of limit, which part of the capacity is asked for; above 1 is too much."""
        return {
            kind: self.rate_in / (self.setting.dop * capacity)
            for kind, capacity in self.capacities.items()
        }

    @property
    def utilisation(self) -> float:
        """Which part of the operator's capacity is asked for."""
        return self.rate_in / self.capacity

    @property
    def binding(self) -> Kind:
        """What limits the operator first."""
        return min(self.capacities, key=lambda kind: self.capacities[kind])

    @property
    def exceeded(self) -> tuple[Kind, ...]:
        """The limits that the load exceeds (equations 4.4 and 4.5), less the headroom."""
        allowed = 1 - self.headroom
        return tuple(kind for kind, used in self.utilisations.items() if exceeds(used, allowed))


def load_of(
    graph: CostGraph,
    name: str,
    setting: Setting,
    *,
    rate_in: float,
    arrivals: Sequence[Arrival] = (),
    headroom: float = 0.0,
) -> Load:
    """Return an operator's load when so much arrives.

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import OperatorCosts, Platform
    >>> graph = CostGraph.of([OperatorCosts(name="read", c_cpu_ns=1000)], [], Platform())
    >>> load = load_of(graph, "read", Setting(dop=2), rate_in=500_000)
    >>> load.capacity, load.utilisation, load.binding
    (2000000.0, 0.25, 'cpu')
    """
    operator = graph.operators[name]
    b_in = equations.effective_batch(arrivals)
    bytes_in = equations.effective_record_bytes(arrivals)
    cost_ns = equations.processing_cost(
        operator.c_cpu_ns,
        c_fetch=graph.c_fetch_ns(name),
        c_emit=graph.c_emit_ns(name),
        selectivity=operator.selectivity,
        b_in=b_in,
        b_out=setting.b_out or 1,
    )
    return Load(
        operator=name,
        setting=setting,
        rate_in=rate_in,
        b_in=b_in,
        bytes_in=bytes_in,
        cost_ns=cost_ns,
        selectivity=operator.selectivity,
        capacities={
            "cpu": equations.processing_capacity(cost_ns),
            "input network": equations.input_capacity(graph.platform.in_bits_per_s, bytes_in),
            "output network": output_capacity(graph, name),
        },
        headroom=headroom,
    )


def output_capacity(graph: CostGraph, name: str) -> float:
    """Return how many input records one task of an operator can send the results of."""
    operator = graph.operators[name]
    return equations.output_capacity(
        graph.platform.out_bits_per_s,
        operator.record_bytes,
        fan_out=graph.fan_out(name),
        selectivity=operator.selectivity,
    )


def arrivals_of(
    graph: CostGraph, name: str, rates_out: Mapping[str, float], settings: Settings
) -> list[Arrival]:
    """Return what an operator's producers send to it, in the order of its inputs."""
    return [
        Arrival(
            rates_out[connection.producer] * connection.share,
            settings[connection.producer].b_out or 1,
            graph.operators[connection.producer].record_bytes,
        )
        for connection in graph.inputs[name]
    ]


def rates_in(graph: CostGraph, workload: Workload) -> dict[str, float]:
    """Return what arrives at each operator if there is no bottleneck (equations 3.15 and 3.16).

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> graph = CostGraph.of(
    ...     [
    ...         OperatorCosts(name="read", c_cpu_ns=1, selectivity=0.5),
    ...         OperatorCosts(name="count", c_cpu_ns=1),
    ...     ],
    ...     [Connection("read", "count")],
    ...     Platform(),
    ... )
    >>> rates_in(graph, {"read": 10})
    {'read': 10, 'count': 5.0}
    """
    found: dict[str, float] = {}
    for name in graph.in_order():
        if graph.is_source(name):
            found[name] = workload[name]
        else:
            found[name] = sum(
                found[link.producer] * graph.operators[link.producer].selectivity * link.share
                for link in graph.inputs[name]
            )
    return found


def rates_out(graph: CostGraph, arriving: Mapping[str, float]) -> dict[str, float]:
    """Return what leaves each operator if there is no bottleneck (equation 3.15)."""
    return {name: rate * graph.operators[name].selectivity for name, rate in arriving.items()}
