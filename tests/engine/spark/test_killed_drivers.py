"""Killed drivers, JVMs and executors: the flow goes on, or can be started again."""

import os
from pathlib import Path

import psutil
import pyspark
import pytest

from tests.engine.spark.child import Child, Order
from tests.engine.spark.recovering import expected, histories, release, shown

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def temporary(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all that is temporary, and stays behind when a driver is killed, in one place."""
    monkeypatch.setenv("TMPDIR", str(private))


COUNT = 40_000
SLOWLY = {"count": COUNT, "per_second": 2500}
"""There is enough to do until somebody is dead."""


def shows(folder: Path, more_than: int) -> bool:
    return shown(folder / "out") > more_than


def test_a_killed_driver_leaves_nothing_and_goes_on(tmp_path: Path, private: Path) -> None:
    order = Order(folder=str(tmp_path), options=SLOWLY)
    with Child(order) as child:
        child.until(lambda: shows(tmp_path, 1000), "showing something")
        assert len(child.family()) > 8  # Spark, and a process for each task
        child.process.kill()
        assert child.wait() < 0
    release(tmp_path)
    with Child(order) as child:
        assert child.wait() == 0, child.log
    assert histories(tmp_path / "out") == expected(COUNT)
    # What the dead one had in temporary folders, the next one has swept away.
    assert [path.name for path in private.iterdir()] == ["floodway"]


def test_a_killed_jvm_is_named_and_the_flow_can_be_started_again(tmp_path: Path) -> None:
    with Child(Order(folder=str(tmp_path), options=SLOWLY, tries=2)) as child:
        child.until(lambda: shows(tmp_path, 1000), "showing something")
        (jvm,) = child.javas()
        jvm.kill()
        child.until(lambda: "EngineError: Spark has died" in child.log, "the error")
        assert "with a checkpoint it goes on from there" in child.log
        release(tmp_path)
        assert child.wait() == 0, child.log
        assert child.log.count("EngineError") == 1
    assert histories(tmp_path / "out") == expected(COUNT)


def spark_home(folder: Path) -> Path:
    """Return a home for a small cluster, which keeps its work there."""
    home = folder / "home"
    home.mkdir()
    for entry in Path(os.path.dirname(pyspark.__file__)).iterdir():
        (home / entry.name).symlink_to(entry)
    return home


def tasks_of(executor: psutil.Process) -> int:
    """Return how many Python workers an executor has; one process is the one that makes them."""
    return len(executor.children(recursive=True)) - 1


def test_a_killed_executor_is_replaced(tmp_path: Path) -> None:
    order = Order(
        folder=str(tmp_path),
        dop=1,
        options=SLOWLY,
        master="local-cluster[2,4,1024]",
        conf={"spark.executor.memory": "512m"},
    )
    with Child(order, SPARK_HOME=str(spark_home(tmp_path))) as child:
        child.until(lambda: shows(tmp_path, 500), "showing something")
        _, *executors = child.javas()
        assert len(executors) == 2
        busiest = max(executors, key=tasks_of)
        lost = tasks_of(busiest)
        assert lost > 0
        busiest.kill()
        child.until(lambda: child.log.count("was lost (") >= lost, "noticing the loss")
        release(tmp_path)
        assert child.wait() == 0, child.log
        assert "its executor died" in child.log
    assert histories(tmp_path / "out") == expected(COUNT)
