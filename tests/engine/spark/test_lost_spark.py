"""What Spark loses beneath a flow: the process that makes workers, slots; the flow goes on."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from floodway.engine.spark.launch import TaskJob
from tests.engine.spark.recovering import (
    committed_again,
    counting,
    ended,
    expected,
    histories,
    pid_of,
    started,
    until,
)
from tests.waiting import pause, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]


def test_a_killed_daemon_of_pyspark_is_the_loss_of_its_tasks(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        before = set(job.processes)
        daemon = psutil.Process(pid_of(job, "counts")).parent()
        assert daemon is not None
        daemon.kill()
        until(job, lambda: not before & set(job.processes), "replacing all tasks")
        until(job, lambda: job.state == "running", "running again")
        committed_again(job)
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


class Sitting:
    """A task that has a slot until it is told to go."""

    stage = "sitting"

    def __init__(self, index: int, folder: Path) -> None:
        self.index = index
        self.sits = folder / str(index)

    def __call__(self, indexes: Iterable[int]) -> Iterator[int]:
        self.sits.touch()
        while True:
            pause(0.1)
        yield from indexes


def test_a_lost_task_gives_its_slot_back(shared_spark: Any, tmp_path: Path) -> None:
    """Spark counts it as running whether anybody hears of it or not; its successor needs a slot."""
    slots = int(shared_spark.defaultParallelism)
    over: dict[int, str | None] = {}
    sitting = [Sitting(n, tmp_path) for n in range(slots + 1)]
    jobs = [
        TaskJob(shared_spark, each, f"sitting-{n}", lambda why, n=n: over.update({n: why}))  # type: ignore[arg-type,misc]
        for n, each in enumerate(sitting)
    ]
    try:
        for job in jobs[:-1]:
            job.start()
        wait_for(lambda: len(list(tmp_path.iterdir())) == slots, "all slots being taken")
        jobs[-1].start()
        wait_for(lambda: jobs[-1].queued, "the last one waiting")
        jobs[0].cancel()
        wait_for(sitting[-1].sits.exists, "a slot")
        wait_for(lambda: 0 in over, "the end of the first")
    finally:
        for job in jobs:
            job.cancel()
        assert all(job.join(100) for job in jobs)
