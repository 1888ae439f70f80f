"""The scripts behind ``make`` and CI decide rightly on machines of all kinds."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.refuse_skips import main, refused
from tests.waiting import DEADLINE_S

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
            timeout=DEADLINE_S,
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


SERVERS = pytest.mark.parametrize(
    ("script", "program", "package"),
    [
        ("ensure-redis", "redis-server", "redis-server"),
        ("ensure-maven", "mvn", "maven"),
        ("ensure-iproute2", "ss", "iproute2"),
    ],
    ids=["redis", "maven", "iproute2"],
)


@SERVERS
def test_program_that_is_there_passes_silently(
    machine: FakeMachine, script: str, program: str, package: str
) -> None:
    machine.command(program, "")
    done = machine.run(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.calls.read_text() == ""


@SERVERS
def test_user_is_told_which_package_to_install(
    machine: FakeMachine, script: str, program: str, package: str
) -> None:
    machine.command("id", "echo 1000")
    machine.command("apt-get", "")
    done = machine.run(script)
    assert done.returncode == 1
    assert f"install it, for example the package {package}" in done.stderr
    assert "apt-get" not in machine.calls.read_text()


@SERVERS
def test_root_installs_program(
    machine: FakeMachine, script: str, program: str, package: str
) -> None:
    machine.command("id", "echo 0")
    prepared = machine.command("prepared", "")
    machine.command("apt-get", f"[[ $1 != install ]] || mv {prepared} {machine.bin}/{program}")
    for manager in ("systemctl", "service"):
        machine.command(manager, "")
    done = machine.run(script)
    assert done.returncode == 0, done.stderr
    calls = machine.calls.read_text()
    assert calls.index("apt-get update") < calls.index("apt-get install")
    assert f" {package}\n" in calls


def test_service_that_comes_with_redis_is_stopped(machine: FakeMachine) -> None:
    machine.command("id", "echo 0")
    prepared = machine.command("prepared", "")
    machine.command("apt-get", f"[[ $1 != install ]] || mv {prepared} {machine.bin}/redis-server")
    for manager in ("systemctl", "service"):
        machine.command(manager, "")
    assert machine.run("ensure-redis").returncode == 0
    last = machine.calls.read_text().splitlines()[-1]
    assert last in ("systemctl disable --now redis-server", "service redis-server stop")


@SERVERS
def test_failing_installation_of_program_shows_its_log(
    machine: FakeMachine, script: str, program: str, package: str
) -> None:
    machine.command("id", "echo 0")
    machine.command("apt-get", "echo no network >&2; exit 100")
    done = machine.run(script)
    assert done.returncode == 1
    assert "no network" in done.stderr


# ------------------------------------------------------------------------------- skips in CI


def report(folder: Path, *outcomes: str) -> Path:
    """Return a report as pytest writes it, of tests with these outcomes."""
    cases = "".join(f'<testcase classname="tests.t" name="t">{one}</testcase>' for one in outcomes)
    file = folder / "report.xml"
    file.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return file


def skip(reason: str, kind: str = "pytest.skip") -> str:
    return f'<skipped type="{kind}" message="{reason}">somewhere</skipped>'


def test_missing_server_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = report(tmp_path, "", skip("redis-server is not on the path"))
    assert main(file) == 1
    assert "tests.t::t: redis-server is not on the path" in capsys.readouterr().out


def test_run_without_skips_passes(tmp_path: Path) -> None:
    assert main(report(tmp_path, "", "<failure/>")) == 0


def test_examples_that_never_run_may_be_skipped(tmp_path: Path) -> None:
    assert refused(report(tmp_path, skip("all tests skipped by +SKIP option"))) == []


def test_machine_without_network_namespaces_may_say_so(tmp_path: Path) -> None:
    told = "this machine kills no connections in a namespace: unshare: Operation not permitted"
    assert refused(report(tmp_path, skip(told))) == []
    assert refused(report(tmp_path, skip(f"something else; {told}"))) != []


def test_expected_failure_is_no_skip(tmp_path: Path) -> None:
    assert refused(report(tmp_path, skip("not yet", "pytest.xfail"))) == []


def test_report_without_tests_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no tests"):
        refused(report(tmp_path))


def test_pytest_writes_what_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\ndef test_it():\n    pytest.skip('no server')\n"
    )
    file = tmp_path / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={file}", f"--rootdir={tmp_path}"]
    subprocess.run([sys.executable, "-m", "pytest", *options, tmp_path], cwd=tmp_path, check=True)
    assert refused(file) == ["test_it::test_it: no server"]
