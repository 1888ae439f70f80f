"""Small graphs to plan with: some by hand, and many at random."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from hypothesis import strategies as st

from floodway.provisioning.cost import (
    Connection,
    CostGraph,
    OperatorCosts,
    Platform,
    Setting,
)


def chain(*operators: OperatorCosts, platform: Platform | None = None) -> CostGraph:
    """Operators one after the other."""
    links = [Connection(a.name, b.name) for a, b in pairwise(operators)]
    return CostGraph.of(operators, links, platform or Platform())


def costing(name: str, *, capacity: float, **costs: float) -> OperatorCosts:
    """An operator whose task can process so many records per second."""
    return OperatorCosts(name=name, c_cpu_ns=1e9 / capacity, **costs)


def wide(operators: Iterable[OperatorCosts], edges: str, platform: Platform) -> CostGraph:
    """Operators with edges written as ``"a-b b-c"``."""
    links = [Connection(*edge.split("-")) for edge in edges.split()]
    return CostGraph.of(list(operators), links, platform)


EXAMPLE_1 = "v1-v3 v2-v4 v3-v4 v4-v5 v4-v6"
"""The edges of the thesis's example 1, which examples 2, 8 and 9 use again."""


def example_1() -> CostGraph:
    operators = [OperatorCosts(name=f"v{number}", c_cpu_ns=1000) for number in range(1, 7)]
    return wide(operators, EXAMPLE_1, Platform())


class Case(NamedTuple):
    """A graph, what arrives, and how it runs."""

    graph: CostGraph
    workload: dict[str, float]
    settings: dict[str, Setting]


SELECTIVITIES = [0.0, 0.001, 0.25, 0.5, 0.99, 1.0, 1.5, 3.0]


@st.composite
def cost_graphs(draw: st.DrawFn, *, most: int = 6, most_sources: int = 3) -> CostGraph:
    """Graphs of a few operators, with cheap and expensive ones, and slow and fast networks."""
    count = draw(st.integers(1, most))
    operators = [
        OperatorCosts(
            name=f"v{number}",
            c_cpu_ns=draw(st.integers(0, 20_000)),
            selectivity=draw(st.sampled_from(SELECTIVITIES)),
            record_bytes=draw(st.integers(0, 200)),
        )
        for number in range(count)
    ]
    links = []
    sources = 0
    for number in range(count):
        may_be_source = number == 0 or sources < most_sources
        least = 0 if may_be_source else 1
        earlier = st.lists(st.integers(0, number - 1), unique=True, max_size=3, min_size=least)
        producers = sorted(draw(earlier)) if number else []
        sources += not producers
        for producer in producers:
            links.append(
                Connection(
                    f"v{producer}",
                    f"v{number}",
                    draw(st.sampled_from(["random", "hash", "range"])),
                    draw(st.sampled_from([1.0, 1.0, 0.5])),
                )
            )
    bandwidths = st.sampled_from([float("inf"), 1e9, 1e8])
    platform = Platform(
        c_fetch_ns=draw(st.sampled_from([0, 1, 900, 7400])),
        c_emit_ns=draw(st.sampled_from([0, 1, 900, 2600])),
        in_bits_per_s=draw(bandwidths),
        out_bits_per_s=draw(bandwidths),
    )
    return CostGraph.of(operators, links, platform)


@st.composite
def cases(draw: st.DrawFn, *, most: int = 6, most_sources: int = 3) -> Case:
    """Graphs with a workload and settings, good or bad."""
    graph = draw(cost_graphs(most=most, most_sources=most_sources))
    workload = {source: float(draw(st.integers(0, 600_000))) for source in graph.sources}
    settings = {
        name: Setting(
            draw(st.integers(1, 6)),
            None if graph.is_sink(name) else draw(st.sampled_from([1, 2, 10, 100, 1000])),
        )
        for name in graph.operators
    }
    return Case(graph, workload, settings)
