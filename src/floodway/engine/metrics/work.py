"""What was done, and what follows from it: rates, shares of time, costs, micro-batches."""

from operator import add, sub
from typing import Any, Self

import msgspec

from floodway.engine.control.report import BatchCounts, TaskReport


class Counters(msgspec.Struct, frozen=True, gc=False):
    """What a task, or all tasks of a stage, have done since the flow began.

    Attributes
    ----------
    records_in, records_processed, records_out
        Records received, taken from the input cache to be worked on, and handed on.
    bytes_in, bytes_out, frames_in, frames_out
        What travelled on channels.
    busy_s, idle_s, blocked_s
        Where the time went.
    sampled_records, fetch_ns, cpu_ns, emit_ns
        The sampled records, and where their time went.
    batches
        The micro-batches.
    sleeps
        How often a task waited.
    frames_again
        Frames that were sent again, because a connection broke.
    dropped
        Records received that the policy of a queue dropped.
    """

    records_in: int = 0
    records_processed: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    frames_in: int = 0
    frames_out: int = 0
    busy_s: float = 0.0
    idle_s: float = 0.0
    blocked_s: float = 0.0
    sampled_records: int = 0
    fetch_ns: int = 0
    cpu_ns: int = 0
    emit_ns: int = 0
    batches: BatchCounts = BatchCounts()
    sleeps: int = 0
    frames_again: int = 0
    dropped: int = 0

    @classmethod
    def of(cls, report: TaskReport) -> Self:
        """Return the counters of a report."""
        return cls(
            report.records_in,
            report.records_in - report.queue_records - report.dropped,
            report.records_out,
            report.bytes_in,
            report.bytes_out,
            report.frames_in,
            report.frames_out,
            report.busy_s,
            report.idle_s,
            report.blocked_s,
            report.cost.records,
            report.cost.fetch_ns,
            report.cost.cpu_ns,
            report.cost.emit_ns,
            report.batches,
            report.sleeps,
            report.frames_again,
            report.dropped,
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, _numbers(self), _numbers(other)))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(sub, _numbers(self), _numbers(other)))


def _numbers(counters: Counters) -> tuple[Any, ...]:
    return msgspec.structs.astuple(counters)


class Shares(msgspec.Struct, frozen=True, gc=False):
    """Which part of the time went where; together they are 1.

    Attributes
    ----------
    busy
        At work.
    idle
        Without input.
    blocked
        Without room for output.
    """

    busy: float
    idle: float
    blocked: float

    @classmethod
    def of(cls, spent: Counters) -> Self | None:
        """Return the shares of some spent time, or None if no time was spent."""
        whole = spent.busy_s + spent.idle_s + spent.blocked_s
        if whole <= 0:
            return None
        return cls(spent.busy_s / whole, spent.idle_s / whole, spent.blocked_s / whole)


class RecordCost(msgspec.Struct, frozen=True, gc=False):
    """What one input record costs, in nanoseconds; the sum is the processing cost.

    Attributes
    ----------
    fetch_ns
        To take it from the input cache.
    cpu_ns
        To process it.
    emit_ns
        To hand on all its results: the thesis's cost of one output record times the selectivity.
    """

    fetch_ns: float
    cpu_ns: float
    emit_ns: float

    @classmethod
    def of(cls, spent: Counters) -> Self | None:
        """Return the cost of one record, or None if none was sampled."""
        if not spent.sampled_records:
            return None
        return cls(
            spent.fetch_ns / spent.sampled_records,
            spent.cpu_ns / spent.sampled_records,
            spent.emit_ns / spent.sampled_records,
        )


class Passage(msgspec.Struct, frozen=True, gc=False):
    """How long a record takes through a stage, in microseconds: half of them, and 99 of 100."""

    p50: float
    p99: float


class BatchStatus(msgspec.Struct, frozen=True, gc=False):
    """The micro-batches of a stage.

    Attributes
    ----------
    per_s
        How many are processed in a second.
    records
        How many records are in one on average.
    interval_s
        The present interval between two of a task.
    waited_s, scheduled_s, processed_s, merged_s
        Where the time of one goes on average: it is collected, waits for its Spark job and for the
        news of it, is processed there, and is merged in its task.
    """

    per_s: float
    records: float
    interval_s: float
    waited_s: float
    scheduled_s: float
    processed_s: float
    merged_s: float

    @classmethod
    def of(cls, done: BatchCounts, seconds: float) -> Self | None:
        """Return what some work was on average, or None if there was no batch."""
        if not done.batches:
            return None
        times = (done.waited_us, done.scheduled_us, done.processed_us, done.merged_us)
        return cls(
            done.batches / seconds if seconds > 0 else 0.0,
            done.records / done.batches,
            done.interval_us / 1e6,
            *(time / 1e6 / done.batches for time in times),
        )

    @property
    def passage(self) -> Passage:
        """How long a record takes that comes at any moment while a batch is collected."""
        after = self.scheduled_s + self.processed_s + self.merged_s
        return Passage(1e6 * (self.waited_s / 2 + after), 1e6 * (0.99 * self.waited_s + after))


class Rates(msgspec.Struct, frozen=True, gc=False):
    """What happens per second.

    Attributes
    ----------
    arrival, processing, output
        Records received, processed and handed on.
    bytes_in, bytes_out
        Bytes received and handed on.
    """

    arrival: float = 0.0
    processing: float = 0.0
    output: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0

    @classmethod
    def of(cls, done: Counters, seconds: float) -> Self:
        """Return the rates at which some work was done."""
        if seconds <= 0:
            return cls()
        return cls(
            done.records_in / seconds,
            done.records_processed / seconds,
            done.records_out / seconds,
            done.bytes_in / seconds,
            done.bytes_out / seconds,
        )

    def __add__(self, other: Self) -> Self:
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return type(self)(*map(add, mine, theirs))
