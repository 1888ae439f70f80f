"""Stages in micro-batches on real Spark: the same answers, whoever is switched or killed."""

import os
import signal
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink, JsonLinesSource
from floodway.core.errors import EngineError, OptionError
from floodway.demo.ads import build, campaigns, final_counts, make_events, plain_count, to_lines
from floodway.engine.spark.context import Lease
from floodway.testing import ListSink, ListSource
from tests.engine.spark.recovering import (
    Tap,
    Taps,
    able_stages,
    committed_again,
    counting,
    ended,
    expected,
    histories,
    kill_and_recover,
    release_of,
    shown,
    started,
    switch_all,
    until,
)
from tests.waiting import DEADLINE_S

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]


# --------------------------------------------------------------------------- the same answers


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_flow_in_micro_batches_gives_what_a_loop_gives(tmp_path: Path, checkpoint: bool) -> None:
    options: dict[str, Any] = {} if checkpoint else {"checkpoint": None}
    with started(counting(tmp_path), tmp_path, **options) as job:
        assert able_stages(job) == ["taps", "some", "updates"]
        switch_all(job, "operation")
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


def test_switching_while_it_runs_changes_nothing(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        for _ in range(3):
            switch_all(job, "operation")
            committed_again(job)
            switch_all(job, "data")
        job.switch("taps", "operation")
        job.switch("some", "operation")
        job.switch("taps", "data")
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


def test_the_ad_pipeline_from_its_first_record_on(tmp_path: Path) -> None:
    events, sink = make_events(60_000), ListSink()
    for index in (0, 1):  # one for each task
        (tmp_path / f"{index}.jsonl").write_bytes(to_lines(events[index::2]))
    job = build(JsonLinesSource(tmp_path), sink).start(dop=2)
    for stage in able_stages(job):
        job.switch(stage, "operation")
    assert job.wait(DEADLINE_S)
    assert job.paradigms[job.plan.stage_of("events").name] == "operation"
    assert final_counts(sink.records) == plain_count(to_lines(events), campaigns())


def test_a_flow_in_micro_batches_stops_at_once_and_goes_on_later(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        switch_all(job, "operation")
        until(job, lambda: shown(tmp_path / "out"), "output")
        job.stop()
        assert job.wait(DEADLINE_S)
    with started(counting(tmp_path), tmp_path) as job:
        switch_all(job, "operation")
        ended(job, tmp_path)
    assert histories(tmp_path / "out") == expected()


# --------------------------------------------------------------------------- losses


def deadly(tap: Tap, marker: Path) -> Tap:
    """Kill the process, the first time that a certain tap comes."""
    if tap.number == 3000:
        try:
            with marker.open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            return tap
        os.kill(os.getpid(), signal.SIGKILL)
    return tap


def test_a_killed_micro_batch_is_done_again(tmp_path: Path) -> None:
    flow = fw.Flow("deadly")
    taps = flow.source("taps", Taps(release_of(tmp_path)), schema=Tap).isolate()
    all_taps = taps.map(partial(deadly, marker=tmp_path / "marker"), schema=Tap, name="dangerous")
    counts = all_taps.filter("gate % 5 > 0").isolate().group_by("gate").count(name="counts")
    counts.changes().to(JsonLinesSink(tmp_path / "out"))
    job = flow.start(dop=2)  # without a checkpoint: a task that dies would be the end
    for stage in able_stages(job):
        job.switch(stage, "operation")
    with job:
        until(job, lambda: (tmp_path / "marker").exists(), "a death")
        ended(job, tmp_path)
        owners = {pid for _, pid in job.processes}
    assert int((tmp_path / "marker").read_text()) not in owners
    assert job.recoveries == 0
    assert histories(tmp_path / "out") == expected()


def test_a_task_that_is_killed_works_in_micro_batches_again(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        for victim in ("taps", "some", "counts"):
            switch_all(job, "operation")
            kill_and_recover(job, victim)
        switch_all(job, "operation")
        ended(job, tmp_path)
    assert job.recoveries == 3
    assert histories(tmp_path / "out") == expected()


# --------------------------------------------------------------------------- errors


def fussy(tap: Tap) -> Tap:
    if tap.number == 5000:
        raise ValueError("that one I do not take")
    return tap


def test_a_function_that_raises_is_named_with_its_place(tmp_path: Path) -> None:
    flow = fw.Flow("fussy")
    taps = flow.source("taps", Taps(release_of(tmp_path)), schema=Tap).isolate()
    taps.map(fussy, schema=Tap, name="picky").isolate().to(JsonLinesSink(tmp_path / "out"))
    job = flow.start()
    job.switch("picky", "operation")
    with pytest.raises(fw.FloodwayError, match="that one I do not take") as caught:
        job.wait(DEADLINE_S)
    assert caught.value.operator == "picky"
    assert caught.value.place is not None
    assert Path(caught.value.place.file).resolve() == Path(__file__)
    assert job.state == "failed"


def test_what_cannot_be_switched_is_refused(tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        with pytest.raises(OptionError, match="no stage or operator 'nobody'"):
            job.switch("nobody", "operation")
        with pytest.raises(OptionError, match="'counts' cannot work in micro-batches") as caught:
            job.switch("counts", "operation")
        assert caught.value.remedy == "switch one of: taps, some, updates"
        with pytest.raises(OptionError, match="no paradigm 'other'"):
            job.switch("some", "other")  # type: ignore[arg-type]
        job.switch("counts", "data")  # as it is
        assert set(job.paradigms.values()) == {"data"}


def test_a_flow_at_the_driver_has_no_micro_batches() -> None:
    flow, sink = fw.Flow("here"), ListSink()
    numbers: Iterable[int] = range(10)
    flow.source("numbers", ListSource(numbers), schema=int).to(sink, name="out")
    with flow.start() as job:
        with pytest.raises(OptionError, match="runs in the driver's process") as caught:
            job.switch("numbers", "operation")
        assert caught.value.remedy == "leave it in 'data'"
        assert job.wait(DEADLINE_S)


def test_without_a_spare_slot_it_is_refused(shared_spark: Any, tmp_path: Path) -> None:
    with started(counting(tmp_path), tmp_path) as job:
        lease = Lease(shared_spark, 1000, None)
        Lease._held.append(lease)  # noqa: SLF001 - as if another flow had all other slots
        try:
            with pytest.raises(EngineError, match="no slot for micro-batches"):
                job.switch("some", "operation")
        finally:
            lease.release()
