"""The window over a task's reports: what has a place in it, and what its spans compare."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.control.report import TaskReport
from floodway.engine.metrics.window import LONGEST_S, ReportSpan, ReportWindow
from floodway.engine.program.counts import OperatorCounts
from tests.engine.control.reports import START, report

REPORTS = st.lists(
    st.tuples(
        st.integers(0, 3),  # the attempt
        st.integers(-3, 60),  # after how many hundredths of a second, or before
    ),
    max_size=60,
)


def told(steps: list[tuple[int, int]]) -> list[TaskReport]:
    """Return reports of several attempts, as they may come: also late, and in a wrong order."""
    reports, now = [], 100.0
    for attempt, hundredths in steps:
        now += hundredths / 100
        reports.append(report(at=now, attempt=attempt))
    return reports


def kept(reports: list[TaskReport]) -> list[TaskReport]:
    """Return the reports of the newest attempt that came in their order."""
    newest: list[TaskReport] = []
    for each in reports:
        if newest and each.attempt > newest[-1].attempt:
            newest = []
        if not newest or (each.attempt == newest[-1].attempt and each.time >= newest[-1].time):
            newest.append(each)
    return newest


@given(REPORTS, st.sampled_from([0.01, 0.09, 0.5, LONGEST_S]))
def test_span_is_as_long_as_asked_or_that_of_two_reports(
    steps: list[tuple[int, int]], seconds: float
) -> None:
    reports, window = told(steps), ReportWindow()
    for each in reports:
        window.take(each)
    newest = kept(reports)
    span = window.span(seconds)
    if len(newest) < 2:
        assert span is None
        return
    last = newest[-1]
    far = [each for each in newest[:-1] if last.time - each.time >= seconds]
    assert span == ReportSpan(far[-1] if far else newest[0], last)


@given(REPORTS)
def test_what_is_no_news_changes_nothing(steps: list[tuple[int, int]]) -> None:
    window, reports = ReportWindow(), told(steps)
    news = [each for each in reports if window.take(each)]
    again = ReportWindow()
    assert all(map(again.take, news))
    assert again.span(0.09) == window.span(0.09)
    assert all(
        (a.attempt, 0) < (b.attempt, 0) or (a.attempt == b.attempt and a.time <= b.time)
        for a, b in pairwise(news)
    )
    if news:
        assert again.whole == window.whole


def test_whole_window_begins_with_the_attempt_and_a_span_with_a_report() -> None:
    window = ReportWindow()
    window.take(report(at=0.5, records_in=100))
    assert (window.whole.seconds, window.whole.rates.arrival) == (0.5, 200.0)
    assert window.span(LONGEST_S) is None
    window.take(report(at=0.6, records_in=200))
    assert window.whole.done.records_in == 200
    span = window.span(LONGEST_S)
    assert span is not None
    assert (span.done.records_in, span.first.time) == (100, START + 0.5)


def test_rates_of_a_span_are_by_operator_and_by_port_as_well() -> None:
    first = report(
        at=1.0,
        operators=[OperatorCounts("views", 100, 10)],
        sent={"views": (10, 1)},
        sent_by_port={"views.main": 10},
    )
    last = report(
        at=1.5,
        operators=[OperatorCounts("views", 200, 30), OperatorCounts("new", 5, 5)],
        sent={"views": (30, 3)},
        sent_by_port={"views.main": 30, "views.late": 5},
    )
    span = ReportSpan(first, last)
    assert span.operators == {"views": (200.0, 40.0), "new": (10.0, 10.0)}
    assert span.ports == {"views.main": 40.0, "views.late": 10.0}
    assert (span.sent("views"), span.sent("nobody")) == ((40.0, 4.0), (0.0, 0.0))


def test_samples_are_not_kept() -> None:
    window = ReportWindow()
    window.take(report(at=9.0, service_us=[1, 2], queue_wait_us=[3], latency_us=[4]))
    latest = window.latest
    assert (latest.service_us, latest.queue_wait_us, latest.latency_us) == ([], [], [])


@pytest.mark.parametrize("at", [0.0, 1.0])
def test_reports_at_one_moment_have_no_endless_rate(at: float) -> None:
    window = ReportWindow()
    for records in (0, 5):
        window.take(report(at=at, records_in=records))
    span = window.span(0.09)
    assert span is not None
    assert span.rates.arrival == pytest.approx(5000)
