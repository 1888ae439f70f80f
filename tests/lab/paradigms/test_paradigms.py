"""The comparison of paradigms: its loads and figures, and a short run with right answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from floodway_lab.paradigms import measures, paradigms
from floodway_lab.paradigms.judging import aims
from floodway_lab.paradigms.measures import Outcome, area, outside_ms, rate
from floodway_lab.paradigms.paradigms import MODES, WORKLOADS, Limits, Run, load_of, plan
from floodway_lab.runs.experiment import Experiment
from floodway_lab.runs.running import Seen, see
from floodway_lab.runs.series import Series
from floodway_lab.systems.on_floodway import tuning
from floodway_lab.systems.registry import SYSTEMS
from floodway_lab.systems.system import System
from typer.testing import CliRunner

from floodway.cli.main import app
from floodway.core.errors import EngineError
from floodway.demo.sending.engine import Progress
from floodway.demo.timing import Timed
from floodway.engine.scheduler.story import Entry
from tests.lab.runs.modelled_system import install

T0 = 1_700_000_000_000


# ---------------------------------------------------------------- loads


def test_modes_take_turns() -> None:
    runs = plan(["low"], ["ads"], 2)
    assert [run.mode for run in runs[:4]] == list(MODES)
    assert [run.mode for run in runs[4:]] == [*MODES[1:], MODES[0]]


def test_everything_takes_less_than_twenty_five_minutes() -> None:
    runs = plan(paradigms.WHATS, WORKLOADS, 1)
    assert {run.what for run in runs} == set(paradigms.WHATS)
    assert sum(paradigms.lasts(run, paradigms.SECONDS) for run in runs) < 25 * 60


def test_a_step_is_five_times_the_calm_and_above_what_data_carries() -> None:
    limits = Limits.of(100_000, 300_000)
    load = load_of(Run("step", "ads", "dual", 0), 4, limits)
    start, stop = load.measured
    calm, flood, after = (
        load.schedule.due(second + 1) - load.schedule.due(second) for second in (0, start, stop)
    )
    assert flood == 5 * calm == 5 * after
    assert limits.data < flood < limits.dual


def test_half_of_all_events_are_hot_in_two_tasks() -> None:
    run = Run("hot", "words", "data", 0)
    experiment = paradigms.experiment_of(run, load_of(run, 1, Limits.of(None, None)), 1)
    assert experiment.shape.keys is not None
    assert (experiment.shape.keys.hot, experiment.dop) == (0.5, 2)


def test_every_mode_is_a_system_and_only_dual_is_left_to_the_scheduler() -> None:
    for mode in MODES:
        run = Run("low", "ads", mode, 0)
        load = load_of(run, 1, Limits.of(None, None))
        assert paradigms.experiment_of(run, load, 1).system in SYSTEMS
    systems = ("dual", "data", "operation", "unbatched")
    assert [mode for mode in systems if tuning(mode, 1).paradigm is None] == ["dual"]
    assert tuning("unbatched", 1).isolate
    assert tuning("unbatched", 1).b_out == 1


# ---------------------------------------------------------------- figures


def history(count: int = 61) -> list[Progress]:
    """Return what is told of 1,000 events a second, all of which are taken at once."""
    return [Progress(T0 + 100 * n, 100 * n, 100 * n) for n in range(count)]


def pairs(timed: Sequence[Timed]) -> list[tuple[float, float]]:
    return Series(timed, T0, 6.0).pairs


EVEN = [Timed(T0 + 10 * n, 500.0) for n in range(600)]
"""Results of a flow that carries whatever is due, each after half a second."""


def test_rates_are_those_of_results() -> None:
    assert rate(pairs(EVEN), history(), 2, 5) == pytest.approx(1_000, rel=0.01)


def test_rates_of_what_comes_late_count_the_time_until_it_has_come() -> None:
    # Whatever was due in six seconds comes at once, at the tenth second.
    timed = [Timed(T0, 0.0), *(Timed(T0 + 10 * n, 10_000.0 - 10 * n) for n in range(601))]
    assert rate(pairs(timed), history(), 2, 5) == pytest.approx(600, rel=0.01)


def test_rates_count_whole_micro_batches_and_nothing_that_was_put_off() -> None:
    # For two seconds nothing comes, then all of it; from then on a batch each half second, of
    # half a second. 1,000 events a second are carried, though 3,000 came within the third.
    due = range(T0, T0 + 6_000, 10)
    came = [T0 + 2_500 if at < T0 + 2_000 else at - at % 500 + 1_000 for at in due]
    timed = [Timed(at, float(when - at)) for at, when in zip(due, came, strict=True)]
    assert rate(pairs(timed), history(), 2, 5) == pytest.approx(1_000, rel=0.01)
    assert rate(pairs(timed), history(), 2.3, 5.2) == pytest.approx(1_000, rel=0.01)


def test_the_area_is_latency_times_time_however_many_results_there_are() -> None:
    many = [Timed(T0 + 5_990, 500.0)] * 1_000
    late = Series([*EVEN, *many], T0, 6.0).probed()
    assert len(late.pairs) == 6 * 200
    assert area(late, 6.0) == pytest.approx(3.0)


def test_events_wait_outside_as_long_as_the_queue_takes_to_be_worked_off() -> None:
    told = [Progress(T0 + 100 * n, 100 * n + 300, 100 * n) for n in range(61)]
    assert outside_ms(told, 2, 5) == pytest.approx(300)
    assert outside_ms(history(), 2, 5) == 0


def test_what_a_flow_takes_is_measured_with_events_that_are_due_as_they_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    system = System("fake", "a fake", "", frozenset({"mean"}), options={"capacity": 3_000})  # type: ignore[dict-item]
    monkeypatch.setitem(SYSTEMS, "fake", system)
    seen = see(
        Experiment(
            case="mean", system="fake", rate=1_000, seconds=6, closed_s=1.0, most_foreign=1.0
        )
    )
    assert (seen.run.void, seen.run.correct) == (False, True)
    assert rate(seen.series.pairs, seen.history, 2, 6) == pytest.approx(3_000, rel=0.05)


def shown(what: str, seen: Seen | str) -> Outcome:
    return measures.outcome((what, "low", "ads", "dual", 0), seen, (2.0, 6.0), 6.0, "file")


def seen_of(story: Sequence[Entry], monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Return a run that carries 1,000 events a second, each after half a second."""
    install(monkeypatch)
    system = System("fake", "a fake", "", frozenset({"mean"}), options={"delay_ms": 500})  # type: ignore[dict-item]
    monkeypatch.setitem(SYSTEMS, "fake", system)
    seen = see(Experiment(case="mean", system="fake", rate=1_000, seconds=6, most_foreign=1.0))
    return Seen(seen.run, seen.series, seen.history, seen.began_ms, story=story)


def test_a_step_tells_when_it_was_seen_and_how_long_stages_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = seen_of((), monkeypatch).began_ms

    def entry(after_ms: int, what: Any, **more: Any) -> Entry:
        return Entry(time_ms=began + after_ms, what=what, stage="a", why="", **more)

    story = (
        entry(500, "batch", operator="a", before=1, after=10),
        entry(2_200, "batch", operator="a", before=1, after=10),
        entry(2_400, "switch", before="data", after="operation"),
        entry(2_500, "switched", pause_us=40_000),
    )
    found = shown("step", seen_of(story, monkeypatch))
    assert found.error is None
    assert found.figures["detection_ms"] == 200
    assert found.figures["switch_ms"] == 400
    assert found.figures["pause_ms"] == 40
    assert found.figures["area"] == pytest.approx(3.0, rel=0.01)


def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    def fails(experiment: Experiment, **_: object) -> Seen:
        raise EngineError("the flow did not start", remedy="try again")

    told: list[str] = []
    found = paradigms.compare(
        ["low"], ["ads"], lambda *what: told.append(what[2]), folder=tmp_path, see=fails
    )
    assert [each.mode for each in found.outcomes] == list(MODES)
    assert all("did not start" in (each.error or "") for each in found.outcomes)
    assert told[-1] == "done"


def outcome(what: str, mode: str, error: str | None = None, **figures: float) -> Outcome:
    return Outcome(what, "low", "ads", mode, 0, error, 1.0, 1, figures)


def test_aims_are_met_or_not_or_not_measured() -> None:
    found = aims(
        [
            outcome("flood", "dual", per_s=300.0),
            outcome("flood", "data", per_s=200.0),
            outcome("flood", "operation", "it failed"),
            outcome("flood", "data_unbatched", per_s=110.0),
        ]
    )
    assert [(aim.value, aim.met) for aim in found] == [(2.727, False), (1.5, True), (None, None)]


def test_a_stage_that_is_switched_once_is_not_switched_too_often() -> None:
    (aim,) = aims([outcome("sine", "dual", switches=1.0)])
    assert aim.met
    (aim,) = aims([outcome("sine", "dual", switches=2.0, shortest_s=4.0)])
    assert aim.met is False


# ---------------------------------------------------------------- on Spark


@pytest.mark.spark
def test_the_command_compares_words_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    arguments = ["--workload", "words", "--what", "low", "--seconds", "1"]
    options = ["--json", str(file), "--folder", str(tmp_path / "stories")]
    result = CliRunner().invoke(app, ["bench", "paradigms", *arguments, *options])
    document = json.loads(file.read_text())
    assert [(each["mode"], each["error"]) for each in document["outcomes"]] == [
        (mode, None) for mode in MODES
    ]
    assert result.exit_code == 0, result.output
    assert all(each["figures"]["p50"] > 0 for each in document["outcomes"])
    assert all(each["events"] > 0 for each in document["outcomes"])
    assert len(document["aims"]) == 2
    assert document["machine"]["cores"] > 0
    assert list((tmp_path / "stories").iterdir())
    assert "Low rate" in result.stdout
