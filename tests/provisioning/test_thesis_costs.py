"""Chapter 3 of the thesis: examples 3 to 7, and what the equations say of themselves."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.provisioning.cost import (
    CostGraph,
    OperatorCosts,
    Platform,
    Setting,
    detect,
)
from floodway.provisioning.cost.equations import (
    Arrival,
    effective_batch,
    effective_record_bytes,
    output_capacity,
    processing_capacity,
    processing_cost,
)
from tests.provisioning.capacity import flow_capacity, max_source_capacity, sustains
from tests.provisioning.graphs import chain, costing, wide


def example_3() -> tuple[CostGraph, dict[str, Setting]]:
    operators = [
        costing("s1", capacity=7),
        costing("s2", capacity=4),
        costing("o", capacity=5),
    ]
    graph = wide(operators, "s1-o s2-o", Platform())
    return graph, {"s1": Setting(1, 1), "s2": Setting(1, 1), "o": Setting(1)}


@pytest.mark.parametrize("capacity", [(3, 2), (1, 4), (5, 0)])
def test_example_3_flow_has_several_capacities(capacity: tuple[float, float]) -> None:
    graph, settings = example_3()
    mix = dict(zip(("s1", "s2"), capacity, strict=True))
    assert flow_capacity(graph, mix, settings) == pytest.approx(mix)
    assert sustains(graph, mix, settings)


@pytest.mark.parametrize("rates", [(9, 2), (1, 7), (6, 0), (4, 3)])
def test_example_3_counter_examples_exceed_the_capacity(rates: tuple[float, float]) -> None:
    graph, settings = example_3()
    workload = dict(zip(("s1", "s2"), rates, strict=True))
    assert not sustains(graph, workload, settings)
    assert detect(graph, workload, settings).bottlenecks


def test_example_3_largest_source_capacities_together_are_no_capacity() -> None:
    graph, settings = example_3()
    largest = {source: max_source_capacity(graph, source, settings) for source in ("s1", "s2")}
    assert largest == pytest.approx({"s1": 5, "s2": 4})
    assert not sustains(graph, largest, settings)


def test_example_4_emit_is_shared_by_four_input_batches() -> None:
    emit = processing_cost(0, c_emit=1000, selectivity=0.5, b_in=10, b_out=20)
    assert 10 * emit == 0.25 * 1000


def test_example_5_effective_batch_is_records_by_batches() -> None:
    """The thesis prints 6.6; 20 records in 3 batches are 6.67."""
    assert effective_batch([Arrival(1, 5), Arrival(1, 10)]) == pytest.approx(20 / 3)


def test_example_6_effective_record_size_is_bytes_by_records() -> None:
    arrivals = [Arrival(6, 1, 5), Arrival(1, 1, 20)]
    assert effective_record_bytes(arrivals) == pytest.approx(50 / 7)


def test_example_7_fan_out_makes_the_output_the_limit() -> None:
    assert output_capacity(8000, 1, fan_out=4, selectivity=0.5) == 500
    read = OperatorCosts(name="read", c_cpu_ns=0, record_bytes=1)
    keep = OperatorCosts(name="filter", c_cpu_ns=0, selectivity=0.5, record_bytes=1)
    sinks = [OperatorCosts(name=f"sink{n}", c_cpu_ns=0) for n in range(4)]
    links = "read-filter filter-sink0 filter-sink1 filter-sink2 filter-sink3"
    graph = wide([read, keep, *sinks], links, Platform(in_bits_per_s=8000, out_bits_per_s=8000))
    settings = {"read": Setting(1, 1), "filter": Setting(1, 1)}
    settings |= {sink.name: Setting(1) for sink in sinks}
    found = detect(graph, {"read": 1000}, settings)
    assert [(b.operator, b.kinds, b.capacity) for b in found.bottlenecks] == [
        ("filter", ("output network",), 500)
    ]


COSTS = st.floats(0, 1e6)
BATCHES = st.integers(1, 10_000)


@given(COSTS, COSTS, COSTS, st.floats(0, 5), BATCHES, BATCHES)
def test_batches_never_cost_more_and_never_less_than_the_cpu_cost(
    c_cpu: float, c_fetch: float, c_emit: float, selectivity: float, b_in: int, b_out: int
) -> None:
    costs = {"c_fetch": c_fetch, "c_emit": c_emit, "selectivity": selectivity}
    batched = processing_cost(c_cpu, b_in=b_in, b_out=b_out, **costs)
    assert c_cpu <= batched <= processing_cost(c_cpu, **costs)
    per_batch = c_fetch + b_in * c_cpu + selectivity * b_in / b_out * c_emit  # equation 3.7
    assert per_batch / b_in == pytest.approx(batched)


@given(st.lists(st.tuples(st.floats(1, 1e6), BATCHES), min_size=1, max_size=5))
def test_effective_batch_lies_between_the_smallest_and_the_largest(
    arrivals: list[tuple[float, int]],
) -> None:
    sizes = [size for _, size in arrivals]
    found = effective_batch([Arrival(rate, size) for rate, size in arrivals])
    assert min(sizes) * (1 - 1e-9) <= found <= max(sizes) * (1 + 1e-9)


def test_source_pays_no_fetch_and_sink_no_emit() -> None:
    platform = Platform(c_fetch_ns=70, c_emit_ns=30, in_bits_per_s=1e9, out_bits_per_s=1e9)
    read = OperatorCosts(name="read", c_cpu_ns=100, record_bytes=10)
    sink = OperatorCosts(name="sink", c_cpu_ns=100, record_bytes=10)
    graph = chain(read, sink, platform=platform)
    loads = detect(graph, {"read": 1}, {"read": Setting(1, 1), "sink": Setting(1)}).loads
    assert (loads["read"].cost_ns, loads["sink"].cost_ns) == (130, 170)
    assert loads["read"].capacities["input network"] == math.inf
    assert loads["sink"].capacities["output network"] == math.inf


def test_operator_has_the_capacity_of_its_tasks() -> None:
    graph = chain(costing("read", capacity=100))
    load = detect(graph, {"read": 1}, {"read": Setting(3)}).loads["read"]
    assert load.task_capacity == pytest.approx(100)
    assert load.capacity == pytest.approx(300)


def test_what_costs_nothing_has_no_limit() -> None:
    assert processing_capacity(0) == math.inf
    graph = chain(OperatorCosts(name="read", c_cpu_ns=0))
    assert flow_capacity(graph, {"read": 1}, {"read": Setting(1)}) == {"read": math.inf}


SPOUT = {1: 119_048, 10: 606_061, 100: 1_025_641, 1_000: 1_101_928, 10_000: 1_110_186}
BOLT = {1: 21_786, 10: 185_185, 100: 740_741, 1_000: 1_058_201, 10_000: 1_105_583}


@pytest.mark.parametrize("b_out", [1, 10, 100, 1_000, 10_000])
def test_figure_4_8_spout_and_bolt_capacities(b_out: int) -> None:
    """Predictions from 900 ns of cpu, 7,500 ns to emit and 45,000 ns to fetch.

    The thesis calls the 900 ns c_p where they are c_cpu. The figure has no numbers, and the text
    has three that were measured: the spout's 120,000 and the bolt's 25,000 without batches, and
    the bolt's 965,000 with batches of 1,000. They lie 1 %, 13 % and 10 % from these predictions.
    """
    platform = Platform(c_fetch_ns=45_000, c_emit_ns=7_500)
    spout = OperatorCosts(name="spout", c_cpu_ns=900, record_bytes=100)
    graph = chain(spout, OperatorCosts(name="bolt", c_cpu_ns=900), platform=platform)
    settings = {"spout": Setting(1, b_out), "bolt": Setting(1)}
    loads = detect(graph, {"spout": 1_000_000}, settings).loads
    assert loads["spout"].capacity == pytest.approx(SPOUT[b_out], rel=1e-5)
    assert loads["bolt"].capacity == pytest.approx(BOLT[b_out], rel=1e-4)


@pytest.mark.parametrize(
    ("predicted", "measured"), [(SPOUT[1], 120_000), (BOLT[1], 25_000), (BOLT[1_000], 965_000)]
)
def test_figure_4_8_lies_as_near_to_the_measurements_as_the_thesis_says(
    predicted: float, measured: float
) -> None:
    """The thesis gives 16.14 % as the largest error."""
    assert abs(predicted - measured) / measured <= 0.1614


TABLE_4_1 = {
    (1, 1): [1, 1, 1, 1, 1],
    (1, 5): [3.6, 2.3, 1.7, 1.3, 1.1],
    (5, 5): [5, 5, 5, 5, 5],
    (1, 10): [5.3, 2.7, 1.8, 1.4, 1.1],
    (5, 10): [9.1, 7.7, 6.7, 5.9, 5.3],
}


@pytest.mark.parametrize(("sizes", "printed"), TABLE_4_1.items(), ids=str)
def test_table_4_1_effective_input_batch_sizes(
    sizes: tuple[int, int], printed: list[float]
) -> None:
    """The rate moves from the second spout to the first, from 10 and 90 to 90 and 10.

    One entry of the printed table differs: 1.6 for batches of 1 and 5 at equal rates, where the
    equation gives 100 / 60, which is 1.7. The other entries are rounded, that one is cut off. The
    rate printed beside an entry is that of the spout with the smaller batches, although it stands
    in the row of the other; the text, which has 5.3 for 10,000 and 90,000, agrees.
    """
    found = [
        effective_batch([Arrival(rate, sizes[0]), Arrival(100 - rate, sizes[1])])
        for rate in (10, 30, 50, 70, 90)
    ]
    assert [round(size, 1) for size in found] == printed
