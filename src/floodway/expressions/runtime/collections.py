"""Equality and order of any two values, as Spark sees them, for arrays, maps and structs."""

import datetime as dt
from typing import Any

import msgspec


def order_key(value: Any) -> Any:
    """Return a key that sorts and compares as Spark does: NULL first, NaN last, -0.0 as 0.0.

    >>> order_key([1, None]) > order_key([1])
    True
    """
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if value != value else (1, value + 0.0)
    if isinstance(value, list):
        return (1, tuple(map(order_key, value)))
    if isinstance(value, msgspec.Struct):
        return (1, tuple(order_key(getattr(value, name)) for name in value.__struct_fields__))
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return (1, value.replace(tzinfo=dt.UTC))
    return (1, value)


def hash_key(value: Any) -> Any:
    """Return something hashable that is equal where Spark takes two values for equal."""
    if type(value) in (int, str, bool, bytes):
        return value
    return order_key(value)


def same(left: Any, right: Any) -> bool:
    """Return ``left <=> right``."""
    return bool(order_key(left) == order_key(right))
