"""What ``floodway doctor`` thinks of a machine: one pure function for each line of its report."""

import re
from typing import Any, Literal

import msgspec

from floodway.doctor.probes import (
    KAFKA_PORT,
    OPTIONAL_LIBRARIES,
    REDIS_PORT,
    Machine,
)

Status = Literal["ok", "warning", "wrong"]
"""``wrong`` means that flows cannot run; ``warning``, that they run less well than they could."""

GIB = 1024**3

LEAST_PYTHON = (3, 11)
LEAST_JAVA = 17
NEWEST_JAVA = 25  # the newest that Spark 4.3 supports
LEAST_JAVA_25 = (25, 0, 3)  # Spark 4.3 deprecates the updates of Java 25 before this one
PYSPARK_SERIES = "4.3."

LEAST_MEMORY_BYTES = 1 * GIB  # the default heap of Spark's driver
COMFORTABLE_MEMORY_BYTES = 2 * GIB  # that heap, and Python workers beside it
LEAST_DISK_BYTES = GIB // 4  # Spark unpacks its start-up files and keeps its blocks there
COMFORTABLE_DISK_BYTES = 2 * GIB


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report.

    Attributes
    ----------
    check
        A stable name for programs.
    title
        The name for people.
    status
        ``ok``, ``warning`` or ``wrong``.
    detail
        What was found, in words.
    remedy
        What to do about it; None if nothing needs to be done.
    facts
        What was found, as values; `docs/cli.md` lists them for each check.
    """

    check: str
    title: str
    status: Status
    detail: str
    remedy: str | None = None
    facts: dict[str, Any] = {}


def check_python(machine: Machine) -> Finding:
    """Judge the Python that runs Floodway."""
    version = ".".join(map(str, machine.python_version))
    good = machine.python_version[:2] >= LEAST_PYTHON
    return Finding(
        check="python",
        title="Python",
        status="ok" if good else "wrong",
        detail=f"{version} ({machine.python_executable})",
        remedy=None if good else "use Python 3.11 or newer",
        facts={"version": version, "executable": machine.python_executable},
    )


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a Java version; before Java 9 the major number came second.

    Examples
    --------
    >>> version_numbers("17.0.15")
    (17, 0, 15)
    >>> version_numbers("1.8.0_392")
    (8, 0, 392)
    >>> version_numbers("25-ea")
    (25,)
    """
    numbers = tuple(int(digits) for digits in re.findall(r"\d+", version))
    return numbers[1:] if numbers[:1] == (1,) and len(numbers) > 1 else numbers


def _judge_java(machine: Machine) -> tuple[Status, str, str | None]:
    java = machine.java
    install = "install Java 17 or newer (on Debian and Ubuntu: openjdk-17-jre-headless)"
    if java.path is None and java.origin == "JAVA_HOME":
        return "wrong", "JAVA_HOME has no bin/java", "unset JAVA_HOME, or let it name a Java 17+"
    if java.path is None:
        return "wrong", "not found", install
    numbers = version_numbers(java.version or "")
    if not numbers:
        return "wrong", f"{java.path} does not tell its version", install
    detail = f"{java.version} ({java.path}, from {java.origin})"
    if numbers[0] < LEAST_JAVA and java.origin == "JAVA_HOME":
        return "wrong", detail, "unset JAVA_HOME, or let it name a Java 17+"
    if numbers[0] < LEAST_JAVA:
        return "wrong", detail, install
    if numbers[0] == NEWEST_JAVA and numbers < LEAST_JAVA_25:
        return "warning", detail, "Spark 4.3 wants 25.0.3 or a later update of Java 25"
    if numbers[0] > NEWEST_JAVA:
        return "warning", detail, "Spark 4.3 is made for Java 17, 21 and 25"
    return "ok", detail, None


def check_java(machine: Machine) -> Finding:
    """Judge the Java that Spark would start."""
    status, detail, remedy = _judge_java(machine)
    java = machine.java
    facts = {"path": java.path, "origin": java.origin, "version": java.version}
    return Finding(
        check="java", title="Java", status=status, detail=detail, remedy=remedy, facts=facts
    )


def check_pyspark(machine: Machine) -> Finding:
    """Judge the version of PySpark."""
    version = machine.libraries.get("pyspark")
    good = version is not None and version.startswith(PYSPARK_SERIES)
    return Finding(
        check="pyspark",
        title="PySpark",
        status="ok" if good else "wrong",
        detail=version or "not installed",
        remedy=None if good else "pip install 'pyspark==4.3.*'",
        facts={"version": version},
    )


def check_libraries(machine: Machine) -> Finding:
    """Judge the other libraries."""
    required = [name for name in machine.required if name != "pyspark"]
    versions = {name: machine.libraries.get(name) for name in (*required, *OPTIONAL_LIBRARIES)}
    missing = [name for name in required if versions[name] is None]
    return Finding(
        check="libraries",
        title="Libraries",
        status="wrong" if missing else "ok",
        detail=", ".join(f"{name} {found or 'missing'}" for name, found in versions.items()),
        remedy=f"pip install {' '.join(missing)}" if missing else None,
        facts={"versions": versions},
    )


def _judge_worker_python(machine: Machine) -> tuple[Status, str, str | None]:
    worker = machine.worker_python
    named = "PYSPARK_PYTHON" if worker.origin == "PYSPARK_PYTHON" else "not set, so python3"
    export = f"export PYSPARK_PYTHON={machine.python_executable}"
    if worker.prefix is None:
        return "wrong", f"{named} ({worker.command}) does not run", export
    if worker.prefix != machine.python_prefix:
        return "warning", f"{named} is another environment: {worker.prefix}", export
    return "ok", f"{named} is this environment", None


def check_worker_python(machine: Machine) -> Finding:
    """Judge whether Spark's Python workers would run in this environment."""
    status, detail, remedy = _judge_worker_python(machine)
    worker = machine.worker_python
    return Finding(
        check="worker_python",
        title="PYSPARK_PYTHON",
        status=status,
        detail=detail,
        remedy=remedy,
        facts={
            "command": worker.command,
            "origin": worker.origin,
            "prefix": worker.prefix,
            "same_environment": worker.prefix == machine.python_prefix,
        },
    )


def check_slots(machine: Machine) -> Finding:
    """Judge how many Spark tasks can run at once: the cores less what already keeps them busy."""
    free = max(0, int(machine.cores - machine.load))
    return Finding(
        check="slots",
        title="Spark slots",
        status="ok" if free else "warning",
        detail=f"{free} free: {machine.cores} cores less a load of {machine.load:.1f};"
        " a local Spark task takes one core",
        remedy=None if free else "stop other work on this machine, or expect it to be slow",
        facts={"cores": machine.cores, "load": round(machine.load, 2), "free": free},
    )


def _judge_size(free_bytes: int, *, least_bytes: int, comfortable_bytes: int) -> Status:
    if free_bytes < least_bytes:
        return "wrong"
    return "warning" if free_bytes < comfortable_bytes else "ok"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"


def check_memory(machine: Machine) -> Finding:
    """Judge whether there is memory for a Spark driver and Python workers."""
    status = _judge_size(
        machine.memory_available_bytes,
        least_bytes=LEAST_MEMORY_BYTES,
        comfortable_bytes=COMFORTABLE_MEMORY_BYTES,
    )
    return Finding(
        check="memory",
        title="Memory",
        status=status,
        detail=f"{_gib(machine.memory_available_bytes)} of"
        f" {_gib(machine.memory_total_bytes)} available",
        remedy=None if status == "ok" else "free memory until 2 GiB are available",
        facts={
            "total_bytes": machine.memory_total_bytes,
            "available_bytes": machine.memory_available_bytes,
        },
    )


def check_disk(machine: Machine) -> Finding:
    """Judge whether there is room for Spark's temporary files."""
    status = _judge_size(
        machine.temp_free_bytes,
        least_bytes=LEAST_DISK_BYTES,
        comfortable_bytes=COMFORTABLE_DISK_BYTES,
    )
    return Finding(
        check="disk",
        title="Temporary disk",
        status=status,
        detail=f"{_gib(machine.temp_free_bytes)} free in {machine.temp_dir}",
        remedy=None if status == "ok" else "free 2 GiB there, or let TMPDIR name a roomier folder",
        facts={"folder": machine.temp_dir, "free_bytes": machine.temp_free_bytes},
    )


def check_redis(machine: Machine) -> Finding:
    """Say whether a Redis server is at hand; it is optional, so its absence is no fault."""
    if machine.redis_reachable:
        detail = f"listening on port {REDIS_PORT}"
    elif machine.redis_server:
        detail = f"installed ({machine.redis_server}), not running"
    else:
        detail = "not found (optional)"
    return Finding(
        check="redis",
        title="Redis",
        status="ok",
        detail=detail,
        facts={"reachable": machine.redis_reachable, "server": machine.redis_server},
    )


def check_kafka(machine: Machine) -> Finding:
    """Say whether a Kafka broker is at hand; it is optional, so its absence is no fault."""
    found = machine.kafka_reachable
    return Finding(
        check="kafka",
        title="Kafka",
        status="ok",
        detail=f"listening on port {KAFKA_PORT}" if found else "not found (optional)",
        facts={"reachable": found},
    )


CHECKS = (
    check_python,
    check_java,
    check_pyspark,
    check_libraries,
    check_worker_python,
    check_slots,
    check_memory,
    check_disk,
    check_redis,
    check_kafka,
)
"""All checks, in the order of the report."""


def diagnose(machine: Machine) -> list[Finding]:
    """Return the findings of all checks, in the order of the report."""
    return [check(machine) for check in CHECKS]
