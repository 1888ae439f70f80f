"""The harness is measured itself: systems whose capacity, latency and faults are known."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from floodway_lab.cases.registry import CASES
from floodway_lab.runs.experiment import Experiment
from floodway_lab.runs.running import run_once
from floodway_lab.runs.series import CDF
from floodway_lab.runs.sustaining import sustain
from floodway_lab.systems.registry import SYSTEMS
from floodway_lab.systems.system import System

from floodway.core.errors import OptionError
from floodway.testing.servers import KafkaServer, RedisServer
from tests.connectors.servers_fixtures import kafka, redis_server
from tests.lab.runs.modelled_system import install
from tests.waiting import wait_for

__all__ = ["kafka", "redis_server"]  # fixtures

pytestmark = [pytest.mark.slow]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Lets a test describe a system; afterwards no process of it is left."""

    def described(**options: Any) -> str:
        system = System("fake", "a fake", "tests.lab.runs.fake_system", frozenset(CASES))
        system = msgspec.structs.replace(system, options=options)
        monkeypatch.setitem(SYSTEMS, "fake", system)
        return "fake"

    yield described
    left = [p for p in psutil.Process().children(recursive=True) if _is_ours(p)]
    assert left == []


@pytest.fixture
def modelled(fake: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets a test describe a system that runs on a clock of its own, in no process."""
    install(monkeypatch)
    return fake


def _is_ours(process: psutil.Process) -> bool:
    try:
        return any("bench" in part for part in process.cmdline())
    except psutil.Error:
        return False


def experiment(system: str, rate: float, seconds: float = 3.0, **more: Any) -> Experiment:
    more = {"case": "mean", "warm_s": 1.0, "most_foreign": 1.0, **more}  # other tests run beside it
    return Experiment(system=system, rate=rate, seconds=seconds, **more)


# --------------------------------------------------------- on a clock of its own: exact figures


def test_known_latency_is_measured(modelled: Any) -> None:
    done = run_once(experiment(modelled(delay_ms=200), 2_000))
    assert (done.void, done.correct, done.sustained) == (False, True, True)
    assert done.generated == done.taken == 6_000
    assert done.latency_ms is not None
    assert (done.latency_ms.p50, done.latency_ms.max) == (200, 200)
    assert done.per_s == pytest.approx(2_000, rel=0.01)


def test_each_load_has_its_own_figures(modelled: Any) -> None:
    done = run_once(experiment(modelled(delay_ms=200), 4_000, 5.0, loads=(0.1, 0.5)))
    assert [part.experiment.rate for part in done.parts] == [400, 2_000]
    for part in done.parts:
        assert part.per_s == pytest.approx(part.experiment.rate, rel=0.03)  # the end is not told
        assert part.latency_ms is not None
        assert part.latency_ms.p50 == 200
        assert [row["t"] for row in part.over_time] == [0, 1, 2, 3, 4]


def test_known_capacity_is_found(modelled: Any) -> None:
    given = experiment(modelled(capacity=6_000), 9_000, 8.0, acceptable_s=0.05)
    found = sustain(given, repeats=1, loads=(0.5,))
    assert found.sustainable_rate == pytest.approx(6_000, rel=0.05)
    assert (found.correct, found.void) == (True, False)
    (half,) = found.latency_ms
    assert half.rate == pytest.approx(3_000, rel=0.05)


def test_overload_is_read_at_the_queue(modelled: Any) -> None:
    given = experiment(modelled(capacity=3_000), 9_000, 6.0, judged=True, acceptable_s=0.15)
    done = run_once(given)  # ends when it is clear, not before: the rate takes a while to be known
    assert not done.sustained
    assert done.correct is None  # it was not given everything
    assert done.per_s == pytest.approx(3_000, rel=0.05)
    assert done.taken < done.generated < 54_000


def test_backlog_inside_of_a_system_is_seen(modelled: Any) -> None:
    greedy = modelled(capacity=2_000, fault="greedy")
    done = run_once(experiment(greedy, 2_600, 5.0, judged=True))
    assert done.taken == done.generated == 13_000  # the queue outside says nothing
    assert (done.sustained, done.correct) == (False, True)
    assert "later at the end than at the beginning" in done.why
    assert done.per_s == pytest.approx(2_000, rel=0.05)


def test_backlog_is_seen_by_those_who_do_not_look_for_long(modelled: Any) -> None:
    slow = modelled(capacity=2_000, delay_ms=2_000)  # so slow that a second more is no growth
    done = run_once(experiment(slow, 3_000, 3.5, judged=True))  # Algorithm 1 needs 3 s, not 2.5
    assert not done.sustained
    assert "events more waited at the end than after the warm-up" in done.why


# --------------------------------------------------------- in processes: what no load can change


def test_loads_are_due_one_after_the_other(fake: Any) -> None:
    done = run_once(experiment(fake(delay_ms=200), 4_000, 2.0, loads=(0.1, 0.5)))
    assert (done.void, done.correct) == (False, True)
    assert [part.experiment.rate for part in done.parts] == [400, 2_000]
    assert done.generated == done.taken == 4_800
    assert done.latency_ms is not None
    assert done.latency_ms.p50 >= 200  # held back for so long; on a busy machine, for longer


def test_system_that_is_overloaded_is_not_given_everything(fake: Any) -> None:
    given = experiment(fake(capacity=10_000), 90_000, 6.0, judged=True, acceptable_s=0.05)
    done = run_once(given)
    assert (done.sustained, done.correct) == (False, None)
    assert done.taken < done.generated


@pytest.mark.parametrize(
    ("case", "fault"), [("mean", "drop"), ("mean", "double"), ("grep", "drop"), ("join", "double")]
)
def test_system_that_is_wrong_is_caught(fake: Any, fault: str, case: str) -> None:
    done = run_once(experiment(fake(fault=fault), 2_000, 2.0, case=case))
    assert (done.void, done.correct) == (True, False)
    assert "wrong answers" in done.why


def test_system_that_breaks_down_is_told(fake: Any) -> None:
    done = run_once(experiment(fake(fault="crash"), 2_000, 2.0))
    assert done.void
    assert "code 1: it has broken down" in done.why


@pytest.mark.parametrize("case", CASES)
def test_loops_by_hand_are_right(fake: Any, case: str) -> None:
    system = (
        "loop" if case in ("mean", "grep", "words") else "loops"
    )  # one is the half of the other
    done = run_once(experiment(system, 20_000, 2.5, case=case, engines=2))
    assert (done.void, done.correct) == (False, True), done.why
    assert done.latency_ms is not None
    assert len(done.cdf_ms) == len(CDF)


def test_stored_results_are_read_back(fake: Any, redis_server: RedisServer) -> None:
    assert redis_server.running  # a machine without Redis has skipped this
    done = run_once(experiment("loop", 3_000, 2.0, case="ads", store="redis"))
    assert (done.void, done.correct) == (False, True), done.why


@pytest.mark.spark
def test_floodway_is_right_through_kafka(fake: Any, kafka: KafkaServer) -> None:
    assert kafka.running
    done = run_once(experiment("floodway-dual", 2_000, 3.0, case="ads", link="kafka", engines=2))
    assert (done.void, done.correct, done.link) == (False, True, "kafka"), done.why


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_run_that_is_killed_leaves_nobody_behind(end: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "floodway", "bench", "sustain", "mean", "--sut", "loop"]
    kept = tmp_path / "kept.json"
    options = ["--first", "1000", "--seconds", "2", "--most-load", "1", "--json", str(kept)]
    with subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL) as process:
        wait_for(kept.exists, "a first result")
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(end)
        process.wait(30)
        wait_for(lambda: not any(map(_runs, started)), "the end of all processes")
    found = msgspec.json.decode(kept.read_bytes())
    assert found["complete"] is False
    assert found["trials"]


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("case", "system", "problem"),
    [
        ("adverts", "loop", "no workload 'adverts'"),
        ("ads", "storm", "no system 'storm'"),
        ("join", "spark-rtm", "not written for the workload 'join'"),
    ],
)
def test_what_there_is_not_is_refused(case: str, system: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        run_once(Experiment(case=case, system=system, rate=1))
