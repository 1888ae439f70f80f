"""Equation 8: the paper's example, and any graph against all its ways, one by one."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway import Flow
from floodway.core.errors import EngineError
from floodway.engine.scheduler.loads import Link, StageLoad, Topology
from floodway.engine.scheduler.switch_range import magnification, switch_range
from floodway.plan import Plan
from tests.engine.driver.leading import forked, simple


def chain(*magnified: float, **changes: StageLoad) -> tuple[Topology, dict[str, StageLoad]]:
    names = [str(number) for number in range(1, len(magnified) + 1)]
    links = tuple(Link(a, b, a) for a, b in pairwise(names))
    loads = {n: StageLoad(stage=n, out_per_in=m) for n, m in zip(names, magnified, strict=True)}
    return Topology(tuple(names), links, frozenset("1")), {**loads, **changes}


def test_range_is_that_of_figure_7() -> None:
    topology, loads = chain(8, 0.625, 1, 0.1, 1)
    assert switch_range(topology, loads, "2") == ("2", "3", "4")


def test_flood_from_outside_begins_at_the_source() -> None:
    topology, loads = chain(1, 1, 0.5, 1)
    assert switch_range(topology, loads, "1") == ("1", "2", "3")


def test_source_that_keeps_little_floods_alone() -> None:
    topology, loads = chain(0.3, 1, 1)
    assert switch_range(topology, loads, "1") == ("1",)


def test_flooded_stage_is_in_its_range_whatever_came_before() -> None:
    topology, loads = chain(0.01, 2, 1)
    assert switch_range(topology, loads, "2") == ("2",)


def test_what_is_not_measured_hands_on_what_it_takes() -> None:
    topology, loads = chain(1, 1, 0.5, 1, **{"2": StageLoad(stage="2")})
    assert switch_range(topology, loads, "1") == ("1", "2", "3")


@pytest.mark.parametrize(
    "stays",
    [StageLoad(stage="3", able=False), StageLoad(stage="3", pin="data")],
    ids=["unable", "pinned"],
)
def test_way_ends_before_a_stage_that_stays(stays: StageLoad) -> None:
    topology, loads = chain(8, 1, 1, 1, **{"3": stays})
    assert switch_range(topology, loads, "2") == ("2",)
    assert switch_range(topology, loads, "3") == ()


def test_way_ends_before_sinks_closed_stages_and_unknown_ones() -> None:
    topology, loads = chain(8, 1, 1, 1)
    sinks = Topology(topology.stages, topology.links, topology.sources, frozenset("4"))
    assert switch_range(sinks, loads, "2") == ("2", "3")
    assert switch_range(topology, loads, "2", closed=["3"]) == ("2",)
    del loads["4"]
    assert switch_range(topology, loads, "2") == ("2", "3")


def test_stage_pinned_to_operation_is_on_the_way() -> None:
    topology, loads = chain(8, 1, 0.1, 1, **{"3": StageLoad(stage="3", pin="operation")})
    assert "3" in switch_range(topology, loads, "2")


def test_where_ways_part_each_has_its_own_records() -> None:
    topology = Topology(
        ("in", "many", "few"), (Link("in", "many", "hits"), Link("in", "few", "misses"))
    )
    handed = {"hits.main": 900.0, "misses.main": 100.0}
    loads = {
        "in": StageLoad(stage="in", out_per_in=2.0, handed=handed),
        "many": StageLoad(stage="many"),
        "few": StageLoad(stage="few"),
    }
    assert magnification(topology, loads, topology.links[0]) == pytest.approx(1.8)
    assert magnification(topology, loads, topology.links[1]) == pytest.approx(0.2)
    assert switch_range(topology, loads, "in") == ("in", "many")


def test_every_reader_of_an_operator_gets_all_its_records() -> None:
    topology = Topology(("in", "a", "b"), (Link("in", "a", "in"), Link("in", "b", "in")))
    loads = {"in": StageLoad(stage="in", out_per_in=2.0, handed={"in.main": 2000.0})}
    assert [magnification(topology, loads, link) for link in topology.links] == [1.0, 1.0]


@pytest.mark.parametrize("by", [(8, 0.2), (0.2, 8)])
def test_where_ways_meet_the_one_with_more_records_counts(by: tuple[float, float]) -> None:
    ends = [("in", "a"), ("in", "b"), ("a", "both"), ("b", "both"), ("both", "on")]
    topology = Topology(
        ("in", "a", "b", "both", "on"), tuple(Link(start, end, start) for start, end in ends)
    )
    magnified = {"in": 6.0, "a": by[0], "b": by[1], "both": 0.5, "on": 1.0}
    loads = {name: StageLoad(stage=name, out_per_in=m) for name, m in magnified.items()}
    # 6 * 8 * 0.5 is 24; the other way has 6 * 0.2 * 0.5, which is 0.6, and would end at "both".
    assert switch_range(topology, loads, "in") == topology.stages


def test_topology_of_a_plan_has_its_stages_and_exchanges() -> None:
    topology = Topology.of(simple())
    assert topology.sources == {"one", "two"}
    assert set(topology.sources) < set(topology.stages)
    assert {link.sender for link in topology.links} >= topology.sources
    assert len(Topology.of(forked()).leaving("one")) == 2


def test_stage_of_nothing_but_sinks_is_known() -> None:
    flow = Flow("sinks")
    words = flow.source("words", schema=str)
    words.map("upper(value)", name="loud").isolate().to("out", name="loud_out")
    words.to("out", name="written")
    topology = Topology.of(Plan.of(flow))
    assert [stage for stage in topology.stages if stage in topology.sinks] == ["loud_out"]


def test_link_that_leads_back_is_refused() -> None:
    with pytest.raises(EngineError, match="cannot read"):
        Topology(("a", "b"), (Link("b", "a", "b"),))
    with pytest.raises(EngineError, match="cannot read"):
        Topology(("a",), (Link("a", "b", "a"),))


# --------------------------------------------------------------------- against all ways


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Topology, dict[str, StageLoad]]:
    names = [f"s{number}" for number in range(draw(st.integers(1, 8)))]
    links = [
        Link(a, b, a) for at, a in enumerate(names) for b in names[at + 1 :] if draw(st.booleans())
    ]
    sinks = draw(st.sets(st.sampled_from(names), max_size=1))
    loads = {
        name: StageLoad(
            stage=name,
            able=draw(st.integers(0, 9)) < 9,
            pin=draw(st.sampled_from(["auto"] * 8 + ["data", "operation"])),
            out_per_in=draw(st.sampled_from([None, 0.1, 0.5, 0.625, 1.0, 2.0, 8.0])),
        )
        for name in names
    }
    return Topology(tuple(names), tuple(links), frozenset(names[:1]), frozenset(sinks)), loads


def ways(topology: Topology, stage: str) -> Iterator[list[str]]:
    """Yield every way from a stage on, also those that end early."""
    yield [stage]
    for link in topology.leaving(stage):
        for way in ways(topology, link.receiver):
            yield [stage, *way]


@given(graphs(), st.data())
def test_range_is_what_some_way_wants(
    graph: tuple[Topology, dict[str, StageLoad]], data: st.DataObject
) -> None:
    topology, loads = graph
    start = data.draw(st.sampled_from(topology.stages))

    def magnified(stage: str) -> float:
        known = loads[stage].out_per_in
        return 1.0 if known is None else known

    def stays(stage: str) -> bool:
        load = loads[stage]
        return not load.able or load.pin == "data" or stage in topology.sinks

    before = max((magnified(link.sender) for link in topology.entering(start)), default=1.0)
    wanted = set()
    for way in ways(topology, start):
        product = before
        for stage in way:
            if stays(stage):
                break
            wanted.add(stage)
            product *= magnified(stage)
            if product < 1:
                break
    assert set(switch_range(topology, loads, start)) == wanted
