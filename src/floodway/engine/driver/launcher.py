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

from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.roster import Roster
from floodway.engine.host.whereabouts import Whereabouts
from floodway.engine.spark.context import Lease
from floodway.engine.spark.launch import TaskJob, spark_died
from floodway.engine.spark.worker import Shipment
from floodway.engine.transport.sockets import Network
from floodway.engine.worker.process import run_task
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
    roster
        Knows the processes that have come.
    lost
        Told, from another thread, of processes that are gone before their time.
    make_job
        Makes the job that a task runs in.
    """

    def __init__(
        self,
        plan: Plan,
        shipped: bytes,
        lease: Lease | None,
        network: Network,
        driver: str,
        settings: Settings,
        roster: Roster,
        lost: Lost,
        *,
        make_job: Callable[..., TaskJob] = TaskJob,
    ) -> None:
        self._plan, self._shipped, self._lease = plan, shipped, lease
        self._network, self._driver, self._settings = network, driver, settings
        self._roster = roster
        self._lost, self._make_job = lost, make_job
        self._run = uuid.uuid4().hex[:8]
        self._paths = tuple(path or os.getcwd() for path in sys.path)
        self._jobs: list[TaskJob] = []
        self._latest: dict[int, TaskJob] = {}
        self._threads: list[threading.Thread] = []
        self._processes: dict[int, Whereabouts] = {}

    def launch(self, task: int, launch: int) -> None:
        """Start a process for a task; the former one, if it is still there, is killed.

        Spark is told first: a task that it counts as running keeps its slot, whether anybody hears
        of it or not, and the new one may need that slot.
        """
        stage, index = self._roster.names[task]
        if self._plan.stage(stage).host == "driver":
            self._start_here(stage, index, launch)
            return
        assert self._lease is not None
        if not self._lease.alive:
            raise spark_died()
        if task in self._latest:
            self._latest[task].cancel()
        if task in self._processes:
            self._processes.pop(task).kill()
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
        job = self._make_job(self._lease.context, shipment, group, self._over(task, launch))
        job.start()
        self._latest[task] = job
        self._jobs = [*(job for job in self._jobs if not job.join(0)), job]

    def queued(self) -> list[int]:
        """Return the tasks for whose newest process Spark has no slot yet."""
        absent = (task for task in self._latest if self._roster.process(task) is None)
        return [task for task in absent if self._latest[task].queued]

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
        for task in self._roster.names:
            found = self._roster.whereabouts(task)
            if found is not None and found != self._processes.get(task) and found.near:
                self._processes[task] = found

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
            for process in self._processes.values():
                process.kill()
            for job in waiting:
                job.join(STOP_SECONDS)
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        hear()
