"""Machines that are examined, and what there is to see of them."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from floodway.doctor.checks import GIB
from floodway.doctor.probes import Java, Machine, Probes, WorkerPython

REQUIRED: dict[str, str | None] = {
    "google-re2": "1.1.20251105",
    "msgspec": "0.22.0",
    "pyspark": "4.3.0",
    "rocksdict": "0.3.29",
    "sqlglot": "30.30.0",
}

GOOD = Machine(
    python_version=(3, 11, 7),
    python_executable="/env/bin/python",
    python_prefix="/env",
    java=Java(origin="PATH", path="/usr/bin/java", version="17.0.15"),
    worker_python=WorkerPython(origin="PYSPARK_PYTHON", command="/env/bin/python", prefix="/env"),
    cores=4,
    load=0.5,
    memory_total_bytes=16 * GIB,
    memory_available_bytes=8 * GIB,
    temp_dir="/tmp",
    temp_free_bytes=50 * GIB,
    required=tuple(REQUIRED),
    libraries=REQUIRED | {"confluent-kafka": "2.16.1", "hypothesis": "6.170.15", "redis": "8.1.0"},
    redis_server=None,
    redis_reachable=False,
    kafka_reachable=False,
)
"""A machine on which every check is ok."""


def machine(**changes: Any) -> Machine:
    """Return the good machine with some things changed."""
    return msgspec.structs.replace(GOOD, **changes)


def no_answer(command: Sequence[str]) -> None:
    """Fail to run any command."""


def good_run(command: Sequence[str]) -> str:
    """Answer like a machine with Java 17 on which Spark's workers use this environment."""
    if command[-1] == "-version":
        return 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment\n'
    return f"{sys.prefix}\n"


def good_probes(**changes: Any) -> Probes:
    """Return the probes of a machine on which every check is ok, with some replaced."""
    probes: dict[str, Any] = {
        "environ": {},
        "which": lambda command: f"/usr/bin/{command}" if command == "java" else None,
        "run": good_run,
        "reachable": lambda port: False,
        "installed_version": lambda name: GOOD.libraries[name],
        "requirements": lambda: [f"{name}>=0" for name in REQUIRED],
        "cores": lambda: 4,
        "load": lambda: 0.5,
        "memory": lambda: (16 * GIB, 8 * GIB),
        "free_disk": lambda folder: 50 * GIB,
    }
    return Probes(**(probes | changes))
