"""Back-pressure: who cannot keep up slows down those before him, and nobody loses anything."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import floodway as fw
from floodway.connectors.base import Row, Unavailable
from floodway.connectors.callback import CallbackSink
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.rate import GeneratorSource
from floodway.engine.datastream.settings import Settings
from floodway.engine.driver.job import Job
from tests.engine.spark.flows import stage
from tests.waiting import pause, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]

CACHE = 64 * 1024
READ = 128 * 1024  # more than all that one look at the source brings
SETTINGS = Settings(input_cache=CACHE)


def away(folder: Path) -> Callable[[list[Row]], None]:
    """Return a sink's function that takes nothing until there is a file ``open``."""

    def take(rows: list[Row]) -> None:
        if not (folder / "open").exists():
            raise Unavailable("closed")
        with (folder / "taken").open("a") as file:
            file.write("".join(f"{value}\n" for _, _, value, _ in rows))

    return take


def slow(folder: Path) -> Callable[[int], None]:
    """Return a sink's function that takes its time until there is a file ``open``."""

    def take(value: int) -> None:
        if not (folder / "open").exists():
            threading.Event().wait(0.01)
        with (folder / "taken").open("a") as file:
            file.write(f"{value}\n")

    return take


def taken(folder: Path) -> list[int]:
    file = folder / "taken"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def stands_still(job: Job) -> bool:
    """Return whether the source has read nothing for half a second."""
    before = job.status.totals.records_in
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        if job.status.totals.records_in != before:
            return False
        pause(0.05)
    return before > 0


@pytest.mark.parametrize("dop", [1, 2])
def test_a_sink_that_takes_nothing_stops_the_source(tmp_path: Path, dop: int) -> None:
    count = 60_000
    flow = fw.Flow("pressed")
    numbers = flow.source("numbers", GeneratorSource(lambda index: index, count=count), schema=int)
    sink = CallbackSink(away(tmp_path), batches=True)
    numbers.map("value", name="same").isolate().to(sink, name="out")
    with flow.start(dop=dop, b_out=100, settings=SETTINGS) as job:
        wait_for(lambda: stands_still(job), "the source to stop")
        status = job.status
        assert status.totals.records_in < count
        for each in status.stages:
            for task in each.tasks:
                assert task.queue_bytes <= CACHE + READ
        assert "paused" in {each.state for each in status.stages}
        assert any("closed" in (t.reason or "") for s in status.stages for t in s.tasks)
        (tmp_path / "open").touch()
        assert job.wait(100)
    assert sorted(taken(tmp_path)) == list(range(count))


def test_a_slow_sink_is_not_overrun(tmp_path: Path) -> None:
    count = 20_000
    flow = fw.Flow("slow")
    numbers = flow.source("numbers", GeneratorSource(lambda index: index, count=count), schema=int)
    numbers.map("value", name="same").isolate().to(CallbackSink(slow(tmp_path)), name="out")
    with flow.start(b_out=20, settings=Settings(input_cache=4096)) as job:
        wait_for(lambda: len(taken(tmp_path)) > 50, "some output")
        assert stage(job, "same").queue_bytes <= 4096 + READ
        assert job.status.totals.records_in < count
        (tmp_path / "open").touch()
        assert job.wait(100)
    assert taken(tmp_path) == list(range(count))


def test_the_rest_goes_on_until_its_caches_are_full(tmp_path: Path) -> None:
    count = 20_000
    flow = fw.Flow("two_sinks")
    numbers = flow.source("numbers", GeneratorSource(lambda index: index, count=count), schema=int)
    sink = CallbackSink(away(tmp_path), batches=True)
    numbers.map("value", name="one").isolate().to(sink, name="closed")
    numbers.map("value", name="two").isolate().to(JsonLinesSink(tmp_path / "out.jsonl"))
    with flow.start(b_out=50, settings=SETTINGS) as job:
        out = tmp_path / "out.jsonl"
        wait_for(lambda: out.exists() and len(out.read_text().splitlines()) > 1000, "the other")
        wait_for(lambda: stands_still(job), "the source to stop")
        assert not taken(tmp_path)
        (tmp_path / "open").touch()
        assert job.wait(100)
    assert taken(tmp_path) == list(range(count))
    assert out.read_text().split() == [str(number) for number in range(count)]
