"""What all tests share."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.engines import ENGINES, Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A loaded machine must not fail a property test, and CI must judge the same examples every time.
settings.register_profile("floodway", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("floodway")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Send all Spark tests to one worker, so that they share one JVM."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A small local Spark; tests that use it are marked ``spark``."""
    from pyspark.sql import SparkSession

    if "PYTEST_XDIST_WORKER" in os.environ:
        # Fails if another worker has been here: then the groups do not work.
        (tmp_path_factory.getbasetemp().parent / "spark-worker").touch(exist_ok=False)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("floodway-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session", params=sorted(ENGINES))  # one for all examples of a property
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine that behavioural tests run on."""
    return ENGINES[request.param]
