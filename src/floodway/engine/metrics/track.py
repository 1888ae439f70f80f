"""What the board remembers of one task."""

from collections.abc import Iterable
from itertools import zip_longest

from floodway.engine.control.report import SourceProgress, TaskReport
from floodway.engine.metrics.status import State, TaskStatus
from floodway.engine.metrics.window import ReportSpan, ReportWindow
from floodway.engine.metrics.work import Counters, Rates, RecordCost, Shares
from floodway.engine.program.counts import OperatorCounts
from floodway.model.tuning import Paradigm

SILENT_S = 2.0  # twenty reports


class TaskTrack:
    """What a task has reported in its `window`, and what its former attempts did."""

    def __init__(self, window: ReportWindow) -> None:
        self.restarts = 0
        self._former = Counters()
        self._former_operators: dict[str, OperatorCounts] = {}
        self._window = window
        self._arrived = 0.0
        self._progressed = 0.0
        self._paused: float | None = None

    @property
    def latest(self) -> TaskReport:
        """The latest report."""
        return self._window.latest

    @property
    def counters(self) -> Counters:
        """What all attempts did."""
        return self._former + Counters.of(self.latest)

    @property
    def operators(self) -> dict[str, OperatorCounts]:
        """What went through each operator in all attempts."""
        return self._operators_until(self.latest)

    def _operators_until(self, report: TaskReport) -> dict[str, OperatorCounts]:
        present = {counts.name: counts for counts in report.operators}
        names = self._former_operators | present
        return {
            name: add_counts(name, (self._former_operators.get(name), present.get(name)))
            for name in names
        }

    def take(self, report: TaskReport, now: float) -> bool:
        """Take a report, and return whether it is news."""
        before = self.latest if self._window else None
        if not self._window.take(report):
            return False
        if before is not None and before.attempt != report.attempt:
            self._restarted(before)
            before = None
        if before is None or _advanced(before, report):
            self._progressed = now
        self._arrived = now
        if report.state != "paused":
            self._paused = None
        elif self._paused is None:
            self._paused = now
        return True

    def _restarted(self, last: TaskReport) -> None:
        """Add up what a former attempt did, by its last report."""
        self._former_operators = self._operators_until(last)
        self._former += Counters.of(last)
        self.restarts += 1

    def live(self, now: float) -> bool:
        """Return whether the task works, so that rates make sense."""
        return self.state(now) not in ("failed", "silent", "ended")

    def state(self, now: float) -> State:
        """Return what the task is doing."""
        reported = self.latest.state
        over = reported in ("ended", "failed")
        return "silent" if not over and now - self._arrived > SILENT_S else reported

    def recent(self, now: float) -> ReportSpan | None:
        """Return what the task did lately; None if it does not work."""
        return self._window.whole if self.live(now) else None

    def status(self, now: float, paradigm: Paradigm) -> TaskStatus:
        """Return all that is known of the task, which works in a paradigm."""
        report, span = self.latest, self.recent(now)
        recent = span.done if span is not None else Counters()
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
            rates=span.rates if span is not None else Rates(),
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
            paradigm=paradigm,
            state_keys=report.state_keys,
            state_bytes=report.state_bytes,
            state_aside=report.state_aside,
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
        before.state != after.state
        or old.records_processed != new.records_processed
        or old.records_out != new.records_out
        or old.dropped != new.dropped
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
        sum(each.duplicates for each in known),
        sum(each.dropped for each in known),
    )
