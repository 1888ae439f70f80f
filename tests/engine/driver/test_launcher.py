"""The launcher: a task that is started again takes the place of its predecessor."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from floodway.core.errors import EngineError
from floodway.engine.control.messages import Hello
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.launcher import Launcher
from floodway.engine.spark.context import Lease
from floodway.engine.spark.launch import TaskJob
from floodway.engine.spark.worker import Shipment
from floodway.engine.transport.sockets import Network
from tests.engine.beside import Beside, process_beside
from tests.engine.driver.leading import Fake, simple


class FakeLease(Lease):
    """A Spark that is there as long as a test wants it."""

    def __init__(self) -> None:
        super().__init__("a context", 8, None)
        self.there = True

    @property
    def alive(self) -> bool:
        return self.there


class FakeJob(TaskJob):
    """A job that notes what is done with it, in the order of all."""

    def __init__(
        self,
        context: Any,
        shipment: Shipment,
        group: str,
        over: Callable[[str | None], None],
    ) -> None:
        self.shipment, self.over = shipment, over
        self.running = False

    def start(self) -> None:
        self.running = True

    def cancel(self) -> None:
        self.running = False

    @property
    def queued(self) -> bool:
        return False

    def join(self, seconds: float) -> bool:
        return not self.running


class Host:
    """A launcher, its jobs, and what was so when each of them started."""

    def __init__(self) -> None:
        self.fake = Fake(simple(), every_ms=1000)
        self.lease = FakeLease()
        self.jobs: list[FakeJob] = []
        self.lost: list[tuple[int, int, str]] = []
        self.looked: list[object] = []
        self.look: Callable[[], object] = lambda: None
        self.launcher = Launcher(
            self.fake.plan,
            b"the plan",
            self.lease,
            Network(host="10.0.0.7"),
            "tcp://10.0.0.7:5555",
            Settings(),
            self.fake.lead.roster,
            lambda *lost: self.lost.append(lost),
            make_job=self._make,
        )

    def _make(self, *given: Any) -> FakeJob:
        host = self

        class Job(FakeJob):
            def start(self) -> None:
                host.looked.append(host.look())
                super().start()

        self.jobs.append(Job(*given))
        return self.jobs[-1]


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def other() -> Iterator[Beside]:
    with process_beside() as found:
        yield found


def say_hello(host: Host, task: int, found: Any) -> None:
    """Let a task come, and the launcher see where it is."""
    hello = Hello(task, 0, "at task", found.pid, "here", found.machine, found.began)
    host.fake.lead.take(hello, 0)
    host.launcher.note()


def test_job_of_the_former_launch_is_cancelled_before_the_new_one_starts(host: Host) -> None:
    """It may hold the only slot that there is for the new one."""
    host.look = lambda: [job.running for job in host.jobs]
    for launch in range(3):
        host.launcher.launch(0, launch)
    assert host.looked == [[False], [False, False], [False, False, False]]
    assert [job.running for job in host.jobs] == [False, False, True]
    assert [job.shipment.launch for job in host.jobs] == [0, 1, 2]


def test_jobs_of_other_tasks_go_on(host: Host) -> None:
    for task, launch in ((0, 0), (1, 0), (0, 1)):
        host.launcher.launch(task, launch)
    assert [job.running for job in host.jobs] == [False, True, True]


def test_process_of_the_former_launch_is_killed_before_the_new_one_starts(
    host: Host, other: Beside
) -> None:
    process, found = other
    host.launcher.launch(0, 0)
    say_hello(host, 0, found)
    assert process.poll() is None
    host.look = lambda: process.wait(30) < 0  # it is dead by then, and has only to be buried
    host.launcher.launch(0, 1)
    assert host.looked == [None, True]


def test_process_on_another_host_is_left_to_spark(host: Host, other: Beside) -> None:
    process, found = other
    host.launcher.launch(0, 0)
    say_hello(host, 0, msgspec.structs.replace(found, machine="another"))
    host.launcher.launch(0, 1)
    assert not host.jobs[0].running
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)


def test_process_that_is_gone_before_its_time_is_told_with_its_launch(host: Host) -> None:
    for launch in range(2):
        host.launcher.launch(2, launch)
    host.jobs[0].over("its process died")
    host.jobs[1].over(None)
    assert host.lost == [(2, 0, "its process died")]


def test_nothing_is_launched_without_spark(host: Host) -> None:
    host.launcher.launch(0, 0)
    host.lease.there = False
    with pytest.raises(EngineError, match="Spark has died"):
        host.launcher.launch(0, 1)
    assert len(host.jobs) == 1
