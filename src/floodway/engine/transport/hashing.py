"""A hash of keys that is the same in every process, and on every day.

Python's own hash of text differs between processes. Keys that are equal in Python (``1``, ``1.0``
and ``True``) must have the same hash, since operators keep them in one dictionary slot.
"""

import datetime as dt
import zlib
from numbers import Number
from typing import Any

import msgspec

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def key_group(key: Any, groups: int) -> int:
    """Return the key group of a key.

    >>> key_group("anna", 128) == key_group("anna", 128)
    True
    >>> key_group(1, 128) == key_group(1.0, 128) == key_group(True, 128)
    True
    """
    return zlib.crc32(canonical(key)) % groups


def partition(key: Any, groups: int, dop: int) -> int:
    """Return which of `dop` tasks has a key: tasks have neighbouring groups, evenly."""
    return key_group(key, groups) * dop // groups


def canonical(key: Any) -> bytes:
    """Return bytes that are equal for equal keys; raise TypeError for what cannot be a key."""
    kind = type(key)
    if kind is str:
        return b"s" + str(key).encode("utf-8", "surrogatepass")
    if kind is tuple:
        return b"(" + b"".join(_sized(canonical(part)) for part in key) + b")"
    if key is None:
        return b"0"
    if isinstance(key, Number):
        # Numbers hash by value and without a random seed; but each NaN is an object of its own.
        return b"nan" if key != key else b"n%d" % hash(key)
    return _rare(key)


def _rare(key: Any) -> bytes:
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, dt.datetime):
        aware = key if key.tzinfo else key.replace(tzinfo=dt.UTC)
        return b"t%d" % ((aware - _EPOCH) // dt.timedelta(microseconds=1))
    if isinstance(key, dt.date):
        return b"d%d" % key.toordinal()
    if isinstance(key, dt.timedelta):
        return b"i%d" % (key // dt.timedelta(microseconds=1))
    if isinstance(key, msgspec.Struct):
        parts = (canonical(getattr(key, name)) for name in key.__struct_fields__)
        return b"r" + b"".join(map(_sized, parts))
    if isinstance(key, frozenset):
        return b"f" + b"".join(sorted(_sized(canonical(part)) for part in key))
    if isinstance(key, str):
        return canonical(str.__str__(key))  # an enum's own `str` is another text
    if isinstance(key, tuple):
        return canonical(tuple(key))
    raise TypeError(f"a {type(key).__name__} cannot be a key")


def _sized(data: bytes) -> bytes:
    return b"%d:" % len(data) + data
