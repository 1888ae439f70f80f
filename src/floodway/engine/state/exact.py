"""Bytes that stand for a key: the same for keys that are equal in Python, and only for those.

A dictionary finds ``1``, ``1.0``, ``True`` and ``Decimal(1)`` in one place. A store that knows
nothing but bytes must do the same, or a row that was put away under one of them would not be found
under another. Unlike `floodway.engine.transport.hashing.canonical`, which may put different keys
into one group, this tells all keys apart.
"""

import datetime as dt
import decimal
from typing import Any

import msgspec

_EPOCH = dt.datetime(1970, 1, 1)
_AWARE = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MIDNIGHT = dt.date(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_SMALL = 2**63
_NOT_A_NUMBER = b"n"

_UNLIMITED = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
)
"""In which a number can be brought into its shortest form without being rounded."""


def exact(key: Any) -> bytes:
    """Return the bytes that stand for a key; raise TypeError for what cannot be a key.

    Any not-a-number stands for itself. Records of a class are told from those of another by the
    identity of the class, so the bytes mean something in this process only.

    >>> exact(1) == exact(1.0) == exact(True) == exact(decimal.Decimal("1.00"))
    True
    >>> exact(("a", "b")) == exact(("ab", ""))
    False
    """
    kind = type(key)
    if kind is int:
        return b"i%d" % key if -_SMALL < key < _SMALL else _number(decimal.Decimal(key))
    if kind is str:
        return b"s" + key.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    if kind is tuple:
        return b"(" + _parts(key)
    if key is None:
        return b"0"
    if isinstance(key, int):
        return exact(int(key))
    if isinstance(key, float | decimal.Decimal):
        return _number(decimal.Decimal(key))
    return _rare(key)


def has_nan(key: Any) -> bool:
    """Return whether a key is, or has within it, a number that is not equal to itself.

    >>> has_nan(float("nan")), has_nan((1, float("nan"))), has_nan((1, 2.5))
    (True, True, False)
    """
    kind = type(key)
    if kind is int or kind is str:
        return False
    if kind is tuple or kind is frozenset:
        return any(map(has_nan, key))
    if isinstance(key, msgspec.Struct):
        return any(map(has_nan, msgspec.structs.astuple(key)))
    return bool(key != key)


def _number(number: decimal.Decimal) -> bytes:
    """Return the bytes of a number by its value alone; floats are decimals, too, only longer."""
    if number.is_nan():
        return _NOT_A_NUMBER
    shortest = number.normalize(_UNLIMITED)
    _, _, exponent = shortest.as_tuple()
    if isinstance(exponent, int) and exponent >= 0 and shortest.adjusted() < 19:
        whole = int(shortest)
        if -_SMALL < whole < _SMALL:
            return b"i%d" % whole
    return b"d" + str(shortest).encode()


def _rare(key: Any) -> bytes:
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, dt.datetime):
        return _moment(key)
    if isinstance(key, dt.date):
        return b"D%d" % (key - _MIDNIGHT).days
    if isinstance(key, dt.timedelta):
        return b"l%d" % (key // _MICROSECOND)
    if isinstance(key, dt.time):
        return _time_of_day(key)
    if isinstance(key, msgspec.Struct):
        return b"r%d:" % id(type(key)) + _parts(msgspec.structs.astuple(key))
    if isinstance(key, frozenset):
        return b"f" + b"".join(sorted(map(_sized, key)))
    if isinstance(key, str):
        return exact(str.__str__(key))  # an enum's own `str` is another text
    if isinstance(key, tuple):
        return exact(tuple(key))
    raise TypeError(f"a {type(key).__name__} cannot be a key")


def _moment(key: dt.datetime) -> bytes:
    # Python compares moments that come twice, when clocks are put back, as if they were the first.
    key = key.replace(fold=0)
    if key.utcoffset() is None:
        return b"t%d" % ((key.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)
    return b"T%d" % ((key - _AWARE) // _MICROSECOND)


def _time_of_day(key: dt.time) -> bytes:
    since = dt.timedelta(
        hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
    )
    offset = key.replace(fold=0).utcoffset()
    if offset is None:
        return b"c%d" % (since // _MICROSECOND)
    return b"C%d" % ((since - offset) // _MICROSECOND)


def _parts(parts: tuple[Any, ...]) -> bytes:
    return b"".join(map(_sized, parts))


def _sized(part: Any) -> bytes:
    data = exact(part)
    return b"%d:" % len(data) + data
