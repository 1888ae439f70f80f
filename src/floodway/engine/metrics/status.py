"""The status of a running flow at one moment: what the board knows, as one JSON-able document.

Rates are per second. Rates, shares and costs are those of the last two seconds, percentiles those
of the last half minute, counters those of the whole run: a restarted task counts on from where
its former attempt was last heard of.
"""

from typing import Literal, Protocol

import msgspec

from floodway.engine.control.report import Moments
from floodway.engine.metrics.recent import Percentiles
from floodway.engine.metrics.work import BatchStatus, Counters, Passage, Rates, RecordCost, Shares
from floodway.engine.program.counts import OperatorCounts
from floodway.model.tuning import Paradigm
from floodway.operators.facts import JoinKind

State = Literal["failed", "silent", "missing", "starting", "paused", "draining", "running", "ended"]
"""What a task, a stage or a flow is doing, the most alarming first.

``silent`` tasks have stopped reporting, ``missing`` ones never reported. A stage, and a flow, is
what its most alarming task is, where a missing task makes it ``starting``.
"""

StageParadigm = Literal["data", "operation", "switching"]
"""How a stage works; ``switching`` while its tasks differ."""

STATES: tuple[State, ...] = (
    "failed",
    "silent",
    "missing",
    "starting",
    "paused",
    "draining",
    "running",
    "ended",
)


class InParadigms(Protocol):
    """Says in which paradigm everybody works."""

    def of_stage(self, stage: str) -> StageParadigm:
        """Return how all tasks of a stage work."""

    def of_task(self, stage: str, index: int) -> Paradigm:
        """Return how a task works."""


ReasonKind = Literal[
    "task", "away", "late", "no_match", "skipped", "dead_letters", "undated", "returned", "dropped"
]
"""What makes a flow unhealthy (``task``) or degraded."""

HealthState = Literal["healthy", "degraded", "unhealthy"]
"""``degraded``: all tasks work, and yet something does not come out that people may expect."""


class Reason(msgspec.Struct, frozen=True):
    """Why a flow is not healthy.

    Attributes
    ----------
    kind
        What it is about.
    operator
        The operator, or the task as ``stage/index``.
    problem, remedy
        What has happened and why, and what to do about it, in words.
    records, of
        How many records it is about, and of how many.
    """

    kind: ReasonKind
    operator: str
    problem: str
    remedy: str
    records: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class Health(msgspec.Struct, frozen=True):
    """How a flow is, and why: what got lost in the last ten minutes or, at its end, at all."""

    state: HealthState = "healthy"
    reasons: list[Reason] = []


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
        the flow started, which is None before the first report.
    stalled_s
        Since when it has input and does nothing with it; 0 if all is well.
    paused_s
        Since when it waits for a system outside that is away; 0 if it does not.
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
    paradigm
        In which paradigm it works.
    state_keys, state_bytes, state_aside
        As for stages.
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
    paradigm: Paradigm = "data"
    paused_s: float = 0.0
    state_keys: int | None = None
    state_bytes: int | None = None
    state_aside: int | None = None


class InputCount(msgspec.Struct, frozen=True, gc=False):
    """How many records an operator has taken from another, of which it is `name`'s reader."""

    name: str
    records: int


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
    paradigm
        That of its stage; sources read and sinks write record by record at any time.
    inputs
        What it has taken from each operator before it, if there are several.
    join
        Which kind of inner join it is; None for everything else.
    place
        Where it is written, if that is known.
    timed
        Whether it is a source that has event times, of its values or of its connector.
    """

    counts: OperatorCounts
    rate_in: float = 0.0
    rate_out: float = 0.0
    selectivity: float | None = None
    paradigm: StageParadigm = "data"
    inputs: list[InputCount] = []
    join: JoinKind | None = None
    place: str | None = None
    timed: bool = False

    @property
    def label(self) -> str:
        """Its name and its place, for messages."""
        return f"{self.counts.name} ({self.place})" if self.place else self.counts.name


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
    paradigm
        How it works: record by record (``data``) or in micro-batches (``operation``).
    batches
        Its micro-batches of late; None if it never had any.
    planned_ns, busy_ns
        What a record should cost, if that was planned, and for how long tasks worked per record of
        late, in nanoseconds; waking up for few records is in the second, and not in the first.
    state_keys, state_bytes, state_aside
        How many rows of state there are, about how many bytes those in memory need, and how many
        are put aside; None if nobody keeps it.
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
    paradigm: StageParadigm = "data"
    batches: BatchStatus | None = None
    planned_ns: float | None = None
    busy_ns: float | None = None
    state_keys: int | None = None
    state_bytes: int | None = None
    state_aside: int | None = None

    @property
    def off_plan(self) -> float | None:
        """By which share a record costs more than was planned; None if nobody knows.

        In micro-batches the work is elsewhere, and no plan is about that.
        """
        if not self.planned_ns or self.busy_ns is None or self.paradigm != "data":
            return None
        return self.busy_ns / self.planned_ns - 1

    @property
    def passage(self) -> Passage | None:
        """How long a record takes through the stage, queue included; None if nobody knows.

        Record by record it is the percentiles of the wait and of the processing, added up. In
        micro-batches it follows from the mean times of a batch, for a record that comes at any
        moment while a batch is collected.
        """
        if self.paradigm == "operation" and self.batches is not None:
            return self.batches.passage
        if self.service_time is None:
            return None
        waits = self.queue_wait or Percentiles(0, 0, 0, 0, 0)
        return Passage(waits.p50 + self.service_time.p50, waits.p99 + self.service_time.p99)


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The whole flow since it began.

    Attributes
    ----------
    records_in
        Records read by sources.
    records_out
        Records that reached sinks; None if the stages did not name their sinks.
    late, skipped, dead_letters, dropped
        Records that did not get through, of all operators.
    restarts
        Restarted tasks.
    duplicates
        Duplicates that operators have left out.
    """

    records_in: int = 0
    records_out: int | None = None
    late: int = 0
    skipped: int = 0
    dead_letters: int = 0
    restarts: int = 0
    duplicates: int = 0
    dropped: int = 0


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
    health
        Whether all is well and, if not, why.
    waiting
        The tasks that wait for a free slot of Spark, as ``stage/index``.
    """

    flow: str
    state: State
    time: float
    started: float | None
    totals: Totals
    latency: Percentiles | None
    stages: list[StageStatus]
    health: Health = Health()
    waiting: list[str] = []
