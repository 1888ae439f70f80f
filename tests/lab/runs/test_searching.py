"""The search for the highest sustained rate: right, and in few trials."""

import pytest
from floodway_lab.runs.searching import Search, Trial
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import OptionError


def find(search: Search, capacity: float, *, overloaded: float = 1.0) -> list[Trial]:
    """Search a system that takes so many a second; of too many, only a share of that."""
    while (rate := search.next_rate()) is not None:
        sustained = rate <= capacity
        search.note(Trial(rate, sustained, rate if sustained else capacity * overloaded))
    return search.trials


@given(st.floats(1e3, 1e8), st.floats(1e3, 1e8), st.floats(0.3, 1.0))
def test_capacity_is_found_within_the_precision(
    first: float, capacity: float, overloaded: float
) -> None:
    search = Search(first, most=100)
    find(search, capacity, overloaded=overloaded)
    assert search.sustained is not None
    assert capacity / 1.051 <= search.sustained <= capacity


@pytest.mark.parametrize("capacity", [30_000, 100_000, 900_000, 2_500_000])
def test_a_few_trials_do(capacity: float) -> None:
    assert len(find(Search(1_000_000), capacity)) <= 8


def test_few_trials_do_for_a_system_that_takes_everything_and_falls_behind_inside() -> None:
    """It was approached by 3 % at a time, as Spark's Real-Time Mode was behind a topic."""
    search = Search(150_000, precision=0.1)
    while (rate := search.next_rate()) is not None:
        search.note(Trial(rate, rate <= 195_000, rate))
    assert search.sustained is not None
    assert 195_000 / 1.1 <= search.sustained <= 195_000
    assert len(search.trials) <= 6


def test_a_system_that_sustains_nothing_has_no_rate() -> None:
    search = Search(1_000, most=6)
    while (rate := search.next_rate()) is not None:
        search.note(Trial(rate, False, 0.0))
    assert search.sustained is None
    assert len(search.trials) == 6


@given(st.lists(st.booleans(), min_size=14, max_size=14))
def test_whatever_happens_it_comes_to_an_end(outcomes: list[bool]) -> None:
    search = Search(1_000)
    for sustained in outcomes:
        rate = search.next_rate()
        if rate is None:
            break
        assert rate > 0
        search.note(Trial(rate, sustained, rate * 0.9))
    assert search.next_rate() is None or len(search.trials) < 14


@pytest.mark.parametrize(("first", "precision"), [(0, 0.05), (100, 0), (float("nan"), 0.1)])
def test_nonsense_is_refused(first: float, precision: float) -> None:
    with pytest.raises(OptionError, match="cannot begin"):
        Search(first, precision=precision)
