"""When a flow is degraded, what it says about that, and how often."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.metrics.board import Board, StageInfo
from floodway.engine.metrics.health import AWAY_S, JOIN_S, LATELY_S, Telling
from floodway.engine.metrics.status import Health, Reason
from floodway.engine.metrics.summary import summarize
from floodway.engine.program.counts import OperatorCounts
from floodway.operators.facts import JoinKind
from tests.engine.control.reports import START, report

PLACE = {"views": "ads.py:14"}


def board_of(
    counts: OperatorCounts, *, at: float = 1.0, join: JoinKind | None = None, **fields: Any
) -> Board:
    joins: dict[str, JoinKind] = {} if join is None else {counts.name: join}
    inputs = {counts.name: ("orders", "users")}
    board = Board("ads", [StageInfo("s", (counts.name,), 1, "hash", (), (), None, inputs, joins)])
    board.take(report("s", at=at, operators=[counts], **fields))
    return board


def health_of(counts: OperatorCounts, *, at: float = 1.0, **fields: Any) -> Health:
    return board_of(counts, at=at, **fields).health(START + at)


def kinds(health: Health) -> list[str]:
    return [reason.kind for reason in health.reasons]


# ---------------------------------------------------------------------- late


@pytest.mark.parametrize(
    ("late", "taken", "told"),
    [
        (0, 0, False),
        (1, 1, True),
        (9, 9, True),
        (9, 90, False),
        (10, 90, True),
        (10, 1000, False),
        (11, 1000, True),
    ],
)
def test_more_than_one_percent_late_is_degraded(late: int, taken: int, told: bool) -> None:
    health = health_of(OperatorCounts("views", taken, late=late))
    assert health.state == ("degraded" if told else "healthy")
    assert kinds(health) == (["late"] if told else [])


@pytest.mark.parametrize(("late", "taken", "told"), [(0, 9, False), (1, 99, True), (1, 100, False)])
def test_at_the_end_even_few_late_records_are_told(late: int, taken: int, told: bool) -> None:
    board = board_of(OperatorCounts("views", taken, late=late))
    assert board.health(START + 1).state == "healthy"
    board.end()
    assert kinds(board.health(START + 1)) == (["late"] if told else [])


def test_late_records_are_told_with_operator_place_numbers_and_remedy() -> None:
    info = StageInfo("s", ("views",), 1, "hash", places=PLACE)
    board = Board("ads", [info])
    counts = OperatorCounts("views", 113_951, late=107_951)
    board.take(report("s", operators=[counts]))
    (reason,) = board.health(START + 1).reasons
    assert (reason.operator, reason.records, reason.of) == ("views", 107_951, 113_951)
    assert "views (ads.py:14) took 107,951 of 113,951 records for late" in reason.problem
    assert "retention=" in reason.remedy
    assert "views.late.to(...)" in reason.remedy
    assert "floodway top" in reason.remedy


# ---------------------------------------------------------------------- joins


def joined(
    left: int, right: int, *, out: int = 0, at: float = JOIN_S, **fields: Any
) -> tuple[Health, OperatorCounts]:
    counts = OperatorCounts("join", left + right, out, inputs=(left, right), **fields)
    return health_of(counts, at=at, join="streams"), counts


@pytest.mark.parametrize("join", ["streams", "lookup", "tables"])
def test_a_join_that_gives_nothing_is_degraded(join: JoinKind) -> None:
    counts = OperatorCounts("join", 5_000, inputs=(4_000, 1_000))
    (reason,) = health_of(counts, at=JOIN_S, join=join).reasons
    assert reason.kind == "no_match"
    assert "4,000 records of orders and 1,000 records of users" in reason.problem
    assert "their keys never meet" in reason.problem
    assert "how='left'" in reason.remedy
    assert ("static=True" in reason.remedy) == (join == "lookup")


def test_a_join_without_a_side_says_which() -> None:
    health, _ = joined(5_000, 0)
    assert "nothing has come from users" in health.reasons[0].problem


def test_a_join_that_has_given_something_is_well() -> None:
    assert joined(5_000, 5_000, out=1)[0].state == "healthy"


def test_a_join_has_time_to_give_something() -> None:
    assert joined(5_000, 5_000, at=JOIN_S - 1)[0].state == "healthy"


def test_a_join_that_has_ended_had_its_time() -> None:
    counts = OperatorCounts("join", 5_000, inputs=(4_000, 1_000))
    assert kinds(health_of(counts, join="tables", state="ended")) == ["no_match"]


def test_a_table_that_is_loaded_and_not_looked_at_is_well() -> None:
    counts = OperatorCounts("join", 100_000, inputs=(999, 99_001))
    assert health_of(counts, at=100, join="lookup").state == "healthy"


def test_what_was_late_or_failed_had_no_chance_to_join() -> None:
    counts = OperatorCounts("join", 5_000, late=4_000, skipped=900, inputs=(5_000, 0))
    assert kinds(health_of(counts, at=JOIN_S, join="streams")) == ["late", "skipped"]


def test_an_outer_join_is_not_asked() -> None:
    counts = OperatorCounts("join", 5_000, inputs=(4_000, 1_000))
    assert health_of(counts, at=JOIN_S).state == "healthy"


# ---------------------------------------------------------------------- failed, undated, away


def test_failed_records_are_told_with_the_first_error() -> None:
    error = "ValueError in parse at ads.py:3"
    counts = OperatorCounts("price", 900, 897, skipped=2, dead_letters=1, first_error=error)
    skipped, dead = health_of(counts).reasons
    assert "price failed on 2 of 900 records and skipped them" in skipped.problem
    assert "price failed on 1 of 900 records and sent them to its dead letters" in dead.problem
    assert error in skipped.problem
    assert error in dead.problem
    assert "on_error='dead_letter'" in skipped.remedy
    assert "price.dead_letters" in dead.remedy


def test_records_without_a_timestamp_beside_others_are_degraded() -> None:
    (reason,) = health_of(OperatorCounts("events", 900, 900, undated=1)).reasons
    assert (reason.kind, reason.records, reason.of) == ("undated", 1, 900)
    assert "timestamp=" in reason.remedy


def test_a_source_of_ingestion_time_is_well() -> None:
    assert health_of(OperatorCounts("events", 900, 900, undated=900)).state == "healthy"


def beside(undated: int) -> Health:
    """Return how a flow is with a source of ingestion time and another that has event times."""
    names = ("users", "events")
    board = Board("ads", [StageInfo("s", names, 1, "source", sources=names, timed=names)])
    counts = [
        OperatorCounts("users", 7, 7, undated=7),
        OperatorCounts("events", 9, 9, undated=undated),
    ]
    board.take(report("s", operators=counts))
    return board.health(START + 1)


def test_a_source_of_ingestion_time_beside_one_with_event_times_is_told() -> None:
    # It was taken for one that is meant to have none, and what it did to the others was not told.
    (reason,) = beside(undated=0).reasons
    assert (reason.kind, reason.operator, reason.records) == ("undated", "users", 7)
    assert "at which they came in, while events has event times" in reason.problem
    assert "static=True" in reason.remedy


def test_sources_that_all_have_ingestion_time_are_well() -> None:
    assert beside(undated=9).state == "healthy"


def test_a_source_that_came_back_behind_stream_time_is_told_in_status_and_summary() -> None:
    board = board_of(OperatorCounts("events", 900, 900))
    assert board.health(START + 1).state == "healthy"
    board.returns = {"events": 2, "of another stage": 5}
    status = board.status(START + 1)
    (reason,) = status.health.reasons
    assert (reason.kind, reason.operator, reason.records) == ("returned", "events", 2)
    assert "events was idle and came back 2 times" in reason.problem
    assert "idle=" in reason.remedy
    assert status.stages[0].operators[0].counts.returns == 2
    assert "returned: events was idle" in summarize(status, "ended")
    assert Telling().fresh(status.health, 0.0) == []  # it was told when it happened


def test_duplicates_are_told_and_no_reason_to_worry() -> None:
    status = board_of(OperatorCounts("once", 900, 300, duplicates=600)).status(START + 1)
    assert status.health.state == "healthy"
    assert status.totals.duplicates == 600
    assert "600 duplicates" in summarize(status, "ended")


def test_a_source_that_came_back_long_ago_is_forgotten_until_the_end() -> None:
    board = board_of(OperatorCounts("events", 900, 900))
    board.returns = {"events": 1}
    for second in range(2, int(LATELY_S) + 200):
        board.take(report("s", at=second, operators=[OperatorCounts("events", 900, 900)]))
    later = START + LATELY_S + 200
    assert board.health(later).state == "healthy"
    board.end()
    assert kinds(board.health(later)) == ["returned"]


def test_a_system_that_is_away_for_long_is_told() -> None:
    board = board_of(OperatorCounts("events"), state="paused", reason="kafka:9092 is down")
    for second in (2.0, AWAY_S, AWAY_S + 2):
        away = report("s", at=second, state="paused", reason="kafka:9092 is down")
        board.take(away)
    assert board.health(START + AWAY_S).state == "healthy"
    (reason,) = board.health(START + AWAY_S + 2).reasons
    assert reason.kind == "away"
    assert reason.problem == "task s/0 has been waiting for 31 s: kafka:9092 is down"
    board.take(report("s", at=AWAY_S + 3))
    board.take(report("s", at=AWAY_S + 4, state="paused", reason="kafka:9092 is down"))
    assert board.health(START + AWAY_S + 5).state == "healthy"


def test_a_task_that_does_not_work_is_worse_than_lost_records() -> None:
    counts = OperatorCounts("views", 10, skipped=1)
    health = board_of(counts).health(START + 20)
    assert health.state == "unhealthy"
    assert kinds(health) == ["task", "skipped"]


# ---------------------------------------------------------------------- lately, and at the end


def growing(seconds: int, late_from: int, late_to: int) -> Board:
    """Return a board of 100 records a second, all of which are late in some of the seconds."""
    board = Board("ads", [StageInfo("s", ("views",), 1, "hash")])
    late = 0
    for second in range(1, seconds + 1):
        late += 100 if late_from <= second < late_to else 0
        counts = OperatorCounts("views", 100 * second, late=late)
        board.take(report("s", at=second, operators=[counts]))
    return board


def test_a_bad_minute_is_seen_after_good_hours() -> None:
    hours = 4 * 3600
    board = growing(hours, hours - 60, hours)  # 0.4 % of all
    assert kinds(board.health(START + hours)) == ["late"]


def test_a_bad_minute_is_forgotten_while_the_flow_goes_on() -> None:
    seconds = int(LATELY_S) + 300
    board = growing(seconds, 100, 160)
    assert board.health(START + seconds).state == "healthy"


def test_at_the_end_the_whole_run_counts() -> None:
    seconds = int(LATELY_S) + 300
    board = growing(seconds, 100, 160)
    board.end()
    (reason,) = board.health(START + seconds + 1000).reasons  # and nobody is missed
    assert (reason.kind, reason.records, reason.of) == ("late", 6_000, 100 * seconds)


# ---------------------------------------------------------------------- telling


def late(records: int) -> Health:
    return Health("degraded", [Reason("late", "views", "late", "wait", records)])


def test_tasks_are_not_warned_of() -> None:
    health = Health("unhealthy", [Reason("task", "s/0", "is silent", "look")])
    assert Telling().fresh(health, 0.0) == []


def test_each_operator_and_each_kind_is_told() -> None:
    reasons = [
        Reason("late", "views", "", "", 10),
        Reason("late", "clicks", "", "", 10),
        Reason("skipped", "views", "", "", 10),
    ]
    telling = Telling()
    assert telling.fresh(Health("degraded", reasons), 0.0) == reasons
    assert telling.fresh(Health("degraded", reasons), 1.0) == []


@given(st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 5)), max_size=300))
def test_a_flow_that_gets_worse_is_told_of_few_times(steps: list[tuple[int, float]]) -> None:
    """However the count grows, it is told once for each order of magnitude."""
    telling, now, count, told = Telling(), 0.0, 0, 0
    for more, seconds in steps:
        now, count = now + seconds, count + more
        told += len(telling.fresh(late(count), now))
    assert told <= len(str(count))
    assert told or not steps
