"""What all tests share."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.engines import ENGINES, Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A loaded machine must not fail a property test, and CI must judge the same examples every time.
settings.register_profile("floodway", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("floodway")

# A shell lets what it starts in the background ignore Ctrl-C, and so would every command tested.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out what takes Spark, servers or long; two engines, few examples",
    )


QUICK_ENGINES = frozenset({"reference", "data-3"})
"""The engines on which behaviour is tried in a hurry."""

QUICK_EXAMPLES = 15
"""So many examples a property then has at most."""

SERVERS = frozenset({"kafka", "redis"})
"""The groups of tests that need a server."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Send all Spark tests to one worker, so that they share one JVM.

    Those that share a session come last: other tests want a Spark of their own, and cannot have one
    while that is there.
    """
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=_shares_spark)
    if config.getoption("--quick"):
        left_out = [item for item in items if not _is_quick(item)]
        items[:] = [item for item in items if _is_quick(item)]
        config.hook.pytest_deselected(items=left_out)


def _shares_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


def _is_quick(item: pytest.Item) -> bool:
    if item.get_closest_marker("spark") or item.get_closest_marker("slow"):
        return False
    group = item.get_closest_marker("xdist_group")
    if group is not None and group.args[0] in SERVERS:
        return False
    engine = getattr(item, "callspec", None) and item.callspec.params.get("engine")
    return engine is None or engine in QUICK_ENGINES


SETTINGS = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps a test's settings; it has no public way to change them for one run."""

LEAST_EXAMPLES = 40
"""No engine runs fewer examples of a property than this, unless the property asks for fewer."""


FEW_EXAMPLES = {"restored": 15, "operation": 25, "switching": 25}
"""So many those engines run whose examples take long: the first builds every task anew after every
push, the others write files."""

TIMES = int(os.environ.get("FLOODWAY_EXAMPLES", "1"))
"""So many times as many are run where there is time for it, as in `make soak`."""


def examples_for(engine: str, asked: int, *, quick: bool = False) -> int:
    """Return how many examples an engine runs: the reference all, the others a third."""
    if quick:
        return min(asked, QUICK_EXAMPLES)
    if engine == "reference":
        return asked * TIMES
    if engine in FEW_EXAMPLES:
        return min(asked, FEW_EXAMPLES[engine]) * TIMES
    return max(asked // 3, min(asked, LEAST_EXAMPLES)) * TIMES


@contextmanager
def fewer_examples(test: Any, engine: str, *, quick: bool = False) -> Iterator[None]:
    """Let a property run as many examples as its engine should, and then as many as it asks."""
    asked = getattr(test, SETTINGS, None)
    if asked is None:
        yield
        return
    fewer = settings(asked, max_examples=examples_for(engine, asked.max_examples, quick=quick))
    setattr(test, SETTINGS, fewer)
    try:
        yield
    finally:
        setattr(test, SETTINGS, asked)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run all examples on the reference engine, which is fast, and fewer on the others."""
    engine = getattr(getattr(item, "callspec", None), "params", {}).get("engine")
    quick = item.config.getoption("--quick")
    with fewer_examples(getattr(item, "obj", None), engine or "reference", quick=quick):
        return (yield)


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
        # Slots for the flows that engine tests run beside it: Floodway uses a Spark that is there.
        SparkSession.builder.master("local[24]")
        .appName("floodway-tests")
        .config("spark.default.parallelism", "2")
        .config("spark.authenticate", "true")
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
