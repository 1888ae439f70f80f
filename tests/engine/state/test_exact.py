"""Bytes of keys: equal for keys that are equal in Python, and only for those."""

import datetime as dt
import decimal
import enum
import math
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from floodway import Record
from floodway.engine.state.exact import exact, has_nan


class Point(Record):
    x: Any
    y: Any


class Other(Record):
    x: Any
    y: Any


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


NUMBERS = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.decimals(allow_nan=False),
    st.integers(-20, 20).map(lambda n: n / 4),
    st.integers(-20, 20).map(lambda n: decimal.Decimal(n) / 4),
    st.integers(0, 400).map(lambda n: 10**n),
    st.integers(0, 400).map(lambda n: decimal.Decimal(f"1E+{n}")),
    st.integers(0, 308).map(lambda n: float(f"1e{n}")),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, decimal.Decimal("Infinity")]),
    st.sampled_from([decimal.Decimal("-0"), decimal.Decimal("1.50"), decimal.Decimal("0E+99")]),
)
ZONES = st.integers(-3, 3).map(lambda hours: dt.timezone(dt.timedelta(hours=hours)))
DATES = st.one_of(
    st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 3)),
    st.datetimes(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 3)),
    st.datetimes(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 3), timezones=ZONES),
    st.integers(0, 6).map(lambda h: dt.datetime(2024, 1, 1, h, tzinfo=dt.UTC)),
    st.datetimes(),
    st.times(),
    st.times(timezones=ZONES),
    st.timedeltas(),
    st.integers(-3, 3).map(lambda n: dt.timedelta(microseconds=n)),
)
SCALARS = st.one_of(
    st.none(),
    NUMBERS,
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from(["", "i1", "0", "red", b"", b"i1", Colour.RED, Size.LARGE, 3, "\ud800"]),
    DATES,
)
KEYS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(Other, inner, inner),
    ),
    max_leaves=4,
)


def equal(a: Any, b: Any) -> bool:
    """Return whether two keys are equal, where all that is not a number is one."""
    if isinstance(a, float | decimal.Decimal) and isinstance(b, float | decimal.Decimal):
        return bool(a == b) or (a != a and b != b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, Point | Other) and type(a) is type(b):
        return equal((a.x, a.y), (b.x, b.y))
    if isinstance(a, frozenset) and isinstance(b, frozenset) and (has_nan(a) or has_nan(b)):
        return exact(a) == exact(b)  # Python has no opinion that could be compared with
    return bool(a == b)


@settings(max_examples=1000)
@given(KEYS, KEYS)
def test_keys_have_the_same_bytes_just_if_they_are_equal(a: Any, b: Any) -> None:
    assert (exact(a) == exact(b)) == equal(a, b)


@settings(max_examples=500)
@given(NUMBERS, NUMBERS)
@example(0.1, decimal.Decimal("0.1"))
@example(0.1, decimal.Decimal.from_float(0.1))
@example(2**63, 2.0**63)
@example(-(2**63), decimal.Decimal(-(2**63)))
@example(float("nan"), float("nan"))
@example(decimal.Decimal("NaN"), float("nan"))
@example(10**5000, decimal.Decimal("1E+5000"))
@example(math.inf, decimal.Decimal("Infinity"))
def test_numbers_have_the_same_bytes_just_if_they_are_equal(a: Any, b: Any) -> None:
    assert (exact(a) == exact(b)) == equal(a, b)


@settings(max_examples=300)
@given(st.lists(KEYS, max_size=6))
def test_a_dictionary_and_bytes_find_the_same_keys(keys: list[Any]) -> None:
    keys = [key for key in keys if not has_nan(key)]
    assert len(dict.fromkeys(keys)) == len({exact(key) for key in keys})


def test_equal_keys_of_different_types_have_the_same_bytes() -> None:
    for equals in [
        (1, 1.0, True, decimal.Decimal("1.00"), decimal.Decimal("0.1E+1")),
        (0, 0.0, -0.0, False, decimal.Decimal("-0.0"), decimal.Decimal("0E+9")),
        (0.5, decimal.Decimal("0.50")),
        ("red", Colour.RED),
        (3, Size.LARGE),
        (10**30, decimal.Decimal("1E+30")),
    ]:
        for a, b in combinations(equals, 2):
            assert a == b
            assert exact(a) == exact(b)
            assert exact((a, "x")) == exact((b, "x"))


def test_numbers_with_huge_exponents_take_no_time() -> None:
    assert exact(decimal.Decimal("1E+999999")) != exact(decimal.Decimal("1E+999998"))
    assert exact(decimal.Decimal("1E-999999")) != exact(decimal.Decimal("1E-999998"))


def test_moments_that_clocks_show_twice_are_one_key_as_in_python() -> None:
    first = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    second = first.replace(fold=1)
    assert first == second
    assert exact(first) == exact(second)


@pytest.mark.parametrize("key", [[1], {1}, {}, 1j, object(), (1, [2])])
def test_what_is_no_key_is_refused(key: Any) -> None:
    with pytest.raises(TypeError, match="cannot be a key"):
        exact(key)


def test_a_number_that_is_not_one_is_found_within_keys() -> None:
    nan = float("nan")
    for key in [nan, decimal.Decimal("NaN"), (1, (nan,)), frozenset([nan]), Point(1, nan)]:
        assert has_nan(key)
    for key in [1, 1.5, "nan", (1, (2.0,)), frozenset([1]), Point(1, None), None, dt.date.max]:
        assert not has_nan(key)
