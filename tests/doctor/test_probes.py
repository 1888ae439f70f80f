"""The probes find the Java and the Python that Spark would take."""

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from floodway.doctor.probes import Java, Probes, find_java, find_worker_python, look
from tests.doctor.machines import good_probes, good_run, no_answer

ROOT = Path(__file__).resolve().parents[2]


def test_java_on_path() -> None:
    java = find_java(good_probes())
    assert java == Java(origin="PATH", path="/usr/bin/java", version="17.0.15")


def test_java_home_counts_before_path() -> None:
    probes = good_probes(environ={"JAVA_HOME": "/jdk"}, which=lambda command: command)
    assert find_java(probes).path == "/jdk/bin/java"
    assert find_java(probes).origin == "JAVA_HOME"


def test_java_home_without_java() -> None:
    probes = good_probes(environ={"JAVA_HOME": "/jdk"})
    assert find_java(probes) == Java(origin="JAVA_HOME")


def test_java_that_does_not_run() -> None:
    java = find_java(good_probes(run=no_answer))
    assert (java.path, java.version) == ("/usr/bin/java", None)


def test_worker_python_is_asked_for_its_environment() -> None:
    asked: list[str] = []

    def run(command: Sequence[str]) -> str:
        asked.append(command[0])
        return good_run(command)

    worker = find_worker_python(good_probes(environ={"PYSPARK_PYTHON": "/env/python"}, run=run))
    assert (worker.origin, worker.prefix) == ("PYSPARK_PYTHON", sys.prefix)
    assert find_worker_python(good_probes(run=run)).origin == "PATH"
    assert asked == ["/env/python", "python3"]


def test_servers_are_looked_for_on_their_ports() -> None:
    machine = look(good_probes(reachable=lambda port: port == 9092))
    assert (machine.redis_reachable, machine.kafka_reachable) == (False, True)


def test_real_probes_see_this_machine() -> None:
    machine = look(Probes())
    assert machine.cores >= 1
    assert 0 < machine.memory_available_bytes <= machine.memory_total_bytes
    assert machine.temp_free_bytes > 0
    assert machine.libraries["msgspec"] is not None


def test_required_is_what_the_distribution_depends_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[<>=]", each)[0] for each in project["dependencies"]]
    assert sorted(look(Probes()).required) == sorted(names)


def test_real_run_reports_failure_as_none() -> None:
    run = Probes().run
    assert run([sys.executable, "-c", "print('here')"]) == "here\n"
    assert run([sys.executable, "-c", "raise SystemExit(3)"]) is None
    assert run(["/no/such/command"]) is None
    assert Probes().installed_version("no-such-distribution") is None
