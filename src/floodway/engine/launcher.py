"""The launcher: starts the processes of tasks, and sees to it that none is left.

Tasks run in Spark's slots. Stages whose connector belongs to the driver's process run here, as
threads.
"""

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import psutil

from floodway.engine.coordinator import Coordinator
from floodway.engine.datastream.process import run_task
from floodway.engine.datastream.settings import Settings
from floodway.engine.spark.context import Lease
from floodway.engine.spark.launch import TaskJob, spark_died
from floodway.engine.spark.worker import Shipment
from floodway.engine.transport.sockets import Network
from floodway.plan.stages import Plan

STOP_SECONDS = 5.0
"""How long tasks have to stop before Spark is asked to kill them."""

Lost = Callable[[int, int, str], None]
"""Told that the process of a task is gone: number, launch, reason."""


class Launcher:
    """Starts and ends the processes of a flow.

    Parameters
    ----------
    shipped
        The plan, packed.
    lease
        The Spark, if any task needs one.
    driver
        Where the driver listens.
    lost
        Told, from another thread, of processes that are gone before their time.
    """

    def __init__(
        self,
        plan: Plan,
        shipped: bytes,
        lease: Lease | None,
        network: Network,
        driver: str,
        settings: Settings,
        coordinator: Coordinator,
        lost: Lost,
    ) -> None:
        self._plan, self._shipped, self._lease = plan, shipped, lease
        self._network, self._driver, self._settings = network, driver, settings
        self._coordinator = coordinator
        self._lost = lost
        self._run = uuid.uuid4().hex[:8]
        self._paths = tuple(path or os.getcwd() for path in sys.path)
        self._jobs: list[TaskJob] = []
        self._threads: list[threading.Thread] = []
        self._pids: dict[int, int] = {}

    def launch(self, task: int, launch: int) -> None:
        """Start a process for a task; the former one, if it is still there, is killed."""
        stage, index = self._coordinator.names[task]
        if self._plan.stage(stage).host == "driver":
            self._start_here(stage, index, launch)
            return
        if task in self._pids:
            kill_python(self._pids.pop(task))
        assert self._lease is not None
        if not self._lease.alive:
            raise spark_died()
        # A task elsewhere listens at the address of its own host.
        everywhere = msgspec.structs.replace(self._network, host="")
        shipment = Shipment(
            self._shipped,
            stage,
            index,
            launch,
            everywhere,
            self._driver,
            self._settings,
            self._paths,
        )
        group = f"{self._run}-{stage}-{index}-{launch}"
        job = TaskJob(self._lease.context, shipment, group, self._over(task, launch))
        job.start()
        self._jobs = [*(job for job in self._jobs if not job.join(0)), job]

    def _start_here(self, stage: str, index: int, launch: int) -> None:
        def run() -> None:
            run_task(
                self._plan,
                stage,
                index,
                self._network,
                self._driver,
                self._settings,
                launch=launch,
            )

        thread = threading.Thread(target=run, name=f"floodway-{stage}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _over(self, task: int, launch: int) -> Callable[[str | None], None]:
        def over(reason: str | None) -> None:
            if reason is not None:
                self._lost(task, launch, reason)

        return over

    def note(self) -> None:
        """Remember the processes on this host, so that they can be killed."""
        own = (os.uname().nodename, os.getpid())
        for task in self._coordinator.names:
            found = self._coordinator.process(task)
            if found is not None and found != own and found[0] == own[0]:
                self._pids[task] = found[1]

    def wind_up(self, hear: Callable[[], None]) -> None:
        """See every task out; who does not go is killed. `hear` takes their last words."""
        deadline = time.monotonic() + STOP_SECONDS
        waiting: list[Any] = list(self._jobs)
        while waiting and time.monotonic() < deadline:
            hear()
            waiting = [job for job in waiting if not job.join(0.01)]
        if waiting:
            for job in waiting:
                job.cancel()
            self.note()
            for pid in self._pids.values():
                kill_python(pid)
            for job in waiting:
                job.join(STOP_SECONDS)
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        hear()


def kill_python(pid: int) -> None:
    """Kill a process of ours, unless its number belongs to another program by now."""
    try:
        process = psutil.Process(pid)
        if "python" in process.name().lower():
            process.kill()
    except psutil.Error:
        pass
