"""The board's arithmetic: rates, shares, restarts, silence."""

import msgspec
import pytest

from floodway.core.errors import EngineError
from floodway.engine.control.report import (
    BatchCounts,
    Cost,
    Moments,
    OperatorCounts,
    SourceProgress,
)
from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.health import problems
from floodway.engine.metrics.status import StageStatus, Status
from floodway.model.tuning import Paradigm
from tests.engine.control.reports import START, Said, busy_board, report

ONE = StageInfo("views", ("views",), dop=1, partitioning="hash")


def board(dop: int = 1) -> Board:
    return Board("ads", [msgspec.structs.replace(ONE, dop=dop)])


def stage(board: Board, at: float) -> StageStatus:
    (found,) = board.status(START + at).stages
    return found


def test_nothing_is_known_before_the_first_report() -> None:
    status = board(dop=2).status(START)
    (found,) = status.stages
    assert (status.state, status.started, status.latency) == ("starting", None, None)
    assert [task.state for task in found.tasks] == ["missing", "missing"]
    assert (found.shares, found.cost, found.selectivity) == (None, None, None)


def test_first_report_counts_from_the_start_of_the_task() -> None:
    one = board()
    one.take(report(at=0.5, records_in=100, records_out=50))
    rates = stage(one, 0.5).rates
    assert (rates.arrival, rates.output) == (200.0, 100.0)


def test_first_report_of_an_old_task_gives_no_rate() -> None:
    one = board()
    one.take(report(at=600, records_in=1_000_000))
    assert stage(one, 600).rates.arrival == 0.0
    one.take(report(at=600.5, records_in=1_000_100))
    assert stage(one, 600.5).rates.arrival == pytest.approx(200)


def test_rates_are_those_of_the_last_two_seconds() -> None:
    one = board()
    for tick in range(101):  # 10 s of 1000 records a second, then 10 s of 50
        one.take(report(at=tick / 10, records_in=100 * tick))
    for tick in range(1, 101):
        one.take(report(at=10 + tick / 10, records_in=10_000 + 5 * tick))
    assert stage(one, 20).rates.arrival == pytest.approx(50)


def test_processing_falls_behind_arrivals_when_the_queue_grows() -> None:
    one = board()
    one.take(report(at=1, records_in=100, queue_records=0))
    one.take(report(at=2, records_in=200, queue_records=60))
    rates = stage(one, 2).rates
    assert (rates.arrival, rates.processing) == (100.0, 70.0)  # 200 and 140 in two seconds


def test_rates_and_queues_of_a_stage_are_sums() -> None:
    two = board(dop=2)
    for index in (0, 1):
        two.take(
            report(
                index=index,
                records_in=100 * (index + 1),
                bytes_in=1_000,
                bytes_out=500,
                queue_records=5,
                queue_bytes=50,
            )
        )
    found = stage(two, 1)
    assert (found.rates.arrival, found.queue_records, found.queue_bytes) == (300.0, 10, 100)
    assert (found.rates.bytes_in, found.rates.bytes_out) == (2_000.0, 1_000.0)
    assert [task.rates.arrival for task in found.tasks] == [100.0, 200.0]


def test_shares_are_recent_and_sum_to_one() -> None:
    one = board()
    for tick in range(51):
        one.take(report(at=tick / 10, idle_s=tick / 10))
    for tick in range(1, 31):  # reported shares rarely are exactly the time that passed
        one.take(report(at=5 + tick / 10, idle_s=5, busy_s=tick * 0.06, blocked_s=tick * 0.03))
    shares = stage(one, 8).shares
    assert shares is not None
    assert shares.busy + shares.idle + shares.blocked == pytest.approx(1)
    assert (shares.busy, shares.idle) == (pytest.approx(2 / 3), pytest.approx(0, abs=1e-9))


def test_cost_is_recent_else_that_of_the_whole_run() -> None:
    one = board()
    one.take(report(at=1, cost=Cost(10, 1_000, 20_000, 5_000)))
    for tick in range(11, 60):
        one.take(report(at=tick / 10, cost=Cost(10, 1_000, 20_000, 5_000)))
    first = stage(one, 5.9).cost
    one.take(report(at=6, cost=Cost(20, 3_000, 60_000, 6_000)))
    second = stage(one, 6).cost
    assert first is not None
    assert (first.fetch_ns, first.cpu_ns, first.emit_ns) == (100.0, 2_000.0, 500.0)
    assert second is not None
    assert (second.fetch_ns, second.cpu_ns, second.emit_ns) == (200.0, 4_000.0, 100.0)


def test_selectivity_is_results_for_each_processed_record() -> None:
    one = board()
    one.take(report(records_in=100, queue_records=20, records_out=40))
    assert stage(one, 1).selectivity == 0.5


def test_totals_do_not_go_backwards_over_a_restart() -> None:
    one = board()
    one.take(report(at=5, records_in=500, operators=[OperatorCounts("views", 500, 400, 3, 2, 1)]))
    one.take(report(at=6, attempt=1, started=START + 6, state="starting"))
    fresh = stage(one, 6)
    one.take(
        report(
            at=7,
            attempt=1,
            started=START + 6,
            records_in=100,
            operators=[OperatorCounts("views", 100, 90, 1, 1, 1)],
        )
    )
    after = stage(one, 7)
    assert (fresh.counters.records_in, after.counters.records_in) == (500, 600)
    assert after.operators[0].counts == OperatorCounts("views", 600, 490, 4, 3, 2)
    assert after.rates.arrival == 100.0
    assert (after.restarts, after.tasks[0].restarts, after.tasks[0].attempt) == (1, 1, 1)


def test_duplicates_of_former_attempts_count() -> None:
    one = board()
    one.take(report(at=5, operators=[OperatorCounts("views", 500, 100, duplicates=400)]))
    again = [OperatorCounts("views", 30, 10, duplicates=20)]
    one.take(report(at=7, attempt=1, started=START + 6, operators=again))
    (after,) = one.status(START + 7).stages
    assert after.operators[0].counts == OperatorCounts("views", 530, 110, duplicates=420)


def test_two_restarts_add_up() -> None:
    one = board()
    for attempt in range(3):
        one.take(report(at=attempt, attempt=attempt, started=START + attempt, records_in=10))
    found = stage(one, 3)
    assert (found.counters.records_in, found.restarts) == (30, 2)


def test_report_of_a_replaced_attempt_is_ignored() -> None:
    one = board()
    one.take(report(at=1, attempt=1, records_in=10))
    one.take(report(at=2, attempt=0, records_in=999, latency_us=[5]))
    found = stage(one, 2)
    assert (found.counters.records_in, found.latency) == (10, None)


def test_report_that_was_overtaken_is_ignored() -> None:
    one = board()
    one.take(report(at=2, records_in=20))
    one.take(report(at=1, records_in=10))
    assert stage(one, 2).counters.records_in == 20


def test_task_that_stops_reporting_is_silent_and_has_no_rates() -> None:
    one = board()
    one.take(report(at=1, records_in=100, busy_s=1))
    before, after = stage(one, 3.0), stage(one, 3.1)
    assert (before.state, before.rates.arrival) == ("running", 100.0)
    assert (after.state, after.rates.arrival, after.shares) == ("silent", 0.0, None)
    assert after.tasks[0].silent_s == pytest.approx(2.1)


def test_silence_is_measured_by_the_clock_of_the_driver() -> None:
    one = board()
    one.take(report(at=-3_600), now=START + 1)
    assert stage(one, 2).state == "running"


@pytest.mark.parametrize("state", ["ended", "failed"])
def test_task_that_is_over_is_not_silent(state: str) -> None:
    one = board()
    one.take(report(at=1, records_in=100, state=state))
    found = stage(one, 60)
    assert (found.state, found.rates.arrival) == (state, 0.0)


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        (["running", "ended"], "running"),
        (["ended", "ended"], "ended"),
        (["running", "failed"], "failed"),
        (["draining", "running"], "draining"),
        (["running", "starting"], "starting"),
        (["running"], "starting"),
    ],
)
def test_stage_is_what_its_most_alarming_task_is(states: list[str], whole: str) -> None:
    two = board(dop=2)
    for index, state in enumerate(states):
        two.take(report(index=index, state=state))
    assert (stage(two, 1).state, two.status(START + 1).state) == (whole, whole)


def test_state_of_a_stage_is_that_of_all_its_tasks() -> None:
    two = board(dop=3)
    assert stage(two, 0).state_bytes is None
    for index, (keys, size, aside) in enumerate([(100, 5_000, 0), (300, 9_000, 200)]):
        sizes = {"state_keys": keys, "state_bytes": size, "state_aside": aside}
        two.take(report(index=index, **sizes))
    two.take(report(index=2))  # keeps none
    found = stage(two, 1)
    assert (found.state_keys, found.state_bytes, found.state_aside) == (400, 14_000, 200)
    assert [task.state_aside for task in found.tasks] == [0, 200, None]


def test_lag_is_the_sum_in_records_and_the_worst_in_seconds() -> None:
    two = board(dop=3)
    two.take(report(index=0, source=SourceProgress(5, 1.0, 100), stream_time=90))
    two.take(report(index=1, source=SourceProgress(7, 3.0, 300), stream_time=80))
    two.take(report(index=2, source=SourceProgress(None, None, None)))
    found = stage(two, 1)
    assert (found.lag_records, found.lag_seconds) == (12, 3.0)
    assert (found.event_time, found.stream_time) == (300, 80)


def test_source_at_its_end_is_not_behind() -> None:
    one = board()
    one.take(report(source=SourceProgress(0, 900.0, 100, ended=True)))
    assert stage(one, 1).lag_seconds is None


def test_samples_of_all_tasks_are_put_together() -> None:
    two = board(dop=2)
    two.take(report(index=0, service_us=[10] * 99, queue_wait_us=[3], latency_us=[40]))
    two.take(report(index=1, service_us=[2_000] * 99, latency_us=[50]))
    found = stage(two, 1)
    assert found.service_time is not None
    assert (found.service_time.p50, found.service_time.p99) == (10, pytest.approx(2_000, rel=0.01))
    assert found.queue_wait is not None
    assert found.queue_wait.p50 == 3
    latency = two.status(START + 1).latency
    assert latency is not None
    assert (latency.count, latency.max) == (2, 50)


def test_moments_of_tasks_are_merged() -> None:
    two = board(dop=2)
    two.take(report(index=0, service=Moments(2, 1.0, 0.0, 0.0)))
    two.take(report(index=1, service=Moments(2, 3.0, 0.0, 0.0)))
    assert stage(two, 1).service == Moments(4, 2.0, 1.0, 0.0)


def test_report_of_an_unknown_stage_is_an_error() -> None:
    with pytest.raises(EngineError, match="there is no stage 'clicks'") as caught:
        board().take(report("clicks"))
    assert "views" in caught.value.remedy


def test_whole_flow() -> None:
    status = busy_board().status(START + 3)
    source, views = status.stages
    assert (status.flow, status.state, status.started) == ("ads", "running", START)
    totals = status.totals
    assert (totals.records_in, totals.records_out) == (3_000, 900)
    assert (totals.late, totals.skipped, totals.dead_letters) == (14, 2, 1)
    assert source.rates.arrival == pytest.approx(1_000)
    assert [each.counts.name for each in source.operators] == ["events", "only_views"]
    assert source.operators[1].rate_in == pytest.approx(1_000)
    assert source.operators[1].rate_out == pytest.approx(333, abs=1)
    assert (source.b_out, source.linger_ms) == ({"views": 100}, {"views": 5.0})
    assert views.rates.arrival == pytest.approx(400)
    assert views.rates.processing == pytest.approx(300)


def test_sinks_nobody_named_are_not_counted_as_zero() -> None:
    one = board()
    one.take(report())
    assert one.status(START + 1).totals.records_out is None


def test_status_is_the_same_after_json() -> None:
    status = busy_board().status(START + 3)
    assert msgspec.json.decode(msgspec.json.encode(status), type=Status) == status


def test_healthy_flow_has_no_problems() -> None:
    assert problems(busy_board().health(START + 3)) == []


def test_failed_task_is_a_problem() -> None:
    one = board()
    one.take(report(state="failed", reason="out of memory"))
    assert problems(one.health(START + 1)) == ["task views/0 failed: out of memory"]


def test_silence_is_a_problem_after_five_seconds() -> None:
    one = board()
    one.take(report(at=1))
    assert problems(one.health(START + 6)) == []
    assert problems(one.health(START + 9)) == ["task views/0 has been silent for 8 s"]


def stall(one: Board, seconds: int, **fields: int) -> None:
    """Let a task report that nothing changes."""
    for second in range(1, seconds + 1):
        one.take(report(at=second, records_in=50, **fields))


def test_input_that_is_never_touched_is_a_problem() -> None:
    one = board()
    stall(one, 40, queue_records=50)
    assert problems(one.health(START + 40)) == [
        "task views/0 has had input for 39 s and does not process it"
    ]


def test_lack_of_input_is_no_problem() -> None:
    one = board()
    stall(one, 40, queue_records=0)
    assert problems(one.health(START + 40)) == []


def test_paused_task_is_no_problem() -> None:
    one = board()
    for second in range(1, 41):
        one.take(report(at=second, records_in=50, queue_records=50, state="paused"))
    assert problems(one.health(START + 40)) == []


def test_stall_ends_with_the_first_processed_record() -> None:
    one = board()
    stall(one, 40, queue_records=50)
    one.take(report(at=41, records_in=51, queue_records=50))
    assert stage(one, 42).tasks[0].stalled_s == pytest.approx(1)


def test_task_that_never_comes_is_a_problem_after_a_minute() -> None:
    two = board(dop=2)
    for second in range(70):
        two.take(report(at=second))
    assert problems(two.health(START + 59)) == []
    assert problems(two.health(START + 69)) == ["task views/1 has not started within 69 s"]


def batches(count: int, interval_us: int = 500_000) -> BatchCounts:
    """Return so many micro-batches of 1000 records, each collected for half a second."""
    times = (500_000, 30_000, 200_000, 20_000)
    return BatchCounts(count, 1_000 * count, *(count * time for time in times), interval_us)


@pytest.mark.parametrize(
    ("works", "whole"),
    [
        (["data", "data"], "data"),
        (["operation", "data"], "switching"),
        (["operation", "operation"], "operation"),
    ],
)
def test_stage_and_tasks_work_as_their_owner_says(works: list[Paradigm], whole: str) -> None:
    info = msgspec.structs.replace(ONE, dop=2)
    two = Board("ads", [info], paradigms=Said(views=works))
    two.take(report(index=0, at=1, paradigm="operation"))  # how it worked then is not asked
    found = stage(two, 1)
    assert found.paradigm == whole
    assert [task.paradigm for task in found.tasks] == works
    assert found.operators[0].paradigm == whole


def test_sources_and_sinks_are_in_the_data_paradigm_at_any_time() -> None:
    names = ("events", "views", "results")
    info = StageInfo("events", names, 1, "source", sinks=("results",), sources=("events",))
    one = Board("ads", [info], paradigms=Said(events=["operation"]))
    one.take(report("events"))
    (found,) = one.status(START + 1).stages
    assert {operator.counts.name: operator.paradigm for operator in found.operators} == {
        "events": "data",
        "views": "operation",
        "results": "data",
    }


def test_micro_batches_are_those_of_the_last_two_seconds() -> None:
    one = board()
    one.take(report(at=1, batches=BatchCounts(100, 100, 1, 1, 1, 1, 9), paradigm="operation"))
    one.take(report(at=2, batches=batches(100, 400_000), paradigm="operation"))
    one.take(report(at=4, batches=batches(104), paradigm="operation"))
    found = stage(one, 4).batches
    assert found is not None
    assert (found.per_s, found.records, found.interval_s) == (2.0, 1_000, 0.5)
    assert (found.waited_s, found.scheduled_s) == (0.5, 0.03)
    assert (found.processed_s, found.merged_s) == (0.2, 0.02)


def test_micro_batches_of_the_past_are_remembered_without_a_rate() -> None:
    one = board()
    assert stage(one, 0).batches is None
    one.take(report(at=1, batches=batches(2)))
    for at in (3, 5, 7):
        one.take(report(at=at, batches=batches(2)))
    found = stage(one, 7).batches
    assert found is not None
    assert (found.per_s, found.records) == (0.0, 1_000)


def test_micro_batches_of_former_attempts_count() -> None:
    one = board()
    one.take(report(at=1, batches=batches(2)))
    one.take(report(at=2, attempt=1, started=START + 2, batches=batches(1)))
    assert stage(one, 2).counters.batches.batches == 3


def test_passage_of_a_record_is_wait_and_processing() -> None:
    one = board()
    assert stage(one, 0).passage is None
    one.take(report(queue_wait_us=[100] * 100, service_us=[20] * 100))
    passage = stage(one, 1).passage
    assert passage is not None
    assert (passage.p50, passage.p99) == (120, 120)


def test_passage_of_a_record_in_micro_batches_follows_from_their_times() -> None:
    one = Board("ads", [ONE], paradigms=Said(views=["operation"]))
    one.take(report(batches=batches(2), service_us=[20]))
    passage = stage(one, 1).passage
    assert passage is not None
    assert passage.p50 == pytest.approx(250_000 + 250_000)
    assert passage.p99 == pytest.approx(495_000 + 250_000)
