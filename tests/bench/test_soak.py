"""The soak: it looks at a real flow, and its verdict follows from what it saw."""

import json
from pathlib import Path

import pytest

from floodway.bench.micro import Machine
from floodway.bench.soak import MOST, Sample, Soak, growths
from tests.commands import floodway


def soaked(*files: float) -> Soak:
    """A soak with one sample a minute, settled after two."""
    samples = [Sample(60.0 * at, {"files": count}) for at, count in enumerate(files, 1)]
    return Soak(Machine.here(), 1.0, "1m", 120.0, samples, growths(samples, 120.0), 1)


def test_what_stays_within_bounds_is_steady_and_what_exceeds_them_once_is_not() -> None:
    assert soaked(10, 100, 100 * MOST, 90).steady
    assert not soaked(10, 100, 100 * MOST + 1, 90).steady
    assert soaked(500, 100, 100).growths[0].then == 500  # in the minute before it had settled


def test_something_out_of_nothing_is_growth() -> None:
    assert not soaked(0, 0, 1).steady
    assert soaked(0, 0, 0).steady


@pytest.mark.spark
@pytest.mark.slow
def test_soak_looks_at_a_running_flow_and_draws_what_it_saw(tmp_path: Path) -> None:
    file, svg = tmp_path / "soak.json", tmp_path / "soak.svg"
    options = ("--minutes", "0.25", "--settle", "0.12", "--rate", "300")
    done = floodway("bench", "soak", *options, "--json", str(file), "--svg", str(svg))
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(file.read_text())
    assert found["records"] > 0
    assert {growth["what"] for growth in found["growths"]} == set(found["samples"][0]["needs"])
    assert all(growth["then"] > 0 for growth in found["growths"])
    grew = any(growth["most"] > MOST * growth["then"] for growth in found["growths"])
    assert done.returncode == grew
    assert svg.read_text().startswith("<svg")
