"""Draining: the sources read no more, and the flow is over when what they have read is out.

Without a checkpoint everything comes to its end then, and nobody has to do anything. With one
nothing ends, so that the flow can go on from there: it is stopped when an epoch that began after
the sources were stopped is out of all sinks. That is known to the checkpoint only with one more
epoch. Without it a sink would have to find out when the flow goes on, and by then its target may
have forgotten.
"""

from collections.abc import Iterable

from floodway.engine.control.messages import Drain, PauseReading


class Draining:
    """Says what sources are told, and when a flow with a checkpoint can be stopped.

    Parameters
    ----------
    lasting
        Whether there is a checkpoint.

    Attributes
    ----------
    order
        What sources are told that are to read no more.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        self.order: Drain | PauseReading = PauseReading() if lasting else Drain()
        self._since: int | None = None
        self._settled = False
        self._applied: dict[int, int] = {}

    @property
    def begun(self) -> bool:
        """Whether the sources are to read no more."""
        return self._since is not None

    def begin(self, epoch: int) -> None:
        """Let epochs count from after a mark on: the last that sources made while they read."""
        self._since = epoch

    def applied(self, task: int, epoch: int) -> None:
        """Take note that what a task's sinks got up to an epoch is out."""
        self._applied[task] = epoch

    def again(self, tasks: Iterable[int]) -> None:
        """Wait again for tasks that go back."""
        for task in tasks:
            self._applied.pop(task, None)

    def shown(self, tasks: Iterable[int], committed: int) -> bool:
        """Return whether an epoch is committed that counts, and is out of the sinks of tasks."""
        if not self._lasting or self._since is None or committed <= self._since:
            return False
        return all(self._applied.get(task, 0) >= committed for task in tasks)

    def once_more(self, epoch: int) -> bool:
        """Return whether it takes another epoch, one after the last mark; that is so once."""
        if self._settled:
            return False
        self._settled, self._since = True, epoch
        return True
