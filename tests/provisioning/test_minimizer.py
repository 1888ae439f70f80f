"""The fewest tasks: none too many, none too few, and batches that make them enough."""

import pytest
from hypothesis import given, settings

from floodway.core.errors import OptionError
from floodway.provisioning.cost import (
    Connection,
    CostGraph,
    OperatorCosts,
    Platform,
    Setting,
    detect,
    lean,
    minimize,
    waits_s,
)
from floodway.provisioning.cost.loads import rates_in, rates_out
from tests.provisioning.graphs import Case, cases, chain
from tests.provisioning.oracle import Exact

BOUNDS = [None, 1, 3, 1000]
WAYS = pytest.mark.parametrize("max_b_out", BOUNDS)


@WAYS
@given(cases())
def test_plan_has_no_bottleneck_at_the_planned_rate(max_b_out: int | None, case: Case) -> None:
    found = minimize(case.graph, case.workload, max_b_out=max_b_out)
    assert not detect(case.graph, case.workload, found.settings).bottlenecks
    lower = lean(case.graph, found)
    assert not detect(case.graph, case.workload, lower).bottlenecks


@WAYS
@given(cases())
def test_one_task_less_anywhere_is_a_bottleneck(max_b_out: int | None, case: Case) -> None:
    found = minimize(case.graph, case.workload, max_b_out=max_b_out)
    for name, setting in found.settings.items():
        if setting.dop == 1:
            continue
        less = {**found.settings, name: Setting(setting.dop - 1, setting.b_out)}
        bottlenecks = detect(case.graph, case.workload, less).bottlenecks
        assert [bottleneck.operator for bottleneck in bottlenecks] == [name]


@pytest.mark.parametrize("largest", [1, 2, 4])
@given(cases(most=4))
def test_no_search_finds_fewer_tasks(largest: int, case: Case) -> None:
    found = minimize(case.graph, case.workload, max_b_out=largest)
    assert found.tasks == Exact(case.graph, case.workload).fewest_tasks(largest)


@WAYS
@given(cases())
def test_no_batch_is_larger_than_allowed(max_b_out: int | None, case: Case) -> None:
    found = minimize(case.graph, case.workload, max_b_out=max_b_out)
    for plan in (found.settings, lean(case.graph, found)):
        for name, setting in plan.items():
            assert (setting.b_out is None) == case.graph.is_sink(name)
            assert setting.b_out is None or 1 <= setting.b_out <= (max_b_out or setting.b_out)


@WAYS
@given(cases())
def test_no_lean_batch_can_be_lowered_alone(max_b_out: int | None, case: Case) -> None:
    found = minimize(case.graph, case.workload, max_b_out=max_b_out)
    plan = lean(case.graph, found)
    exact = Exact(case.graph, case.workload)
    dops = {name: setting.dop for name, setting in plan.items()}
    batches = {name: setting.b_out or 1 for name, setting in plan.items()}
    for name, b_out in batches.items():
        if b_out > 1:
            assert not exact.copes(dops, {**batches, name: b_out - 1})


@WAYS
@given(cases())
def test_lean_batches_change_no_dop_and_wait_no_longer(max_b_out: int | None, case: Case) -> None:
    found = minimize(case.graph, case.workload, max_b_out=max_b_out)
    plan = lean(case.graph, found)
    assert {n: s.dop for n, s in plan.items()} == {n: s.dop for n, s in found.settings.items()}
    leaving = rates_out(case.graph, rates_in(case.graph, case.workload))
    before = sum(waits_s(case.graph, leaving, found.settings).values())
    assert sum(waits_s(case.graph, leaving, plan).values()) <= before * (1 + 1e-9)


@settings(max_examples=30)
@given(cases())
def test_more_headroom_never_takes_fewer_tasks(case: Case) -> None:
    before = minimize(case.graph, case.workload)
    after = minimize(case.graph, case.workload, headroom=0.25)
    assert all(after.settings[n].dop >= s.dop for n, s in before.settings.items())
    assert not detect(case.graph, case.workload, after.settings, headroom=0.25).bottlenecks


def test_headroom_keeps_a_share_of_each_task_free() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1000))
    assert minimize(graph, {"read": 900_000}).tasks == 1
    assert minimize(graph, {"read": 900_000}, headroom=0.2).tasks == 2
    crowded = detect(graph, {"read": 900_000}, {"read": Setting(1)}, headroom=0.2)
    assert [bottleneck.operator for bottleneck in crowded.bottlenecks] == ["read"]
    assert crowded.loads["read"].utilisation == pytest.approx(0.9)


def test_smallest_producer_is_raised_first_and_only_as_many_as_needed() -> None:
    names = ["slow", "fast", "sink"]
    operators = [OperatorCosts(name=name, c_cpu_ns=1000) for name in names]
    links = [Connection("slow", "sink"), Connection("fast", "sink")]
    graph = CostGraph.of(operators, links, Platform(c_fetch_ns=4000, c_emit_ns=1000))
    found = minimize(graph, {"slow": 10, "fast": 499_990})
    # The sink needs batches of 4. Raising one producer is not enough when it sends next to nothing.
    assert found.steps["sink"].b_in_least == 4
    assert [found.settings[name].b_out for name in names] == [4, 4, None]
    assert {found.steps[name].raised_by for name in ("slow", "fast")} == {"sink"}


def joined(c_fetch_ns: float, *names: str) -> CostGraph:
    """Sources that one sink reads, each of which pays 4,000 ns to emit a batch."""
    operators = [OperatorCosts(name=name, c_cpu_ns=1000) for name in (*names, "sink")]
    links = [Connection(name, "sink") for name in names]
    return CostGraph.of(operators, links, Platform(c_fetch_ns=c_fetch_ns, c_emit_ns=4000))


def test_producer_with_large_batches_is_left_alone() -> None:
    graph = joined(444, "large", "small")
    workload = {"large": 700_000.0, "small": 200_000.0}
    found = minimize(graph, workload).settings
    # Nine tenths of a second are taken: 111 ns are left for a fetch of 444 ns, shared by 4.
    assert [found[name].b_out for name in ("large", "small")] == [10, 4]
    assert not detect(graph, workload, found).bottlenecks


def test_producers_share_the_room_to_lower_their_batches() -> None:
    graph = joined(660, "large", "one", "other")
    workload = {"large": 700_000.0, "one": 100_000.0, "other": 100_000.0}
    found = minimize(graph, workload)
    assert [setting.b_out for setting in found.settings.values()] == [10, 6, 6, None]
    lower = lean(graph, found)
    # Either could do with 2, but not both.
    assert [setting.b_out for setting in lower.values()] == [10, 2, 4, None]
    assert not detect(graph, workload, lower).bottlenecks


def test_silent_source_is_planned_with_one_task() -> None:
    graph = chain(
        OperatorCosts(name="read", c_cpu_ns=1000),
        OperatorCosts(name="sink", c_cpu_ns=1000),
        platform=Platform(c_fetch_ns=7400, c_emit_ns=2600),
    )
    found = minimize(graph, {"read": 0})
    assert list(found.settings.values()) == [Setting(1, 1), Setting(1)]


def test_network_alone_can_ask_for_tasks() -> None:
    slow = Platform(in_bits_per_s=8_000, out_bits_per_s=8_000)
    graph = chain(
        OperatorCosts(name="read", c_cpu_ns=0, record_bytes=100),
        OperatorCosts(name="sink", c_cpu_ns=0),
        platform=slow,
    )
    found = minimize(graph, {"read": 25})
    assert [setting.dop for setting in found.settings.values()] == [3, 3]
    less = {**found.settings, "sink": Setting(2)}
    (bottleneck,) = detect(graph, {"read": 25}, less).bottlenecks
    assert bottleneck.kinds == ("input network",)


def test_rate_that_no_configuration_reaches_is_refused() -> None:
    graph = chain(
        OperatorCosts(name="read", c_cpu_ns=1000),
        OperatorCosts(name="total", c_cpu_ns=5000, max_dop=1),
    )
    with pytest.raises(OptionError, match="no configuration reaches this rate") as caught:
        minimize(graph, {"read": 500_000})
    assert caught.value.operator == "total"
    assert "take 3 tasks (cpu), and there can be 1" in caught.value.problem
    assert "below 200,000 records per second" in caught.value.remedy


@pytest.mark.parametrize("headroom", [-0.1, 1.0, float("nan")])
def test_impossible_headroom_is_refused(headroom: float) -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1000))
    with pytest.raises(OptionError, match="headroom"):
        minimize(graph, {"read": 1}, headroom=headroom)


def test_batches_of_no_records_are_refused() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1000))
    with pytest.raises(OptionError, match="max_b_out=0"):
        minimize(graph, {"read": 1}, max_b_out=0)
