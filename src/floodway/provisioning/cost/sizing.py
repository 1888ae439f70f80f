"""How small dop and batch sizes may be for one operator (thesis, sections 4.2.1 and 4.2.2).

The thesis lets batches grow without end, so the bound on capacity, 1 / c_cpu, is approached and
never reached: equations 4.20, 4.25 and 4.26 give the next whole number *above* theirs. With a
largest batch size the bounds are reached, and the next whole number that is *not below* is enough.
The same holds where there is nothing to share out: a sink emits nothing, so its input batches may
be just as large as they have to be.

A largest batch size of 1 is the same as no batching.
"""

import math
from collections.abc import Mapping

from floodway.core.errors import OptionError
from floodway.provisioning.cost import equations
from floodway.provisioning.cost.equations import NS
from floodway.provisioning.cost.graph import CostGraph
from floodway.provisioning.cost.loads import Kind, output_capacity
from floodway.provisioning.cost.rounding import above, up


def least_cost_ns(graph: CostGraph, name: str, max_b_out: int | None) -> float:
    """Return what a record costs with the largest batches allowed (equation 3.10)."""
    hand_over = graph.c_fetch_ns(name) + graph.emit_ns(name)
    shared = hand_over / max_b_out if max_b_out else 0.0
    return graph.operators[name].c_cpu_ns + shared


def least_dops(
    graph: CostGraph, name: str, *, rate_in: float, bytes_in: float, max_b_out: int | None = None
) -> dict[Kind, int]:
    """Return for each kind of limit how many tasks it takes (equations 4.20 and 4.22).

    Examples
    --------
    Example 12: ten tasks would be enough if fetching and emitting cost nothing.

    >>> from floodway.provisioning.cost.graph import OperatorCosts, Platform, Connection
    >>> second = 1_000_000_000
    >>> graph = CostGraph.of(
    ...     [OperatorCosts(name="read", c_cpu_ns=0), OperatorCosts(name="work", c_cpu_ns=second)],
    ...     [Connection("read", "work")],
    ...     Platform(c_fetch_ns=1000, c_emit_ns=1000),
    ... )
    >>> least_dops(graph, "work", rate_in=10, bytes_in=0)
    {'cpu': 11, 'input network': 1, 'output network': 1}
    """
    busy = rate_in * least_cost_ns(graph, name, max_b_out) / NS
    hand_over = graph.c_fetch_ns(name) + graph.emit_ns(name)
    reached = max_b_out is not None or not hand_over or not rate_in
    capacity_in = equations.input_capacity(graph.platform.in_bits_per_s, bytes_in)
    return {
        "cpu": up(busy) if reached else above(busy),
        "input network": up(rate_in / capacity_in),
        "output network": up(rate_in / output_capacity(graph, name)),
    }


def least_dop(
    graph: CostGraph, name: str, *, rate_in: float, bytes_in: float, max_b_out: int | None = None
) -> int:
    """Return how many tasks an operator needs (equation 4.23), or say why no number is enough."""
    needed = least_dops(graph, name, rate_in=rate_in, bytes_in=bytes_in, max_b_out=max_b_out)
    dop = max(needed.values())
    most = graph.operators[name].max_dop
    if most is not None and dop > most:
        raise _unreachable(graph, name, needed, rate_in, bytes_in, max_b_out)
    return dop


def _unreachable(
    graph: CostGraph,
    name: str,
    needed: Mapping[Kind, int],
    rate_in: float,
    bytes_in: float,
    max_b_out: int | None,
) -> OptionError:
    kind = max(needed, key=lambda one: needed[one])
    most = graph.operators[name].max_dop or 1
    task = min(
        equations.processing_capacity(least_cost_ns(graph, name, max_b_out)),
        equations.input_capacity(graph.platform.in_bits_per_s, bytes_in),
        output_capacity(graph, name),
    )
    return OptionError(
        f"no configuration reaches this rate: {rate_in:,.0f} records per second arrive, which "
        f"take {needed[kind]} tasks ({kind}), and there can be {most}",
        remedy=f"stay below {most * task:,.0f} records per second here, allow a larger max_dop, "
        "or make a record cheaper",
        operator=name,
    )


def time_left_ns(graph: CostGraph, name: str, rate_in: float, dop: int) -> float:
    """Return how long a task may spend handing over a record: 1 / r_in - c_cpu."""
    if not rate_in:
        return math.inf
    return NS * dop / rate_in - graph.operators[name].c_cpu_ns


def least_b_in(
    graph: CostGraph, name: str, *, rate_in: float, dop: int, max_b_out: int | None = None
) -> int:
    """Return the smallest input batch size with which an output batch size exists (4.25).

    Examples
    --------
    Example 13: with c_fetch = c_emit = c_cpu = 900 ms and one record per second it is 10.

    >>> from floodway.provisioning.cost.graph import OperatorCosts, Platform, Connection
    >>> graph = CostGraph.of(
    ...     [OperatorCosts(name=name, c_cpu_ns=900e6) for name in ("p", "v", "c")],
    ...     [Connection("p", "v"), Connection("v", "c")],
    ...     Platform(c_fetch_ns=900e6, c_emit_ns=900e6),
    ... )
    >>> least_b_in(graph, "v", rate_in=1, dop=1)
    10
    >>> least_b_out(graph, "v", rate_in=1, dop=1, b_in=10)
    90
    """
    fetch, emit = graph.c_fetch_ns(name), graph.emit_ns(name)
    if not fetch:
        return 1
    left = time_left_ns(graph, name, rate_in, dop)
    if max_b_out is not None:
        return _up_to(max_b_out, _divided(fetch, left - emit / max_b_out))
    return above(_divided(fetch, left)) if emit else up(_divided(fetch, left))


def least_b_out(
    graph: CostGraph,
    name: str,
    *,
    rate_in: float,
    dop: int,
    b_in: float,
    max_b_out: int | None = None,
) -> int:
    """Return the smallest output batch size that is enough with that input batch size (4.27)."""
    fetch, emit = graph.c_fetch_ns(name), graph.emit_ns(name)
    if not emit:
        return 1
    left = time_left_ns(graph, name, rate_in, dop) - fetch / b_in
    found = _divided(emit, left)
    return up(found) if max_b_out is None else _up_to(max_b_out, found)


def _up_to(most: int, number: float) -> int:
    return most if number > most else up(number)


def _divided(cost: float, left: float) -> float:
    # Rounding alone can leave nothing, and then the largest batch allowed is the answer.
    return cost / left if left > 0 else math.inf
