"""Processes that die at the worst moments: every fail point, in flows that really run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.vault import FolderVault
from floodway.engine.datastream.settings import Settings
from floodway.engine.host.failpoints import FAIL_POINTS, VARIABLE
from tests.engine.spark.child import Child, Order
from tests.engine.spark.recovering import (
    COUNT,
    GATES,
    WIDE,
    add_files,
    check_files,
    committed_again,
    counting,
    ended,
    expected,
    from_files,
    histories,
    release,
    shown,
    started,
    until,
)
from tests.waiting import DEADLINE_S

pytestmark = [pytest.mark.spark]

OF_TASKS = {
    "restore.before",
    "restore.middle",
    "restore.after",
    "sink.before_log",
    "sink.before_apply",
    "sink.after_apply",
    "spill.middle",
    "task.before_store",
    "task.after_store",
    "vault.before_rename",
    "vault.after_rename",
}
OF_BATCHES = {"batch.before_offer", "batch.before_merge", "batch.before_mark"}
OF_JOBS = {"job.before_result"}
OF_COMPACTING = {"compact.before_base", "compact.after_base"}
OF_DRIVERS = {
    "commit.before_record",
    "commit.after_record",
    "prune.before",
    "prune.middle",
    "vault.before_rename",
    "vault.after_rename",
}
OF_RESCALING = {
    "rescale.before_state",
    "rescale.middle",
    "rescale.before_record",
    "rescale.after_record",
}


def armed(folder: Path, names: set[str]) -> str:
    """Return what arms fail points: each kills one process, which leaves a file in the folder."""
    folder.mkdir(exist_ok=True)
    return ",".join(f"{name}={folder / name}" for name in sorted(names))


def hit(folder: Path) -> set[str]:
    """Return the fail points that have killed somebody."""
    return {marker.name for marker in folder.iterdir()}


# --------------------------------------------------------------------------- tasks

TIGHT = Settings(output_cache=2000, state_memory=10_000)
"""Output caches go to files, and most of the state to RocksDB."""

MANY = {"gates": 1000, "count": 100_000, "per_second": 6000}
"""With wide keys, changes outweigh their base after a few epochs."""


@pytest.fixture
def environment(shared_spark: Any) -> Iterator[dict[str, str]]:
    """The environment of tasks, and not of their driver."""
    variables: dict[str, str] = shared_spark.environment
    yield variables
    variables.pop(VARIABLE, None)


def test_every_fail_point_kills_somebody() -> None:
    known = OF_TASKS | OF_BATCHES | OF_JOBS | OF_COMPACTING | OF_DRIVERS | OF_RESCALING
    assert known == FAIL_POINTS.keys()


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("names", "options"), [(OF_TASKS, {}), (OF_COMPACTING, {"key": WIDE, **MANY})]
)
def test_tasks_may_die_at_any_fail_point(
    tmp_path: Path, environment: dict[str, str], names: set[str], options: dict[str, Any]
) -> None:
    markers = tmp_path / "markers"
    environment[VARIABLE] = armed(markers, names)
    with started(counting(tmp_path, **options), tmp_path, settings=TIGHT, epoch="100ms") as job:
        until(job, lambda: hit(markers) == names, "hitting all fail points")
        until(job, lambda: job.state == "running", "running again")
        committed_again(job)
        ended(job, tmp_path)
    assert job.recoveries == len(names)
    assert histories(tmp_path / "out") == expected(
        options.get("count", COUNT), options.get("gates", GATES)
    )


@pytest.mark.usefixtures("clean")
def test_tasks_may_die_at_any_fail_point_of_micro_batches(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    markers = tmp_path / "markers"
    environment[VARIABLE] = armed(markers, OF_BATCHES | OF_JOBS)
    with started(counting(tmp_path), tmp_path, paradigm="operation", epoch="100ms") as job:
        until(job, lambda: hit(markers) == OF_BATCHES | OF_JOBS, "hitting all fail points")
        until(job, lambda: job.state == "running", "running again")
        committed_again(job)
        ended(job, tmp_path)
    # A Spark task that dies is nobody's loss: its piece is done again.
    assert job.recoveries == len(OF_BATCHES)
    assert histories(tmp_path / "out") == expected()


# --------------------------------------------------------------------------- drivers


@pytest.fixture
def temporary(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all that is temporary, and stays behind when a driver is killed, in one place."""
    monkeypatch.setenv("TMPDIR", str(private))


@pytest.mark.slow
@pytest.mark.usefixtures("temporary")
def test_drivers_may_die_at_any_fail_point(tmp_path: Path) -> None:
    markers = tmp_path / "markers"
    order = Order(folder=str(tmp_path), dop=1, epoch="100ms", armed=armed(markers, OF_DRIVERS))
    for dead in range(len(OF_DRIVERS)):
        assert len(hit(markers)) == dead
        with Child(order) as child:
            assert child.wait() < 0, child.log
    release(tmp_path)
    with Child(order) as child:
        assert child.wait() == 0, child.log
    assert hit(markers) == OF_DRIVERS
    assert histories(tmp_path / "out") == expected()


@pytest.mark.slow
@pytest.mark.usefixtures("shared_spark", "temporary")
def test_what_is_committed_at_the_very_end_is_shown_by_the_next_driver(tmp_path: Path) -> None:
    release(tmp_path)
    variable = {VARIABLE: armed(tmp_path / "markers", {"commit.after_record"})}
    with Child(Order(folder=str(tmp_path), dop=2, epoch="1h"), **variable) as child:
        assert child.wait() < 0, child.log
    assert not shown(tmp_path / "out")
    job = counting(tmp_path).run(dop=2, checkpoint=tmp_path / "checkpoint")
    assert job.status.totals.records_in == 0
    assert histories(tmp_path / "out") == expected()


def tasks_of_record(folder: Path) -> int:
    """Return how many tasks a flow has, by its checkpoint."""
    record = Commits(FolderVault(folder / "checkpoint")).latest()
    assert record is not None
    return record.shape.dop_of("counts")


@pytest.mark.slow
@pytest.mark.usefixtures("shared_spark", "temporary")
def test_drivers_may_die_while_they_deal_out_state_anew(tmp_path: Path) -> None:
    add_files(tmp_path, range(20_000))
    with started(from_files(tmp_path), tmp_path) as job:
        until(job, lambda: shown(tmp_path / "out"), "output")
        job.stop()
        assert job.wait(DEADLINE_S)
    assert shown(tmp_path / "out") < 20_000  # it was stopped in the middle of files
    release(tmp_path)
    markers = tmp_path / "markers"
    names = OF_RESCALING | OF_DRIVERS
    environment = {VARIABLE: armed(markers, names)}
    for dead in range(len(names)):
        assert len(hit(markers)) == dead
        # Always another number than that of the record. They all die before they have a Spark.
        order = Order(folder=str(tmp_path), dop=5 - tasks_of_record(tmp_path), files=True)
        with Child(order, **environment) as child:
            assert child.wait() < 0, child.log
    assert hit(markers) == names
    with started(from_files(tmp_path), tmp_path, dop=1) as job:
        until(job, lambda: shown(tmp_path / "out") >= 20_000, "all output")
        committed_again(job)
        job.stop()
        assert job.wait(DEADLINE_S)
    check_files(tmp_path, 20_000)
