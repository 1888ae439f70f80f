"""Pulses, stream time, numbers and loading: the small machines inside the coordinator."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.control.messages import Ask, Pulse, SourceTime
from floodway.engine.driver.loading import Loading
from floodway.engine.driver.pulses import Pulses
from floodway.engine.driver.stream_time import StreamTime
from floodway.engine.transport.numbering import Numbering
from tests.engine.driver.leading import forked, preloading, simple

IDLE = {"one": 1000, "two": 1000}


def at(
    name: str, latest: int | None, *, count: int = 0, silent: int = 0, back: int | None = None
) -> SourceTime:
    return SourceTime(name, latest, silent, ended=False, count=count, back=back)


def pulses(**options: Any) -> Pulses:
    return Pulses(StreamTime(IDLE), 100, **options)


# --------------------------------------------------------------------- questions and marks


def test_question_is_answered_when_all_have() -> None:
    asking = pulses()
    assert asking.ask([0, 1], 50) == Ask(1)
    assert not asking.due(149)
    assert asking.due(150)
    assert asking.ask([0, 1], 150) is None
    assert not asking.answer(0, 1, [])
    assert not asking.answer(0, 1, [])  # said twice
    assert asking.answer(1, 1, [])
    assert asking.ask([0, 1], 150) == Ask(2)


@pytest.mark.parametrize("jump", [-3_600_000, 3_600_000])
def test_clock_that_is_set_keeps_nobody_from_asking(jump: int) -> None:
    asking = pulses()
    asking.ask([0], 10_000_000)
    assert not asking.due(10_000_099)
    assert asking.due(10_000_050 + jump)
    asking.forget_question()
    asking.ask([0], 10_000_050 + jump)
    assert not asking.due(10_000_060 + jump)
    assert asking.due(10_000_150 + jump)


def test_question_that_is_forgotten_needs_no_answer() -> None:
    asking = pulses()
    asking.ask([0, 1], 0)
    asking.forget_question()
    assert not asking.answer(0, 1, [at("one", 5)])
    assert asking.ask([0, 1], 0) == Ask(2)


def test_last_answer_may_be_that_somebody_has_left() -> None:
    asking = pulses()
    asking.ask([0, 1], 0)
    assert not asking.answer(0, 1, [])
    assert asking.leave(1)
    assert not asking.leave(1)


def test_marks_are_numbered_on_and_the_clock_does_not_go_back() -> None:
    asking = pulses(epoch=7, clock=500)
    assert asking.number() == 8
    assert asking.mark(100, commit=False) == Pulse(8, None, 500, commit=False)
    asking.number()
    assert asking.mark(900, commit=True) == Pulse(9, None, 900, commit=True)


def test_clock_of_marks_goes_on_where_the_drivers_is_an_hour_behind_and_is_caught_up_with() -> None:
    # It stood still for that hour: nothing that waits for the clock was shown.
    hour = 3_600_000
    asking = pulses(clock=hour)
    shown = [asking.mark(now, commit=False).clock for now in range(0, 2 * hour + 1, 1000)]
    assert all(250 <= after - before <= 1000 for before, after in pairwise(shown))
    assert shown[0] == hour
    assert shown[-1] == 2 * hour


def made(asking: Pulses, **counts: int) -> Pulse:
    """Let a task answer for its source, and keep the mark that follows."""
    ask = asking.ask([0], 0)
    assert ask is not None
    asking.answer(0, ask.number, [at("one", counts["one"], count=counts["one"])])
    asking.number()
    mark = asking.mark(0, commit=False)
    asking.keep(mark, [0])
    return mark


def test_marks_are_kept_until_they_are_committed() -> None:
    asking = pulses()
    assert asking.kept(0) == ([], {})
    marks = [made(asking, one=count) for count in (10, 20, 30)]
    assert asking.kept(0) == (marks, {"one": 30})
    assert asking.kept(1) == (marks, {})
    asking.committed(2)
    assert asking.kept(0) == (marks[2:], {"one": 30})
    asking.committed(3)
    assert asking.kept(0) == ([], {})


def test_count_before_kept_marks_is_the_largest() -> None:
    asking = pulses()
    for count in (10, 90, 30):
        made(asking, one=count)
    assert asking.kept(0)[1] == {"one": 90}


def test_stream_time_at_a_mark_is_what_the_mark_said() -> None:
    asking = pulses()
    for count in (10, 20):
        made(asking, one=count)
    assert [asking.time_at(epoch) for epoch in (1, 2, 3)] == [10, 20, 20]


# --------------------------------------------------------------------- stream time


def test_stream_time_goes_on_from_a_record() -> None:
    time = StreamTime(IDLE, 700)
    time.take(0, [at("one", 100)])
    assert time.advance() == 700
    time.take(0, [at("one", 900)])
    assert time.advance() == 900


def test_counts_are_those_of_one_task() -> None:
    time = StreamTime(IDLE)
    time.take(0, [at("one", 1, count=5), at("two", 1, count=6)])
    time.take(1, [at("one", 1, count=7)])
    assert time.counts(0) == {"one": 5, "two": 6}
    assert time.counts(1) == {"one": 7}
    assert time.counts(2) == {}


def test_task_that_has_left_holds_nothing_back() -> None:
    time = StreamTime(IDLE)
    time.take(0, [at("one", 100)])
    time.take(1, [at("two", 900)])
    assert time.advance() == 100
    time.end(0)
    assert time.advance() == 900


def test_source_that_is_idle_holds_nothing_back() -> None:
    time = StreamTime(IDLE)
    time.take(0, [at("one", 100, silent=999), at("two", 900)])
    assert time.advance() == 100
    time.take(0, [at("one", 100, silent=1000)])
    assert time.advance() == 900


def test_stream_time_stands_still_while_all_are_idle() -> None:
    time = StreamTime(IDLE)
    time.take(0, [at("one", 100), at("two", 900)])
    assert time.advance() == 100
    time.take(0, [at("one", 100, silent=5000), at("two", 900, silent=5000)])
    assert time.advance() == 100


def test_stream_time_does_not_jump_if_one_is_idle_and_the_others_have_ended() -> None:
    time = StreamTime(IDLE)
    time.take(0, [at("one", 100)])
    time.take(1, [at("two", 900)])
    assert time.advance() == 100
    time.end(1)
    time.take(0, [at("one", 100, silent=5000)])
    assert time.advance() == 100
    time.take(0, [at("one", 150)])
    assert time.advance() == 150
    time.end(0)  # nothing can be late any more
    assert time.advance() == 900


def test_static_table_has_no_part_in_stream_time() -> None:
    time = StreamTime({"one": 1000})
    time.take(0, [at("one", 100), at("users.changelog", None, count=7)])
    assert time.advance() == 100
    time.take(0, [at("one", 100, silent=5000)])
    assert time.advance() == 100
    assert time.counts(0) == {"one": 0, "users.changelog": 7}
    time.take(0, [SourceTime("one", 200, 0, ended=True)])
    assert time.advance() == 200


def test_source_that_comes_back_behind_stream_time_is_counted_and_named_now_and_then() -> None:
    time = StreamTime(IDLE)
    for count in range(10):
        time.take(0, [at("one", 100, silent=1000, count=count), at("two", 90_100)])
        time.advance()
        time.take(0, [at("one", 100, count=count + 1), at("two", 90_100)])
    assert time.returns == {"one": 10}
    first, tenth = time.warnings()
    assert first.startswith("one was idle and is back: what it brings is 90.0 s behind stream time")
    assert "for the 10th time" in tenth
    assert time.warnings() == []
    time.take(0, [at("one", 100, silent=1000, count=10)])
    time.take(0, [at("one", 99_000, count=11)])  # as far as the others: nobody has to know
    assert (time.returns, time.warnings()) == ({"one": 10}, [])


def passed_by() -> StreamTime:
    """Return stream time that did not wait for a source with five records, of the first task."""
    time = StreamTime(IDLE)
    time.take(0, [at("one", 100, silent=1000, count=5)])
    time.take(1, [at("two", 90_100)])
    assert time.advance() == 90_100
    return time


def test_source_that_came_back_behind_and_has_caught_up_by_now_is_counted() -> None:
    # Its backlog came between two questions: by the second it was ahead, and nobody was told.
    time = passed_by()
    time.take(0, [at("one", 95_000, count=500, back=200)])
    assert time.returns == {"one": 1}
    (text,) = time.warnings()
    assert "what it brings is 89.9 s behind stream time" in text


def test_source_that_came_back_ahead_is_not_counted() -> None:
    time = passed_by()
    time.take(0, [at("one", 95_000, count=500, back=90_100)])
    assert (time.returns, time.warnings()) == ({}, [])


def test_source_that_is_asked_anew_and_has_brought_nothing_is_not_back() -> None:
    time = passed_by()
    time.take(0, [at("one", 100, count=5)])  # after a break of the engine silence begins anew
    assert (time.returns, time.warnings()) == ({}, [])
    time.take(0, [at("one", 150, count=6)])
    assert time.returns == {"one": 1}
    time.take(0, [at("one", 160, count=7)])
    assert time.returns == {"one": 1}


def test_source_that_goes_back_and_brings_the_same_again_is_not_back() -> None:
    time = passed_by()
    for count in (0, 3, 5):
        time.take(0, [at("one", 100, count=count)])
    assert (time.returns, time.warnings()) == ({}, [])


def test_source_that_ends_without_another_record_is_not_back() -> None:
    time = passed_by()
    time.take(0, [SourceTime("one", 100, 0, ended=True, count=5)])
    time.end(0)
    assert (time.returns, time.warnings()) == ({}, [])


def test_source_that_comes_back_and_ends_before_it_is_asked_again_is_counted() -> None:
    time = passed_by()
    time.end(0, [SourceTime("one", 150, 0, ended=True, count=6)])
    assert time.returns == {"one": 1}
    assert len(time.warnings()) == 1


TIMES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(sorted(IDLE)),
        st.none() | st.integers(0, 50),
        st.sampled_from([0, 999, 1000]),
    ),
    max_size=20,
)


@given(TIMES, st.none() | st.integers(0, 50))
def test_stream_time_never_goes_back(times: list[Any], first: int | None) -> None:
    time = StreamTime(IDLE, first)
    last = first
    for task, name, latest, silent in times:
        time.take(task, [at(name, latest, silent=silent)])
        now = time.advance()
        assert last is None or (now is not None and now >= last)
        last = now


# --------------------------------------------------------------------- numbers


@pytest.mark.parametrize("dop", [1, 2, 3])
def test_every_task_has_a_number(dop: int) -> None:
    plan = forked(dop)
    numbering = Numbering(plan)
    assert sorted(numbering.names) == list(range(numbering.count))
    assert numbering.count == sum(stage.dop for stage in plan.stages)
    for number, (stage, index) in numbering.names.items():
        assert numbering.number(stage, index) == number


def test_what_comes_after_a_task_is_what_gets_something_from_it() -> None:
    numbering = Numbering(forked(2))

    def after(stage: str, index: int) -> set[tuple[str, int]]:
        found = numbering.after(numbering.number(stage, index))
        return {numbering.names[number] for number in found}

    counts = {("counts", 0), ("counts", 1)}
    assert after("counts", 0) == after("aside", 1) == set()
    assert after("both", 1) == counts
    assert after("two", 0) == {("both", 0)} | counts
    assert after("one", 1) == {("aside", 1), ("both", 1)} | counts


# --------------------------------------------------------------------- tables that come first


def test_without_preloaded_tables_all_sources_may_read() -> None:
    plan = simple()
    loading = Loading(plan, Numbering(plan), ["one", "two"])
    assert loading.allowed() == ["one", "two"]
    assert not loading.complete
    loading.again([0, 1])
    assert loading.allowed() == ["one", "two"]


def test_preloaded_tables_are_complete_when_all_inputs_have_ended() -> None:
    plan = preloading()
    numbering = Numbering(plan)
    loading = Loading(plan, numbering, ["orders", "prices.changelog"])
    inputs = [
        (numbering.number(exchange.receiver, 0), exchange.number)
        for exchange in plan.exchanges
        if exchange.number in plan.fed_by(plan.preloaded)
    ]
    for _ in range(2):
        assert loading.allowed() == ["prices.changelog"]
        for pair in inputs:
            assert not loading.complete
            loading.ended(*pair)
        assert loading.complete
        assert loading.complete_at(5) == 5
        assert loading.complete_at(9) == 5  # it was then
        loading.again([inputs[0][0]])
        assert not loading.complete
        inputs = [pair for pair in inputs if pair[0] == inputs[0][0]]
    for pair in inputs:
        loading.ended(*pair)
    assert loading.complete_at(9) == 9
    assert loading.release() == ["orders"]
    assert not loading.complete
    assert sorted(loading.allowed()) == ["orders", "prices.changelog"]
    loading.again([inputs[0][0]])
    assert sorted(loading.allowed()) == ["orders", "prices.changelog"]
