"""``floodway simulate``: seeds that pass, seeds that fail, and how to see one again."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from floodway_lab.cli.simulate import Failure, Simulated, conclude, perform, repeating
from floodway_lab.simulation import Outcome, Summary
from floodway_lab.simulation.simulation import ON_SPARK
from rich.console import Console
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.engine.host.failpoints import FAIL_POINTS

COUNTED = [field.name for field in msgspec.structs.fields(Outcome) if field.type is int]
COUNTED = [name for name in COUNTED if name not in ("seed", "epochs", "steps")]
"""What happens in simulations, and is counted."""


def simulate(file: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["simulate", *options, "--json", str(file)])
    assert result.exit_code == 0, (result.output, result.stderr)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_a_seed_gives_the_same_trace_again(tmp_path: Path) -> None:
    options = ("--first", "1", "--seeds", "2")
    one = simulate(tmp_path / "1.json", *options)
    two = simulate(tmp_path / "2.json", *options)
    assert one["summary"] == two["summary"]
    assert (one["first"], one["summary"]["seeds"], one["failures"]) == (1, 2, [])
    assert len(one["unhit"]) + len(one["summary"]["fail_points"]) == len(
        FAIL_POINTS.keys() - ON_SPARK
    )


def test_a_trace_says_what_happens() -> None:
    result = CliRunner().invoke(app, ["simulate", "--seeds", "1", "--trace"])
    assert result.exit_code == 0, result.output
    assert "driver 0 starts" in result.stderr
    assert "every seed is right" in result.stdout


def failing(seed: int, *, tell: object) -> Outcome:
    """Stand in for a simulation in which the seed 7 fails."""
    logging.getLogger("floodway.engine").warning("what is done on purpose")
    problem = "counts: 1 of 9 missing" if seed == 7 else None
    counts = dict.fromkeys(COUNTED, 0) | {"kills": 1}
    return Outcome(
        seed,
        "counts",
        problem,
        f"{seed}",
        **counts,
        fail_points={},
        epochs=3,
        steps=10,
        seconds=1.0,
    )


def test_a_seed_that_fails_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    console = Console(file=io.StringIO(), highlight=False)
    summary = perform(range(5, 9), console, trace=False, one=failing)
    assert summary.failures == [(7, "counts: 1 of 9 missing")]
    told = console.file.getvalue()
    assert "seed 7 (counts) failed: counts: 1 of 9 missing" in told
    assert "simulating: 0 %, seed 5, 0 failed" in told
    assert caplog.records == []


def test_a_failure_is_the_answer_no(capsys: pytest.CaptureFixture[str]) -> None:
    failures = [Failure(7, "counts: 1 of 9 missing", repeating(7))]
    with pytest.raises(typer.Exit) as left:
        conclude(Simulated(5, 0.5, failures, ["prune.before"], Summary(seeds=4)), None)
    assert left.value.exit_code == 1
    said = capsys.readouterr().out
    assert "floodway simulate --first 7 --seeds 1 --trace" in said
    assert "not at: prune.before" in said
