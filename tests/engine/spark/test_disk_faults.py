"""Disks that are full or cannot be written to: the flow waits or stops, and loses nothing."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from floodway.core.errors import EngineError
from floodway.engine.datastream.settings import Settings
from floodway.engine.job import Job
from tests.engine.spark.disks import Disk, make_disk
from tests.engine.spark.recovering import (
    changes,
    committed_again,
    counting,
    ended,
    expected,
    histories,
    kill_and_recover,
    started,
    until,
)

__all__ = ["make_disk"]  # a fixture

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("shared_spark", "clean"),
]

MakeDisk = Callable[..., Disk]


def reasons(job: Job) -> str:
    """Return why tasks are paused."""
    tasks = [task for stage in job.status.stages for task in stage.tasks]
    return "; ".join(task.reason for task in tasks if task.state == "paused" and task.reason)


def fill_until(job: Job, disk: Disk, condition: Callable[[], object], what: str) -> None:
    """Keep a disk full until something happens."""

    def full() -> object:
        disk.fill()
        return condition()

    until(job, full, what)
    assert job.state == "running"


def test_a_full_checkpoint_is_waited_for(tmp_path: Path, make_disk: MakeDisk) -> None:
    disk = make_disk(tmp_path / "checkpoint")
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        fill_until(job, disk, lambda: "No space left" in reasons(job), "a pause")
        there, committed = changes(tmp_path / "out"), job.committed
        fill_until(job, disk, lambda: all_paused(job), "everybody waiting")
        assert job.committed == committed
        assert changes(tmp_path / "out") == there
        disk.free()
        committed_again(job)
        until(job, lambda: not reasons(job), "going on")
        ended(job, tmp_path)
    assert job.recoveries == 0
    assert histories(tmp_path / "out") == expected()


def all_paused(job: Job) -> bool:
    return all(task.state == "paused" for stage in job.status.stages for task in stage.tasks)


def test_a_task_may_be_killed_while_the_checkpoint_is_full(
    tmp_path: Path, make_disk: MakeDisk
) -> None:
    disk = make_disk(tmp_path / "checkpoint")
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        fill_until(job, disk, lambda: reasons(job), "a pause")
        kill_while_full(job, "counts")
        disk.free()
        committed_again(job)
        ended(job, tmp_path)
    assert job.recoveries == 1
    assert histories(tmp_path / "out") == expected()


def kill_while_full(job: Job, operator: str) -> None:
    from tests.engine.spark.recovering import kill

    kill(job, operator)
    until(job, lambda: job.state == "running", "running again")


def test_a_full_sink_is_waited_for(tmp_path: Path, make_disk: MakeDisk) -> None:
    disk = make_disk(tmp_path / "out", 1)
    with started(counting(tmp_path, count=40_000), tmp_path) as job:
        committed_again(job)
        fill_until(job, disk, lambda: "cannot grow" in reasons(job), "a pause")
        committed_again(job)  # what is committed and cannot be shown is in the checkpoint
        kill_and_recover(job, "counts")
        disk.free()
        until(job, lambda: not reasons(job), "going on")
        until(job, lambda: changes(tmp_path / "out"), "output")
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected(40_000)


def test_when_everything_is_full_everything_waits(
    tmp_path: Path, make_disk: MakeDisk, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(tmp_path / "disk", 64)
    monkeypatch.setattr(tempfile, "tempdir", str(disk.folder))
    tight = Settings(output_cache=2000, state_memory=5000)
    with started(counting(disk.folder), disk.folder, settings=tight) as job:
        committed_again(job)
        fill_until(job, disk, lambda: all_paused(job), "everybody waiting")
        disk.free()
        committed_again(job)
        until(job, lambda: not reasons(job), "going on")
        ended(job, disk.folder)
    assert job.recoveries == 0
    assert histories(disk.folder / "out") == expected()


def test_a_checkpoint_that_cannot_be_written_is_refused(
    tmp_path: Path, make_disk: MakeDisk
) -> None:
    disk = make_disk(tmp_path / "checkpoint")
    disk.write_protect()
    with pytest.raises(EngineError, match="Read-only file system") as caught:
        counting(tmp_path).start(dop=2, checkpoint=disk.folder)
    assert "let this user write to" in caught.value.remedy
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_that_becomes_read_only_stops_the_flow(
    tmp_path: Path, make_disk: MakeDisk
) -> None:
    disk = make_disk(tmp_path / "checkpoint")
    job = started(counting(tmp_path), tmp_path)
    committed_again(job)
    disk.write_protect()
    with pytest.raises(EngineError, match=r"checkpoint/.* cannot be .*: Read-only file") as caught:
        job.wait(100)
    assert "let this user write to" in caught.value.remedy
    assert job.state == "failed"
    disk.unprotect()
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()
