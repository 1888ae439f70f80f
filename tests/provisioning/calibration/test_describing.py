"""From a measured run to a graph: stages, shares, copies, limits."""

import pytest

import floodway as fw
from floodway.connectors import JsonLinesSource
from floodway.connectors.discard import DiscardSink
from floodway.core.errors import OptionError
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.provisioning.applying import of_stages, stages_of
from floodway.provisioning.calibration.describing import Calibrated, describe
from floodway.provisioning.calibration.fitting import WorkStretch
from floodway.provisioning.calibration.running import Measured
from floodway.provisioning.cost import Setting
from floodway.testing import ListSource

BUSY = WorkStretch(0.1, 1000, 500, 5000, 10, 5, 0)


class Seen(fw.Record):
    page: str
    at: int


def flow() -> fw.Flow:
    """A source with a table, two consumers of what it sends, and one of its late records."""
    made = fw.Flow("described")
    events = made.source("events", JsonLinesSource("none"), schema=Seen, timestamp="at")
    names = made.table("names", ListSource([]), schema=str, key=str, preload=True)
    joined = events.join(
        names,
        on="page",
        select=["page", "right AS name"],
        late_updates="ignore",
        broadcast=True,
        name="named",
    )
    for name, column in (("by_page", "page"), ("by_name", "name")):
        table = joined.group_by(column).count(name=name)
        table.changes(emit=fw.emit.latest(), name=f"{name}_changes").to(
            DiscardSink(), name=f"{name}_out"
        )
    return made


def described(plan: Plan) -> Calibrated:
    idle: dict[str, list[WorkStretch]] = {stage.name: [] for stage in plan.stages}
    busy = {name: [BUSY] * 5 for name in ("events", "by_page", "by_name")}
    sent = {(e.edge.operator.name, e.edge.port): 500 for e in plan.exchanges}
    measured = Measured({**idle, **busy}, sent, {"events": 1000, "names": 7})
    return describe(plan, measured, machine="here", date="today")


def test_stages_that_work_are_the_operators_and_tables_are_left_out() -> None:
    found = described(Plan.of(flow()))
    assert list(found.costs) == ["events", "by_page", "by_name"]
    assert {(c.producer, c.consumer, c.partitioning) for c in found.connections} == {
        ("events", "by_page", "hash"),
        ("events", "by_name", "hash"),
    }
    assert found.graph.sources == ("events",)
    assert found.most["by_page"] == Plan.of(flow()).key_groups
    assert found.mix == {"events": pytest.approx(1000 / 1007)}


def test_record_with_two_consumers_counts_once_and_is_sent_twice() -> None:
    found = described(Plan.of(flow()))
    # 500 records left for 1,000 that came, in the measured counters; both consumers have each.
    assert found.costs["events"].selectivity.value == pytest.approx(0.25)
    assert [c.share for c in found.connections] == [1.0, 1.0]


def test_settings_of_stages_are_those_of_all_their_operators_and_back() -> None:
    plan = Plan.of(flow())
    graph = described(plan).graph
    settings = {"events": Setting(1, 50), "by_page": Setting(3), "by_name": Setting(2)}
    operators = stages_of(plan, settings)
    assert operators["named"] == Setting(1, 50)
    assert operators["by_page_out"] == Setting(3)
    tunings = {name: Tuning(dop=one.dop, b_out=one.b_out) for name, one in operators.items()}
    again = Plan.of(flow(), Configuration(operators=tunings))
    assert of_stages(graph, again) == settings


def test_configuration_that_divides_the_flow_otherwise_is_refused() -> None:
    graph = described(Plan.of(flow())).graph
    apart = Plan.of(flow(), Configuration(operators={"by_page": Tuning(dop=2)}))
    assert of_stages(graph, apart)["by_page"].dop == 2
    other = fw.Flow("described")
    other.source("numbers", JsonLinesSource("none"), schema=int).to(DiscardSink())
    with pytest.raises(OptionError, match="has no stage 'events'"):
        of_stages(graph, Plan.of(other))


def test_two_runs_of_a_flow_are_one_with_all_their_stretches() -> None:
    one = Measured({"read": [BUSY]}, {("read", "main"): 5}, {"read": 10}, {100: [1.0]})
    both = one + Measured({"read": [BUSY] * 2}, {("read", "main"): 6}, {"read": 20}, {100: [3.0]})
    assert both == Measured(
        {"read": [BUSY] * 3}, {("read", "main"): 11}, {"read": 30}, {100: [1.0, 3.0]}
    )
