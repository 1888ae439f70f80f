"""Real Spark for tests of the data stream engine, and a look at what flows leave behind."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodway.engine.spark.context import SPARE_SLOTS, Lease, local_slots
from floodway.engine.spark.gateway import home
from tests.engine.spark.flows import Leftovers, active_spark

SLOTS = 24
"""Enough for the largest flow of these tests; a slot that nobody uses costs nothing."""


@pytest.fixture(scope="module")
def shared_spark() -> Iterator[Any]:
    """One Spark for all flows of a module, or the one that other tests have left running."""
    active = active_spark()
    if active is not None and (local_slots(active.master) or 0) < SLOTS - SPARE_SLOTS:
        pytest.fail(
            f"other tests run a Spark with the master {active.master}, and these need {SLOTS} "
            "slots: run them first, or give the other Spark more"
        )
    master = None if active is not None else f"local[{SLOTS}]"
    lease = Lease.take("tests", 0, master=master, conf={})
    yield lease.context
    lease.release()


@pytest.fixture
def no_spark() -> None:
    """No Spark is active, so that a flow has to make its own."""
    if active_spark() is not None:
        pytest.skip("other tests have left a Spark running, which flows would use")


@pytest.fixture
def private(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A folder of its own for everything temporary; its name is short, as sockets need it."""
    tmp_path_factory.getbasetemp()  # which would otherwise be made in here
    home()  # the same: the JVM, which other tests use again, has files there
    folder = Path(tempfile.mkdtemp(prefix="fw-"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    (folder / "floodway").mkdir(mode=0o700)  # where flows announce themselves; it stays
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def clean(private: Path) -> Iterator[None]:
    """Fail if a flow leaves a thread, a process, a listening port or a file behind."""
    before = Leftovers.now(private)
    yield
    before.check(private)
