"""Linear Road, planned and run on a real engine."""

import json
from pathlib import Path

import pytest

from tests.commands import floodway


@pytest.mark.spark
@pytest.mark.slow
def test_flow_that_runs_as_planned_keeps_up(tmp_path: Path) -> None:
    file = tmp_path / "planned.json"
    options = ("--rate", "5000", "--seconds", "2", "--json", str(file))
    done = floodway("bench", "planned", *options, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no bottleneck; measured" in done.stdout
    (run,) = json.loads(file.read_text())["runs"]  # there is no task to take away
    assert {name: stage["dop"] for name, stage in run["stages"].items()} == {
        "spout": 1,
        "agg": 1,
        "mv": 1,
    }
    assert (run["expected"], run["bottleneck"]) == (None, None)
    assert run["predicted"] == 5000
    assert run["measured"] == pytest.approx(5000, rel=0.1)
    assert 0 < run["stages"]["spout"]["used"] < 1
