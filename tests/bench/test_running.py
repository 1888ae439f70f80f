"""The harness is measured itself: systems whose capacity, latency and faults are known."""

from collections.abc import Iterator
from typing import Any

import msgspec
import psutil
import pytest

from floodway.bench.runs.experiment import Experiment
from floodway.bench.runs.running import run_once
from floodway.bench.runs.sustaining import sustain
from floodway.bench.systems.registry import SYSTEMS, System
from floodway.core.errors import OptionError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Lets a test describe a system; afterwards no process of it is left."""

    def described(**options: Any) -> str:
        system = System("fake", "a fake", "tests.bench.fake_system", frozenset({"mean"}))
        system = msgspec.structs.replace(system, options=options)
        monkeypatch.setitem(SYSTEMS, "fake", system)
        return "fake"

    yield described
    left = [p for p in psutil.Process().children(recursive=True) if _is_ours(p)]
    assert left == []


def _is_ours(process: psutil.Process) -> bool:
    try:
        return any("bench" in part for part in process.cmdline())
    except psutil.Error:
        return False


def experiment(system: str, rate: float, seconds: float = 3.0, **more: Any) -> Experiment:
    return Experiment(case="mean", system=system, rate=rate, seconds=seconds, warm_s=1.0, **more)


def test_known_latency_is_measured(fake: Any) -> None:
    done = run_once(experiment(fake(delay_ms=200), 2_000))
    assert (done.void, done.correct, done.sustained) == (False, True, True)
    assert done.generated == done.taken == 6_000
    assert done.latency_ms is not None
    assert done.latency_ms.p50 == pytest.approx(200, rel=0.05)


def test_known_capacity_is_found(fake: Any) -> None:
    given = experiment(fake(capacity=60_000), 90_000, 8.0, acceptable_s=0.05)
    for _ in range(2):  # other tests may have had the cores for a while
        found = sustain(given, repeats=1, loads=(0.5,))
        if found.sustainable_rate == pytest.approx(60_000, rel=0.05):
            break
    assert found.sustainable_rate == pytest.approx(60_000, rel=0.05)
    assert (found.correct, found.void) == (True, False)
    (half,) = found.latency_ms
    assert half.rate == pytest.approx(30_000, rel=0.05)


def test_overload_is_read_at_the_queue(fake: Any) -> None:
    done = run_once(experiment(fake(capacity=30_000), 90_000, judged=True, acceptable_s=0.05))
    assert not done.sustained
    assert done.correct is None  # it was not given everything
    assert done.per_s == pytest.approx(30_000, rel=0.1)
    assert done.taken < done.generated


@pytest.mark.parametrize("fault", ["drop", "double"])
def test_system_that_is_wrong_is_caught(fake: Any, fault: str) -> None:
    done = run_once(experiment(fake(fault=fault), 2_000, 2.0))
    assert (done.void, done.correct) == (True, False)
    assert "wrong answers" in done.why


def test_system_that_breaks_down_is_told(fake: Any) -> None:
    done = run_once(experiment(fake(fault="crash"), 2_000, 2.0))
    assert done.void
    assert "code 1: it has broken down" in done.why


def test_loop_by_hand_is_right(fake: Any) -> None:
    for case in ("ads", "mean"):
        given = Experiment(case=case, system="loop", rate=20_000, seconds=2, warm_s=1, engines=2)
        done = run_once(given)
        assert (done.void, done.correct) == (False, True), done.why
        assert done.latency_ms is not None


def test_loops_by_hand_are_right(fake: Any) -> None:
    done = run_once(Experiment(case="ads", system="loops", rate=20_000, seconds=2, warm_s=1))
    assert (done.void, done.correct) == (False, True), done.why


@pytest.mark.parametrize(
    ("case", "system", "problem"),
    [
        ("adverts", "loop", "no workload 'adverts'"),
        ("ads", "storm", "no system 'storm'"),
        ("mean", "loops", "not written for the workload 'mean'"),
    ],
)
def test_what_there_is_not_is_refused(case: str, system: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        run_once(Experiment(case=case, system=system, rate=1))
