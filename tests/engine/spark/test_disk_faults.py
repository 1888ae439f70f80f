"""Disks that are full or cannot be written to: the flow waits or stops, and loses nothing."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from floodway.core.errors import DiskFullError, EngineError
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.job import Job
from tests.engine.spark.disks import Disk, make_disk, short_path
from tests.engine.spark.recovering import (
    WIDE,
    changes,
    committed_again,
    counting,
    ended,
    expected,
    histories,
    kill,
    kill_and_recover,
    stage_of,
    started,
    until,
)

__all__ = ["make_disk", "short_path"]  # fixtures

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("shared_spark", "clean"),
]

MakeDisk = Callable[..., Disk]


def paused(job: Job) -> dict[str, str]:
    """Return the stages all of whose tasks wait, and what for."""
    return {
        stage.name: f"{stage.tasks[0].reason}"
        for stage in job.status.stages
        if all(task.state == "paused" for task in stage.tasks)
    }


def fill_until(job: Job, disk: Disk, condition: Callable[[], object], what: str) -> None:
    """Keep a disk full until something happens."""

    def full() -> object:
        disk.fill()
        return condition()

    until(job, full, what)
    assert job.state == "running"


def go_on(job: Job, disk: Disk, folder: Path) -> None:
    """Make room, and see how the flow goes on to its end."""
    disk.free()
    committed_again(job)
    until(job, lambda: not paused(job), "going on")
    ended(job, folder)
    assert histories(folder / "out") == expected()


def test_a_full_checkpoint_is_waited_for(tmp_path: Path, make_disk: MakeDisk) -> None:
    disk = make_disk(tmp_path / "checkpoint")
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        # Those who have nothing to store go on, as far as the others have room for it.
        stuck = {job.plan.stage_of(name).name for name in ("counts", "out")}
        fill_until(job, disk, lambda: paused(job).keys() == stuck, "a pause")
        assert all("No space left" in reason for reason in paused(job).values())
        there, committed = changes(tmp_path / "out"), job.committed
        seen = job.status.time
        fill_until(job, disk, lambda: job.status.time > seen + 1, "a second of nothing")
        assert job.committed == committed
        assert changes(tmp_path / "out") == there
        go_on(job, disk, tmp_path)
    assert job.recoveries == 0


def test_a_task_may_be_killed_while_the_checkpoint_is_full(
    tmp_path: Path, make_disk: MakeDisk
) -> None:
    disk = make_disk(tmp_path / "checkpoint")
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        fill_until(job, disk, lambda: "counts" in paused(job), "a pause")
        kill(job, "counts")
        fill_until(job, disk, lambda: job.state == "running", "running again")
        fill_until(job, disk, lambda: stage_of(job, "counts").restarts, "the new task's report")
        fill_until(job, disk, lambda: "counts" in paused(job), "another pause")
        go_on(job, disk, tmp_path)
    assert job.recoveries == 1


def test_a_full_sink_is_waited_for(tmp_path: Path, make_disk: MakeDisk) -> None:
    disk = make_disk(tmp_path / "out")
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        out = job.plan.stage_of("out").name
        fill_until(job, disk, lambda: "cannot grow" in paused(job).get(out, ""), "a pause")
        committed_again(job)  # what is committed and cannot be shown is in the checkpoint
        kill_and_recover(job, "counts")
        fill_until(job, disk, lambda: "cannot grow" in paused(job).get(out, ""), "another pause")
        go_on(job, disk, tmp_path)


def test_when_everything_is_full_everything_waits(
    short_path: Path, make_disk: MakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(short_path / "disk", 64)
    monkeypatch.setattr(tempfile, "tempdir", str(disk.folder))
    with started(counting(disk.folder), disk.folder, settings=Settings(output_cache=2000)) as job:
        committed_again(job)
        # The source cannot keep what it sends, and the others have nothing to do.
        fill_until(job, disk, lambda: "No space left" in paused(job).get("taps", ""), "a pause")
        committed = job.committed
        seen = job.status.time
        fill_until(job, disk, lambda: job.status.time > seen + 1, "a second of nothing")
        assert job.committed == committed
        go_on(job, disk, disk.folder)
    assert job.recoveries == 0


def test_no_room_for_state_beyond_the_memory_stops_the_flow(
    tmp_path: Path, short_path: Path, make_disk: MakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"key": WIDE, "gates": 20_000, "count": 30_000, "per_second": 6000}
    disk = make_disk(short_path / "disk", 64)
    tight = Settings(state_memory=10_000)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(tempfile, "tempdir", str(disk.folder))
        job = started(counting(tmp_path, **options), tmp_path, settings=tight)
        committed_again(job)
        with pytest.raises(DiskFullError, match="state beyond the memory budget") as caught:
            fill_until(job, disk, lambda: False, "the end")
    assert "TMPDIR" in caught.value.remedy
    with started(counting(tmp_path, **options), tmp_path, settings=tight) as job:
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected(options["count"], options["gates"])


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
