"""What was planned is what a flow runs with."""

import tomllib
from pathlib import Path

import pytest

from floodway import Flow
from floodway.core.errors import UndefinedError
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.provisioning.applying import configuration_of, settings_of, to_toml
from floodway.provisioning.cost import OperatorCosts, Setting, minimize
from tests.provisioning.graphs import chain
from tests.provisioning.linear_road import linear_road


def test_plan_survives_the_way_through_a_file(tmp_path: Path) -> None:
    paper = linear_road()
    planned = dict(minimize(paper.graph, paper.workload).settings)
    path = tmp_path / "configuration.toml"
    path.write_text(to_toml(planned))
    assert Configuration.read(path) == configuration_of(planned)
    assert settings_of(paper.graph, Configuration.read(path)) == planned


def test_flow_runs_with_what_was_planned() -> None:
    flow = Flow("numbers")
    flow.source("numbers", schema=int).map("value + 1", name="more").to("out")
    settings = {"numbers": Setting(2, 15), "more": Setting(3, 20)}
    plan = Plan.of(flow, configuration_of(settings))
    assert plan.stage_of("more").dop == 3
    assert (plan.b_out("numbers"), plan.b_out("more")) == (15, 20)


def test_what_a_configuration_leaves_open_is_the_default() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1), OperatorCosts(name="sink", c_cpu_ns=1))
    found = settings_of(graph, Configuration(Tuning(dop=2), {"read": Tuning(b_out=7)}))
    assert found == {"read": Setting(2, 7), "sink": Setting(2)}


def test_configuration_of_another_flow_is_refused() -> None:
    graph = chain(OperatorCosts(name="read", c_cpu_ns=1))
    with pytest.raises(UndefinedError, match="'parse'"):
        settings_of(graph, Configuration(operators={"parse": Tuning(dop=1)}))


def test_any_name_can_be_written() -> None:
    name = 'a "b" [c].d = é'
    assert tomllib.loads(to_toml({name: Setting(1)})) == {"operators": {name: {"dop": 1}}}
