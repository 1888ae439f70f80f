"""The cost model beside a real engine."""

import json
from pathlib import Path

import pytest
from floodway_lab.figures.costs import SIZES
from typer.testing import CliRunner

from floodway.cli.main import app
from tests.commands import floodway


@pytest.mark.spark
@pytest.mark.slow
def test_flow_is_predicted_and_measured_with_sizes_that_costs_were_not_found_with(
    tmp_path: Path,
) -> None:
    file = tmp_path / "costs.json"
    options = ("--flow", "hop", "--rounds", "1", "--json", str(file))
    done = floodway("bench", "costs", *options, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mean error" in done.stdout
    rows = json.loads(file.read_text())["rows"]
    assert [(row["flow"], row["b_out"]) for row in rows] == [("hop", size) for size in SIZES]
    # One record for each batch is dear: both the model and the engine have to show it.
    for key in ("predicted", "measured"):
        assert rows[0][key] < rows[-1][key]
    assert all(row["rounds"] == [row["measured"]] for row in rows)


def test_flow_that_is_not_there_is_refused() -> None:
    done = CliRunner().invoke(app, ["bench", "costs", "--flow", "nothing"])
    assert done.exit_code != 0
    assert "there is no flow 'nothing'" in " ".join(done.output.split())
