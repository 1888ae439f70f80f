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
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from floodway.core.errors import EngineError
from floodway.engine.scratch import make_scratch, remove_scratch

SPARE_SLOTS = max(2, os.cpu_count() or 1)
"""Slots beyond those of the tasks, for jobs that come and go: one of those can use all cores."""

REGISTER_SECONDS = 60.0
"""How long the executors of a new Spark on a cluster have to come."""


class Lease:
    """A Spark context with slots for one flow; the last flow to leave stops it if it was made here.

    Attributes
    ----------
    context
        The Spark context. Tasks need no more; a session would cost seconds at the start.
    slots
        How many slots the flow needs.
    scratch
        The folder of a context that was made here; None if it was there already.
    """

    _lock = threading.RLock()
    _held: ClassVar[list["Lease"]] = []

    def __init__(self, context: Any, slots: int, scratch: Path | None) -> None:
        self.context = context
        self.slots = slots
        self.scratch = scratch

    @classmethod
    def take(
        cls, name: str, slots: int, *, master: str | None = None, conf: Mapping[str, str]
    ) -> "Lease":
        """Lease slots of the Spark that is active, or of a new one."""
        from pyspark import SparkContext

        with cls._lock:
            active = SparkContext._active_spark_context  # noqa: SLF001 - no public way to ask
            if active is None:
                lease = cls._of_new(name, slots, master, conf)
            else:
                lease = cls._of_active(active, slots, master)
            cls._held.append(lease)
            return lease

    @classmethod
    def _of_active(cls, active: Any, slots: int, master: str | None) -> "Lease":
        if master is not None and master != active.master:
            raise EngineError(
                f"a Spark with the master {active.master} is active already, and {master} was "
                "asked for",
                remedy="stop that one first, or run the flow without a master",
            )
        others = [lease for lease in cls._held if lease.context is active]
        check_slots(active, slots, used=sum(lease.slots for lease in others))
        made_here = next((lease.scratch for lease in others if lease.scratch), None)
        return cls(active, slots, made_here)

    @classmethod
    def _of_new(cls, name: str, slots: int, master: str | None, conf: Mapping[str, str]) -> "Lease":
        wanted = master or f"local[{slots + SPARE_SLOTS}]"
        _check_local(wanted, slots)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        scratch = make_scratch()
        try:
            context = _new_context(
                f"floodway {name}", wanted, {**_settings(wanted, scratch), **conf}
            )
        except Exception as error:
            remove_scratch(scratch)
            raise EngineError(
                f"Spark could not be started with the master {wanted}: {_first_line(error)}",
                remedy="run `floodway doctor`, which looks for Java and tries a Spark of its own",
            ) from error
        lease = cls(context, slots, scratch)
        try:
            _await_slots(context, slots)
            check_slots(context, slots)
        except EngineError:
            lease.release()
            raise
        return lease

    @property
    def spare(self) -> int:
        """How many slots are left to jobs that come and go; no more than can work at a time."""
        with self._lock:
            used = sum(lease.slots for lease in self._held if lease.context is self.context)
        free = max(slots_of(self.context) - used, 0)
        return min(free, os.cpu_count() or 1) if is_local(self.context.master) else free

    @property
    def alive(self) -> bool:
        """Whether Spark's JVM, if it was started from this process, is still there."""
        return _alive(self.context._gateway)  # noqa: SLF001 - no public way

    def release(self) -> None:
        """Give the slots back."""
        with self._lock:
            self._held[:] = [lease for lease in self._held if lease is not self]
            others = [lease for lease in self._held if lease.context is self.context]
            if self.scratch is None or others:
                return
            try:
                self.context.stop()
            except OSError:
                # The JVM has died. A second call leaves it alone, and lets go of the rest.
                self.context.stop()
            remove_scratch(self.scratch)


def _alive(gateway: Any) -> bool:
    """Return whether a JVM, if it was started from this process, is still there."""
    process = getattr(gateway, "proc", None)
    return process is None or process.poll() is None


def _new_context(name: str, master: str, settings: Mapping[str, str]) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    gateway = SparkContext._gateway  # noqa: SLF001 - a JVM that is there already is used again
    if gateway is not None and not _alive(gateway):
        # PySpark would go on asking the dead one.
        gateway = SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    conf = SparkConf().setAppName(name).setMaster(master).setAll(list(settings.items()))
    # A signal for the process group, as Ctrl-C or a supervisor sends it, is for the driver: the
    # JVM and the tasks in it are to be stopped in order. It dies with the driver all the same.
    options = {"start_new_session": True, "stderr": subprocess.PIPE}
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
        # Micro-batches are many jobs, and nobody looks at those of the past.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "spark"),
    }
    if is_local(master):
        # Nothing runs long in this JVM: it starts tasks, and jobs of milliseconds. The optimising
        # compiler would take a core for many seconds just when a flow is flooded.
        quick = settings["spark.driver.extraJavaOptions"] + " -XX:TieredStopAtLevel=1"
        settings |= {
            "spark.driver.extraJavaOptions": quick,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
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


def _await_slots(context: Any, slots: int) -> None:
    """Wait for the executors of a cluster: they come one by one, after the context is there."""
    deadline = time.monotonic() + REGISTER_SECONDS
    while slots_of(context) < slots and time.monotonic() < deadline:
        time.sleep(0.1)


def slots_of(context: Any) -> int:
    """Return how many slots a Spark has now."""
    there = local_slots(context.master)
    if there is not None:
        return there
    cpus = float(context.getConf().get("spark.task.cpus", "1"))
    return int(context.defaultParallelism / cpus)


def check_slots(context: Any, slots: int, *, used: int = 0) -> None:
    """Refuse a Spark that has not a slot for every task, besides those that others use."""
    there = slots_of(context)
    if there - used < slots:
        raise too_few(context.master, there, slots, used=used)


def too_few(master: str, there: int, slots: int, *, used: int = 0) -> EngineError:
    """Return the error for too few slots."""
    others = f", {used} of them used by other flows" if used else ""
    more = f"--master 'local[{slots + SPARE_SLOTS}]'" if is_local(master) else "more executors"
    return EngineError(
        f"the flow needs {slots} task slots at the same time, and {master} has {there}{others}",
        remedy=f"use {more}, leave out the master, or lower dop; `floodway explain` shows which "
        "stages need them",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
