"""Connections that the kernel kills, as an administrator or a firewall has it do: nothing is lost.

That takes a network of one's own: a namespace, where the machine makes one. Only there can `ss -K`
do no harm to others.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engine.spark.child import ROOT
from tests.engine.spark.recovering import expected, histories
from tests.engine.spark.severed import CANNOT, ROUNDS
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.spark

WAYS = (["unshare", "--net"], ["unshare", "--map-root-user", "--net"])
"""How to get a namespace: as root, and as anybody else."""

CANNOT_BE = "this machine kills no connections in a namespace: "
"""How the reason begins that is good enough even in CI; see `scripts/refuse_skips.py`."""


def within(way: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the flow, or its trial, in a namespace."""
    up = 'ip link set lo up && exec "$@"'
    command = [sys.executable, "-m", "tests.engine.spark.severed", *arguments]
    return subprocess.run(
        [*way, "sh", "-c", up, "sh", *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=3 * DEADLINE_S,
        check=False,
    )


def why_not(way: Sequence[str]) -> str | None:
    """Return why a way does not lead to a namespace in which connections can be killed."""
    made = subprocess.run([*way, "true"], capture_output=True, text=True, check=False)
    if made.returncode:
        return made.stderr.strip()
    tried = within(way)
    if tried.returncode == CANNOT:
        return "the kernel does not do it"
    assert tried.returncode == 0, tried.stderr
    return None


@pytest.fixture
def namespace() -> Sequence[str]:
    for tool in ("ss", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on the path; `make servers` gets it")
    if shutil.which("unshare") is None:
        pytest.skip(f"{CANNOT_BE}it has no unshare")
    reasons = []
    for way in WAYS:
        reason = why_not(way)
        if reason is None:
            return way
        reasons.append(reason)
    pytest.skip(CANNOT_BE + "; ".join(reasons))


@pytest.mark.slow
def test_flow_whose_connections_the_kernel_kills_has_the_same_results(
    tmp_path: Path, namespace: Sequence[str]
) -> None:
    done = within(namespace, str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sum(number > 0 for number in found["killed"]) == ROUNDS
    assert found["recoveries"] == 0
    assert histories(tmp_path / "out") == expected()
