"""Killed tasks: the flow goes back as far as it has to, and its results are those of no kill."""

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.parquet import ParquetSink
from floodway.core.errors import EngineError
from floodway.testing import At, Driver, ListSink, ListSource, equivalent
from tests.engine.spark.recovering import (
    COUNT,
    HeldList,
    Taps,
    committed_again,
    counting,
    ended,
    expected,
    histories,
    kill,
    kill_and_recover,
    release_of,
    stage_of,
    started,
    until,
)
from tests.engine.spark.recovering import Tap as TapOfGate
from tests.waiting import DEADLINE_S, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]

STAGES = ("taps", "some", "counts", "out")


# --------------------------------------------------------------------------- exactly once


def test_a_task_of_any_stage_may_be_killed(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        for number, operator in enumerate(STAGES):
            kill_and_recover(job, operator, number % 2)
        ended(job, tmp_path)
    assert job.recoveries == len(STAGES)
    assert histories(tmp_path / "out") == expected()


@pytest.mark.parametrize("lost", ["some", "counts", "out"])
def test_nobody_above_a_lost_task_processes_anything_again(tmp_path: Path, lost: str) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        for index in (0, 1):
            kill_and_recover(job, lost, index)
        ended(job, tmp_path)
    passed = sum(map(len, expected().values()))
    taken = {"taps": COUNT, "some": COUNT, "counts": passed}
    for operator in STAGES[: STAGES.index(lost)]:
        above = stage_of(job, operator)
        assert [task.restarts for task in above.tasks] == [0, 0]
        assert above.counters.records_in == taken[operator]
        (counts,) = (each.counts for each in above.operators if each.counts.name == operator)
        assert counts.records_in == taken[operator]
    assert all(task.restarts for task in stage_of(job, lost).tasks)
    assert histories(tmp_path / "out") == expected()


def test_a_task_may_be_killed_while_another_is_replaced(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        kill(job, "counts", 0)
        assert job.state == "recovering"
        kill(job, "counts", 1)  # as far behind
        kill(job, "some", 0)  # above: more has to go back
        kill(job, "out", 1)  # goes back anyway
        until(job, lambda: job.state == "running", "running again")
        committed_again(job)
        ended(job, tmp_path)
    assert job.recoveries == 4
    assert histories(tmp_path / "out") == expected()


def test_a_task_may_be_killed_while_the_flow_drains(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        committed_again(job)
        kill(job, "counts")
        job.drain()
        assert job.wait(100)
    there = histories(tmp_path / "out")
    # All that was read has come out, and nothing twice.
    assert all(values == [*range(1, len(values) + 1)] for values in there.values())
    with started(counting(tmp_path), tmp_path) as job:
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


def test_without_recovery_a_lost_task_is_the_end(tmp_path: Path) -> None:
    job = counting(tmp_path).start(dop=2, recovery=False)
    until(job, lambda: job.state == "running", "running")
    wait_for(lambda: histories(tmp_path / "out"), "output")
    with pytest.raises(EngineError, match="task 1 of the stage counts was lost: its process died"):
        kill(job, "counts", 1)
    assert job.state == "failed"
    assert job.error is not None
    assert "--checkpoint" in job.error.remedy


# --------------------------------------------------------------------------- without a checkpoint


def test_without_a_checkpoint_a_task_of_any_stage_may_be_killed(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path, checkpoint=None) as job:
        for number, operator in enumerate(STAGES):  # the first perhaps before the first commit
            kill_and_recover(job, operator, number % 2)
        ended(job, tmp_path)
    assert job.recoveries == len(STAGES)
    assert histories(tmp_path / "out") == expected()


def test_without_a_checkpoint_results_do_not_wait_for_an_epoch(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path, checkpoint=None, epoch="1h") as job:
        until(job, lambda: histories(tmp_path / "out"), "results")
        assert job.committed == 0
        kill(job, "out")
        until(job, lambda: job.state == "running", "running again")
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


def test_without_a_checkpoint_parquet_is_exact(tmp_path: Path) -> None:
    flow = counting(tmp_path, sink=ParquetSink(tmp_path / "rows"))
    with started(flow, tmp_path, checkpoint=None) as job:
        committed_again(job)
        kill_and_recover(job, "out")
        kill_and_recover(job, "counts")
        ended(job, tmp_path)
    found = pq.read_table(tmp_path / "rows").select(["key", "value"]).to_pylist()
    want = [(key, value) for key, values in expected().items() for value in values]
    assert sorted((int(row["key"]), row["value"]) for row in found) == sorted(want)


def test_without_a_checkpoint_a_drained_flow_lets_everything_out(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path, checkpoint=None) as job:
        committed_again(job)
        kill(job, "counts")
        job.drain()
        assert job.wait(100)
    there = histories(tmp_path / "out")
    assert all(values == [*range(1, len(values) + 1)] for values in there.values())
    passed = sum(map(len, there.values()))
    # The stage before the lost task goes on, so it knows; the lost one may have been silent.
    assert stage_of(job, "some").counters.records_out == passed > 0


class Unseen(Taps):
    """Taps of a flow whose tasks see another folder than the driver, or none."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Wait, in a task, until the driver's folder is gone from here."""
        self.__dict__.update(state)
        wait_for((self.release.parent / "gone").exists, "hiding the folder")

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


def unseen(folder: Path) -> fw.Flow:
    flow = fw.Flow("unseen")
    taps = flow.source("taps", Unseen(release_of(folder), count=1000), schema=TapOfGate)
    taps.to(JsonLinesSink(folder / "out"), name="out")
    return flow


def hide(nonce: Path) -> None:
    """Let tasks see that a folder is not the driver's."""
    wait_for(nonce.exists, "the driver's nonce")
    nonce.unlink()


def test_checkpoint_that_not_all_tasks_see_is_refused(tmp_path: Path) -> None:
    job = unseen(tmp_path).start(checkpoint=tmp_path / "checkpoint")
    hide(tmp_path / "checkpoint" / "nonce")
    (tmp_path / "gone").touch()
    with pytest.raises(EngineError, match="does not see the checkpoint in") as caught:
        job.wait(DEADLINE_S)
    assert str(tmp_path / "checkpoint") in caught.value.problem
    assert os.uname().nodename in caught.value.problem
    assert "all hosts see" in caught.value.remedy


def test_flow_whose_tasks_share_no_folder_runs_and_says_what_that_means(
    tmp_path: Path, private: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = unseen(tmp_path).start()
    hide(next(private.glob("floodway-*/recovery")) / "nonce")
    (tmp_path / "gone").touch()
    until(job, lambda: job.state == "running", "running")
    assert not job.recovers
    ended(job, tmp_path)
    assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "out").iterdir()) >= 1000
    said = [text for text in caplog.messages if "a lost task or executor ends the flow" in text]
    assert len(said) == 1


# --------------------------------------------------------------------------- the same as no kill

Sources = Callable[[list[Any]], ListSource]
Sinks = dict[str, ListSink]
Build = Callable[[fw.Flow, Sources, Sinks], None]


class Tap(fw.Record):
    gate: str
    fare: int


class Place(fw.Record):
    gate: str
    town: str


# Out of order by at most one and a half seconds, over five keys.
TAPS = [
    At(1000 * number - (1500 if number % 7 == 3 else 0), Tap("abcde"[number % 5], number % 10))
    for number in range(2, 302)
]


def joining_streams(flow: fw.Flow, source: Sources, sinks: Sinks) -> None:
    others = [At(tap.timestamp + 700, tap.value) for tap in TAPS if tap.value.fare % 2]
    left = flow.source("taps", source(TAPS), schema=Tap).key_by("gate")
    right = flow.source("exits", source(others), schema=Tap).key_by("gate")
    left.join(
        right,
        within="6s",
        how="full",
        emit="eager",
        joiner=lambda one, other: (one and one.fare, other and other.fare),
        schema=tuple[int | None, int | None],
        retention="1h",
        name="work",
    ).to(sinks["facts"])


def looking_up(flow: fw.Flow, source: Sources, sinks: Sinks) -> None:
    updates: list[Any] = [
        At(10_000 * number - (25_000 if number % 5 == 4 else 0), Place(gate, f"{number}"))
        for number in range(30)
        for gate in "abcde"
    ]
    places = flow.table("places", source(updates), schema=Place, key="gate", retention="1h")
    taps = flow.source("taps", source(TAPS), schema=Tap)
    select = ["left.gate", "fare", "town"]
    taps.join(places, on="gate", how="left", select=select, name="work").to(sinks["facts"])


def counting_windows(flow: fw.Flow, source: Sources, sinks: Sinks) -> None:
    taps = flow.source("taps", source(TAPS), schema=Tap)
    counts = taps.group_by("gate").window(fw.tumbling("10s")).count(name="work", retention="30s")
    counts.changes(emit=fw.emit.final()).to(sinks["facts"])


@pytest.mark.parametrize("checkpoint", [True, False])
@pytest.mark.parametrize("build", [joining_streams, looking_up, counting_windows])
def test_results_are_those_of_a_flow_that_nobody_kills(
    tmp_path: Path, build: Build, *, checkpoint: bool
) -> None:
    flow, want = fw.Flow("calm"), defaultdict[str, ListSink](ListSink)
    build(flow, ListSource, want)
    assert Driver(flow).run() == "ended"
    flow, got = fw.Flow("killed"), defaultdict[str, ListSink](ListSink)
    build(flow, lambda items: HeldList(items, release_of(tmp_path)), got)
    folder = tmp_path / "checkpoint" if checkpoint else None
    with started(flow, tmp_path, epoch="100ms", checkpoint=folder) as job:
        for index in (0, 1):
            committed_again(job, 2)
            kill_and_recover(job, "work", index)
        ended(job, tmp_path)
    assert job.recoveries == 2
    assert len(want["facts"].records) > 50
    assert equivalent(got["facts"].records, want["facts"].records)
