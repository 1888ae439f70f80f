"""The latest reports of each task, and what lies between two of them.

There is one window for each task, in which reports of an attempt that has been replaced have no
place. All who need rates ask it: the board, whose rates are for people, looks two seconds back;
the scheduler has to see a flood while it is young, and compares reports that lie closer together.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from floodway.engine.control.report import TaskReport
from floodway.engine.metrics.work import Counters, Rates
from floodway.engine.program.counts import OperatorCounts

LONGEST_S = 2.0
"""So far back reports are kept: twenty of them are smooth enough to read, and quick enough to see a
flood begin."""

LEAST_S = 1e-3
"""Two reports are never taken to lie closer together."""


class ReportSpan(NamedTuple):
    """Two reports of one attempt, and what was done in between, by the clock of the task."""

    first: TaskReport
    last: TaskReport

    @property
    def seconds(self) -> float:
        """How far they lie apart."""
        return max(self.last.time - self.first.time, LEAST_S)

    @property
    def done(self) -> Counters:
        """What was done."""
        return Counters.of(self.last) - Counters.of(self.first)

    @property
    def rates(self) -> Rates:
        """What was done in a second."""
        return Rates.of(self.done, self.seconds)

    @property
    def operators(self) -> dict[str, tuple[float, float]]:
        """How many records a second each operator took and gave."""
        before = {counts.name: counts for counts in self.first.operators}
        rates = {}
        for counts in self.last.operators:
            then = before.get(counts.name, OperatorCounts(counts.name))
            rates[counts.name] = (
                (counts.records_in - then.records_in) / self.seconds,
                (counts.records_out - then.records_out) / self.seconds,
            )
        return rates

    @property
    def ports(self) -> dict[str, float]:
        """How many records a second left through each port."""
        before = self.first.sent_by_port
        return {
            port: max(records - before.get(port, 0), 0) / self.seconds
            for port, records in self.last.sent_by_port.items()
        }

    def sent(self, operator: str) -> tuple[float, float]:
        """Return how many records and frames of an operator were handed on in a second."""
        none = (0, 0)
        before, after = self.first.sent.get(operator, none), self.last.sent.get(operator, none)
        return (
            max(after[0] - before[0], 0) / self.seconds,
            max(after[1] - before[1], 0) / self.seconds,
        )


class ReportWindow:
    """What a task has reported lately, in its present attempt.

    Examples
    --------
    >>> def report(time, attempt, records):
    ...     return TaskReport(
    ...         "s", 0, attempt, "slot", 7, "host", time, time, "running", records_in=records
    ...     )
    >>> window = ReportWindow()
    >>> [window.take(report(*each)) for each in ((9.0, 2, 100), (9.1, 1, 700), (9.1, 2, 200))]
    [True, False, True]
    >>> round(window.span(0.1).rates.arrival)
    1000
    """

    def __init__(self) -> None:
        self._reports: deque[TaskReport] = deque()
        self._begins = False
        """Whether the first of them is not a report, but what counts begin with."""

    def __bool__(self) -> bool:
        return bool(self._reports)

    @property
    def latest(self) -> TaskReport:
        """The latest report."""
        return self._reports[-1]

    def take(self, report: TaskReport) -> bool:
        """Take a report, and return whether it is news.

        It is not if it is of an attempt that has been replaced, or was overtaken by another.
        """
        if not self._reports or report.attempt > self.latest.attempt:
            self._begin(report)
        elif report.attempt < self.latest.attempt or report.time < self.latest.time:
            return False
        # What was sampled is in the histograms, and need not be kept.
        self._reports.append(
            msgspec.structs.replace(report, queue_wait_us=[], service_us=[], latency_us=[])
        )
        while len(self._reports) > 2 and report.time - self._reports[1].time >= LONGEST_S:
            self._reports.popleft()
            self._begins = False
        return True

    def _begin(self, report: TaskReport) -> None:
        """Put what counts begin with before the first report of an attempt.

        That is zero when the attempt started. If that was long ago (nobody listened then), a rate
        since then would say nothing about now, so the first report gives none.
        """
        self._reports.clear()
        self._begins = True
        if report.uptime_s > LONGEST_S:
            self._reports.append(report)
            return
        self._reports.append(
            TaskReport(
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
        )

    @property
    def whole(self) -> ReportSpan:
        """All of the window, with what counts began with."""
        return ReportSpan(self._reports[0], self.latest)

    def span(self, seconds: float) -> ReportSpan | None:
        """Return the latest report and one so long before; the one before it, if that is longer.

        It is None until there have been two.
        """
        reports: Sequence[TaskReport] = self._reports
        earliest, place = int(self._begins), len(reports) - 2
        if place < earliest:
            return None
        while place > earliest and self.latest.time - reports[place].time < seconds:
            place -= 1
        return ReportSpan(reports[place], self.latest)


class ReportWindows:
    """The windows of all tasks of a flow."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, int], ReportWindow] = {}

    def of(self, stage: str, index: int) -> ReportWindow:
        """Return the window of a task; it may be empty."""
        return self._windows.setdefault((stage, index), ReportWindow())
