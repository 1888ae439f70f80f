"""Histograms over recent time forget, clamp and merge."""

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.metrics.recent import MOST_US, RecentHistogram


@given(st.lists(st.integers(1, MOST_US), min_size=1, max_size=200))
def test_percentiles_are_within_one_percent(values: list[int]) -> None:
    recent = RecentHistogram()
    recent.add(values, now=50.0)
    found = recent.percentiles(now=50.0)
    ordered = sorted(values)
    assert found is not None
    assert found.count == len(values)
    assert found.max == pytest.approx(ordered[-1], rel=0.01)
    assert found.p50 == pytest.approx(ordered[(len(values) + 1) // 2 - 1], rel=0.01)


@given(st.lists(st.integers(1, MOST_US), min_size=1, max_size=50))
def test_counting_by_bucket_first_changes_nothing(values: list[int]) -> None:
    recent = RecentHistogram()
    recent.add(values, now=50.0)
    plain = HdrHistogram(1, MOST_US, 2)
    for value in values:
        plain.record_value(value)
    found = recent.percentiles(now=50.0)
    assert found is not None
    assert found.p90 == min(plain.get_value_at_percentile(90), MOST_US)
    assert found.max == min(plain.get_value_at_percentile(100), MOST_US)


def test_looking_does_not_count_twice() -> None:
    recent = RecentHistogram()
    recent.add([1, 2, 3], now=50.0)
    first = recent.percentiles(now=50.0)
    assert recent.percentiles(now=50.0) == first
    recent.add([4], now=50.0)
    after = recent.percentiles(now=50.0)
    assert after is not None
    assert (after.count, after.max) == (4, 4)


@pytest.mark.parametrize(("value", "counts_as"), [(-5, 1), (0, 1), (10**12, MOST_US)])
def test_values_out_of_range_count_as_the_bound(value: int, counts_as: int) -> None:
    recent = RecentHistogram()
    recent.add([value], now=1.0)
    found = recent.percentiles(now=1.0)
    assert found is not None
    assert found.max == counts_as


def test_values_are_forgotten_after_the_window() -> None:
    recent = RecentHistogram(window_s=30, slots=6)
    recent.add([1_000], now=100.0)
    recent.add([10], now=120.0)
    both, later, nothing = (recent.percentiles(now) for now in (129.9, 130.0, 160.0))
    assert both is not None
    assert both.count == 2
    assert later is not None
    assert (later.count, later.max) == (1, 10)
    assert nothing is None


def test_slot_is_emptied_when_its_turn_comes_again() -> None:
    recent = RecentHistogram(window_s=30, slots=6)
    for turn in range(5):
        recent.add([100 + turn], now=30.0 * turn)
    found = recent.percentiles(now=120.0)
    assert found is not None
    assert (found.count, found.max) == (1, 104)


def test_value_older_than_the_window_is_left_out() -> None:
    recent = RecentHistogram(window_s=30, slots=6)
    recent.add([10], now=100.0)
    recent.add([9_000], now=70.0)
    found = recent.percentiles(now=100.0)
    assert found is not None
    assert (found.count, found.max) == (1, 10)


def test_merge_brings_slices_together() -> None:
    one, other = RecentHistogram(), RecentHistogram()
    one.add([10], now=100.0)
    one.add([10], now=70.0)
    other.add([20], now=101.0)
    other.add([30], now=110.0)
    one.merge(other)
    found = one.percentiles(now=110.0)
    assert found is not None
    assert (found.count, found.max) == (3, 30)


def test_merge_does_not_bring_back_the_past() -> None:
    one, other = RecentHistogram(window_s=30, slots=6), RecentHistogram(window_s=30, slots=6)
    one.add([10], now=100.0)
    other.add([20], now=70.0)
    one.merge(other)
    found = one.percentiles(now=100.0)
    assert found is not None
    assert found.max == 10
