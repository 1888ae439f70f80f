"""Planning takes time in proportion to the graph: connections are counted, not seconds."""

from collections.abc import Callable, Iterator

import msgspec
import pytest

from floodway.provisioning.cost import (
    Connection,
    CostGraph,
    OperatorCosts,
    Platform,
    detect,
    lean,
    minimize,
    predict,
)
from tests.provisioning.capacity import flow_capacity


class Counter:
    """How many connections have been looked at."""

    def __init__(self) -> None:
        self.seen = 0


class Counted(tuple[Connection, ...]):
    """Connections that count who looks at them."""

    counter: Counter

    def __iter__(self) -> Iterator[Connection]:
        for connection in super().__iter__():
            self.counter.seen += 1
            yield connection


def counting(graph: CostGraph) -> tuple[CostGraph, Counter]:
    counter = Counter()

    def counted(links: object) -> Counted:
        made = Counted(links)  # type: ignore[call-overload]
        made.counter = counter
        return made

    inputs = {name: counted(links) for name, links in graph.inputs.items()}
    outputs = {name: counted(links) for name, links in graph.outputs.items()}
    return msgspec.structs.replace(graph, inputs=inputs, outputs=outputs), counter


PLATFORM = Platform(c_fetch_ns=7400, c_emit_ns=2600, in_bits_per_s=1e9, out_bits_per_s=1e9)


def ladder(count: int) -> CostGraph:
    """Two lanes with a rung after each step: two inputs each, and half of each output."""
    costs = {"c_cpu_ns": 1000, "record_bytes": 50}
    operators = [OperatorCosts(name=str(number), **costs) for number in range(count)]
    links = [
        Connection(str(before), str(number), "hash", 0.5)
        for number in range(2, count)
        for before in (number - 2 - number % 2, number - 1 - number % 2)
    ]
    return CostGraph.of(operators, links, PLATFORM)


def star(count: int) -> CostGraph:
    """One consumer with all others as its producers."""
    operators = [OperatorCosts(name=str(number), c_cpu_ns=1000) for number in range(count)]
    links = [Connection(str(number), "0") for number in range(1, count)]
    return CostGraph.of(operators, links, PLATFORM)


def everything(graph: CostGraph) -> None:
    # Different rates, so that producers have batches of different sizes to be raised.
    workload = {source: 100_000.0 + 97 * n for n, source in enumerate(graph.sources)}
    found = minimize(graph, workload)
    detect(graph, workload, found.settings)
    predict(graph, workload, lean(graph, found))
    flow_capacity(graph, workload, found.settings)


LOOKS = 40
"""How often one connection may be looked at in all, whatever the size of the graph."""


@pytest.mark.parametrize("shape", [ladder, star])
@pytest.mark.parametrize("count", [100, 1000, 10_000])
def test_each_connection_is_looked_at_a_fixed_number_of_times(
    shape: Callable[[int], CostGraph], count: int
) -> None:
    graph, counter = counting(shape(count))
    connections = sum(len(links) for links in graph.inputs.values())
    everything(graph)
    assert connections <= counter.seen <= LOOKS * connections
