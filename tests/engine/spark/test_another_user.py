"""Another user of the machine can read nothing of a flow, and stop nothing; see SECURITY.md."""

import math
import os
from pathlib import Path

import pytest

from tests.engine.spark.another_user import (
    NOBODY,
    OPEN,
    PASSWORD,
    STORE,
    Found,
    family,
    let_in,
    orders,
    running,
    scratches,
)
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.usefixtures("no_spark"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def public(private: Path) -> Path:
    """A folder that everybody may enter, and a temporary folder alike: they hide nothing."""
    private.chmod(0o755)
    (private / "flow").mkdir()
    return private / "flow"


UID = NOBODY if os.getuid() == 0 else None
"""Only root can become somebody else; others try the ports as a client without a secret."""


def attack(folder: Path, epochs: float, **conf: str) -> tuple[Found, int]:
    """Let a stranger try everything; return what it could do, and how often tasks were lost.

    They are waited for, for so many epochs.
    """
    with running(folder, **conf) as job:
        found = let_in(orders(folder, UID))
        last = job.committed + epochs
        wait_for(lambda: job.recoveries or job.committed > last or job.wait(0), "an effect", 100)
        return found, job.recoveries


def test_stranger_reads_nothing_and_stops_nothing(public: Path) -> None:
    found, lost = attack(public, epochs=20)
    assert found.secrets == []
    assert lost == 0
    assert set(found.done) <= {"read cmdline", "ask the endpoint"}  # as SECURITY.md says
    if UID is not None:
        assert any("fetch broadcast_0_piece0" in what for what in found.refused)
        for what in ("lock", "connect to", "list", "read", "signal"):
            assert any(each.startswith(what) for each in found.refused), what


def test_attack_works_where_spark_lets_everybody_in(public: Path) -> None:
    """So the test above shows something: this is what a stranger could do without."""
    found, lost = attack(public, epochs=math.inf, **OPEN)
    assert PASSWORD in found.secrets
    assert lost > 0


def test_secrets_are_on_no_command_line(public: Path) -> None:
    with running(public):
        processes = family()
        assert any(process.name() == "java" for process in processes)
        for process in processes:
            assert STORE not in " ".join(process.cmdline())
        # Nor is the file there any more that told Java.
        for folder in scratches(processes):
            assert not list(Path(folder).glob("*.properties"))
