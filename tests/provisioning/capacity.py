"""How much a flow can take: its capacities (thesis, definitions 25 and 26).

A flow with several sources has many capacities, since the sources share what comes after them. One
is found for each *mix* of the sources: with twice the workload in the same mix, every operator gets
twice as much, in the same batches. So the capacity is the mix made as large as the operator with
the least to spare allows.
"""

import math

from floodway.provisioning.cost import checks
from floodway.provisioning.cost.graph import CostGraph, Workload
from floodway.provisioning.cost.loads import Load, arrivals_of, load_of, rates_in, rates_out
from floodway.provisioning.cost.settings import Settings


def loads_of(graph: CostGraph, workload: Workload, settings: Settings) -> dict[str, Load]:
    """Return every operator's load if all of the workload came through, bottlenecks or not."""
    arriving = rates_in(graph, workload)
    leaving = rates_out(graph, arriving)
    return {
        name: load_of(
            graph,
            name,
            settings[name],
            rate_in=arriving[name],
            arrivals=arrivals_of(graph, name, leaving, settings),
        )
        for name in graph.in_order()
    }


def scale(graph: CostGraph, mix: Workload, settings: Settings, *, headroom: float = 0.0) -> float:
    """Return by how much a workload can be multiplied before there is a bottleneck.

    Infinite, if nothing arrives or nothing that arrives costs anything.
    """
    checks.check_workload(graph, mix)
    checks.check_settings(graph, settings)
    checks.check_headroom(headroom)
    most = max(load.utilisation for load in loads_of(graph, mix, settings).values())
    return (1 - headroom) / most if most else math.inf


def flow_capacity(
    graph: CostGraph, mix: Workload, settings: Settings, *, headroom: float = 0.0
) -> dict[str, float]:
    """Return the flow's capacity with its sources in that mix (definition 25).

    Examples
    --------
    Example 3: two sources that can do 7 and 4 records per second share a sink that can do 5.

    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> from floodway.provisioning.cost.settings import Setting
    >>> graph = CostGraph.of(
    ...     [
    ...         OperatorCosts(name="s1", c_cpu_ns=1e9 / 7),
    ...         OperatorCosts(name="s2", c_cpu_ns=1e9 / 4),
    ...         OperatorCosts(name="o", c_cpu_ns=1e9 / 5),
    ...     ],
    ...     [Connection("s1", "o"), Connection("s2", "o")],
    ...     Platform(),
    ... )
    >>> settings = {"s1": Setting(1, 1), "s2": Setting(1, 1), "o": Setting(1)}
    >>> flow_capacity(graph, {"s1": 6, "s2": 4}, settings)
    {'s1': 3.0, 's2': 2.0}
    >>> flow_capacity(graph, {"s1": 1, "s2": 4}, settings)
    {'s1': 1.0, 's2': 4.0}
    >>> max_source_capacity(graph, "s1", settings), max_source_capacity(graph, "s2", settings)
    (5.0, 4.0)
    """
    factor = scale(graph, mix, settings, headroom=headroom)
    return {source: rate * factor if rate else 0.0 for source, rate in mix.items()}


def max_source_capacity(
    graph: CostGraph, source: str, settings: Settings, *, headroom: float = 0.0
) -> float:
    """Return what a source can take while the others rest (definition 26, equation 3.2)."""
    checks.check_known([source], graph.sources, "question")
    alone = {name: float(name == source) for name in graph.sources}
    return flow_capacity(graph, alone, settings, headroom=headroom)[source]


def sustains(
    graph: CostGraph, workload: Workload, settings: Settings, *, headroom: float = 0.0
) -> bool:
    """Return whether there is a capacity that is not below the workload (definition 51)."""
    most = scale(graph, workload, settings, headroom=headroom)
    return most >= 1 or math.isclose(most, 1, rel_tol=1e-9)
