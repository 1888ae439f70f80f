"""A Spark for long-lived Python tasks, or the one that is there already.

What matters here: the tasks' interpreter is this one, they are reached through Unix sockets, they
are kept between jobs, nothing is started twice (no speculation), and there is a slot for every
task and some to spare for micro-batches.
"""

import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from floodway.core.errors import EngineError
from floodway.engine.host.scratch import make_scratch, remove_scratch
from floodway.engine.spark.archive import archive_options
from floodway.engine.spark.authentication import (
    SECRET,
    authentication,
    check_active,
    check_secret,
    is_local,
    remedy_for,
)
from floodway.engine.spark.gateway import (
    alive,
    forget_folders,
    home,
    open_gateway,
    remember_secret,
)

SPARE_SLOTS = max(2, os.cpu_count() or 1)
"""Slots beyond those of the tasks, for jobs that come and go: one of those can use all cores."""

REGISTER_SECONDS = 60.0
"""How long the executors of a new Spark on a cluster have to come."""


_SOCKET_PATH = 106
"""The longest path of a socket that Java takes."""

_SOCKET_NAME = len(f"/.{uuid.UUID(int=0)}.sock")


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
                lease = cls._of_active(active, slots, master, conf)
            cls._held.append(lease)
            return lease

    @classmethod
    def _of_active(
        cls, active: Any, slots: int, master: str | None, conf: Mapping[str, str]
    ) -> "Lease":
        if master is not None and master != active.master:
            raise EngineError(
                f"a Spark with the master {active.master} is active already, and {master} was "
                "asked for",
                remedy="stop that one first, or run the flow without a master",
            )
        others = [lease for lease in cls._held if lease.context is active]
        check_slots(active, slots, used=sum(lease.slots for lease in others))
        made_here = next((lease.scratch for lease in others if lease.scratch), None)
        if made_here is None:
            check_active(active.master, active.getConf(), conf)
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
        except EngineError:
            remove_scratch(scratch)
            raise
        except Exception as error:
            remove_scratch(scratch)
            raise EngineError(
                f"Spark could not be started with the master {wanted}: {_first_line(error)}",
                remedy=remedy_for(wanted),
            ) from error
        lease = cls(context, slots, scratch)
        try:
            _await_slots(context, slots)
            check_slots(context, slots)
        except EngineError:
            lease.release()
            raise
        except Exception as error:  # of Py4J: the context was stopped, since no master answered
            lease.release()
            raise EngineError(
                f"Spark was not let in by the master {wanted}, or has gone again",
                remedy=remedy_for(wanted),
            ) from error
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
        return alive(self.context._gateway)  # noqa: SLF001 - no public way

    def release(self) -> None:
        """Give the slots back."""
        with self._lock:
            self._held[:] = [lease for lease in self._held if lease is not self]
            others = [lease for lease in self._held if lease.context is self.context]
            if self.scratch is None or others:
                return
            _stop(self.context)
            remove_scratch(self.scratch)


def _stop(context: Any) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    # PySpark's server of accumulators notices within a second that it is to end; nobody uses it.
    server, context._accumulatorServer = context._accumulatorServer, None  # noqa: SLF001
    if server is not None:  # somebody else may have stopped it
        threading.Thread(target=server.shutdown, name="floodway-accumulators", daemon=True).start()
    try:
        context.stop()
    except OSError:
        # The JVM has died. A second call leaves it alone, and lets go of the rest.
        context.stop()
    with suppress(Py4JError, OSError):
        forget_folders(context._gateway)  # noqa: SLF001 - the next context may be the user's own


def _new_context(name: str, master: str, settings: Mapping[str, str]) -> Any:
    from pyspark import SparkConf, SparkContext

    gateway = open_gateway(settings)
    # With what the user's own files say, which the JVM has read.
    conf = SparkConf(_jvm=gateway.jvm).setAppName(name).setMaster(master)
    conf.setAll(list(settings.items()))
    check_secret(master, conf)
    if conf.get(SECRET, None):
        remember_secret(gateway, str(conf.get(SECRET)))
    return SparkContext(conf=conf, gateway=gateway)


def _settings(master: str, scratch: Path) -> dict[str, str]:
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    settings = {
        **authentication(master),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Where the user has some, too, these come first.
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={log} "
        f'"-Djava.io.tmpdir={home()}" -XX:+ExplicitGCInvokesConcurrent {archive_options()}',
        "spark.python.unix.domain.socket.enabled": "true",
        # That of the JVM, which asks for it but once.
        "spark.python.unix.domain.socket.dir": str(_socket_folder(home())),
        "spark.python.worker.reuse": "true",
        "spark.python.use.daemon": "true",
        # Who dies of a signal in a user's call into C leaves word where it was.
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.daemon.module": "floodway.engine.spark.daemon",
        "spark.speculation": "false",
        "spark.locality.wait": "0",
        "spark.scheduler.mode": "FAIR",
        # A task that is lost is Floodway's to replace; Spark's copy would know nothing.
        "spark.task.maxFailures": "1",
        # A JVM that has little to do would collect its old garbage once in half an hour, and grow
        # until then.
        "spark.cleaner.periodicGC.interval": "1min",
        # Micro-batches are many jobs, and nobody looks at those of the past.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "spark"),
    }
    if is_local(master):
        # Nothing runs long in this JVM: it starts tasks, and jobs of milliseconds. The optimising
        # compiler would take a core for many seconds just when a flow is flooded. What it makes is
        # garbage at once: young objects get little room, or it would grow for a quarter of an hour.
        small = settings["spark.driver.defaultJavaOptions"] + " -XX:TieredStopAtLevel=1 -Xmn32m"
        settings |= {
            "spark.driver.defaultJavaOptions": small,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return settings


def _socket_folder(folder: Path) -> Path:
    """Refuse a folder in which Spark's Python sockets would have too long names."""
    if len(os.fsencode(folder)) + _SOCKET_NAME > _SOCKET_PATH:
        raise EngineError(
            f"the temporary folder {folder} has too long a name for sockets",
            remedy="set TMPDIR to a shorter path, e.g. /tmp",
        )
    return folder


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
