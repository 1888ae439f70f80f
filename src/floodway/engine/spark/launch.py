"""Stages as Spark jobs: each in a job group of its own, watched by a thread."""

from collections.abc import Callable
from typing import Any

from floodway.engine.spark.worker import Shipment


class StageJob:
    """A stage that runs as a Spark job.

    `over` is called from the job's thread when the job has ended, with the reason if it failed.
    """

    def __init__(
        self,
        context: Any,
        shipment: Shipment,
        dop: int,
        group: str,
        over: Callable[[str, str | None], None],
    ) -> None:
        from pyspark import InheritableThread

        self.stage = shipment.stage
        self._context = context
        self._shipment = shipment
        self._dop = dop
        self._group = group
        self._over = over
        # A job group belongs to a thread, in Python and in the JVM alike.
        self._thread = InheritableThread(target=self._run, name=f"floodway-{self.stage}")
        self._thread.daemon = True

    def start(self) -> None:
        """Submit the job."""
        self._thread.start()

    def _run(self) -> None:
        reason: str | None = None
        try:
            self._context.setJobGroup(self._group, f"stage {self.stage}", interruptOnCancel=True)
            indexes = self._context.parallelize(range(self._dop), self._dop)
            indexes.mapPartitions(self._shipment).collect()
        except Exception as error:
            lines = str(error).strip().splitlines()
            told = [line for line in lines if "Error" in line or "Exception" in line]
            reason = (told or lines or [type(error).__name__])[0][:300]
        self._over(self.stage, reason)

    def cancel(self) -> None:
        """Let Spark kill the tasks, if they have not gone by themselves."""
        if self._thread.is_alive():
            self._context.cancelJobGroup(self._group)

    def join(self, seconds: float) -> bool:
        """Wait for the job to be over; return whether it is."""
        self._thread.join(seconds)
        return not self._thread.is_alive()
