"""Tasks as Spark jobs: each in a job of its own, watched by a thread.

One job per task, not per stage: a task that is lost must not take others with it, and its successor
is another job.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from floodway.core.errors import EngineError
from floodway.engine.spark.worker import Shipment
from floodway.engine.worker.calls import NOT_THE_USERS

_CRASH = re.compile("Fatal Python error: (.+)")
_FRAME = re.compile(r'File "(.+)", line (\d+) in (\S+)')


class TaskJob:
    """A task that runs as a Spark job.

    `over` is called from the job's thread when the job has ended, with the reason if it failed.
    """

    def __init__(
        self,
        context: Any,
        shipment: Shipment,
        group: str,
        over: Callable[[str | None], None],
    ) -> None:
        from pyspark import InheritableThread

        self._context = context
        self._shipment = shipment
        self._group = group
        self._over = over
        # A job group belongs to a thread, in Python and in the JVM alike.
        self._thread = InheritableThread(target=self._run, name=f"floodway-{group}")
        self._thread.daemon = True

    def start(self) -> None:
        """Submit the job."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:
            self._thread.start()
        except (Py4JError, OSError) as error:  # the thread asks the JVM for its properties
            raise spark_died() from error

    def _run(self) -> None:
        reason: str | None = None
        shipment = self._shipment
        try:
            what = f"task {shipment.index} of {shipment.stage}"
            self._context.setJobGroup(self._group, what, interruptOnCancel=True)
            self._context.parallelize([shipment.index], 1).mapPartitions(shipment).collect()
        except Exception as error:
            reason = reason_of(error)
        self._over(reason)

    def cancel(self) -> None:
        """Let Spark kill the task, if it has not gone by itself, and Spark neither."""
        from py4j.protocol import Py4JError

        if self._thread.is_alive():
            with suppress(Py4JError, OSError):
                self._context.cancelJobGroup(self._group)

    @property
    def queued(self) -> bool:
        """Whether Spark has no slot for the task yet, as far as Spark tells."""
        from py4j.protocol import Py4JError

        with suppress(Py4JError, OSError):
            tracker = self._context.statusTracker()
            jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._group))
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            started = [s for s in stages if s and s.numActiveTasks + s.numCompletedTasks > 0]
            return bool(stages) and not started and self._thread.is_alive()
        return False

    def join(self, seconds: float) -> bool:
        """Wait for the job to be over; return whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


def spark_died() -> EngineError:
    """Return the error for a Spark that is gone."""
    return EngineError(
        "Spark has died, and all tasks with it",
        remedy="see its last words in the log (memory is the usual cause) and start the flow "
        "again; with a checkpoint it goes on from there",
    )


def reason_of(error: Exception) -> str:
    """Return in a line why a job failed; most of what Spark says is about Spark.

    >>> reason_of(Exception("...: Python worker exited unexpectedly (crashed). Consider ..."))
    'its process died'
    """
    text = str(error).strip()
    if "Python worker exited unexpectedly" in text:
        return f"its process died{_crash(text)}"
    if "ExecutorLostFailure" in text:
        return "its executor died"
    if "Orphaned: " in text:
        return text.partition("Orphaned: ")[2].splitlines()[0]
    lines = text.splitlines()
    told = [line for line in lines if "Error" in line or "Exception" in line]
    return (told or lines or [type(error).__name__])[0][:300]


def _crash(text: str) -> str:
    """Return of what a process died, and at which line of the user's code, if it could say so."""
    error = _CRASH.search(text)
    if error is None:
        return ""
    frames = _FRAME.findall(text.partition("Current thread")[2].partition('"<floodway')[0])
    own = [(file, line, name) for file, line, name in frames if not file.startswith(NOT_THE_USERS)]
    places = [f", {file}:{line} in {name}" for file, line, name in own or frames]
    return f" ({error[1]}{places[0] if places else ''})"
