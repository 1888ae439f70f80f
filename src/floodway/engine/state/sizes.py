"""What rows weigh in memory, about: deep sizes of a few, taken for all.

Nothing is counted per record. Of what changed in an epoch some rows are weighed, and their average
moves the estimate for their space.
"""

import sys
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from floodway.operators.keyed import GONE

SAMPLES = 16
"""So many rows are weighed at a time."""

SHOW_EVERY = 2000
"""Only after so many rows some are weighed again."""

SLOT_BYTES = 50
"""What a dictionary needs for an entry, on average, besides key and value."""

GUESSED_BYTES = 250.0
"""What a row is thought to weigh before one has been weighed."""

_INNER = 8
"""So many items of a long list stand for all of them."""

_SHARED = frozenset({type(None), bool})
_SMALL_NUMBERS = range(-5, 257)  # of which Python has one each


def weight(value: Any) -> int:
    """Return about how many bytes a value needs, with all that is in it; nothing counts twice.

    >>> weight(("a", [0.5] * 1000)) > 1000 * 8
    True
    """
    return _weight(value, set())


def _weight(value: Any, seen: set[int]) -> int:
    kind = type(value)
    if kind in _SHARED or id(value) in seen or (kind is int and value in _SMALL_NUMBERS):
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if kind is tuple or kind is list or kind is set or kind is frozenset:
        return size + _items_weight(value, len(value), seen)
    if kind is dict:
        return size + _items_weight(chain.from_iterable(value.items()), 2 * len(value), seen)
    if isinstance(value, msgspec.Struct):
        return size + sum(_weight(item, seen) for item in msgspec.structs.astuple(value))
    slots = getattr(kind, "__slots__", ())
    return size + sum(_weight(getattr(value, slot, None), seen) for slot in slots)


def _items_weight(items: Iterable[Any], count: int, seen: set[int]) -> int:
    some = [_weight(item, seen) for item in islice(items, _INNER)]
    return sum(some) * count // len(some) if some else 0


def row_weight(key: Any, row: Any) -> int:
    """Return about how many bytes a row of a space needs, with its key."""
    seen: set[int] = set()
    return SLOT_BYTES + _weight(key, seen) + _weight(row, seen)


class Size(NamedTuple):
    """How much state there is.

    Attributes
    ----------
    keys
        How many rows there are, in memory and elsewhere.
    bytes
        About how many bytes those in memory need.
    aside
        How many rows are not in memory.
    """

    keys: int
    bytes: int
    aside: int


class Scale:
    """The average weight of a space's rows, which follows what it is shown.

    Attributes
    ----------
    row_bytes
        The average; a guess before anything was shown.
    """

    __slots__ = ("_first", "_unweighed", "row_bytes")

    def __init__(self) -> None:
        self._first, self._unweighed = True, SHOW_EVERY
        self.row_bytes = GUESSED_BYTES

    def show(self, rows: Mapping[Any, Any]) -> None:
        """Weigh some of these rows, if there are many or were many since the last time."""
        self._unweighed += len(rows)
        if self._unweighed < SHOW_EVERY:
            return
        step = max(len(rows) // SAMPLES, 1)
        some = islice(rows.items(), 0, None, step)
        weights = [row_weight(key, row) for key, row in some if row is not GONE]
        if weights:
            average = sum(weights) / len(weights)
            # What is shown first sets the scale, and later it is moved, faster by more rows.
            share = 1.0 if self._first else min(len(weights) / SAMPLES, 1.0) / 4
            self.row_bytes += (average - self.row_bytes) * share
            self._first, self._unweighed = False, 0
