"""The demonstration runs on the engine and checks itself."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from floodway.cli import demo
from floodway.cli.main import app

SHORT = (demo.Phase("calm", 1, 500), demo.Phase("burst", 1, 4000))

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def result() -> demo.Demonstration:
    return demo.perform(Console(file=io.StringIO(), width=80), dop=2, phases=SHORT)


def test_demo_counts_what_a_plain_loop_counts(result: demo.Demonstration) -> None:
    assert result.correct
    assert result.events > 1000
    assert 0 < result.views < result.events


def test_demo_shows_the_latency_of_every_phase(result: demo.Demonstration) -> None:
    assert [phase.name for phase in result.phases] == ["calm", "burst"]
    assert all(phase.latency_ms["p50"] > 0 for phase in result.phases)


def test_summary_fits_a_narrow_terminal(result: demo.Demonstration) -> None:
    out = io.StringIO()
    demo.show(result, Console(file=out, width=80, highlight=False))
    assert max(len(line) for line in out.getvalue().splitlines()) <= 80
    assert "the same as a plain loop" in " ".join(out.getvalue().split())


def test_demo_writes_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PHASES", SHORT)
    file = tmp_path / "demo.json"
    outcome = CliRunner().invoke(app, ["demo", "--json", str(file)])
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(file.read_text())["correct"] is True
