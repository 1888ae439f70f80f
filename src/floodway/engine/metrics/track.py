"""What the board remembers of one task."""

from collections import deque
from collections.abc import Iterable
from itertools import zip_longest

import msgspec

from floodway.engine.metrics.report import OperatorCounts, SourceProgress, TaskReport
from floodway.engine.metrics.status import State, TaskStatus
from floodway.engine.metrics.work import Counters, Rates, RecordCost, Shares

RATE_WINDOW_S = 2.0  # twenty reports: smooth enough to read, quick enough to see a flood begin
SILENT_S = 2.0  # twenty reports


class TaskTrack:
    """The reports of a task in the last seconds, and what its former attempts did."""

    def __init__(self) -> None:
        self.restarts = 0
        self._former = Counters()
        self._former_operators: dict[str, OperatorCounts] = {}
        self._reports: deque[TaskReport] = deque()
        self._arrived = 0.0
        self._progressed = 0.0
        self._paused: float | None = None

    @property
    def latest(self) -> TaskReport:
        """The latest report."""
        return self._reports[-1]

    @property
    def counters(self) -> Counters:
        """What all attempts did."""
        return self._former + Counters.of(self.latest)

    @property
    def operators(self) -> dict[str, OperatorCounts]:
        """What went through each operator in all attempts."""
        present = {counts.name: counts for counts in self.latest.operators}
        names = self._former_operators | present
        return {
            name: add_counts(name, (self._former_operators.get(name), present.get(name)))
            for name in names
        }

    def take(self, report: TaskReport, now: float) -> bool:
        """Take a report, and return whether it is news."""
        if not self._reports:
            self._begin(report)
        elif report.attempt < self.latest.attempt:
            return False
        elif report.attempt > self.latest.attempt:
            self._restart(report)
        elif report.time < self.latest.time:
            return False
        if _advanced(self.latest, report):
            self._progressed = now
        self._arrived = now
        if report.state != "paused":
            self._paused = None
        elif self._paused is None:
            self._paused = now
        # The samples are in the histograms already, and need not be kept.
        self._reports.append(
            msgspec.structs.replace(report, queue_wait_us=[], service_us=[], latency_us=[])
        )
        while len(self._reports) > 2 and self._reports[1].time <= report.time - RATE_WINDOW_S:
            self._reports.popleft()
        return True

    def _begin(self, report: TaskReport) -> None:
        """Put what counts begin with before the first report of an attempt.

        That is zero when the attempt started. If that was long ago (the board was not there then),
        a rate since then would say nothing about now, so the first report gives none.
        """
        self._reports.clear()
        if report.uptime_s <= RATE_WINDOW_S:
            nothing = TaskReport(
                stage=report.stage,
                index=report.index,
                attempt=report.attempt,
                place=report.place,
                pid=report.pid,
                host=report.host,
                time=report.time - report.uptime_s,
                uptime_s=0.0,
                state="starting",
            )
            self._reports.append(nothing)
        else:
            self._reports.append(report)

    def _restart(self, report: TaskReport) -> None:
        self._former_operators = self.operators
        self._former = self.counters
        self.restarts += 1
        self._begin(report)

    def expect(self, now: float) -> None:
        """Give a task that was retired, and is wanted again, its time to start."""
        self._arrived = now

    def live(self, now: float) -> bool:
        """Return whether the task works, so that rates make sense."""
        return self.state(now) not in ("failed", "silent", "ended")

    def state(self, now: float) -> State:
        """Return what the task is doing."""
        reported = self.latest.state
        over = reported in ("ended", "failed")
        return "silent" if not over and now - self._arrived > SILENT_S else reported

    def recent(self, now: float) -> tuple[Counters, float]:
        """Return what the task did lately, and in how many seconds."""
        if not self.live(now):
            return Counters(), 0.0
        first, last = self._reports[0], self._reports[-1]
        return Counters.of(last) - Counters.of(first), last.time - first.time

    def recent_operators(self, now: float) -> dict[str, tuple[float, float]]:
        """Return how many records per second each operator takes and gives."""
        _, seconds = self.recent(now)
        if seconds <= 0:
            return {}
        before = {counts.name: counts for counts in self._reports[0].operators}
        rates = {}
        for counts in self.latest.operators:
            then = before.get(counts.name, OperatorCounts(counts.name))
            rates[counts.name] = (
                (counts.records_in - then.records_in) / seconds,
                (counts.records_out - then.records_out) / seconds,
            )
        return rates

    def status(self, now: float) -> TaskStatus:
        """Return all that is known of the task."""
        report = self.latest
        recent, seconds = self.recent(now)
        source = report.source or SourceProgress()
        ended = report.state == "ended"
        return TaskStatus(
            index=report.index,
            state=self.state(now),
            attempt=report.attempt,
            place=report.place,
            host=report.host,
            pid=report.pid,
            reason=report.reason,
            restarts=self.restarts,
            uptime_s=report.uptime_s,
            silent_s=max(0.0, now - self._arrived),
            stalled_s=self._stalled_s(now),
            paused_s=0.0 if self._paused is None else max(0.0, now - self._paused),
            rates=Rates.of(recent, seconds),
            shares=Shares.of(recent),
            cost=RecordCost.of(recent),
            queue_records=report.queue_records,
            queue_bytes=report.queue_bytes,
            arrivals=report.arrivals,
            service=report.service,
            lag_records=source.lag_records,
            # A source that has come to its end is not behind, however old its last record is.
            lag_seconds=None if source.ended else source.lag_seconds,
            event_time=source.event_time,
            stream_time=report.stream_time,
            rss_bytes=0 if ended else report.rss_bytes,
            counters=self.counters,
            paradigm=report.paradigm,
        )

    def _stalled_s(self, now: float) -> float:
        report = self.latest
        waiting = report.queue_records > 0 or bool(report.source and report.source.lag_records)
        if self.state(now) != "running" or not waiting:
            return 0.0
        return max(0.0, now - self._progressed)


def _advanced(before: TaskReport, after: TaskReport) -> bool:
    """Return whether a task did something between two reports, or had nothing to do."""
    if after.queue_records == 0 and not (after.source and after.source.lag_records):
        return True
    old, new = Counters.of(before), Counters.of(after)
    return (
        before is after
        or before.state != after.state
        or old.records_processed != new.records_processed
        or old.records_out != new.records_out
    )


def add_counts(
    name: str, counts: Iterable[OperatorCounts | None], returns: int = 0
) -> OperatorCounts:
    """Return the sum of the counts of an operator, as far as they are known, and its `returns`."""
    known = [each for each in counts if each is not None]
    return OperatorCounts(
        name,
        sum(each.records_in for each in known),
        sum(each.records_out for each in known),
        sum(each.late for each in known),
        sum(each.skipped for each in known),
        sum(each.dead_letters for each in known),
        sum(each.undated for each in known),
        tuple(map(sum, zip_longest(*(each.inputs for each in known), fillvalue=0))),
        next((each.first_error for each in known if each.first_error), None),
        returns,
    )
