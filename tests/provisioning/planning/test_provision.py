"""Planning a flow from Python: the same as ``floodway plan``, and as clear about what is wrong."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import floodway as fw
from floodway.cli.main import app
from floodway.connectors import JsonLinesSource
from floodway.core.errors import FloodwayError, OptionError, UndefinedError
from floodway.model.loading import load_flow
from tests.provisioning.planning.calibrated import write_flow

runner = CliRunner(env={"COLUMNS": "100"})


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return write_flow(tmp_path, monkeypatch)


@pytest.fixture
def flow(named: str) -> fw.Flow:
    return load_flow(named)


def commanded(named: str, *options: str, code: int = 0) -> dict[str, Any]:
    done = runner.invoke(app, ["plan", named, *options, "--json", "-"])
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": 2_000_000}, ["--rate", "2000000"]),
        ({"rate": 2_000_000, "lean": True}, ["--rate", "2000000", "--lean"]),
        ({"rate": 900_000, "headroom": 0.2}, ["--rate", "900000", "--headroom", "0.2"]),
        ({"rate": 900_000, "max_b_out": 1}, ["--rate", "900000", "--no-batching"]),
        ({"rate": 900_000, "cores": 2}, ["--rate", "900000", "--cores", "2"]),
        ({"max_tasks": 5}, ["--max-tasks", "5"]),
        (
            {"rate": 900_000, "what_if": ["counts.c_cpu_ns*=2"]},
            ["--rate", "900000", "--what-if", "counts.c_cpu_ns*=2"],
        ),
    ],
)
def test_library_plans_what_the_command_plans(
    named: str, flow: fw.Flow, options: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    found = flow.plan(**options)
    file = tmp_path / "planned.toml"
    document = commanded(named, *words, "--out", str(file))
    assert json.loads(msgspec.json.encode(found.stages)) == document["operators"]
    assert (found.rate, found.tasks) == (document["rate"], document["tasks"])
    assert found.answer.servers == document["servers"]
    assert found.throughput == sum(document["throughput"].values())
    assert fw.Configuration.read(file) == found.configuration


def test_library_checks_a_configuration_as_the_command_does(
    named: str, flow: fw.Flow, tmp_path: Path
) -> None:
    file = tmp_path / "configuration.toml"
    file.write_text("dop = 1\n")
    found = flow.plan(rate=2_000_000, configuration=fw.Configuration.read(file))
    document = commanded(named, "--rate", "2000000", "--configuration", str(file), code=1)
    assert json.loads(msgspec.json.encode(found.bottlenecks)) == document["bottlenecks"]
    assert found.throughput == sum(document["throughput"].values())
    assert found.bottleneck == "events"
    assert "raise its dop from 1 to" in found.bottlenecks[0].remedy
    assert found.configuration == fw.Configuration(fw.Tuning(dop=1))


def test_plan_says_how_each_stage_runs_and_how_busy_it_will_be(flow: fw.Flow) -> None:
    found = flow.plan(rate=2_000_000, headroom=0.2)
    assert {name: stage.dop for name, stage in found.stages.items()} == {"events": 3, "counts": 4}
    assert found.tasks == 7
    assert found.stages["counts"].rate_in == 1_000_000
    assert max(stage.utilisation for stage in found.stages.values()) <= 0.8 * (1 + 1e-9)
    assert (found.rate, found.throughput, found.bottleneck) == (2_000_000, 2_000_000, None)
    assert set(found.planned_ns) == {"events", "counts"}
    assert found.costs.machine == "a machine"


def test_planned_configuration_names_all_operators_of_a_stage(flow: fw.Flow) -> None:
    operators = flow.plan(rate=2_000_000).configuration.operators
    assert set(operators) == {"events", "views", "counts", "done", "out"}
    assert operators["views"].dop == operators["events"].dop == 3


def test_plan_prints_itself(flow: fw.Flow) -> None:
    found = flow.plan(rate=2_000_000, lean=True)
    rows = [line.split() for line in str(found).splitlines()]
    assert rows[0] == ["the", "fewest", "tasks", "for", "2,000,000", "records/s"]
    assert ["stage", "dop", "b_out", "rate", "in", "rate", "out", "used"] in rows
    assert any(row[:2] == ["counts", "4"] for row in rows)
    assert "no bottleneck: all 2,000,000 records/s come through" in str(found)
    assert found.summary.startswith("planned 7 tasks for 2,000,000 records/s: events 3 (")


def test_bottleneck_is_printed_with_its_remedy(flow: fw.Flow) -> None:
    said = str(flow.plan(rate=2_000_000, configuration=fw.Configuration(fw.Tuning(dop=1))))
    assert "bottleneck: events (cpu); 2,000,000 records/s arrive, it can take" in said
    assert "  remedy  raise its dop from 1 to" in said
    assert "of 2,000,000 records/s come through" in said


def test_every_number_of_a_stage_has_its_equation(flow: fw.Flow) -> None:
    first, *_ = flow.plan(rate=2_000_000).why("counts")
    assert str(first).startswith("dop = 4 tasks: equation 4.23, ")
    with pytest.raises(UndefinedError, match="'cuonts' that is not there"):
        flow.plan(rate=2_000_000).why("cuonts")


def test_plan_is_a_value(flow: fw.Flow) -> None:
    found = flow.plan(rate=2_000_000)
    assert found == flow.plan(rate=2_000_000)
    with pytest.raises(AttributeError, match="immutable"):
        found.flow = "another"  # type: ignore[misc]


def refusal(error: pytest.ExceptionInfo[FloodwayError]) -> str:
    assert error.value.remedy
    return f"{error.value.problem} {error.value.remedy}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, ["does not say how many records are expected", "give rate="]),
        ({"rate": 0}, ["rate=0 is not a rate", "more than 0"]),
        ({"rate": -5}, ["rate=-5 is not a rate", "more than 0"]),
        ({"rate": float("nan")}, ["rate=nan is not a rate"]),
        ({"rate": "many"}, ["rate='many' is not a rate"]),
        ({"rate": 5, "headroom": 1.0}, ["headroom=1.0 is not a share"]),
        ({"rate": 5, "max_b_out": 0}, ["max_b_out"]),
        ({"rate": 5, "cores": 0}, ["cores"]),
        ({"rate": 5, "max_tasks": 1}, ["1 tasks", "2"]),
        ({"rate": 5, "what_if": ["events"]}, ["'events' is not a change"]),
        ({"rate": 5, "samples": {"nobody": "x"}}, ["no source 'nobody'", "events"]),
        ({"rate": 5, "samples": {"events": "missing"}}, ["cannot be read", "name a file"]),
        (
            {"rate": 5, "lean": True, "configuration": fw.Configuration()},
            ["lean= cannot go with configuration=", "leave out lean="],
        ),
        (
            {"rate": 5, "configuration": fw.Configuration(fw.Tuning(dop=0))},
            ["dop=0 is not a number of at least 1"],
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_with_a_remedy(
    flow: fw.Flow, options: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(FloodwayError) as error:
        flow.plan(**options)
    assert [part for part in said if part not in refusal(error)] == []


def test_rate_that_no_configuration_reaches_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = load_flow(write_flow(tmp_path, monkeypatch, most=1))
    with pytest.raises(OptionError) as error:
        flow.plan(rate=2_000_000)
    assert "no configuration reaches this rate" in error.value.problem
    assert error.value.operator == "events"
    assert "stay below 1,000,000 records per second here" in error.value.remedy


@pytest.fixture
def pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fw.Flow:
    """A flow whose source has no connector."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    flow = fw.Flow("pushed")
    flow.source("events", schema=int).filter("value > 5").to("out")
    return flow


def test_flow_without_a_connector_is_refused_and_the_source_is_named(pushed: fw.Flow) -> None:
    for ask in (pushed.plan, pushed.start, pushed.run):
        with pytest.raises(OptionError) as error:
            ask(rate=5)
        assert "it has no connector" in error.value.problem
        assert error.value.operator == "events"
        assert Path(__file__).name in str(error.value.place)
        assert "samples={'events': FILE}" in error.value.remedy


def test_flow_without_a_source_is_refused() -> None:
    with pytest.raises(OptionError) as error:
        fw.Flow("nothing").plan(rate=5)
    assert "there is no source in it" in error.value.problem
    assert "flow.source" in error.value.remedy


def test_source_that_has_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "empty.jsonl").touch()
    flow = fw.Flow("empty")
    flow.source("events", JsonLinesSource(str(tmp_path / "empty.jsonl")), schema=int).to("out")
    with pytest.raises(OptionError) as error:
        flow.plan(rate=5)
    assert "there is nothing to take a sample of" in error.value.problem
    assert "samples={'events': FILE}" in error.value.remedy


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": 0}, ["rate=0 is not a rate", "more than 0"]),
        ({"rate": 5, "dop": 2}, ["rate= plans what dop= says by hand", "leave out rate= or dop="]),
        ({"rate": 5, "configuration": fw.Configuration()}, ["configuration= says by hand"]),
        ({"headroom": 0.5}, ["there is no rate to plan for", "add rate="]),
        ({"samples": {}}, ["there is no rate to plan for", "add rate="]),
    ],
)
def test_start_that_cannot_be_planned_is_refused_with_a_remedy(
    flow: fw.Flow, options: dict[str, Any], said: list[str]
) -> None:
    for ask in (flow.start, flow.run):
        with pytest.raises(OptionError) as error:
            ask(**options)
        assert [part for part in said if part not in refusal(error)] == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_flow_runs_as_it_was_planned_and_knows_the_plan(flow: fw.Flow, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    line = '{"ad": 1, "kind": "view", "at": 1000}\n'
    (tmp_path / "in" / "1.jsonl").write_text(3 * line)
    found = flow.plan(rate=900_000, headroom=0.2, lean=True)
    for options in ({"rate": 900_000}, {"configuration": found.configuration}):
        job = flow.run(metrics_port=None, **options)
        stages = {stage.name: stage for stage in job.status.stages}
        assert {name: stage.dop for name, stage in stages.items()} == {
            name: stage.dop for name, stage in found.stages.items()
        }
        assert job.status.totals.records_in == 3
        if "rate" in options:
            assert {name: stage.planned_ns for name, stage in stages.items()} == found.planned_ns
