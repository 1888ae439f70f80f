"""What the tests of the engine on Spark share."""

import threading
import time
from pathlib import Path
from typing import Any, Self

import msgspec
import psutil

from floodway.engine.driver.job import Job
from floodway.engine.metrics.status import StageStatus
from tests.waiting import pause

LEAVE_S = 10.0
"""How long what a flow used may take to go."""


def active_spark() -> Any:
    """Return the Spark context that flows of this process would use, or None."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context  # noqa: SLF001 - there is no public way to ask


def is_worker(process: psutil.Process) -> bool:
    """Return whether a process is, or makes, Python workers of a Spark."""
    try:
        return "pyspark.worker" in process.cmdline()
    except psutil.Error:
        return False  # it has ended meanwhile


class Leftovers(msgspec.Struct, frozen=True):
    """What a flow could leave behind in this process, at one moment."""

    threads: frozenset[str]
    processes: frozenset[int]
    ports: frozenset[int]
    files: frozenset[str]

    @classmethod
    def now(cls, folder: Path) -> Self:
        """Look around. The JVM, and the workers of a Spark that goes on, are no leftover."""
        me = psutil.Process()
        children = {child for child in me.children(recursive=True) if not _of_spark(child)}
        return cls(
            frozenset(
                thread.name
                for thread in threading.enumerate()
                if thread.name.startswith("floodway-") and thread.name != "floodway-spark-stderr"
            ),
            frozenset(child.pid for child in children),
            frozenset(
                connection.laddr.port
                for connection in me.net_connections("inet")
                if connection.status == psutil.CONN_LISTEN
            ),
            frozenset(str(file) for file in folder.rglob("*")),
        )

    def check(self, folder: Path) -> None:
        """Wait until nothing is there that was not there before."""
        names = ("threads", "processes", "ports", "files")
        deadline = time.monotonic() + LEAVE_S
        while True:
            now = type(self).now(folder)
            left = {name: getattr(now, name) - getattr(self, name) for name in names}
            if not any(left.values()):
                return
            assert time.monotonic() < deadline, f"left behind: {left}"
            pause(0.05)


def _of_spark(process: psutil.Process) -> bool:
    """Return whether a process is the JVM, or a worker while a Spark is active."""
    try:
        if not lives(process):
            return True  # the shell that has become the JVM may have had children, and buries none
        return process.name() == "java" or (active_spark() is not None and is_worker(process))
    except psutil.Error:
        return True  # it has ended meanwhile


def lives(process: psutil.Process) -> bool:
    """Return whether a process does something; one that nobody has buried yet does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stage(job: Job, operator: str) -> StageStatus:
    name = job.plan.stage_of(operator).name
    return next(stage for stage in job.status.stages if stage.name == name)
