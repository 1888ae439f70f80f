"""How faults strike: what befell nobody is no strike, and what cannot be had is refused."""

import os
from pathlib import Path
from typing import Any, cast

import pytest
from floodway_lab.chaos import Order, Result, Suffered, Times, run
from floodway_lab.chaos.clocks import MACHINE, set_clock, wrong_by
from floodway_lab.chaos.kinds import Kind
from floodway_lab.chaos.means import Means
from floodway_lab.chaos.processes import FlowProcess
from floodway_lab.chaos.schedule import Fault
from floodway_lab.chaos.striking import Striker
from floodway_lab.chaos.watch import Watch
from floodway_lab.chaos.words import Word
from floodway_lab.chaos.workload import Items, Workload
from floodway_lab.cli.chaos import show
from rich.console import Console

from floodway.connectors.base import Split
from floodway.core.errors import OptionError
from floodway.testing.servers import KafkaServer, RedisServer, ServerUnavailable
from tests.connectors.servers_fixtures import running
from tests.waiting import wait_for


class FakeProcess:
    """A flow's process that is there and does nothing."""

    pid = os.getpid()
    exit_code = None

    def left(self) -> list[Any]:
        return []


class FakeRelay:
    """A relay that says it carries some connections, and has reset others."""

    def __init__(self, connections: int, there: int) -> None:
        self.connections, self._there, self.resets = connections, there, 0

    def reset(self) -> int:
        self.resets += self._there
        return self._there


class FakeServer:
    """A server that does not come back."""

    name, running = "Redis", True

    def kill(self) -> None:
        self.running = False

    def start(self) -> None:
        raise ServerUnavailable("its port is taken")


def fault(kind: Kind, draw: float = 0.0) -> Fault:
    return Fault(kind, "items", soon=False, delay_s=0.0, draw=draw)


@pytest.fixture
def watch() -> Watch:
    made, process = Watch(), cast(FlowProcess, FakeProcess())
    made.follow(process)
    made.hear(process, Word(0.0, "running", 1, 0, [("items", 0, os.getpid())]))
    return made


@pytest.fixture
def means(tmp_path: Path) -> Means:
    return Means(set(), tmp_path, tasks=1)


def test_a_reset_of_nothing_is_no_strike(watch: Watch, means: Means) -> None:
    striker = Striker(watch, means)
    means.relay = cast(Any, FakeRelay(3, there=0))
    assert not striker.strike(fault("reset"))
    assert watch.strikes == []
    means.relay = cast(Any, FakeRelay(3, there=2))
    assert striker.strike(fault("reset"))
    assert Suffered.of(watch.strikes).whom == {"connections": 2}


def test_who_hits_nobody_says_why(watch: Watch, means: Means) -> None:
    striker = Striker(watch, means)
    assert not striker.strike(fault("daemon"))
    assert f"items/0, process {os.getpid()}, is a child of" in striker.missed
    watch.struck("task", "items/0", lambda: None, lost=watch.alive())
    assert not striker.strike(fault("task"))
    assert striker.missed == "no task is there"


def test_a_process_whose_number_was_that_of_a_victim_can_be_hit(watch: Watch, means: Means) -> None:
    watch.struck("task", "items/1", lambda: None, lost=[("items", 1, os.getpid())])
    assert watch.alive() == [("items", 0, os.getpid())]


def test_the_relay_delays_what_it_carries_so_that_resets_find_something(tmp_path: Path) -> None:
    with Means({"reset"}, tmp_path, tasks=1) as means:
        assert means.relay is not None
        assert means.relay.delay_s > 0


@pytest.mark.parametrize("draw", [0.0, 0.01, 0.02])
def test_a_clock_that_nobody_reads_is_not_set(
    watch: Watch, means: Means, tmp_path: Path, draw: float
) -> None:
    means.clocks = tmp_path
    striker = Striker(watch, means)
    assert not striker.strike(fault("clock", draw))
    assert watch.strikes == []
    assert wrong_by(tmp_path, MACHINE) == 0


def test_a_clock_that_somebody_reads_is_set(watch: Watch, means: Means, tmp_path: Path) -> None:
    means.clocks = tmp_path
    set_clock(tmp_path, str(os.getpid()), 0)
    assert Striker(watch, means).strike(fault("clock"))
    assert wrong_by(tmp_path, str(os.getpid())) != 0


def test_a_server_that_does_not_come_back_ends_the_run(watch: Watch, means: Means) -> None:
    means.redis = cast(RedisServer, FakeServer())
    striker = Striker(watch, means)
    assert striker.strike(fault("redis"))
    wait_for(lambda: watch.broken is not None, "the failed start")
    assert "its port is taken" in str(watch.broken)
    assert not watch.settled
    assert not watch.wait(lambda: watch.settled, 600.0)


@pytest.mark.xdist_group("redis")
def test_servers_that_were_left_killed_are_brought_back_for_the_verdict(means: Means) -> None:
    with running(RedisServer(keep=True)) as redis:
        means.redis = redis
        redis.kill()
        means.bring_back()
        assert redis.running


@pytest.mark.parametrize("mixed", [0, 9])
def test_a_kind_asked_for_by_name_is_refused_without_its_server(
    monkeypatch: pytest.MonkeyPatch, mixed: int
) -> None:
    def start(self: KafkaServer) -> None:
        raise ServerUnavailable("there is no java")

    monkeypatch.setattr(KafkaServer, "start", start)
    order = Order({"broker": 1}, records=10, mixed=mixed)
    with pytest.raises(OptionError, match="there is no java") as caught:
        run(order, lambda *_: None)
    assert "--broker-kills" in str(caught.value)


def test_items_come_slowly_after_the_planned_time_and_it_is_said_when_all_are_out(
    tmp_path: Path,
) -> None:
    workload = Workload(str(tmp_path), 100, per_second=1e9, dop=1)
    source = Items(100, 1e9, str(workload.release))
    reader = source.open(Split())
    taken: list[Any] = []
    while not workload.dry:
        taken += reader.poll(10) or []
    assert len(taken) == 100
    assert reader.poll(10) == []
    source.open(Split(), 50)  # after a loss
    assert not list(tmp_path.iterdir())
    workload.release.touch()
    assert reader.poll(10) is None


def test_faults_that_were_left_out_are_no_success() -> None:
    times = Times.of([])
    suffered: dict[Kind, Suffered] = {"task": Suffered(1, {}, times, times)}
    result = Result(
        suffered, {"task": 3}, {}, 0, 0, 0, 0, times, times, 1, 1, 0, 1.0, 0, {}, None, None,
        Order(), unmade=2,
    )  # fmt: skip
    assert not result.sound
    console = Console(width=120, highlight=False)
    with console.capture() as capture:
        show(result, console)
    assert "2 faults were left out" in capture.get()
