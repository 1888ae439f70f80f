"""The demonstration runs on the engine, checks itself, and draws a picture."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.demo.demonstration import Demonstration, perform, phases_of
from floodway.demo.series import Phase

SHORT = (Phase("calm", 1, 1_000), Phase("flood", 1, 20_000), Phase("calm again", 1, 1_000))


def test_phases_are_thirds() -> None:
    calm, flood, again = phases_of(90, 1_000_000)
    assert (calm.seconds, flood.seconds, again.seconds) == (30, 30, 30)
    assert (calm.per_second, flood.per_second, again.per_second) == (1_000, 1_000_000, 1_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def result(folder: Path) -> Demonstration:
    return perform(dop=2, phases=SHORT, folder=folder)


@pytest.mark.spark
def test_demo_counts_what_a_plain_loop_counts(result: Demonstration) -> None:
    assert result.correct
    assert result.events == 22_000
    assert 0 < result.views < result.events


@pytest.mark.spark
def test_demo_measures_every_phase(result: Demonstration) -> None:
    assert [phase.name for phase in result.phases] == ["calm", "flood", "calm again"]
    assert all(phase.latency_ms["p50"] > 0 for phase in result.phases)
    assert all(phase.probes >= 190 for phase in result.phases)  # of 200; the last results end it


@pytest.mark.spark
def test_demo_sees_every_operator_over_time(result: Demonstration) -> None:
    last = result.samples[-1]
    assert {"events", "views", "views_per_campaign", "dashboard"} <= set(last.paradigms)
    assert last.paradigms["dashboard"] == "data"
    assert 0 < last.processed <= 22_000
    assert [sample.t for sample in result.samples] == sorted(s.t for s in result.samples)


@pytest.mark.spark
def test_demo_leaves_a_picture_a_page_and_a_story(result: Demonstration, folder: Path) -> None:
    assert result.files["story"] == str(folder / "story.jsonl")
    assert (folder / "story.jsonl").stat().st_size > 0
    assert (folder / "demo.png").stat().st_size > 10_000
    assert "<svg" in (folder / "demo.html").read_text()
    replayed = CliRunner().invoke(app, ["story", result.files["story"], "--replay"])
    assert replayed.exit_code == 0, replayed.output
