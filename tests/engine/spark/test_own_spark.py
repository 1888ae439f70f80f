"""Flows that make their own Spark, and leave none behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import floodway as fw
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.rate import RateSource
from floodway.core.errors import EngineError
from floodway.testing import ListSink, ListSource
from tests.engine.spark.flows import active_spark, is_worker
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_spark", "clean")]


def counting(folder: Path) -> fw.Flow:
    flow = fw.Flow("counting")
    numbers = flow.source("numbers", RateSource(1e6, count=100), schema=int)
    numbers.to(JsonLinesSink(folder / "out"))
    return flow


def workers() -> list[psutil.Process]:
    """Return the Python processes of a Spark."""
    return [child for child in psutil.Process().children(recursive=True) if is_worker(child)]


def test_each_run_has_a_spark_of_its_own(tmp_path: Path) -> None:
    for number in (1, 2):
        counting(tmp_path / str(number)).run(dop=number)
        assert active_spark() is None
        parts = (tmp_path / str(number) / "out").glob("part-*.jsonl")
        lines = [int(line) for part in parts for line in part.read_text().split()]
        assert sorted(lines) == list(range(100))
        wait_for(lambda: not workers(), "the end of all workers")


def test_a_spark_of_the_users_after_a_flow_has_its_own_folder(tmp_path: Path) -> None:
    from pyspark import SparkConf, SparkContext

    counting(tmp_path / "flow").run()
    settings = {"spark.local.dir": str(tmp_path / "own"), "spark.ui.enabled": "false"}
    conf = SparkConf().setMaster("local[1]").setAppName("own").setAll(list(settings.items()))
    with SparkContext(conf=conf) as own:
        assert own.parallelize([1, 2], 1).sum() == 3
        assert list((tmp_path / "own").glob("blockmgr-*"))


def test_a_flow_that_needs_no_task_needs_no_spark() -> None:
    flow, sink = fw.Flow("here"), ListSink()
    flow.source("numbers", ListSource([1, 2]), schema=int).to(sink)
    job = flow.start()
    assert job.wait(60)
    assert sink.values == [1, 2]


def test_too_few_slots(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"local\[1\] has 1") as caught:
        counting(tmp_path).run(dop=2, master="local[1]")
    assert "--master 'local[" in caught.value.remedy


def test_a_master_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="could not be started with the master moon") as caught:
        counting(tmp_path).run(master="moon://here")
    assert "floodway doctor" in caught.value.remedy


def test_a_setting_that_spark_refuses(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="could not be started"):
        counting(tmp_path).run(conf={"spark.serializer": "no.such.Class"})


SCRIPT = """\
import sys
from pathlib import Path
import floodway as fw
from floodway.connectors.parquet import ParquetSink
from floodway.connectors.rate import RateSource

if __name__ == "__main__":
    folder = sys.argv[1]
    flow = fw.Flow("script")
    numbers = flow.source("numbers", RateSource(1000), schema=int)
    numbers.peek(lambda value: Path(folder, "seen").touch()).to(ParquetSink(folder + "/out"))
    flow.run()
"""


@pytest.mark.slow
def test_a_script_that_is_interrupted_closes_its_sinks(tmp_path: Path, private: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(private)},
    )
    try:
        seen = tmp_path / "seen"
        wait_for(lambda: seen.exists() or process.poll() is not None, "a record")
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT  # Python's own way to die of Ctrl-C
    finally:
        process.kill()
        process.wait()
    numbers = pq.read_table(tmp_path / "out").column(0).to_pylist()
    assert numbers
    assert numbers == list(range(len(numbers)))
    wait_for(lambda: not any(map(is_worker, children)), "the end of all workers")
