"""Running moments agree with the definitions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.engine.control.moments import RunningMoments
from floodway.engine.control.report import Moments

TIMES = st.lists(st.floats(min_value=0.0, max_value=1e6), max_size=60)


def running(values: list[float]) -> RunningMoments:
    moments = RunningMoments()
    for value in values:
        moments.add(value)
    return moments


def direct(values: list[float]) -> Moments:
    if not values:
        return Moments()
    count = len(values)
    mean = math.fsum(values) / count
    return Moments(
        count,
        mean,
        math.fsum((value - mean) ** 2 for value in values) / count,
        math.fsum((value - mean) ** 3 for value in values) / count,
    )


def agree(found: Moments, expected: Moments, values: list[float]) -> None:
    scale = max(map(abs, values), default=1.0) + 1e-9
    assert found.count == expected.count
    assert math.isclose(found.mean, expected.mean, rel_tol=1e-9, abs_tol=1e-9 * scale)
    assert math.isclose(found.variance, expected.variance, rel_tol=1e-9, abs_tol=1e-9 * scale**2)
    assert math.isclose(found.third, expected.third, rel_tol=1e-9, abs_tol=1e-9 * scale**3)


@given(TIMES)
def test_running_moments_are_the_moments(values: list[float]) -> None:
    agree(running(values).report(), direct(values), values)


@given(TIMES, TIMES)
def test_merged_moments_are_those_of_all_values(some: list[float], others: list[float]) -> None:
    moments = running(some)
    moments.merge(running(others).report())
    agree(moments.report(), direct(some + others), some + others)


@given(TIMES, TIMES)
def test_values_can_follow_a_merge(some: list[float], others: list[float]) -> None:
    moments = RunningMoments()
    moments.merge(running(some).report())
    for value in others:
        moments.add(value)
    agree(moments.report(), direct(some + others), some + others)


def test_large_offset_loses_no_digits() -> None:
    """Sums of squares would: the square of 1e9 has no room for a variance of 2/3."""
    moments = running([1e9, 1e9 + 1, 1e9 + 2]).report()
    assert moments.variance == pytest.approx(2 / 3, rel=1e-6)
