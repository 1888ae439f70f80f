"""What if there were only so many tasks: the largest rate for them, and a plan within them."""

import heapq
import math

from floodway.core.errors import OptionError
from floodway.provisioning.cost import checks
from floodway.provisioning.cost.equations import NS
from floodway.provisioning.cost.graph import CostGraph, Workload
from floodway.provisioning.cost.loads import output_capacity, rates_in, rates_out
from floodway.provisioning.cost.minimizer import Minimum, minimize
from floodway.provisioning.cost.sizing import least_cost_ns

MAX_B_OUT = 10_000
"""The largest batches where a bound is needed: without one the largest rate is never reached."""


def servers(count: int, *, cores: int) -> int:
    """Return how many servers it takes to run so many tasks, one on each core (section 4.2).

    Examples
    --------
    >>> servers(8, cores=3)
    3
    """
    checks.check_count("cores", cores)
    return -(-count // cores)


def largest_workload(
    graph: CostGraph,
    mix: Workload,
    *,
    count: int,
    headroom: float = 0.0,
    max_b_out: int = MAX_B_OUT,
) -> dict[str, float]:
    """Return the largest workload, in the given mix, that so many tasks can cope with.

    Each task is given to the operator that needs it first as the workload grows.

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> graph = CostGraph.of(
    ...     [OperatorCosts(name="read", c_cpu_ns=1000), OperatorCosts(name="work", c_cpu_ns=5000)],
    ...     [Connection("read", "work")],
    ...     Platform(),
    ... )
    >>> largest_workload(graph, {"read": 1}, count=4)
    {'read': 600000.0}
    """
    checks.check_workload(graph, mix)
    checks.check_headroom(headroom)
    checks.check_count("max_b_out", max_b_out)
    if count < len(graph.operators):
        raise OptionError(
            f"{count} tasks cannot run {len(graph.operators)} operators",
            remedy="allow one task for each operator at least",
        )
    factor = _largest_factor(graph, mix, count, max_b_out) * (1 - headroom)
    return {source: rate * factor if rate else 0.0 for source, rate in mix.items()}


def _largest_factor(graph: CostGraph, mix: Workload, count: int, max_b_out: int) -> float:
    needs = demands(graph, mix, max_b_out)
    limits = [(1 / need, name) for name, need in needs.items() if need]
    if not limits:
        return math.inf
    heapq.heapify(limits)
    dops = dict.fromkeys(needs, 1)
    for _ in range(count - len(dops)):
        name = limits[0][1]
        if dops[name] == graph.operators[name].max_dop:
            break
        dops[name] += 1
        heapq.heapreplace(limits, (dops[name] / needs[name], name))
    return limits[0][0]


def demands(graph: CostGraph, workload: Workload, max_b_out: int) -> dict[str, float]:
    """Return for each operator how many tasks' worth of work there is, in fractions of tasks."""
    arriving = rates_in(graph, workload)
    leaving = rates_out(graph, arriving)
    found: dict[str, float] = {}
    for name, rate in arriving.items():
        bits_in = 8 * sum(
            leaving[link.producer] * link.share * graph.operators[link.producer].record_bytes
            for link in graph.inputs[name]
        )
        found[name] = max(
            rate * least_cost_ns(graph, name, max_b_out) / NS,
            bits_in / graph.platform.in_bits_per_s,
            rate / output_capacity(graph, name),
        )
    return found


def minimize_within(
    graph: CostGraph,
    workload: Workload,
    *,
    count: int,
    headroom: float = 0.0,
    max_b_out: int | None = None,
) -> Minimum:
    """Return the plan with the fewest tasks, or refuse if they are more than there may be."""
    found = minimize(graph, workload, headroom=headroom, max_b_out=max_b_out)
    if found.tasks <= count:
        return found
    most = largest_workload(
        graph, workload, count=count, headroom=headroom, max_b_out=max_b_out or MAX_B_OUT
    )
    largest = ", ".join(f"{source} {math.floor(rate):,}" for source, rate in most.items())
    raise OptionError(
        f"no configuration with {count} tasks reaches this rate: it takes {found.tasks}",
        remedy=f"allow more tasks, or lower the rate; what {count} tasks can do: {largest} "
        "records per second",
        operator=max(found.settings, key=lambda name: found.settings[name].dop),
    )
