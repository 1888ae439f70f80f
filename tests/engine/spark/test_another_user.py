"""Another user of the machine can read nothing of a flow, and stop nothing; see SECURITY.md."""

import os
from pathlib import Path

import pytest

from floodway.core.errors import EngineError
from floodway.engine.driver.site import Transport
from floodway.engine.transport.sockets import CurveKeys
from tests.engine.spark.another_user import (
    LIE,
    NOBODY,
    OPEN,
    PASSWORD,
    STORE,
    family,
    keys_here,
    let_in,
    lie,
    orders,
    running,
    scratches,
)
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.usefixtures("no_spark"),
]


@pytest.fixture
def public(private: Path) -> Path:
    """A folder that everybody may enter, and a temporary folder alike: they hide nothing."""
    private.chmod(0o755)
    (private / "flow").mkdir()
    return private / "flow"


UID = NOBODY if os.getuid() == 0 else None
"""Only root can become somebody else; others try the ports as a client without a secret."""


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_stranger_reads_nothing_and_stops_nothing(public: Path, transport: Transport) -> None:
    with running(public, transport) as job:
        given = orders(public, UID)
        found = let_in(given)
        for keys in (None, CurveKeys.make()):
            lie(given["ports"], keys)
        last = job.committed + 20
        wait_for(lambda: job.recoveries or job.committed > last or job.wait(0), "epochs")
        assert job.recoveries == 0
        assert keys_here() or transport == "ipc"
    assert found.secrets == []
    assert found.keys == []
    assert set(found.done) <= {"read cmdline", "ask the endpoint"}  # as SECURITY.md says
    if UID is not None:
        assert any("fetch broadcast_0_piece0" in what for what in found.refused)
        for what in ("lock", "connect to", "list", "read", "signal"):
            assert any(each.startswith(what) for each in found.refused), what


def test_attack_works_where_spark_lets_everybody_in(public: Path) -> None:
    """So the test above shows something: this is what a stranger could do without."""
    with running(public, "tcp", **OPEN) as job:
        given = orders(public, UID)
        found = let_in(given)
        assert PASSWORD in found.secrets
        wait_for(lambda: job.recoveries or job.wait(0), "a task to be killed")
        (keys,) = found.keys
        lie(given["ports"], keys)
        with pytest.raises(EngineError, match=LIE):
            job.wait(100)


def test_secrets_are_on_no_command_line(public: Path) -> None:
    with running(public):
        processes = family()
        assert any(process.name() == "java" for process in processes)
        for process in processes:
            assert STORE not in " ".join(process.cmdline())
        # Nor is the file there any more that told Java.
        for folder in scratches(processes):
            assert not list(Path(folder).glob("*.properties"))
