"""``floodway explain``: stages, operators, code, as text and as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.engine.control.report import BatchCounts
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.endpoint import Endpoint
from floodway.engine.scheduler.story import Entry
from floodway.model.loading import load_flow
from tests.engine.control.reports import START, Said, report

runner = CliRunner()
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "heartbeats.py") + ":build"


def test_stages_are_shown() -> None:
    result = runner.invoke(app, ["explain", EXAMPLE, "--dop", "2"])
    assert result.exit_code == 0, result.stderr
    assert "per_second" in result.stdout
    assert "def run" not in result.stdout


def test_operators_and_code_are_shown_when_asked_for() -> None:
    short = runner.invoke(app, ["explain", EXAMPLE]).stdout
    longer = runner.invoke(app, ["explain", EXAMPLE, "--operators", "--code"]).stdout
    assert short.strip() in longer
    assert load_flow(EXAMPLE).explain() in longer
    assert "def run" in longer


def test_json_alone_goes_to_standard_output() -> None:
    result = runner.invoke(app, ["explain", EXAMPLE, "--code", "--json", "-"])
    document = json.loads(result.stdout)
    assert document["flow"] == "heartbeats"
    assert document["code"]
    assert {name for stage in document["stages"] for name in stage["operators"]} >= {
        "numbers",
        "per_second",
        "shown",
    }


def test_json_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    result = runner.invoke(app, ["explain", EXAMPLE, "--json", str(file)])
    assert result.exit_code == 0
    assert "code" not in json.loads(file.read_text())


def test_a_configuration_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tuning.toml"
    file.write_text("dop = 2\n[operators.per_second]\ndop = 5\nb_out = 77\n")
    command = ["explain", EXAMPLE, "--configuration", str(file), "--json", "-"]
    stages = json.loads(runner.invoke(app, command).stdout)["stages"]
    (counting,) = [stage for stage in stages if "per_second" in stage["operators"]]
    assert counting["dop"] == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("dop = ", "cannot be read"),
        ("dop = 'many'", "cannot be read"),
        ("speed = 9", "cannot be read"),
        ("[operators.nobody]\ndop = 2", "does not have"),
        ("dop = 0", "dop"),
    ],
)
def test_a_bad_configuration(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "tuning.toml"
    file.write_text(text)
    result = runner.invoke(app, ["explain", EXAMPLE, "--configuration", str(file)])
    assert result.exit_code == 2
    assert problem in result.stderr
    assert "remedy" in result.stderr


def test_no_configuration_file(tmp_path: Path) -> None:
    result = runner.invoke(app, ["explain", EXAMPLE, "--configuration", str(tmp_path / "no.toml")])
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


SWITCH = Entry(
    time_ms=int(START * 1000) + 1_200,
    what="switch",
    stage="views",
    before="data",
    after="operation",
    why="views holds 9,000 records (L_up 1,044) at 5,012/s of 1,000/s it can",
)
TUNED = Entry(
    time_ms=int(START * 1000) + 900,
    what="batch",
    stage="views",
    operator="clicks",
    before=100,
    after=1000,
    why="fetching takes most of the time",
)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A flow that runs, as far as its endpoint can tell."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    info = StageInfo("views", ("views", "out"), 1, "hash", sinks=("out",))
    calm = StageInfo("calm", ("calm",), 1, "hash")
    board = Board("ads", [info, calm], paradigms=Said(views=["operation"]))
    work = BatchCounts(2, 8_000, 500_000, 60_000, 400_000, 40_000, 500_000)
    fields: dict[str, Any] = {"records_in": 9_000, "queue_records": 1_000, "b_out": {"views": 100}}
    board.take(report("views", batches=work, **fields))
    board.take(report("calm", service_us=[100], queue_wait_us=[50]))
    story = [TUNED, SWITCH]
    with Endpoint(board, clock=lambda: START + 1, story=lambda: story) as endpoint:
        yield endpoint


def live(*arguments: str) -> str:
    result = runner.invoke(app, ["explain", "--live", *arguments], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_running_flow_is_explained(running: Endpoint) -> None:
    shown = live()
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    assert "stage views dop 1 operation runs views (operation) -> out (data)" in words
    assert "now 9.00k/s in, 0/s out, 1.00k waiting, a record takes 375ms, 1 of 100 498ms" in words
    assert "batches 2/s of 4.00k records: collected 250ms, scheduled 30ms" in words
    assert "why views: data → operation; views holds 9,000 records (L_up 1,044)" in words
    assert "stage calm dop 1 data runs calm (data) now 0/s in" in words
    assert "0.9 s clicks: b_out 100 → 1,000 fetching takes most of the time" in words
    assert "1.2 s views: data → operation views holds" in words


def test_running_flow_as_json(running: Endpoint) -> None:
    document = json.loads(live("--url", running.url, "--json", "-"))
    assert document["status"]["stages"][0]["paradigm"] == "operation"
    assert [entry["what"] for entry in document["story"]] == ["batch", "switch"]


def test_named_flow_has_to_be_the_one_that_runs(running: Endpoint) -> None:
    result = runner.invoke(app, ["explain", EXAMPLE, "--live"])
    assert result.exit_code == 1
    assert "No flow 'heartbeats' is running here." in result.stderr


def test_without_live_a_flow_has_to_be_named() -> None:
    result = runner.invoke(app, ["explain"])
    assert result.exit_code == 2
    assert "add --live for one that runs" in result.stderr
