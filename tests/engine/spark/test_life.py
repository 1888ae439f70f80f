"""From start to end: by itself, by a time limit, by an order, by a failure; nothing is left."""

import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.rate import RateSource
from floodway.core.errors import EngineError, OptionError
from floodway.engine.driver.job import Job
from floodway.testing import ListSink, ListSource
from tests.engine.spark.flows import stage
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]


def ticking(folder: Path, *, per_second: float = 2000, count: int | None = None) -> fw.Flow:
    """Return a flow of two stages that copies numbers to a file."""
    flow = fw.Flow("ticking")
    numbers = flow.source("numbers", RateSource(per_second, count=count), schema=int)
    numbers.map("value", name="same").isolate().to(JsonLinesSink(folder / "out.jsonl"))
    return flow


def written(folder: Path) -> list[int]:
    file = folder / "out.jsonl"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def started(flow: fw.Flow, **options: object) -> Job:
    job = flow.start(**options)
    assert job.wait_running(60)
    return job


def test_ends_when_its_sources_end(tmp_path: Path) -> None:
    job = ticking(tmp_path, per_second=1e6, count=500).run()
    assert (job.state, job.status.state) == ("ended", "ended")
    assert written(tmp_path) == list(range(500))
    assert (job.status.totals.records_in, job.status.totals.records_out) == (500, 500)


def test_a_source_without_records_ends(tmp_path: Path) -> None:
    flow, sink = fw.Flow("empty"), ListSink()
    flow.source("numbers", ListSource([]), schema=int).filter("value > 1").to(sink)
    assert flow.run(dop=3).state == "ended"
    assert sink.records == []


def test_timeout_stops_the_reading_and_lets_everything_out(tmp_path: Path) -> None:
    job = ticking(tmp_path).run(timeout=1.0)
    assert job.state == "ended"
    numbers = written(tmp_path)
    assert numbers
    assert numbers == list(range(job.status.totals.records_in))


def test_start_does_not_wait_and_drain_lets_everything_out(tmp_path: Path) -> None:
    job = started(ticking(tmp_path))
    assert not job.wait(0)
    assert job.state == "running"
    wait_for(lambda: len(written(tmp_path)) > 100, "output")
    job.drain()
    job.drain()  # once is enough, twice is harmless
    assert job.wait(60)
    assert written(tmp_path) == list(range(job.status.totals.records_in))


def test_stop_is_quick(tmp_path: Path) -> None:
    job = started(ticking(tmp_path))
    wait_for(lambda: written(tmp_path), "output")
    job.stop()
    assert job.wait(60)
    assert job.state == "ended"
    numbers = written(tmp_path)
    assert numbers == list(range(len(numbers)))  # no hole, although the end may be missing


def test_stop_before_it_runs() -> None:
    flow, sink = fw.Flow("never"), ListSink()
    flow.source("numbers", RateSource(10), schema=int).to(sink)
    job = flow.start()
    job.stop()
    assert job.wait(60)
    assert job.state == "ended"


def test_as_a_context_manager(tmp_path: Path) -> None:
    with ticking(tmp_path).start() as job:
        wait_for(lambda: written(tmp_path), "output")
    assert job.wait(0)


def test_an_error_in_the_block_stops_the_flow(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="mine"), ticking(tmp_path).start() as job:
        raise RuntimeError("mine")
    assert job.wait(0)


def test_one_run_after_the_other(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        folder = tmp_path / str(number)
        ticking(folder, per_second=1e6, count=100).run(dop=number)
        assert sorted(written(folder)) == list(range(100))


def test_two_flows_at_the_same_time(tmp_path: Path) -> None:
    with ticking(tmp_path / "1").start() as one, ticking(tmp_path / "2").start() as other:
        wait_for(lambda: written(tmp_path / "1") and written(tmp_path / "2"), "output of both")
        one.drain()
        assert one.wait(60)
        assert not other.wait(0)
        there = len(written(tmp_path / "2"))
        wait_for(lambda: len(written(tmp_path / "2")) > there, "more of the other")


def test_tune_while_it_runs(tmp_path: Path) -> None:
    with started(ticking(tmp_path), b_out=3) as job:
        wait_for(lambda: stage(job, "numbers").b_out.get("numbers") == 3, "the first batch size")
        job.tune("numbers", b_out=41, linger="20ms")
        wait_for(lambda: stage(job, "numbers").b_out["numbers"] == 41, "the new batch size")
        assert stage(job, "numbers").linger_ms["numbers"] == 20
        with pytest.raises(OptionError, match="no operator 'nobody'"):
            job.tune("nobody", b_out=1)


def test_throttle_while_it_runs(tmp_path: Path) -> None:
    with started(ticking(tmp_path, per_second=1e6)) as job:
        wait_for(lambda: stage(job, "numbers").rates.arrival > 2000, "full speed")
        job.throttle("numbers", 50)
        wait_for(lambda: 0 < stage(job, "numbers").rates.arrival < 150, "low speed")
        job.throttle("numbers", None)
        wait_for(lambda: stage(job, "numbers").rates.arrival > 2000, "full speed again")
        with pytest.raises(OptionError, match="no source 'same'"):
            job.throttle("same", 50)


def test_metrics_are_served_while_it_runs(tmp_path: Path) -> None:
    with started(ticking(tmp_path)) as job:
        wait_for(lambda: job.status.totals.records_out, "output")
        url = job.url
        assert url is not None
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
            assert b"floodway_" in answer.read()
        with urllib.request.urlopen(f"{url}/status.json", timeout=20) as answer:
            assert json.load(answer)["flow"] == "ticking"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/metrics", timeout=5)


def test_without_metrics_nothing_is_served(tmp_path: Path) -> None:
    with started(ticking(tmp_path), metrics_port=None) as job:
        assert job.url is None


def test_a_metrics_port_in_use(tmp_path: Path) -> None:
    with started(ticking(tmp_path / "1")) as job:
        assert job.url is not None
        port = int(job.url.rpartition(":")[2])
        with pytest.raises(EngineError, match=str(port)) as caught:
            ticking(tmp_path / "2").run(metrics_port=port)
    assert "metrics" in caught.value.remedy or "port" in caught.value.remedy
    assert not written(tmp_path / "2")


def test_without_recovery_a_lost_task_fails_the_flow(tmp_path: Path) -> None:
    job = started(ticking(tmp_path), recovery=False)
    wait_for(lambda: written(tmp_path), "output")
    _, pid = job.processes[0]
    assert pid != os.getpid()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="was lost"):
        job.wait(100)
    assert job.state == "failed"


def test_too_few_slots_on_a_spark_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"needs \d+ task slots .* has \d+") as caught:
        ticking(tmp_path).run(dop=40)
    assert "dop" in caught.value.remedy


def test_another_master_than_that_of_the_active_spark(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"and local\[3\] was asked for"):
        ticking(tmp_path).run(master="local[3]")
