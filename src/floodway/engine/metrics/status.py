"""The status of a running flow at one moment: what the board knows, as one JSON-able document.

Rates are per second. Rates, shares and costs are those of the last two seconds, percentiles those
of the last half minute, counters those of the whole run: a restarted task counts on from where
its former attempt was last heard of.
"""

from operator import add, sub
from typing import Literal, Self

import msgspec

from floodway.engine.metrics.recent import Percentiles
from floodway.engine.metrics.report import Moments, OperatorCounts, TaskReport

State = Literal[
    "failed", "silent", "missing", "starting", "paused", "draining", "running", "ended", "retired"
]
"""What a task, a stage or a flow is doing, the most alarming first.

``silent`` tasks have stopped reporting, ``missing`` ones never reported, ``retired`` ones belong
to a former, larger parallelism. A stage, and a flow, is what its most alarming task is, where a
missing task makes it ``starting``.
"""

STATES: tuple[State, ...] = (
    "failed",
    "silent",
    "missing",
    "starting",
    "paused",
    "draining",
    "running",
    "ended",
    "retired",
)

UNHEALTHY_SILENT_S = 5.0  # fifty reports
UNHEALTHY_STALLED_S = 30.0  # longer than any sane record takes, so not a slow sink
UNHEALTHY_MISSING_S = 60.0  # Spark starts a task in a second, a cluster under load in tens


class Counters(msgspec.Struct, frozen=True, gc=False):
    """What a task, or all tasks of a stage, have done since the flow began.

    Attributes
    ----------
    records_in, records_processed, records_out
        Records received, taken from the input cache, and handed on.
    bytes_in, bytes_out, frames_in, frames_out
        What travelled on channels.
    busy_s, idle_s, blocked_s
        Where the time went.
    sampled_records, fetch_ns, cpu_ns, emit_ns
        The sampled records, and where their time went.
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

    @classmethod
    def of(cls, report: TaskReport) -> Self:
        """Return the counters of a report."""
        return cls(
            report.records_in,
            report.records_in - report.queue_records,
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
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, _numbers(self), _numbers(other)))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(sub, _numbers(self), _numbers(other)))


def _numbers(counters: Counters) -> tuple[float, ...]:
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


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One task.

    Attributes
    ----------
    index, attempt, place, host, pid
        Which task it is, and where it runs; None as far as it has not reported.
    state, reason
        What it is doing, and why if that needs explaining.
    restarts
        How often a new attempt took over.
    uptime_s
        Since when the attempt runs.
    silent_s
        Since when nothing was heard of it. If it never reported, since when it is expected: since
        the flow started, which is None before the first report, or the stage was resized.
    stalled_s
        Since when it has input and does nothing with it; 0 if all is well.
    rates, shares, cost
        As for stages.
    queue_records, queue_bytes
        What waits in its input cache.
    arrivals, service
        Moments of the times between arrivals and of the service times, in microseconds.
    lag_records, lag_seconds, event_time, stream_time
        As for stages.
    rss_bytes
        The memory of its process.
    counters
        What it has done since the flow began, over all attempts.
    """

    index: int
    state: State
    attempt: int | None = None
    place: str | None = None
    host: str | None = None
    pid: int | None = None
    reason: str | None = None
    restarts: int = 0
    uptime_s: float = 0.0
    silent_s: float | None = None
    stalled_s: float = 0.0
    rates: Rates = Rates()
    shares: Shares | None = None
    cost: RecordCost | None = None
    queue_records: int = 0
    queue_bytes: int = 0
    arrivals: Moments = Moments()
    service: Moments = Moments()
    lag_records: int | None = None
    lag_seconds: float | None = None
    event_time: int | None = None
    stream_time: int | None = None
    rss_bytes: int = 0
    counters: Counters = Counters()


class OperatorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One operator, over all tasks of its stage.

    Attributes
    ----------
    counts
        What went through it since the flow began.
    rate_in, rate_out
        Records it takes and gives per second.
    selectivity
        Records out for each record in, since the flow began; None before the first.
    """

    counts: OperatorCounts
    rate_in: float = 0.0
    rate_out: float = 0.0
    selectivity: float | None = None


class StageStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One stage, over all its tasks.

    Attributes
    ----------
    name, dop, partitioning
        Which stage it is, how many tasks it has, how its input is spread over them.
    state
        What its most alarming task is.
    rates, shares, cost
        Its work of the last two seconds; shares and cost are None while there is nothing to tell.
    selectivity
        Records out for each record processed, since the flow began; None before the first.
    queue_records, queue_bytes
        What waits in the input caches.
    queue_wait, service_time
        Percentiles of sampled records: the wait in the input cache, and the processing.
    latency
        Percentiles of sampled records from entry to sink; None if there is no sink.
    arrivals, service
        Moments of the times between arrivals at a task and of the service times, in microseconds.
    lag_records, lag_seconds
        How far its sources are behind: the sum, and the worst.
    event_time, stream_time
        The largest timestamp its sources read; the smallest stream time of its tasks (ms).
    b_out, linger_ms
        The settings of its outgoing edges.
    restarts
        How often a task was restarted.
    counters
        What it has done since the flow began.
    operators, tasks
        Its operators in the order of the chain, and its tasks.
    """

    name: str
    dop: int
    partitioning: str
    state: State
    rates: Rates
    shares: Shares | None
    cost: RecordCost | None
    selectivity: float | None
    queue_records: int
    queue_bytes: int
    queue_wait: Percentiles | None
    service_time: Percentiles | None
    latency: Percentiles | None
    arrivals: Moments
    service: Moments
    lag_records: int | None
    lag_seconds: float | None
    event_time: int | None
    stream_time: int | None
    b_out: dict[str, int]
    linger_ms: dict[str, float]
    restarts: int
    counters: Counters
    operators: list[OperatorStatus]
    tasks: list[TaskStatus]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The whole flow since it began.

    Attributes
    ----------
    records_in
        Records read by sources.
    records_out
        Records that reached sinks; None if the stages did not name their sinks.
    late, skipped, dead_letters
        Records that did not get through, of all operators.
    restarts
        Restarted tasks.
    """

    records_in: int = 0
    records_out: int | None = None
    late: int = 0
    skipped: int = 0
    dead_letters: int = 0
    restarts: int = 0


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A flow at one moment.

    Attributes
    ----------
    flow, state
        Which flow it is, and what its most alarming task is.
    time
        The moment, in seconds since 1970.
    started
        When its first task started; None before the first report.
    totals
        The whole flow since it began.
    latency
        Percentiles of sampled records from entry to any sink, lately.
    stages
        The stages in the order of the flow.
    """

    flow: str
    state: State
    time: float
    started: float | None
    totals: Totals
    latency: Percentiles | None
    stages: list[StageStatus]


def problems(status: Status) -> list[str]:
    """Return what is wrong with a flow, in words; nothing if it is healthy.

    A flow is not healthy while a task is failed, silent for more than 5 s, has had input for more
    than 30 s without touching it, or has been expected for more than a minute and never reported.
    """
    found = []
    for stage in status.stages:
        for task in stage.tasks:
            problem = _problem(task)
            if problem:
                found.append(f"task {stage.name}/{task.index} {problem}")
    return found


def _problem(task: TaskStatus) -> str | None:
    silent_s = task.silent_s or 0.0
    if task.state == "failed":
        return f"failed: {task.reason}" if task.reason else "failed"
    if task.state == "silent" and silent_s > UNHEALTHY_SILENT_S:
        return f"has been silent for {silent_s:.0f} s"
    if task.state == "missing" and silent_s > UNHEALTHY_MISSING_S:
        return f"has not started within {silent_s:.0f} s"
    if task.stalled_s > UNHEALTHY_STALLED_S:
        return f"has had input for {task.stalled_s:.0f} s and does not process it"
    return None
