"""The walkthrough shows what it says."""

import json
import re
from importlib import import_module
from pathlib import Path

from typer.testing import CliRunner

from floodway.cli.main import app

runner = CliRunner()


def test_walkthrough_shows_changelog_and_table() -> None:
    result = runner.invoke(app, ["walkthrough"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    # The first window ends, an unordered event corrects it, a late update moves the event.
    for text in ("spring 0-10s - → 2", "spring 0-10s 2 → 3", "winter 0-10s - → 1", "dropped"):
        assert text in result.stdout
    assert "campaign  window  views" in result.stdout


def test_walkthrough_fits_a_narrow_terminal() -> None:
    result = runner.invoke(app, ["walkthrough"], env={"COLUMNS": "80"})
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_walkthrough_says_where_its_flow_is() -> None:
    result = runner.invoke(app, ["walkthrough"], env={"COLUMNS": "80"})
    (name,) = re.findall(r"The flow: the module ([\w.]+)", result.stdout)
    assert import_module(name).build().name == "ads"


def test_walkthrough_explains_its_flow() -> None:
    result = runner.invoke(app, ["walkthrough", "--explain"], env={"COLUMNS": "200"})
    assert "views  (aggregate: table)" in result.stdout


def test_walkthrough_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "walkthrough.json"
    assert runner.invoke(app, ["walkthrough", "--json", str(file)]).exit_code == 0
    report = json.loads(file.read_text(encoding="utf-8"))
    assert report["flow"] == "ads"
    assert sum(outcome["late"] for outcome in report["outcomes"]) == 1
    assert [(row["campaign"], row["window"], row["views"]) for row in report["table"]] == [
        ("spring", "10-20s", 1),
        ("spring", "40-50s", 1),
    ]


def test_walkthrough_on_standard_output_is_json_alone() -> None:
    result = runner.invoke(app, ["walkthrough", "--json", "-"])
    assert json.loads(result.stdout)["flow"] == "ads"
