"""How a job of micro-batches is run: on Spark, with as little as possible made anew each time."""

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from floodway.engine.spark.batch_worker import ORDER, BatchWork
from floodway.engine.spark.launch import reason_of, spark_died


class Jobs(Protocol):
    """What runs micro-batches: Spark, or something else in a test."""

    def begin(self) -> None:
        """Get ready in the thread that will run the jobs."""

    def run(self, order: Path, tasks: int) -> str | None:
        """Run a job of so many tasks; return why it failed, if it did."""

    def cancel(self) -> None:
        """Cancel the job that runs, if one does; called from another thread."""

    @property
    def slots(self) -> int:
        """How many tasks can run at a time."""

    @property
    def alive(self) -> bool:
        """Whether it is of any use to try again."""

    def start(self, target: Callable[[], None], name: str) -> threading.Thread:
        """Start a thread in which jobs can be run."""


class SparkJobs:
    """Runs micro-batches on Spark.

    Parameters
    ----------
    context
        The Spark context.
    shipped
        The file with the plan.
    slots
        Says how many slots are free for micro-batches.
    alive
        Says whether Spark is there.
    """

    def __init__(
        self,
        context: Any,
        shipped: Path,
        slots: Callable[[], int],
        alive: Callable[[], bool],
    ) -> None:
        self._context, self._slots, self._alive = context, slots, alive
        self._work = BatchWork(str(shipped))
        self._group = f"floodway-batches-{uuid.uuid4().hex[:8]}"
        self._kept: dict[int, Any] = {}

    def start(self, target: Callable[[], None], name: str) -> threading.Thread:
        """Start a thread with a counterpart in the JVM: job group and order belong to that."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark import InheritableThread

        thread = InheritableThread(target=target, name=name, daemon=True)
        try:
            thread.start()
        except (Py4JError, OSError) as error:  # it asks the JVM for its properties
            raise spark_died() from error
        return thread

    def begin(self) -> None:
        """Let all jobs of this thread belong together, so that they can be cancelled."""
        self._context.setJobGroup(self._group, "micro-batches", interruptOnCancel=True)

    def run(self, order: Path, tasks: int) -> str | None:
        """Run a job of so many tasks; return why it failed, if it did."""
        try:
            self._context.setLocalProperty(ORDER, str(order))
            # Counting in the JVM: nothing comes back, and no socket is opened to fetch it.
            self._rdd(tasks).count()
        except Exception as error:
            return reason_of(error)
        return None

    def _rdd(self, tasks: int) -> Any:
        """Return the RDD for so many tasks, as the JVM knows it; its function is pickled once."""
        kept = self._kept.get(tasks)
        if kept is None:
            empty = self._context.parallelize([], tasks)
            rdd = empty.mapPartitionsWithIndex(self._work)
            kept = self._kept[tasks] = rdd._jrdd  # noqa: SLF001 - the public way makes a new one
        return kept

    def cancel(self) -> None:
        """Cancel the job that runs, if one does and Spark is there."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):
            self._context.cancelJobGroup(self._group)

    @property
    def slots(self) -> int:
        """How many slots are free for micro-batches."""
        return max(self._slots(), 1)

    @property
    def alive(self) -> bool:
        """Whether Spark is there."""
        return self._alive()
