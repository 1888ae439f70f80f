"""Values of all types that can travel, and a record of a class that cannot."""

import datetime as dt
from typing import Any

import msgspec
from hypothesis import strategies as st

from floodway import Record


class Point(Record):
    x: Any
    y: Any = None


class Named(Record, kw_only=True):
    first: Any = 1
    second: Any


class Stranger(Record):
    x: int


ZONES = st.builds(
    lambda seconds: dt.timezone(dt.timedelta(seconds=seconds)), st.integers(-86399, 86399)
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**300), 2**300),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=ZONES),
    st.timedeltas(),
)
KEYS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Point, inner, inner),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.one_of(SCALARS, KEYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(KEYS, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(Named, first=inner, second=inner),
    ),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal and of the same types all the way down."""
    if type(one) is not type(other) or one != other:
        return False
    match one:
        case list() | tuple():
            return all(map(same, one, other))
        case dict():
            return all(same(item, other[key]) for key, item in one.items())
        case set() | frozenset():
            return sorted(map(type_name, one)) == sorted(map(type_name, other))
        case msgspec.Struct():
            return all(same(getattr(one, f), getattr(other, f)) for f in one.__struct_fields__)
    return True


def type_name(value: Any) -> str:
    return type(value).__name__
