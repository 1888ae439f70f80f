"""``floodway explain``: stages, operators, code, as text and as JSON."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floodway.cli.flows import load_flow
from floodway.cli.main import app

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
