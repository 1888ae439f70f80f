"""What the driver is told of how a flow goes back, and from where it goes on."""

from typing import NamedTuple

from floodway.engine.checkpoint.records import CommitRecord, TaskRecord


class Epoching(NamedTuple):
    """How a flow that can go back commits: how often, and from where it goes on.

    The run's attempts are numbered from after `attempts` on: nobody of a former run had those.
    What is in `folder` is `lasting` if it outlives the driver, that is, if it is a checkpoint.
    `machine` is the one the driver is on.
    """

    every_ms: int
    record: CommitRecord | None = None
    silent_ms: int = 30_000
    attempts: int = 0
    lasting: bool = True
    folder: str = ""
    machine: str = ""


class Origin(NamedTuple):
    """Where a flow begins to count: after what a record says, or with nothing."""

    epoch: int = 0
    attempt: int = 0
    stream_time: int | None = None
    clock_ms: int = 0
    tasks: tuple[TaskRecord, ...] = ()

    @classmethod
    def of(cls, epoching: Epoching | None) -> "Origin":
        """Return where a flow begins that goes on from a record, if there is one."""
        if epoching is None:
            return cls()
        record = epoching.record
        if record is None:
            return cls(attempt=epoching.attempts)
        return cls(
            record.epoch,
            max(epoching.attempts, record.attempt),
            record.stream_time,
            record.clock_ms,
            tuple(record.tasks),
        )
