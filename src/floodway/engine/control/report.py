"""What a task tells the driver, every 50 ms.

All counters are cumulative since the start of the task's attempt, so a lost report loses no
counts: the driver takes differences. Only the samples (``queue_wait_us``, ``service_us``,
``latency_us``) are those since the last report.

A report is a MessagePack map. A reader skips fields it does not know and takes the default for
those that are missing, so new fields go to the end and have a default.
"""

from collections.abc import Iterable
from operator import add, sub
from typing import Literal, Self

import msgspec

from floodway.core.errors import EngineError
from floodway.engine.program.counts import OperatorCounts

TaskState = Literal["starting", "running", "paused", "draining", "ended", "failed"]
"""What a task is doing, in its own words."""

MAX_SAMPLES = 256
"""The most samples of one kind in a report, so that its size is bounded."""


class Moments(msgspec.Struct, frozen=True, gc=False):
    """Count, mean and the second and third central moments of some values, in microseconds.

    Attributes
    ----------
    count
        How many values there were.
    mean
        Their mean.
    variance
        The mean of the squared differences from the mean.
    third
        The mean of the cubed differences from the mean.
    """

    count: int = 0
    mean: float = 0.0
    variance: float = 0.0
    third: float = 0.0


class Cost(msgspec.Struct, frozen=True, gc=False):
    """Where the time of the sampled records went.

    Attributes
    ----------
    records
        The sampled input records.
    fetch_ns
        Time to take them out of the input cache and decode them; 0 for sources.
    cpu_ns
        Time in the operators.
    emit_ns
        Time to put all their results into the output buffers; 0 for sinks.
    """

    records: int = 0
    fetch_ns: int = 0
    cpu_ns: int = 0
    emit_ns: int = 0


class SourceProgress(msgspec.Struct, frozen=True, gc=False):
    """How far a source is behind.

    Attributes
    ----------
    lag_records
        Records that wait in the outside system; None if it cannot tell.
    lag_seconds
        The age of the newest record read; None if nobody can tell.
    event_time
        The largest timestamp read, in milliseconds.
    ended
        Whether the source has no more records.
    behind
        Whether there was always more to read since the last report.
    """

    lag_records: int | None = None
    lag_seconds: float | None = None
    event_time: int | None = None
    ended: bool = False
    behind: bool = False


class BatchCounts(msgspec.Struct, frozen=True, gc=False):
    """What the micro-batches of a task, or of several, have taken.

    Attributes
    ----------
    batches, records
        How many micro-batches were processed, and how many records were in them.
    waited_us, scheduled_us, processed_us, merged_us
        Where their time went: from the first record that was collected until the block was
        closed, until and after its Spark job ran, in the job, in the task afterwards.
    interval_us
        The present interval between two blocks; of several tasks the longest.
    """

    batches: int = 0
    records: int = 0
    waited_us: int = 0
    scheduled_us: int = 0
    processed_us: int = 0
    merged_us: int = 0
    interval_us: int = 0

    def __add__(self, other: Self) -> Self:
        """Return what both have taken."""
        longest = max(self.interval_us, other.interval_us)
        return self._made(map(add, self._sums(), other._sums()), longest)

    def __sub__(self, other: Self) -> Self:
        """Return what was taken since then."""
        return self._made(map(sub, self._sums(), other._sums()), self.interval_us)

    def _sums(self) -> tuple[int, ...]:
        return msgspec.structs.astuple(self)[:-1]

    def _made(self, sums: Iterable[int], interval_us: int) -> Self:
        return msgspec.structs.replace(type(self)(*sums), interval_us=interval_us)


class TaskReport(msgspec.Struct, frozen=True):
    """All that a task tells.

    Attributes
    ----------
    stage, index
        Which task it is: its stage, and its number there from 0 to dop - 1.
    attempt
        Rises with each restart of the task, whose counters then begin again at 0.
    place, pid, host
        Where it runs: the slot or executor, the process, the machine.
    time
        When the report was made, in seconds since 1970, by the clock of the task's machine.
    uptime_s
        Since when this attempt runs.
    state, reason
        What the task is doing, and why if that needs explaining.
    operators
        The counts of its operators, in the order of the chain.
    records_in, bytes_in, frames_in
        What has been received, or read if the task is a source: processed already, dropped, or
        waiting in the input cache still.
    records_out, bytes_out, frames_out
        What has been handed to channels and sinks.
    queue_records, queue_bytes
        What waits in the input cache now.
    busy_s, idle_s, blocked_s
        Where the time went: at work, without input, without room for output. Together they are
        the uptime.
    cost
        The time of sampled records in more detail.
    arrivals, service
        Moments of the times between arrivals and of the times a record took, in microseconds.
    queue_wait_us, service_us
        Sampled records since the last report: how long they waited in the input cache, and how
        long their processing took.
    latency_us
        Sampled records since the last report, at sinks only: from the entry into the flow to the
        sink's acceptance.
    source
        How far the source is behind; None for other tasks.
    stream_time
        The task's stream time in milliseconds.
    b_out, linger_ms
        The present settings of each outgoing edge: the batch size, and the longest wait of a
        record in an output buffer.
    rss_bytes
        The memory of the task's process.
    paradigm
        In which paradigm the task works, which is what its figures are of.
    batches
        What its micro-batches have taken.
    sleeps
        How often it had nothing to do, or was not able to, and waited: waking up costs, too.
    sent
        Records and frames that were handed to channels, by operator, all its ports together.
    sent_by_port
        The records alone, by operator and port, as `port_name` writes it; each reader's copy
        counts.
    hop_us
        How long a frame takes to the tasks after this one, as last measured; 0 if it was not.
    frames_again
        How many frames had to be sent again: a connection broke, and they were lost with it.
    state_keys, state_bytes, state_aside
        How many rows of state there were when the last epoch ended, about how many bytes those in
        memory need, and how many are put aside; None if nobody keeps it.
    dropped
        How many of the records received the policy of its queue dropped.
    """

    stage: str
    index: int
    attempt: int
    place: str
    pid: int
    host: str
    time: float
    uptime_s: float
    state: TaskState
    reason: str | None = None
    operators: list[OperatorCounts] = []
    records_in: int = 0
    bytes_in: int = 0
    records_out: int = 0
    bytes_out: int = 0
    frames_in: int = 0
    frames_out: int = 0
    queue_records: int = 0
    queue_bytes: int = 0
    busy_s: float = 0.0
    idle_s: float = 0.0
    blocked_s: float = 0.0
    cost: Cost = Cost()
    arrivals: Moments = Moments()
    service: Moments = Moments()
    queue_wait_us: list[int] = []
    service_us: list[int] = []
    latency_us: list[int] = []
    source: SourceProgress | None = None
    stream_time: int | None = None
    b_out: dict[str, int] = {}
    linger_ms: dict[str, float] = {}
    rss_bytes: int = 0
    paradigm: Literal["data", "operation"] = "data"
    batches: BatchCounts = BatchCounts()
    sleeps: int = 0
    sent: dict[str, tuple[int, int]] = {}
    sent_by_port: dict[str, int] = {}
    hop_us: int = 0
    frames_again: int = 0
    state_keys: int | None = None
    state_bytes: int | None = None
    state_aside: int | None = None
    dropped: int = 0


def port_name(operator: str, port: str) -> str:
    """Return what an operator's output port is called in reports.

    >>> port_name("kinds", "views")
    'kinds.views'
    """
    return f"{operator}.{port}"


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(TaskReport)


def encode_report(report: TaskReport) -> bytes:
    """Return a report as it travels.

    Examples
    --------
    >>> report = TaskReport("views", 0, 1, "slot-3", 4711, "here", 12.0, 2.0, "running")
    >>> decode_report(encode_report(report)) == report
    True
    """
    return _ENCODER.encode(report)


def decode_report(data: bytes | memoryview) -> TaskReport:
    """Return the report that was encoded.

    Raises
    ------
    EngineError
        If the bytes are no report.
    """
    try:
        return _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise EngineError(
            f"a task's report cannot be read: {error}",
            remedy="let driver and tasks run the same version of Floodway",
        ) from error
