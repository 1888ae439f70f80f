"""Questions about plans: largest rates, other costs, other configurations, servers."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from floodway.core.errors import OptionError, UndefinedError
from floodway.provisioning.cost import (
    CostGraph,
    OperatorCosts,
    Platform,
    Setting,
    compare,
    detect,
    largest_workload,
    minimize,
    minimize_within,
    outcome,
    servers,
)
from tests.provisioning.graphs import Case, cases, chain
from tests.provisioning.linear_road import linear_road

MAX_B_OUT = 50


@given(cases(), st.integers(0, 20))
def test_largest_workload_fits_and_more_does_not(case: Case, spare: int) -> None:
    assume(any(case.workload.values()))
    count = len(case.graph.operators) + spare
    most = largest_workload(case.graph, case.workload, count=count, max_b_out=MAX_B_OUT)
    assume(max(most.values()) < 1e12)
    below = {source: rate * 0.999 for source, rate in most.items()}
    above = {source: rate * 1.001 for source, rate in most.items()}
    assert minimize(case.graph, below, max_b_out=MAX_B_OUT).tasks <= count
    assert minimize(case.graph, above, max_b_out=MAX_B_OUT).tasks > count


def test_linear_road_gets_further_with_more_cores() -> None:
    paper = linear_road()
    rates = [
        largest_workload(paper.graph, paper.workload, count=count)["spout"]
        for count in (6, 7, 8, 16)
    ]
    # A record costs the spout 1,000 ns and more, parse 3,501 ns, agg 2,575 ns: the limits are one
    # task of parse, one of agg, two of parse, and six of parse beside two and five.
    assert [round(rate, -3) for rate in rates] == [286_000, 388_000, 571_000, 1_714_000]


def test_largest_workload_stops_where_tasks_do_not_help() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1000, max_dop=2))
    assert largest_workload(graph, {"read": 1}, count=8) == {"read": 2_000_000}


def test_largest_workload_keeps_headroom() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1000))
    assert largest_workload(graph, {"read": 1}, count=1, headroom=0.2) == {"read": 800_000}


def test_fewer_tasks_than_operators_are_refused() -> None:
    paper = linear_road()
    with pytest.raises(OptionError, match="5 tasks cannot run 6 operators"):
        largest_workload(paper.graph, paper.workload, count=5)


def test_rate_beyond_the_tasks_is_refused_with_the_largest_that_fits() -> None:
    paper = linear_road()
    assert minimize_within(paper.graph, paper.workload, count=8).tasks == 8
    with pytest.raises(OptionError, match="with 7 tasks reaches this rate: it takes 8") as caught:
        minimize_within(paper.graph, paper.workload, count=7)
    assert "spout 388,389 records per second" in caught.value.remedy


def test_doubled_selectivity_loads_what_comes_after() -> None:
    paper = linear_road()
    doubled = paper.graph.multiplied("parse", selectivity=2)
    before = minimize(paper.graph, paper.workload).settings
    after = minimize(doubled, paper.workload).settings
    assert (before["agg"].dop, after["agg"].dop) == (2, 3)
    assert before["spout"].dop == after["spout"].dop


def test_changed_cost_leaves_the_first_graph_as_it_was() -> None:
    paper = linear_road()
    cheaper = paper.graph.changed("parse", c_cpu_ns=1500)
    assert cheaper.operators["parse"].c_cpu_ns == 1500
    assert paper.graph.operators["parse"].c_cpu_ns == 3500


def test_hand_over_costs_can_be_multiplied_for_one_operator() -> None:
    paper = linear_road()
    doubled = paper.graph.multiplied("parse", c_fetch_ns=2)
    assert doubled.c_fetch_ns("parse") == 14_800
    assert doubled.c_fetch_ns("agg") == 7400


def test_change_of_what_is_not_there_is_refused() -> None:
    paper = linear_road()
    with pytest.raises(UndefinedError, match="'prase'"):
        paper.graph.changed("prase", c_cpu_ns=1)
    with pytest.raises(OptionError, match="no 'cpu' to change"):
        paper.graph.changed("parse", cpu=1)
    with pytest.raises(OptionError, match="below zero"):
        paper.graph.changed("parse", c_cpu_ns=-1)


def test_comparison_shows_what_differs_and_nothing_else() -> None:
    paper = linear_road()
    planned = minimize(paper.graph, paper.workload).settings
    less = {**planned, "agg": Setting(1, 1)}
    before = outcome(paper.graph, paper.workload, planned)
    after = outcome(paper.graph, paper.workload, less)
    found = {difference.figure: difference for difference in compare(before, after)}
    assert (found["tasks"].before, found["tasks"].after) == (8, 7)
    assert (found["bottlenecks"].before, found["bottlenecks"].after) == (0, 1)
    assert found["throughput"].before == 500_000
    assert found["throughput"].after == pytest.approx(385_549, rel=1e-5)
    assert "parse.dop" not in found
    assert compare(before, before) == []


def test_comparison_of_two_graphs_shows_what_only_one_has() -> None:
    one = chain(OperatorCosts(name="read", c_cpu_ns=1))
    two = chain(OperatorCosts(name="read", c_cpu_ns=1), OperatorCosts(name="sink", c_cpu_ns=1))
    before = outcome(one, {"read": 1}, {"read": Setting(1)})
    after = outcome(two, {"read": 1}, {"read": Setting(1, 1), "sink": Setting(1)})
    found = {difference.figure: difference for difference in compare(before, after)}
    assert (found["sink.dop"].before, found["sink.dop"].after) == (None, 1)


@pytest.mark.parametrize(("count", "cores", "expected"), [(8, 4, 2), (9, 4, 3), (1, 12, 1)])
def test_servers_have_a_core_for_each_task(count: int, cores: int, expected: int) -> None:
    assert servers(count, cores=cores) == expected


def test_more_cores_on_a_server_leave_less_network_for_each() -> None:
    read = OperatorCosts(name="read", c_cpu_ns=100, record_bytes=100)
    sink = OperatorCosts(name="sink", c_cpu_ns=100)

    def planned(cores: int) -> int:
        graph: CostGraph = chain(
            read, sink, platform=Platform.of_servers(bits_per_s=1e9, cores=cores)
        )
        found = minimize(graph, {"read": 1_000_000})
        assert not detect(graph, {"read": 1_000_000}, found.settings).bottlenecks
        return found.tasks

    assert [planned(cores) for cores in (1, 2, 10)] == [2, 4, 16]
