"""A flow that is started again with its checkpoint goes on; what cannot go on is refused."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink
from floodway.core.errors import EngineError
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.job import Job
from floodway.engine.host.whereabouts import Whereabouts
from tests.engine.spark.recovering import (
    Tap,
    Taps,
    add_files,
    check_files,
    committed_again,
    counting,
    ended,
    expected,
    from_files,
    histories,
    kill_and_recover,
    pid_of,
    release,
    release_of,
    shown,
    started,
    tap,
    until,
)
from tests.waiting import DEADLINE_S, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]


# --------------------------------------------------------------------------- ended, and begun again


@pytest.mark.parametrize("end", [Job.stop, Job.drain])
def test_a_flow_that_was_ended_goes_on(tmp_path: Path, end: object) -> None:
    assert callable(end)
    for number in (1, 2):
        with started(counting(tmp_path), tmp_path) as job:
            committed_again(job, 3)
            end(job)
            assert job.wait(DEADLINE_S)
            assert job.state == "ended", number
    found = histories(tmp_path / "out")
    assert all(found[gate] == values[: len(found[gate])] for gate, values in expected().items())
    with started(counting(tmp_path), tmp_path) as job:
        kill_and_recover(job, "counts")
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


def test_what_is_drained_is_all_there(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        job.drain()
        assert job.wait(DEADLINE_S)
    read = Counter(tap(number).gate for number in numbers_read(job))
    found = {gate: len(values) for gate, values in histories(tmp_path / "out").items()}
    assert found == {gate: read[gate] for gate in expected() if read[gate]}


def numbers_read(job: Job) -> Iterator[int]:
    """Return the numbers that both tasks of the source have brought in; they take turns."""
    stage = next(stage for stage in job.status.stages if stage.name == "taps")
    for task in stage.tasks:
        yield from range(task.index, 2 * task.counters.records_in, 2)


def test_a_flow_that_is_finished_changes_nothing(tmp_path: Path) -> None:
    release(tmp_path)
    add_files(tmp_path, range(3000))
    from_files(tmp_path, watch=False).run(dop=2, checkpoint=tmp_path / "checkpoint")
    files = sorted((tmp_path / "out").glob("part-*.jsonl"))
    before = [(file.read_bytes(), file.stat().st_ino) for file in files]
    assert shown(tmp_path / "out") == 3000
    for dop in (2, 3, 1):
        job = from_files(tmp_path, watch=False).run(dop=dop, checkpoint=tmp_path / "checkpoint")
        assert job.state == "ended"
        assert job.status.totals.records_in == 0
        assert [(file.read_bytes(), file.stat().st_ino) for file in files] == before
        assert shown(tmp_path / "out") == 3000


# --------------------------------------------------------------------------- more tasks, or fewer


def test_another_number_of_tasks_keeps_every_key(tmp_path: Path) -> None:
    step = 12_000
    for at, dop in enumerate((2, 3, 1)):
        add_files(tmp_path, range(step * at, step * (at + 1)))
        with started(from_files(tmp_path), tmp_path, dop=dop) as job:
            committed_again(job)
            if dop == 3:
                kill_and_recover(job, "counts", 2)
            job.stop()
            assert job.wait(DEADLINE_S)
    assert 0 < shown(tmp_path / "out") < 3 * step  # it was stopped in the middle of files
    release(tmp_path)
    add_files(tmp_path, range(3 * step, 4 * step))
    with started(from_files(tmp_path), tmp_path, dop=2) as job:
        until(job, lambda: shown(tmp_path / "out") >= 4 * step, "all output")
        committed_again(job)
    check_files(tmp_path, 4 * step)


# --------------------------------------------------------------------------- refused


def test_a_second_driver_is_refused(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        with pytest.raises(EngineError, match="is in use by another driver") as caught:
            counting(tmp_path).start(checkpoint=tmp_path / "checkpoint")
        assert str(os.getpid()) in caught.value.problem
        committed_again(job)
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


def changed(folder: Path) -> fw.Flow:
    """Return the flow with another key of the same name."""
    flow = fw.Flow("counting")
    taps = flow.source("taps", Taps(release_of(folder)), schema=Tap).isolate()
    some = taps.filter("gate % 5 > 0", name="some").isolate()
    counts = some.group_by("gate % 2 AS gate").count(name="counts").isolate()
    counts.changes(name="updates").to(JsonLinesSink(folder / "out"), name="out")
    return flow


def test_an_incompatible_change_is_refused(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
    with pytest.raises(EngineError, match="counts: incompatible: its grouping was gate") as caught:
        changed(tmp_path).start(dop=2, checkpoint=tmp_path / "checkpoint")
    assert "check-upgrade" in caught.value.remedy
    with started(counting(tmp_path), tmp_path) as job:  # nothing was touched
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


def test_the_checkpoint_of_another_flow_is_refused(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
    (tmp_path / "in").mkdir()
    with pytest.raises(EngineError, match="is the checkpoint of the flow 'counting'"):
        from_files(tmp_path).start(checkpoint=tmp_path / "checkpoint")


# --------------------------------------------------------------------------- taken for dead


@contextmanager
def paused(pid: int) -> Iterator[psutil.Process]:
    """Stop a process, and let it go on afterwards if it is still there."""
    process = psutil.Process(pid)
    process.suspend()
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)


QUICK = Settings(silent_s=3.0)
"""Three signs of life are missing."""


def test_a_task_that_is_silent_is_replaced(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path, settings=QUICK) as job:
        committed_again(job)
        with paused(pid_of(job, "counts", 1)) as process:
            until(job, lambda: job.recoveries, "noticing the silence")
            until(job, lambda: job.state == "running", "running again")
            committed_again(job)
            wait_for(lambda: not process.is_running(), "the end of the silent process")
        ended(job, tmp_path)
    assert job.recoveries == 1
    assert histories(tmp_path / "out") == expected()


def fused(folder: Path) -> fw.Flow:
    """Return a flow whose last stage counts and writes files."""
    flow = fw.Flow("fused")
    taps = flow.source("taps", Taps(release_of(folder)), schema=Tap)
    counts = taps.filter("gate % 5 > 0").group_by("gate").count(name="counts")
    counts.changes(name="updates").to(JsonLinesSink(folder / "out"), name="out")
    return flow


@pytest.mark.slow
def test_a_zombie_that_comes_back_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if it were on another machine: here the driver would kill it before its successor begins.
    monkeypatch.setattr(Whereabouts, "near", property(lambda self: False))
    with started(fused(tmp_path), tmp_path, settings=QUICK) as job:
        committed_again(job, 2)
        with paused(pid_of(job, "counts", 1)) as process:
            until(job, lambda: job.recoveries, "noticing the silence")
            until(job, lambda: job.state == "running", "running again")
            committed_again(job)
            assert process.is_running()
        # It finds in its mailbox what was on its way to it, and goes on with that.
        spent = sum(process.cpu_times()[:2])
        wait_for(lambda: sum(process.cpu_times()[:2]) > spent, "the zombie at work")
        committed_again(job, 3)
        ended(job, tmp_path)
    assert job.recoveries == 1
    assert histories(tmp_path / "out") == expected()
    wait_for(lambda: not process.is_running(), "the end of the zombie")
