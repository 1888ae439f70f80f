"""How far a flow is with reading its state back from a checkpoint."""

from types import TracebackType
from typing import Self

from rich.console import Console

from floodway.cli.progress import Gauge
from floodway.engine.driver.job import Job


class Restoring:
    """Shows how much state a flow has read, while it reads some; a context manager."""

    def __init__(self, job: Job, console: Console) -> None:
        self._job, self._console = job, console
        self._gauge: Gauge | None = None

    def look(self) -> None:
        """Show how far the flow is."""
        found = self._job.restoring
        if found is None:
            self._close()
            return
        if self._gauge is None:
            self._gauge = Gauge(self._console, "restoring state").__enter__()
        done, total = (size / 2**20 for size in found)
        self._gauge.update(done, total, f"{done:,.1f} of {total:,.1f} MB")

    def _close(self) -> None:
        if self._gauge is not None:
            self._gauge.__exit__(None, None, None)
            self._gauge = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()
