"""What ``floodway doctor`` can see of a machine.

``Probes`` holds the few primitive questions that touch the outside world. ``look`` asks
them and returns a ``Machine``, which is plain data: every judgement about it is a pure
function in ``floodway.doctor.checks``. A test hands in other probes, or builds a machine by hand.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

import msgspec
import psutil

OPTIONAL_LIBRARIES = ("confluent-kafka", "hypothesis", "redis")
"""The libraries that belong to an extra."""

REDIS_PORT = 6379
KAFKA_PORT = 9092

_NAME = re.compile(r"[\w.-]+")  # of a distribution, at the beginning of a requirement

_ANSWER_SECONDS = 20.0  # a cold JVM on a loaded machine needs several seconds to say its version
_CONNECT_SECONDS = 0.25  # loopback answers at once or not at all


class Java(msgspec.Struct, frozen=True, kw_only=True):
    """The Java that Spark would start: ``JAVA_HOME``'s if that is set, else the one on the path.

    Attributes
    ----------
    origin
        Who names it: ``JAVA_HOME`` or ``PATH``.
    path
        The executable; None if there is none.
    version
        What it says of itself, for example ``17.0.15``; None if it does not run.
    """

    origin: Literal["JAVA_HOME", "PATH"]
    path: str | None = None
    version: str | None = None


class WorkerPython(msgspec.Struct, frozen=True, kw_only=True):
    """The Python that Spark would start its workers with.

    Attributes
    ----------
    origin
        Who names it: ``PYSPARK_PYTHON``, or ``PATH`` (where Spark takes ``python3``).
    command
        The command Spark would run.
    prefix
        The environment it belongs to, its ``sys.prefix``; None if it does not run.
    """

    origin: Literal["PYSPARK_PYTHON", "PATH"]
    command: str
    prefix: str | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """All that the checks know about a machine. Sizes are in bytes.

    Attributes
    ----------
    required
        The libraries that Floodway cannot work without.
    libraries
        Their versions, and those of optional ones; None for what is not installed.
    """

    python_version: tuple[int, int, int]
    python_executable: str
    python_prefix: str
    java: Java
    worker_python: WorkerPython
    cores: int
    load: float
    memory_total_bytes: int
    memory_available_bytes: int
    temp_dir: str
    temp_free_bytes: int
    required: tuple[str, ...]
    libraries: dict[str, str | None]
    redis_server: str | None
    redis_reachable: bool
    kafka_reachable: bool


def _run(command: Sequence[str]) -> str | None:
    """Return what a command prints on both outputs, or None if it fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _reachable(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


def _installed_version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _requirements() -> Sequence[str]:
    return requires("floodway") or ()


def _cores() -> int:
    """Return the cores this process may use, which in a container may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> tuple[int, int]:
    memory = psutil.virtual_memory()
    return memory.total, memory.available


@dataclass(frozen=True, kw_only=True)
class Probes:
    """The questions that ``floodway doctor`` asks the outside world.

    Every field has the real answer as its default. Replace single ones in tests::

        Probes(which=lambda command: None)  # a machine with an empty path

    Attributes
    ----------
    environ
        The environment variables.
    which
        The full path of a command, or None.
    run
        What a command prints on both outputs, or None if it cannot be run or fails.
    reachable
        Whether something listens on a loopback port.
    installed_version
        The version of an installed distribution, or None.
    requirements
        What the installed Floodway requires, as its metadata say it.
    cores, load
        The cores this process may use; the load average of the last minute.
    memory
        Total and available memory in bytes.
    free_disk
        The free bytes of the file system that holds a folder.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    which: Callable[[str], str | None] = shutil.which
    run: Callable[[Sequence[str]], str | None] = _run
    reachable: Callable[[int], bool] = _reachable
    installed_version: Callable[[str], str | None] = _installed_version
    requirements: Callable[[], Sequence[str]] = _requirements
    cores: Callable[[], int] = _cores
    load: Callable[[], float] = lambda: psutil.getloadavg()[0]
    memory: Callable[[], tuple[int, int]] = _memory
    free_disk: Callable[[str], int] = lambda folder: shutil.disk_usage(folder).free


def required_libraries(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the names of those requirements that belong to no extra.

    Examples
    --------
    >>> required_libraries(["sqlglot<31,>=30.30", "typer>=0.29", "redis>=8.1; extra == 'redis'"])
    ('sqlglot', 'typer')
    """
    always = (each for each in requirements if "extra ==" not in each)
    return tuple(found[0] for each in always if (found := _NAME.match(each)))


def java_version(output: str) -> str | None:
    """Return the version that ``java -version`` printed.

    Examples
    --------
    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    '17.0.15'
    >>> java_version("command not found")
    """
    found = re.search(r'version "([^"]+)"', output)
    return found.group(1) if found else None


def find_java(probes: Probes) -> Java:
    """Find the Java that Spark would start, the way Spark's own scripts do."""
    home = probes.environ.get("JAVA_HOME")
    origin: Literal["JAVA_HOME", "PATH"] = "JAVA_HOME" if home else "PATH"
    path = probes.which(os.path.join(home, "bin", "java") if home else "java")
    if path is None:
        return Java(origin=origin)
    output = probes.run([path, "-version"])
    return Java(origin=origin, path=path, version=java_version(output) if output else None)


def find_worker_python(probes: Probes) -> WorkerPython:
    """Find the Python that Spark would start its workers with, and its environment."""
    chosen = probes.environ.get("PYSPARK_PYTHON")
    command = chosen or "python3"
    output = probes.run([command, "-c", "import sys; print(sys.prefix)"])
    return WorkerPython(
        origin="PYSPARK_PYTHON" if chosen else "PATH",
        command=command,
        prefix=output.strip() if output else None,
    )


def look(probes: Probes) -> Machine:
    """Ask all probes and return what they say.

    Parameters
    ----------
    probes
        The questions to ask.
    """
    total, available = probes.memory()
    temp_dir = tempfile.gettempdir()
    required = required_libraries(probes.requirements())
    return Machine(
        python_version=sys.version_info[:3],
        python_executable=sys.executable,
        python_prefix=sys.prefix,
        java=find_java(probes),
        worker_python=find_worker_python(probes),
        cores=probes.cores(),
        load=probes.load(),
        memory_total_bytes=total,
        memory_available_bytes=available,
        temp_dir=temp_dir,
        temp_free_bytes=probes.free_disk(temp_dir),
        required=required,
        libraries={
            name: probes.installed_version(name) for name in (*required, *OPTIONAL_LIBRARIES)
        },
        redis_server=probes.which("redis-server"),
        redis_reachable=probes.reachable(REDIS_PORT),
        kafka_reachable=probes.reachable(KAFKA_PORT),
    )
