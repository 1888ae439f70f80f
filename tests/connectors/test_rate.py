"""Values made here: paced by the clock, shared, replayable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.connectors.base import Lag, Split
from floodway.connectors.rate import GeneratorSource, RateSource, Schedule
from floodway.core.errors import OptionError
from floodway.testing.conformance import check_source


class Clock:
    now = 5.0

    def __call__(self) -> float:
        return self.now


def test_promises() -> None:
    check_source(RateSource(100_000, count=200), range(200), schema=int)
    check_source(RateSource(100_000, count=20, start=7), range(7, 27), schema=int)
    check_source(RateSource(1, count=0), [], schema=int)
    squares = [n * n for n in range(50)]
    check_source(GeneratorSource(lambda n: n * n, count=50), squares, schema=int)
    paced = GeneratorSource(lambda n: n * n, count=50, per_second=100_000)
    check_source(paced, squares, schema=int)


def test_nothing_before_its_time() -> None:
    clock = Clock()
    schedule = Schedule(Split(), 10, None, 0, clock)
    assert list(schedule.take(100)) == [0]
    clock.now += 0.05
    assert list(schedule.take(100)) == []
    clock.now += 0.051
    assert list(schedule.take(100)) == [1]


def test_reader_that_was_kept_waiting_gives_all_that_is_due() -> None:
    clock = Clock()
    schedule = Schedule(Split(), 10, None, 0, clock)
    clock.now += 2.05
    assert schedule.lag() == Lag(21, 2.1, full=False)
    assert list(schedule.take(15)) == list(range(15))
    assert list(schedule.take(15)) == list(range(15, 21))
    assert schedule.lag() == Lag(0, 0.0, full=False)


def test_after_a_restart_the_pace_is_the_same() -> None:
    clock = Clock()
    schedule = Schedule(Split(), 10, None, 100, clock)
    clock.now += 0.25
    assert list(schedule.take(100)) == [100, 101, 102]


@given(
    st.integers(1, 5),
    st.floats(0.5, 1e3),
    st.none() | st.integers(0, 300),
    st.lists(st.floats(0, 3), max_size=5),
)
def test_tasks_together_give_what_one_gives(
    of: int, per_second: float, count: int | None, waits: list[float]
) -> None:
    clock = Clock()
    alone = Schedule(Split(), per_second, count, 0, clock)
    shared = [Schedule(Split(index, of), per_second, count, 0, clock) for index in range(of)]
    for wait in waits:
        clock.now += wait
        together = sorted(n for schedule in shared for n in schedule.take(10_000_000))
        assert together == list(alone.take(10_000_000))


def test_endless_source_without_rate_gives_what_is_asked_for() -> None:
    reader = GeneratorSource(str).open(Split(1, 2))
    assert reader.poll(3) == ["1", "3", "5"]
    assert reader.position() == 3
    assert reader.lag() == Lag()


def test_function_that_fails_is_named() -> None:
    def reciprocal(n: int) -> float:
        return 1 / n

    bad, good = GeneratorSource(reciprocal).open(Split()).poll(2)
    assert "reciprocal failed on 0: ZeroDivisionError" in bad.problem
    assert (bad.raw, good) == (0, 1.0)


@pytest.mark.parametrize(("per_second", "count"), [(0, None), (-1, None), (1, -1)])
def test_options_that_make_no_sense(per_second: float, count: int | None) -> None:
    with pytest.raises(OptionError):
        RateSource(per_second, count=count)
