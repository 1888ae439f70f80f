"""Bottlenecks: which operators cannot cope, with what, and what would help (algorithm 1).

An operator behind a bottleneck gets only what the bottleneck lets through (equation 4.6). So one
bottleneck can hide another; after a remedy, look again.
"""

from collections.abc import Mapping

import msgspec

from floodway.provisioning.cost import checks
from floodway.provisioning.cost.graph import CostGraph, Workload
from floodway.provisioning.cost.loads import Kind, Load, arrivals_of, load_of
from floodway.provisioning.cost.remedies import remedy
from floodway.provisioning.cost.settings import Settings


class Bottleneck(msgspec.Struct, frozen=True):
    """An operator that gets more than it can cope with (definition 43).

    Attributes
    ----------
    operator
        Which one.
    kinds
        What there is too little of: cpu, input network, output network.
    rate_in, capacity
        Records per second that arrive, and that it can cope with.
    remedy
        What to do about it.
    """

    operator: str
    kinds: tuple[Kind, ...]
    rate_in: float
    capacity: float
    remedy: str


class Diagnosis(msgspec.Struct, frozen=True):
    """What a configuration makes of a workload: every operator's load, and the bottlenecks."""

    loads: Mapping[str, Load]
    bottlenecks: tuple[Bottleneck, ...]


def detect(
    graph: CostGraph, workload: Workload, settings: Settings, *, headroom: float = 0.0
) -> Diagnosis:
    """Find the bottlenecks of a configuration under a workload.

    Parameters
    ----------
    graph, workload, settings
        What runs, what arrives at the sources, and the configuration.
    headroom
        The share of each operator's capacity that has to stay free. (The thesis, section 4.4,
        quotes Aurora, which gives the share that may be used: 1 - headroom.)

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> from floodway.provisioning.cost.settings import Setting
    >>> graph = CostGraph.of(
    ...     [OperatorCosts(name="read", c_cpu_ns=1000), OperatorCosts(name="count", c_cpu_ns=2000)],
    ...     [Connection("read", "count", "hash")],
    ...     Platform(c_fetch_ns=7000, c_emit_ns=3000),
    ... )
    >>> found = detect(graph, {"read": 200_000}, {"read": Setting(1, 1), "count": Setting(1)})
    >>> [(b.operator, b.kinds, round(b.capacity)) for b in found.bottlenecks]
    [('count', ('cpu',), 111111)]
    >>> print(found.bottlenecks[0].remedy)
    raise its dop from 1 to 2; or let batches hold at least 3 records: raise b_out of read
    """
    checks.check_workload(graph, workload)
    checks.check_settings(graph, settings)
    checks.check_headroom(headroom)
    loads: dict[str, Load] = {}
    leaving: dict[str, float] = {}
    found: list[Bottleneck] = []
    for name in graph.in_order():
        arrivals = arrivals_of(graph, name, leaving, settings)
        load = load_of(
            graph,
            name,
            settings[name],
            rate_in=sum(a.rate for a in arrivals) if arrivals else workload[name],
            arrivals=arrivals,
            headroom=headroom,
        )
        loads[name] = load
        leaving[name] = load.rate_out
        if load.exceeded:
            found.append(_bottleneck(graph, load, settings))
    return Diagnosis(loads, tuple(found))


def _bottleneck(graph: CostGraph, load: Load, settings: Settings) -> Bottleneck:
    return Bottleneck(
        operator=load.operator,
        kinds=load.exceeded,
        rate_in=load.rate_in,
        capacity=load.capacity,
        remedy=remedy(graph, load, settings),
    )
