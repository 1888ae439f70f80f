"""What users install works without a checkout of the repository."""

import ast
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

pytestmark = pytest.mark.xdist_group("kafka")

OF_BENCHMARKS = {
    *("Bursts", "Experiment", "Ramp", "Sine", "shaped"),  # workloads and their loads
    *("DataEngines", "Disorder", "Filled", "Jitter", "Sustaining", "first_lap"),  # data engines
    *("Relay", "flow_capacity", "max_source_capacity", "sustains"),  # tools of lab and tests
}
"""Classes and functions that belong to the laboratory or to tests: users have no need of them."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the wheel installs, and nothing else."""
    return unpacked(ROOT, tmp_path_factory)


def unpacked(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a project's wheel, and return a folder with what is in it."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    built = subprocess.run(
        [*command, str(wheels), str(project)], capture_output=True, text=True, check=False
    )
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("a wheel is built with hatchling, and there is no network to get it from")
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def defined(package: Path) -> set[str]:
    """Return the names of all classes and functions of a package."""
    return {
        node.name
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }


def test_no_benchmark_is_in_what_becomes_the_wheel() -> None:
    assert not OF_BENCHMARKS & defined(ROOT / "src" / "floodway")
    gone = OF_BENCHMARKS - defined(ROOT / "lab") - defined(ROOT / "tests")
    assert not gone, "they have other names now"


@pytest.mark.slow
def test_wheel_has_what_flows_need_and_nothing_of_the_laboratory(installed: Path) -> None:
    there = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert there == {"floodway"}
    assert not OF_BENCHMARKS & defined(installed / "floodway")


@pytest.mark.slow
def test_wheel_of_the_laboratory_has_the_laboratory_alone(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    site = unpacked(ROOT / "lab", tmp_path_factory)
    there = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert there == {"floodway_lab"}
    assert defined(site / "floodway_lab") >= {"DataEngines", "Experiment", "Relay"}


@pytest.mark.slow
def test_benchmarks_without_the_laboratory_say_what_is_missing(installed: Path) -> None:
    """The interpreter sees the wheel and what it needs, and no other Floodway."""
    program = (
        "import sys; from importlib import metadata; real = metadata.entry_points;"
        "metadata.entry_points = lambda **wanted: () if wanted else real();"
        "from floodway.cli.main import app; app(sys.argv[1:], prog_name='floodway')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "bench", "compare", "ads", "--help"],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "is part of floodway-lab, which is not installed" in done.stderr
    assert "pip install floodway-lab" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
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
