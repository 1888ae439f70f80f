"""A flow's costs, measured on a real engine: found, kept, and planned with."""

import json
import random
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.model.loading import load_flow
from floodway.plan.configuration import Configuration
from tests.commands import floodway

runner = CliRunner()

FLOW = """\
import floodway as fw
from floodway.connectors import JsonLinesSink, JsonLinesSource


class Event(fw.Record):
    ad: int
    kind: str
    at: int


flow = fw.Flow("measured")
events = flow.source("events", JsonLinesSource({events!r}), schema=Event, timestamp="at")
views = events.filter("kind = 'view'", name="views").group_by("ad")
counts = views.window(fw.tumbling("1s")).count(name="counts")
counts.changes(emit=fw.emit.after_window_end(), name="done").to(JsonLinesSink({out!r}), name="out")
"""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rng = random.Random(1)
    lines = [
        json.dumps({"ad": rng.randrange(50), "kind": rng.choice(("view", "click")), "at": 10 * n})
        for n in range(5000)
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    file = tmp_path / f"measured_{tmp_path.name.replace('-', '_')}.py"
    file.write_text(FLOW.format(events=str(tmp_path / "events.jsonl"), out=str(tmp_path / "out")))
    return f"{file}:flow"


@pytest.mark.spark
@pytest.mark.slow
def test_flow_is_measured_once_and_planned_for_any_rate(
    flow: str, tmp_path: Path, spark: object
) -> None:
    configuration = tmp_path / "planned.toml"
    options = ["--rate", "4000000", "--lean", "--json", "-", "--out", str(configuration)]
    done = runner.invoke(app, ["plan", flow, *options])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    costs = found["costs"]["costs"]
    assert list(costs) == ["events", "counts"]
    assert costs["events"]["c_cpu_ns"]["value"] > 0
    assert costs["events"]["selectivity"]["value"] == pytest.approx(0.5, abs=0.05)
    assert costs["events"]["c_fetch_ns"]["value"] == 0  # a source
    assert found["operators"]["counts"]["rate_in"] == pytest.approx(2_000_000, rel=0.1)
    assert not (tmp_path / "out").exists()  # nothing is written to sinks
    # All operators of a stage have its dop, so that the flow can be run with it.
    operators = Configuration.read(configuration).operators
    assert set(operators) == {"events", "views", "counts", "done", "out"}
    assert operators["events"].dop == operators["views"].dop == found["operators"]["events"]["dop"]

    planned = load_flow(flow).plan(rate=4_000_000, lean=True)  # from Python, the same
    assert json.loads(msgspec.json.encode(planned.stages)) == found["operators"]
    assert planned.configuration == Configuration.read(configuration)

    again = runner.invoke(app, ["plan", flow, "--rate", "1000", "--json", "-"])
    assert json.loads(again.stdout)["costs"] == found["costs"]  # not measured again
    checked = runner.invoke(
        app, ["plan", flow, "--rate", "1000", "--configuration", str(configuration)]
    )
    assert checked.exit_code == 0, checked.output
    assert "no bottleneck" in checked.output


@pytest.mark.spark
@pytest.mark.slow
def test_flow_is_run_as_it_was_planned_for_a_rate(flow: str, tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    done = floodway("run", flow, "--rate", "2500000", "--json", str(status))
    assert done.returncode == 0, done.stderr
    assert "tasks for 2,500,000 records/s: events" in done.stderr
    stages = {stage["name"]: stage for stage in json.loads(status.read_text())["stages"]}
    assert all(stage["planned_ns"] > 0 for stage in stages.values())
    assert stages["events"]["counters"]["records_in"] == 5000
    assert list((tmp_path / "out").glob("part-*.jsonl"))  # this time for real


def test_flow_without_a_rate_and_with_wrong_samples_is_refused(flow: str) -> None:
    for options, problem in (
        ([], "does not say how many records are expected"),
        (["--rate", "5", "--sample", "nobody=x"], "no source 'nobody'"),
        (["--rate", "5", "--sample", "x"], "does not say of which source"),
        (["--rate", "5", "--sample", "events=missing"], "cannot be read"),
    ):
        done = runner.invoke(app, ["plan", flow, *options])
        assert done.exit_code != 0
        assert problem in " ".join(done.output.split())


def test_file_of_costs_needs_no_samples(tmp_path: Path) -> None:
    file = tmp_path / "costs.toml"
    file.write_text("[operators.read]\nrate = 5\nc_cpu_ns = 1000\n")
    done = runner.invoke(app, ["plan", str(file), "--fresh"])
    assert "has its costs already" in " ".join(done.output.split())


def test_rate_is_not_planned_beside_a_dop(flow: str) -> None:
    done = runner.invoke(app, ["run", flow, "--rate", "5", "--dop", "2"])
    assert "--rate plans what --dop says by hand" in " ".join(done.output.split())
