"""The scripts behind ``make setup`` decide rightly on machines of all kinds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "cat", "dirname", "env", "mktemp", "mv", "rm", "sed", "sort")


class FakeMachine:
    """A machine whose path holds a few real tools and whatever commands a test adds."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "calls"
        self.calls.touch()
        for tool in TOOLS:
            os.symlink(shutil.which(tool) or tool, self.bin / tool)

    def command(self, name: str, script: str) -> Path:
        file = self.bin / name
        file.write_text(f'#!/usr/bin/env bash\necho "{name} $*" >>{self.calls}\n{script}\n')
        file.chmod(0o755)
        return file

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "scripts" / command[0], *command[1:]],
            env={"PATH": str(self.bin), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def java(version: str) -> str:
    """Return the script of a Java of some version."""
    return f"""echo 'openjdk version "{version}" 2025-01-01' >&2"""


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.mark.parametrize("version", ["17.0.15", "21.0.8", "25.0.3"])
def test_good_java_passes_silently(machine: FakeMachine, version: str) -> None:
    machine.command("java", java(version))
    done = machine.run("ensure-java")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("version", [None, "1.8.0_392", "11.0.20"])
def test_user_is_told_what_to_install(machine: FakeMachine, version: str | None) -> None:
    machine.command("id", "echo 1000")
    if version:
        machine.command("java", java(version))
    done = machine.run("ensure-java")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "install one, for example the package openjdk-17-jre-headless" in done.stderr


def test_java_home_counts_before_path(machine: FakeMachine, tmp_path: Path) -> None:
    machine.command("java", java("17.0.15"))
    done = machine.run("ensure-java", JAVA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "unset it or let it name one" in done.stderr


@pytest.mark.parametrize(
    ("offered", "chosen"), [((11, 17, 21), 17), ((11, 21, 25), 25)], ids=["17", "newest"]
)
def test_root_installs_java(machine: FakeMachine, offered: tuple[int, ...], chosen: int) -> None:
    machine.command("id", "echo 0")
    packages = "".join(f"openjdk-{major}-jre-headless - Java\\n" for major in offered)
    machine.command("apt-cache", f"printf '{packages}'")
    prepared = machine.command("prepared", java(f"{chosen}.0.9"))
    machine.command("apt-get", f"[[ $1 != install ]] || mv {prepared} {machine.bin}/java")
    done = machine.run("ensure-java")
    assert done.returncode == 0, done.stderr
    calls = machine.calls.read_text()
    assert calls.index("apt-get update") < calls.index("apt-get install")
    assert f"openjdk-{chosen}-jre-headless" in calls


def test_failing_installation_shows_its_log(machine: FakeMachine) -> None:
    machine.command("id", "echo 0")
    machine.command("apt-get", "echo no network >&2; exit 100")
    done = machine.run("ensure-java")
    assert done.returncode == 1
    assert "no network" in done.stderr


def test_machine_without_python_is_told_so(machine: FakeMachine) -> None:
    for name in ("python3", "python3.11"):
        machine.command(name, "exit 1")
    done = machine.run("create-venv", str(machine.bin.parent / "venv"))
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
