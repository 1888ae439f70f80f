"""The driver's board: it takes the reports of all tasks and answers with the status of the flow.

The board has no clock. Rates come from differences between reports, by the clock of the task that
wrote them, so clocks that disagree between machines do not matter; silence is measured by the
driver's clock, which the caller passes in.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from floodway.core.errors import EngineError
from floodway.engine.control.moments import RunningMoments
from floodway.engine.control.report import Moments, TaskReport
from floodway.engine.metrics.health import Lately, StageFacts, judge
from floodway.engine.metrics.recent import RecentHistogram
from floodway.engine.metrics.status import (
    STATES,
    Health,
    InParadigms,
    InputCount,
    OperatorStatus,
    StageParadigm,
    StageStatus,
    State,
    Status,
    TaskStatus,
    Totals,
)
from floodway.engine.metrics.track import TaskTrack, add_counts
from floodway.engine.metrics.window import ReportSpan, ReportWindows
from floodway.engine.metrics.work import BatchStatus, Counters, Rates, RecordCost, Shares
from floodway.engine.program.counts import OperatorCounts
from floodway.operators.facts import JoinKind

Number = TypeVar("Number", int, float)


class StageInfo(msgspec.Struct, frozen=True):
    """What the board has to know of a stage beforehand.

    Attributes
    ----------
    name
        Its name, as in reports.
    operators
        The names of its operators in the order of the chain.
    dop
        How many tasks it has.
    partitioning
        How its input is spread over them, for people.
    sinks, sources
        Those of its operators that are sinks, and those that read from outside.
    planned_ns
        What a record should cost it, in nanoseconds, if somebody has planned that.
    inputs
        Whom each of its operators reads that reads several.
    joins
        Those of its operators that are inner joins.
    places
        Where its operators are written.
    timed
        Those of its sources that have event times, of their values or of their connector.
    """

    name: str
    operators: tuple[str, ...]
    dop: int
    partitioning: str
    sinks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    planned_ns: float | None = None
    inputs: dict[str, tuple[str, ...]] = {}
    joins: dict[str, JoinKind] = {}
    places: dict[str, str] = {}
    timed: tuple[str, ...] = ()


class Board:
    """The status of a flow, kept up to date by reports. Safe to use from several threads.

    Parameters
    ----------
    flow
        The flow's name.
    stages
        Its stages in the order of the flow.
    recent_s
        How many seconds back percentiles reach.
    windows
        Where the reports are kept for all who compare them.
    paradigms
        Who knows in which paradigm stages and tasks work; without it, it is `data`.

    Examples
    --------
    >>> board = Board("ads", [StageInfo("views", ("views",), dop=1, partitioning="hash")])
    >>> board.status(now=0.0).stages[0].tasks[0].state
    'missing'
    >>> for time, count in ((100.0, 0), (101.0, 500)):
    ...     board.take(
    ...         TaskReport(
    ...             "views", 0, 0, "slot", 7, "host", time, time - 100, "running", records_in=count
    ...         )
    ...     )
    >>> board.status(now=101.0).stages[0].rates.arrival
    500.0
    """

    def __init__(
        self,
        flow: str,
        stages: Sequence[StageInfo],
        *,
        recent_s: float = 30.0,
        windows: ReportWindows | None = None,
        paradigms: InParadigms | None = None,
    ) -> None:
        self.flow = flow
        self._recent_s = recent_s
        self._lock = threading.Lock()
        self._started: float | None = None
        windows = windows or ReportWindows()
        self._stages = {stage.name: _Stage(stage, recent_s, windows, paradigms) for stage in stages}
        self._over = False
        self._lately = Lately()
        self.waiting: Sequence[str] = ()
        """The tasks that wait for a free slot; the driver knows."""
        self.returns: Mapping[str, int] = {}
        """How often each source was idle and came back behind stream time; the driver knows."""

    def take(self, report: TaskReport, *, now: float | None = None) -> None:
        """Take a report; one of an attempt that has been replaced is ignored.

        Parameters
        ----------
        report
            The report.
        now
            When it arrived, by the driver's clock. The default is when it was written.

        Raises
        ------
        EngineError
            If the flow has no such stage.
        """
        with self._lock:
            stage = self._stage(report.stage)
            arrived = report.time if now is None else now
            began = arrived - report.uptime_s
            self._started = began if self._started is None else min(began, self._started)
            stage.take(report, arrived)
            if self._lately.due(arrived):
                stages = self._stages.values()
                counts = [each for stage in stages for each in stage.counts(self.returns)]
                self._lately.note(arrived, counts)

    def end(self) -> None:
        """Say that the flow is over: no report is missed, and its health is that of the run."""
        with self._lock:
            self._over = True

    def status(self, now: float) -> Status:
        """Return the status of the flow.

        Parameters
        ----------
        now
            The present time in seconds since 1970.
        """
        with self._lock:
            stages = [
                stage.status(now, self._started, self.returns) for stage in self._stages.values()
            ]
            whole = RecentHistogram(self._recent_s)
            for stage in self._stages.values():
                whole.merge(stage.latency)
            return Status(
                flow=self.flow,
                state=_worst(stage.state for stage in stages),
                time=now,
                started=self._started,
                totals=self._totals(stages),
                latency=whole.percentiles(now),
                stages=stages,
                health=self._health(now),
                waiting=list(self.waiting),
            )

    def health(self, now: float) -> Health:
        """Return how the flow is: as in its status, which takes ten times as long to make."""
        with self._lock:
            return self._health(now)

    def _health(self, now: float) -> Health:
        stages = [
            stage.observed(now, self._started, self.returns) for stage in self._stages.values()
        ]
        over = self._over or all(t.state == "ended" for stage in stages for t in stage.tasks)
        running_s = 0.0 if self._started is None else now - self._started
        before = {} if over else self._lately.before
        return judge(stages, before, running_s=running_s, over=over, waiting=self.waiting)

    def _stage(self, name: str) -> "_Stage":
        try:
            return self._stages[name]
        except KeyError:
            raise EngineError(
                f"there is no stage {name!r} in flow {self.flow!r}",
                remedy=f"report for one of: {', '.join(self._stages)}",
            ) from None

    def _totals(self, stages: list[StageStatus]) -> Totals:
        counts = [operator.counts for stage in stages for operator in stage.operators]
        sinks = {name for stage in self._stages.values() for name in stage.info.sinks}
        return Totals(
            records_in=sum(
                stage.counters.records_in for stage in stages if self._stages[stage.name].is_source
            ),
            records_out=sum(each.records_in for each in counts if each.name in sinks)
            if sinks
            else None,
            late=sum(each.late for each in counts),
            skipped=sum(each.skipped for each in counts),
            dead_letters=sum(each.dead_letters for each in counts),
            dropped=sum(stage.counters.dropped for stage in stages),
            restarts=sum(stage.restarts for stage in stages),
            duplicates=sum(each.duplicates for each in counts),
        )


class _Stage:
    """What is known of a stage: its tasks, and the samples of all of them."""

    def __init__(
        self,
        info: StageInfo,
        recent_s: float,
        windows: ReportWindows,
        paradigms: InParadigms | None,
    ) -> None:
        self.info = info
        self._windows, self._paradigms = windows, paradigms
        self.is_source = False
        self.queue_wait = RecentHistogram(recent_s)
        self.service_time = RecentHistogram(recent_s)
        self.latency = RecentHistogram(recent_s)
        self._tasks: dict[int, TaskTrack] = {}

    def take(self, report: TaskReport, now: float) -> None:
        task = self._tasks.get(report.index)
        if task is None:
            task = TaskTrack(self._windows.of(self.info.name, report.index))
            self._tasks[report.index] = task
        if not task.take(report, now):
            return
        self.is_source = self.is_source or report.source is not None
        self.queue_wait.add(report.queue_wait_us, now)
        self.service_time.add(report.service_us, now)
        self.latency.add(report.latency_us, now)

    def observed(self, now: float, started: float | None, returns: Mapping[str, int]) -> StageFacts:
        """Return what has to be known of the stage to judge it."""
        operators = self._operators(now, self._paradigm, returns)
        return StageFacts(self.info.name, operators, self._rows(now, started))

    def _rows(self, now: float, started: float | None) -> list[TaskStatus]:
        waited = None if started is None else max(0.0, now - started)
        return [self._row(index, now, waited) for index in range(self.info.dop)]

    def status(self, now: float, started: float | None, returns: Mapping[str, int]) -> StageStatus:
        rows = self._rows(now, started)
        lately = self._lately(now)
        recent = sum((span.done for span in lately), Counters())
        counters = sum((row.counters for row in rows), Counters())
        latest = [span.last for span in lately]
        paradigm = self._paradigm
        return StageStatus(
            name=self.info.name,
            dop=self.info.dop,
            partitioning=self.info.partitioning,
            state=_worst(row.state for row in rows),
            rates=sum((row.rates for row in rows), Rates()),
            shares=Shares.of(recent),
            cost=RecordCost.of(recent) or RecordCost.of(counters),
            selectivity=_ratio(counters.records_out, counters.records_processed),
            queue_records=sum(row.queue_records for row in rows),
            queue_bytes=sum(row.queue_bytes for row in rows),
            queue_wait=self.queue_wait.percentiles(now),
            service_time=self.service_time.percentiles(now),
            latency=self.latency.percentiles(now),
            arrivals=_merged(row.arrivals for row in rows),
            service=_merged(row.service for row in rows),
            lag_records=_sum(row.lag_records for row in rows),
            lag_seconds=_max(row.lag_seconds for row in rows),
            event_time=_max(row.event_time for row in rows),
            stream_time=_min(row.stream_time for row in rows),
            b_out=_largest(report.b_out for report in latest),
            linger_ms=_largest(report.linger_ms for report in latest),
            restarts=sum(row.restarts for row in rows),
            counters=counters,
            operators=self._operators(now, paradigm, returns),
            tasks=rows,
            paradigm=paradigm,
            state_keys=_sum(row.state_keys for row in rows),
            state_bytes=_sum(row.state_bytes for row in rows),
            state_aside=_sum(row.state_aside for row in rows),
            batches=BatchStatus.of(
                recent.batches, max((span.seconds for span in lately), default=0.0)
            )
            or BatchStatus.of(counters.batches, 0.0),
            planned_ns=self.info.planned_ns,
            busy_ns=_ratio(1e9 * recent.busy_s, recent.records_processed),
        )

    @property
    def _paradigm(self) -> StageParadigm:
        return "data" if self._paradigms is None else self._paradigms.of_stage(self.info.name)

    def _lately(self, now: float) -> list[ReportSpan]:
        """Return what the tasks did lately that work."""
        spans = (task.recent(now) for task in self._tasks.values())
        return [span for span in spans if span is not None]

    def _row(self, index: int, now: float, waited: float | None) -> TaskStatus:
        paradigms, task = self._paradigms, self._tasks.get(index)
        paradigm = "data" if paradigms is None else paradigms.of_task(self.info.name, index)
        if task is None:
            return TaskStatus(index=index, state="missing", silent_s=waited, paradigm=paradigm)
        return task.status(now, paradigm)

    def counts(self, returns: Mapping[str, int]) -> list[OperatorCounts]:
        """Return what went through each operator, over all tasks."""
        tasks = [task.operators for task in self._tasks.values()]
        named = {name: None for names in (self.info.operators, *tasks) for name in names}
        return [
            add_counts(name, (task.get(name) for task in tasks), returns.get(name, 0))
            for name in named
        ]

    def _operators(
        self, now: float, paradigm: StageParadigm, returns: Mapping[str, int]
    ) -> list[OperatorStatus]:
        live = [span.operators for span in self._lately(now)]
        outside = {*self.info.sources, *self.info.sinks}
        return [
            _operator(
                counts,
                [rates[counts.name] for rates in live if counts.name in rates],
                "data" if counts.name in outside else paradigm,
                self.info,
            )
            for counts in self.counts(returns)
        ]


def _worst(states: Iterable[State]) -> State:
    worst: State = min(states, key=STATES.index, default="starting")
    return "starting" if worst == "missing" else worst


def _operator(
    counts: OperatorCounts,
    rates: list[tuple[float, float]],
    paradigm: StageParadigm,
    info: StageInfo,
) -> OperatorStatus:
    read = info.inputs.get(counts.name, ())
    return OperatorStatus(
        counts=counts,
        rate_in=sum(rate_in for rate_in, _ in rates),
        rate_out=sum(rate_out for _, rate_out in rates),
        selectivity=_ratio(counts.records_out, counts.records_in),
        paradigm=paradigm,
        inputs=[InputCount(*each) for each in zip(read, counts.inputs, strict=False)],
        join=info.joins.get(counts.name),
        place=info.places.get(counts.name),
        timed=counts.name in info.timed,
    )


def _merged(moments: Iterable[Moments]) -> Moments:
    merged = RunningMoments()
    for each in moments:
        merged.merge(each)
    return merged.report()


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _max(values: Iterable[Number | None]) -> Number | None:
    return max((value for value in values if value is not None), default=None)


def _min(values: Iterable[Number | None]) -> Number | None:
    return min((value for value in values if value is not None), default=None)


def _largest(settings: Iterable[dict[str, Number]]) -> dict[str, Number]:
    largest: dict[str, Number] = {}
    for each in settings:
        for edge, value in each.items():
            largest[edge] = max(value, largest.get(edge, value))
    return largest
