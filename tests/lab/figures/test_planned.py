"""Linear Road, planned and run on a real engine."""

import json
from pathlib import Path

import pytest
from floodway_lab.figures.planned import KEPT_UP

from tests.commands import floodway


@pytest.mark.spark
@pytest.mark.slow
def test_flow_is_run_as_planned_and_the_verdict_follows_from_what_was_measured(
    tmp_path: Path,
) -> None:
    file = tmp_path / "planned.json"
    options = ("--rate", "5000", "--seconds", "2", "--json", str(file))
    done = floodway("bench", "planned", *options, cache=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    (run,) = json.loads(file.read_text())["runs"]  # there is no task to take away
    assert {name: stage["dop"] for name, stage in run["stages"].items()} == {
        "spout": 1,
        "agg": 1,
        "mv": 1,
    }
    assert run["expected"] is None
    assert run["predicted"] == 5000
    assert run["measured"] > 0
    assert 0 < run["stages"]["spout"]["used"] <= 1
    # A busy machine may not keep up. Then there is a bottleneck, and the command says so.
    kept_up = run["measured"] >= KEPT_UP * 5000
    assert (run["bottleneck"] is None) == kept_up
    assert done.returncode == (0 if kept_up else 1)
