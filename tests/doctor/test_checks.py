"""Each check says ok, warning or wrong as it should, and what to do."""

from typing import Any

import msgspec
import pytest

from floodway.doctor import checks
from floodway.doctor.checks import CHECKS, GIB, Finding, diagnose
from floodway.doctor.probes import Java, WorkerPython
from tests.doctor.machines import GOOD, machine


def test_good_machine_is_ok_throughout() -> None:
    findings = diagnose(GOOD)
    assert len(findings) == len(CHECKS)
    assert {finding.status for finding in findings} == {"ok"}
    assert {finding.remedy for finding in findings} == {None}


def test_checks_have_names_of_their_own() -> None:
    names = [finding.check for finding in diagnose(GOOD)]
    assert len(names) == len(set(names))


def found(check: str, **changes: Any) -> Finding:
    """Return what a check says of the good machine after some changes."""
    (finding,) = (each for each in diagnose(machine(**changes)) if each.check == check)
    return finding


def on_path(version: str | None) -> Java:
    return Java(origin="PATH", path="/usr/bin/java", version=version)


def in_home(version: str) -> Java:
    return Java(origin="JAVA_HOME", path="/jdk/bin/java", version=version)


@pytest.mark.parametrize(
    ("java", "status", "remedy"),
    [
        (on_path("17"), "ok", None),
        (on_path("21.0.8"), "ok", None),
        (on_path("25.0.3"), "ok", None),
        (on_path("25.0.2"), "warning", "25.0.3"),
        (on_path("25-ea"), "warning", "25.0.3"),
        (on_path("26.0.1"), "warning", "17, 21 and 25"),
        (on_path("11.0.20"), "wrong", "install Java 17"),
        (on_path("1.8.0_392"), "wrong", "install Java 17"),
        (on_path(None), "wrong", "install Java 17"),
        (Java(origin="PATH"), "wrong", "install Java 17"),
        (Java(origin="JAVA_HOME"), "wrong", "unset JAVA_HOME"),
        (in_home("11.0.20"), "wrong", "unset JAVA_HOME"),
        (in_home("17.0.15"), "ok", None),
    ],
    ids=lambda value: f"{value.origin}-{value.version}" if isinstance(value, Java) else None,
)
def test_java(java: Java, status: str, remedy: str | None) -> None:
    finding = found("java", java=java)
    assert finding.status == status
    assert (finding.remedy is None) if remedy is None else (remedy in (finding.remedy or ""))


@pytest.mark.parametrize(
    ("version", "status"), [((3, 11, 0), "ok"), ((3, 14, 1), "ok"), ((3, 10, 9), "wrong")]
)
def test_python(version: tuple[int, int, int], status: str) -> None:
    assert found("python", python_version=version).status == status


@pytest.mark.parametrize(
    ("version", "status"),
    [("4.3.0", "ok"), ("4.3.1", "ok"), ("4.2.0", "wrong"), ("4.30.0", "wrong"), (None, "wrong")],
)
def test_pyspark(version: str | None, status: str) -> None:
    finding = found("pyspark", libraries={**GOOD.libraries, "pyspark": version})
    assert finding.status == status


def test_missing_library_is_wrong() -> None:
    finding = found("libraries", libraries={**GOOD.libraries, "sqlglot": None})
    assert (finding.status, finding.remedy) == ("wrong", "pip install sqlglot")


def test_missing_optional_library_is_ok() -> None:
    finding = found("libraries", libraries={**GOOD.libraries, "hypothesis": None})
    assert finding.status == "ok"
    assert "hypothesis missing" in finding.detail


@pytest.mark.parametrize(
    ("available_gib", "status"), [(0.9, "wrong"), (1, "warning"), (1.9, "warning"), (2, "ok")]
)
def test_memory(available_gib: float, status: str) -> None:
    finding = found("memory", memory_available_bytes=int(available_gib * GIB))
    assert finding.status == status
    assert (finding.remedy is None) == (status == "ok")


@pytest.mark.parametrize(
    ("free_gib", "status"), [(0.2, "wrong"), (0.25, "warning"), (1.9, "warning"), (2, "ok")]
)
def test_disk(free_gib: float, status: str) -> None:
    assert found("disk", temp_free_bytes=int(free_gib * GIB)).status == status


@pytest.mark.parametrize(
    ("load", "free", "status"),
    [(0.0, 4, "ok"), (0.5, 3, "ok"), (3.0, 1, "ok"), (3.1, 0, "warning"), (9.0, 0, "warning")],
)
def test_slots(load: float, free: int, status: str) -> None:
    finding = found("slots", load=load)
    assert (finding.facts["free"], finding.status) == (free, status)


@pytest.mark.parametrize(
    ("worker", "status"),
    [
        (WorkerPython(origin="PATH", command="python3", prefix="/env"), "ok"),
        (WorkerPython(origin="PATH", command="python3", prefix="/usr"), "warning"),
        (WorkerPython(origin="PATH", command="python3"), "wrong"),
        (WorkerPython(origin="PYSPARK_PYTHON", command="/other", prefix="/other"), "warning"),
        (WorkerPython(origin="PYSPARK_PYTHON", command="/gone"), "wrong"),
    ],
)
def test_worker_python(worker: WorkerPython, status: str) -> None:
    finding = found("worker_python", worker_python=worker)
    assert finding.status == status
    assert finding.facts["same_environment"] == (status == "ok")
    if status != "ok":
        assert finding.remedy == "export PYSPARK_PYTHON=/env/bin/python"


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"redis_reachable": True}, "listening on port 6379"),
        ({"redis_server": "/usr/bin/redis-server"}, "installed (/usr/bin/redis-server)"),
        ({}, "not found (optional)"),
    ],
)
def test_redis_is_optional(changes: dict[str, Any], detail: str) -> None:
    finding = found("redis", **changes)
    assert finding.status == "ok"
    assert detail in finding.detail


@pytest.mark.parametrize("reachable", [True, False])
def test_kafka_is_optional(reachable: bool) -> None:
    finding = found("kafka", kafka_reachable=reachable)
    assert (finding.status, finding.facts) == ("ok", {"reachable": reachable})


def test_findings_survive_json() -> None:
    findings = diagnose(GOOD)
    encoded = msgspec.json.encode(findings)
    assert msgspec.json.decode(encoded, type=list[checks.Finding]) == findings
