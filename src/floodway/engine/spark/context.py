"""A Spark for long-lived Python tasks, or the one that is there already.

What matters here: the tasks' interpreter is this one, they are reached through Unix sockets, they
are kept between jobs, nothing is started twice (no speculation), and there is a slot for every
task and some to spare for micro-batches.
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from floodway.core.errors import EngineError

SPARE_SLOTS = 2
"""Slots beyond those of the tasks, for jobs that come and go."""


def open_context(
    name: str, slots: int, scratch: Path, *, master: str | None, conf: Mapping[str, str]
) -> tuple[Any, bool]:
    """Return a Spark context with enough slots, and whether it was made here.

    Tasks need no more than a context; a session would cost seconds at the start.
    """
    from pyspark import SparkContext

    active = SparkContext._active_spark_context  # noqa: SLF001 - there is no public way to ask
    if active is not None:
        if master is not None and master != active.master:
            raise EngineError(
                f"a Spark with the master {active.master} is active already, and {master} was "
                "asked for",
                remedy="stop that one first, or run the flow without a master",
            )
        check_slots(active, slots)
        return active, False
    wanted = master or f"local[{slots + SPARE_SLOTS}]"
    _check_local(wanted, slots)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**_settings(wanted, scratch), **conf}
    try:
        context = _new_context(f"floodway {name}", wanted, settings)
    except Exception as error:
        raise EngineError(
            f"Spark could not be started with the master {wanted}: {_first_line(error)}",
            remedy="run `floodway doctor`, which looks for Java and tries a Spark of its own",
        ) from error
    try:
        check_slots(context, slots)
    except EngineError:
        context.stop()
        raise
    return context, True


def _new_context(name: str, master: str, settings: Mapping[str, str]) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setAppName(name).setMaster(master).setAll(list(settings.items()))
    # A signal for the process group, as Ctrl-C or a supervisor sends it, is for the driver: the
    # JVM and the tasks in it are to be stopped in order. It dies with the driver all the same.
    options = {"start_new_session": True, "stderr": subprocess.PIPE}
    gateway = SparkContext._gateway  # noqa: SLF001 - a JVM that is there already is used again
    if gateway is None:
        gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
        _forward(gateway.proc.stderr)
    else:
        # It remembers the local folder of its former context and would make that one again.
        utilities = getattr(gateway.jvm.org.apache.spark.util, "Utils$")
        getattr(utilities, "MODULE$").clearLocalRootDirs()
    return SparkContext(conf=conf, gateway=gateway)


_CHATTER = (
    b"WARNING: Using incubator modules",
    b"Setting default log level",
    b"To adjust logging level",
    b"Using Spark's default log4j profile",
)


def _forward(stream: Any) -> None:
    """Pass on what the JVM says, but for the chatter of its start."""

    def pass_on() -> None:
        with stream:
            for line in stream:
                if not line.startswith(_CHATTER):
                    sys.stderr.buffer.write(line)
                    sys.stderr.flush()

    threading.Thread(target=pass_on, name="floodway-spark-stderr", daemon=True).start()


def _settings(master: str, scratch: Path) -> dict[str, str]:
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log}",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.python.use.daemon": "true",
        "spark.python.daemon.module": "floodway.engine.spark.daemon",
        "spark.speculation": "false",
        "spark.locality.wait": "0",
        "spark.scheduler.mode": "FAIR",
        # A task that is lost is Floodway's to replace; Spark's copy would know nothing.
        "spark.task.maxFailures": "1",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "spark"),
    }
    if is_local(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def is_local(master: str) -> bool:
    """Return whether a master runs everything on this host.

    >>> is_local("local[4]"), is_local("spark://head:7077")
    (True, False)
    """
    return master.startswith("local")


def local_slots(master: str) -> int | None:
    """Return how many slots a local master has, or None for other masters.

    >>> local_slots("local[4]"), local_slots("local"), local_slots("spark://head:7077")
    (4, 1, None)
    """
    if master == "local":
        return 1
    many = re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master)
    if many is None:
        return None
    return (os.cpu_count() or 1) if many[1] == "*" else int(many[1])


def _check_local(master: str, slots: int) -> None:
    there = local_slots(master)
    if there is not None and there < slots:
        raise too_few(master, there, slots)


def check_slots(context: Any, slots: int) -> None:
    """Refuse a Spark that has not a slot for every task."""
    there = local_slots(context.master)
    if there is None:
        cpus = float(context.getConf().get("spark.task.cpus", "1"))
        there = int(context.defaultParallelism / cpus)
    if there < slots:
        raise too_few(context.master, there, slots)


def too_few(master: str, there: int, slots: int) -> EngineError:
    """Return the error for too few slots."""
    more = f"--master 'local[{slots + SPARE_SLOTS}]'" if is_local(master) else "more executors"
    return EngineError(
        f"the flow needs {slots} task slots at the same time, and {master} has {there}",
        remedy=f"use {more}, leave out the master, or lower dop; `floodway explain` shows which "
        "stages need them",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
