"""The RUD controller: which epoch is on its way to be committed, and who has stored its part.

A pure state machine. An epoch is *requested* when its mark is sent out, and *complete* when every
task has either stored its part or ended before the mark could reach it. One epoch is on its way at
a time: the stream never waits for it, the next one does.
"""

from collections.abc import Iterable, Mapping

from floodway.engine.checkpoint.records import TaskRecord


class Controller:
    """Counts acknowledgements.

    Parameters
    ----------
    tasks
        The numbers of all tasks.
    epoch
        The last committed epoch; 0 if there is none.
    records
        What every task was then.

    Attributes
    ----------
    committed
        The last committed epoch.
    requested
        The epoch that is on its way, or None.
    """

    def __init__(
        self, tasks: Iterable[int], epoch: int = 0, records: Mapping[int, TaskRecord] | None = None
    ) -> None:
        self._tasks = frozenset(tasks)
        self.committed = epoch
        self.requested: int | None = None
        self._records = dict(records or {})
        self._stored: dict[int, TaskRecord] = {}
        self._ends = {task: record for task, record in self._records.items() if record.ended}

    def request(self, epoch: int) -> None:
        """Begin to wait for an epoch."""
        assert self.requested is None
        self.requested = epoch
        self._stored = {}

    def stored(self, task: int, epoch: int, record: TaskRecord) -> None:
        """Take note that a task has stored an epoch, or its end."""
        if record.ended:
            self._ends[task] = record
        elif epoch == self.requested:
            self._stored[task] = record

    def forget(self, tasks: Iterable[int]) -> None:
        """Take back what tasks have said that begin anew from the committed epoch."""
        for task in tasks:
            self._stored.pop(task, None)
            if not self.ended(task):
                self._ends.pop(task, None)

    def record(self, task: int) -> TaskRecord | None:
        """Return what a task was at the committed epoch."""
        return self._records.get(task)

    def ended(self, task: int) -> bool:
        """Return whether a task's end is committed."""
        record = self._records.get(task)
        return record is not None and record.ended

    @property
    def missing(self) -> list[int]:
        """The tasks that have not stored the epoch that is on its way."""
        return sorted(self._tasks - self._stored.keys() - self._ends.keys())

    def complete(self) -> dict[int, TaskRecord] | None:
        """Return what every task is at the end of the epoch, if that is durable.

        Without an epoch on its way, that is when all tasks have ended and not all ends are
        committed.
        """
        if self.requested is None and all(self.ended(task) for task in self._tasks):
            return None
        # A task that has passed the mark is recorded as it was there, even if it has ended since:
        # what came after the mark will come again if anybody has to go back.
        found = self._ends | (self._stored if self.requested is not None else {})
        return found if found.keys() >= self._tasks else None

    def commit(self, epoch: int, records: Mapping[int, TaskRecord]) -> None:
        """Take note that an epoch is committed."""
        self.committed = epoch
        self.requested = None
        self._stored = {}
        self._records = dict(records)
