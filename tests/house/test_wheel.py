"""What users install works without a checkout of the repository."""

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from floodway.testing.servers import KafkaServer
from tests.connectors.servers_fixtures import kafka

__all__ = ["kafka"]  # a fixture

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the wheel installs, and nothing else."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    built = subprocess.run(
        [*command, str(wheels), str(ROOT)], capture_output=True, text=True, check=False
    )
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("a wheel is built with hatchling, and there is no network to get it from")
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def test_broker_runs_from_a_wheel(kafka: KafkaServer, installed: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(installed), "TMPDIR": str(tmp_path)}
    where = subprocess.run(
        [sys.executable, "-c", "import floodway; print(floodway.__file__)"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(installed)
    command = [sys.executable, "-m", "floodway.testing.servers", "kafka"]
    with subprocess.Popen(
        command,
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert "kafka is ready: 127.0.0.1:" in lines[1], lines
    assert "its data are removed" in rest
    assert process.returncode == 0
