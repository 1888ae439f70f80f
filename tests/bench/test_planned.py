"""Linear Road, planned and run on a real engine."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from floodway.cli.main import app


@pytest.mark.spark
@pytest.mark.slow
def test_flow_that_runs_as_planned_keeps_up(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "planned.json"
    options = ["--rate", "5000", "--seconds", "2", "--json", str(file)]
    done = CliRunner().invoke(app, ["bench", "planned", *options])
    assert done.exit_code == 0, done.output
    assert "measured" in done.stdout
    found = json.loads(file.read_text())
    (run,) = found["runs"]  # there is no task to take away
    assert {name: stage["dop"] for name, stage in run["stages"].items()} == {
        "spout": 1,
        "agg": 1,
        "mv": 1,
    }
    assert (run["expected"], run["bottleneck"]) == (None, None)
    assert run["predicted"] == 5000
    assert run["measured"] == pytest.approx(5000, rel=0.1)
    assert 0 < run["stages"]["spout"]["used"] < 1
