"""Bottlenecks and back-pressure: who cannot cope, what would help, and what comes through."""

import pytest
from hypothesis import assume, given

from floodway.core.errors import OptionError, UndefinedError
from floodway.provisioning.cost import (
    Connection,
    CostGraph,
    OperatorCosts,
    Platform,
    Setting,
    detect,
    predict,
)
from tests.provisioning.capacity import flow_capacity
from tests.provisioning.graphs import Case, cases, chain, costing, wide
from tests.provisioning.oracle import Exact


@given(cases())
def test_prediction_is_never_above_the_workload(case: Case) -> None:
    found = predict(case.graph, case.workload, case.settings)
    for source, rate in found.throughput.items():
        assert 0 <= rate <= case.workload[source]


@given(cases())
def test_prediction_is_the_workload_exactly_if_there_is_no_bottleneck(case: Case) -> None:
    found = predict(case.graph, case.workload, case.settings)
    slowed = any(found.throughput[s] < rate * (1 - 1e-9) for s, rate in case.workload.items())
    bottlenecks = {b.operator for b in found.diagnosis.bottlenecks}
    assert slowed <= bool(bottlenecks)
    assert set(found.held_back_by.values()) <= bottlenecks


@given(cases())
def test_detector_finds_a_bottleneck_where_the_exact_sums_do(case: Case) -> None:
    """Only the first in each way counts: those behind it get less than the sums assume."""
    exact = Exact(case.graph, case.workload)
    batches = {name: setting.b_out or 1 for name, setting in case.settings.items()}
    needed = {n: exact.tasks_needed(n, batches) / s.dop for n, s in case.settings.items()}
    assume(all(abs(part - 1) > 1e-6 for part in needed.values()))
    found = detect(case.graph, case.workload, case.settings)
    bottlenecks = {bottleneck.operator for bottleneck in found.bottlenecks}
    assert bool(bottlenecks) == any(part > 1 for part in needed.values())
    assert bottlenecks <= {name for name, part in needed.items() if part > 1}
    for source in case.graph.sources:
        assert (source in bottlenecks) == (needed[source] > 1)


@given(cases(most_sources=1))
def test_chain_gets_through_what_its_narrowest_operator_takes(case: Case) -> None:
    """Along a chain nothing is shared, so the prediction is exact: the first bound that binds."""
    operators = list(case.graph.operators.values())
    graph = chain(*operators, platform=case.graph.platform)
    settings = {
        name: Setting(case.settings[name].dop, None if graph.is_sink(name) else 10)
        for name in graph.operators
    }
    workload = {"v0": 300_000.0}
    exact = Exact(graph, workload)
    batches = dict.fromkeys(settings, 10)
    most = max(exact.tasks_needed(name, batches) / s.dop for name, s in settings.items())
    expected = 300_000 / max(1, most)
    found = predict(graph, workload, settings).throughput["v0"]
    assert found == pytest.approx(float(expected))


@given(cases())
def test_capacity_is_the_largest_workload_of_its_mix(case: Case) -> None:
    assume(any(case.workload.values()))
    most = flow_capacity(case.graph, case.workload, case.settings)
    assume(max(most.values()) < 1e12)
    below = {source: rate * 0.999 for source, rate in most.items()}
    above = {source: rate * 1.001 for source, rate in most.items()}
    assert not detect(case.graph, below, case.settings).bottlenecks
    assert detect(case.graph, above, case.settings).bottlenecks


def test_bottleneck_behind_another_shows_when_the_first_is_gone() -> None:
    operators = [costing(f"v{n}", capacity=c) for n, c in enumerate((100, 50, 60))]
    graph = chain(*operators)
    settings = {"v0": Setting(1, 1), "v1": Setting(1, 1), "v2": Setting(1)}
    assert [b.operator for b in detect(graph, {"v0": 80}, settings).bottlenecks] == ["v1"]
    settings["v1"] = Setting(2, 1)
    assert [b.operator for b in detect(graph, {"v0": 80}, settings).bottlenecks] == ["v2"]


def test_rounding_does_not_look_like_back_pressure() -> None:
    """Both carry 41 bytes over the same bandwidth; the consumer's capacity has other rounding."""
    read = OperatorCosts(name="read", c_cpu_ns=0, selectivity=1.5, record_bytes=41)
    sink = OperatorCosts(name="sink", c_cpu_ns=0)
    platform = Platform(in_bits_per_s=1e8, out_bits_per_s=1e8)
    settings = {"read": Setting(1, 10), "sink": Setting(1)}
    found = predict(chain(read, sink, platform=platform), {"read": 300_000}, settings)
    assert found.held_back_by == {"read": "read"}


def test_operator_of_selectivity_zero_is_not_held_back() -> None:
    operators = [costing("read", capacity=100, selectivity=0.0), costing("sink", capacity=1)]
    found = predict(chain(*operators), {"read": 50}, {"read": Setting(1, 1), "sink": Setting(1)})
    assert found.throughput == {"read": 50}


def test_several_sources_are_slowed_down_by_their_part_only() -> None:
    """Line 18 of the printed algorithm would let both sources send all that the join takes."""
    operators = [
        costing("a", capacity=1000),
        costing("b", capacity=1000),
        costing("join", capacity=100),
        costing("other", capacity=20),
    ]
    graph = wide(operators, "a-join b-join b-other", Platform())
    settings = {"a": Setting(1, 1), "b": Setting(1, 1), "join": Setting(1), "other": Setting(1)}
    found = predict(graph, {"a": 150, "b": 50}, settings)
    assert found.throughput == pytest.approx({"a": 75, "b": 20})
    assert (found.held_back_by["a"], found.held_back_by["b"]) == ("join", "other")


def test_split_output_loads_each_consumer_with_its_share() -> None:
    operators = [OperatorCosts(name=name, c_cpu_ns=1000) for name in ("read", "most", "rest")]
    links = [Connection("read", "most", share=0.75), Connection("read", "rest", share=0.25)]
    graph = CostGraph.of(operators, links, Platform())
    settings = {"read": Setting(1, 1), "most": Setting(1), "rest": Setting(1)}
    loads = detect(graph, {"read": 1000}, settings).loads
    assert (loads["most"].rate_in, loads["rest"].rate_in) == (750, 250)
    assert graph.fan_out("read") == 1


def remedy(graph: CostGraph, workload: dict[str, float], settings: dict[str, Setting]) -> str:
    (bottleneck,) = detect(graph, workload, settings).bottlenecks
    return bottleneck.remedy


def test_cpu_bottleneck_is_helped_by_tasks_or_batches() -> None:
    read = OperatorCosts(name="read", c_cpu_ns=100)
    work = OperatorCosts(name="work", c_cpu_ns=2000)
    graph = chain(read, work, platform=Platform(c_fetch_ns=7000))
    said = remedy(graph, {"read": 200_000}, {"read": Setting(1, 1), "work": Setting(1)})
    assert said == (
        "raise its dop from 1 to 2; or let batches hold at least 3 records: raise b_out of read"
    )
    assert not detect(
        graph, {"read": 200_000}, {"read": Setting(1, 3), "work": Setting(1)}
    ).bottlenecks


def test_network_bottleneck_is_helped_by_tasks_only() -> None:
    platform = Platform(c_emit_ns=1000, out_bits_per_s=8_000)
    read = OperatorCosts(name="read", c_cpu_ns=0, record_bytes=100)
    graph = chain(read, OperatorCosts(name="sink", c_cpu_ns=0), platform=platform)
    said = remedy(graph, {"read": 25}, {"read": Setting(1, 1), "sink": Setting(1)})
    assert said == "raise its dop from 1 to 3"


def test_what_cannot_be_shared_out_has_to_get_less() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1000, max_dop=1))
    said = remedy(graph, {"read": 2_000_000}, {"read": Setting(1)})
    assert "at most 1,000,000 records per second" in said
    assert "its dop cannot be above 1" in said


def test_configuration_without_an_operator_is_refused() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1), OperatorCosts(name="sink", c_cpu_ns=1))
    with pytest.raises(OptionError, match="says nothing") as caught:
        detect(graph, {"read": 1}, {"read": Setting(1, 1)})
    assert caught.value.operator == "sink"


def test_configuration_of_another_flow_is_refused() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1))
    with pytest.raises(UndefinedError, match="'parse'"):
        detect(graph, {"read": 1}, {"read": Setting(1), "parse": Setting(1)})


@pytest.mark.parametrize("setting", [Setting(0, 1), Setting(1, 0), Setting(1, None)])
def test_setting_that_cannot_run_is_refused(setting: Setting) -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1), OperatorCosts(name="sink", c_cpu_ns=1))
    with pytest.raises(OptionError, match="at least 1") as caught:
        detect(graph, {"read": 1}, {"read": setting, "sink": Setting(1)})
    assert caught.value.operator == "read"


def test_workload_has_to_fit_the_sources() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1), OperatorCosts(name="sink", c_cpu_ns=1))
    settings = {"read": Setting(1, 1), "sink": Setting(1)}
    with pytest.raises(OptionError, match="has no rate"):
        detect(graph, {}, settings)
    with pytest.raises(OptionError, match="not a source"):
        detect(graph, {"read": 1, "sink": 1}, settings)
    with pytest.raises(OptionError, match="not possible"):
        detect(graph, {"read": -1}, settings)
