"""Percentiles of what happened lately.

A histogram over the whole run answers slowly: after an hour, a minute of trouble is invisible.
So there is a ring of histograms, each for a slice of the recent past; the oldest is emptied when
its turn comes again.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import msgspec

# The library has no type hints: histograms are Any here, and nowhere else.
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

LEAST_US = 1
MOST_US = 3_600_000_000  # 1 h
_DIGITS = 2  # a bucket is at most 1 % wide; one histogram takes 26 KiB
_BITS = 8  # the leading bits that tell a bucket of two digits from the next
_EXACT = 1 << _BITS  # smaller values have a bucket each


class Percentiles(msgspec.Struct, frozen=True, gc=False):
    """Percentiles of times in microseconds, to within 1 %.

    Attributes
    ----------
    count
        How many samples there were.
    p50, p90, p99, max
        Half of them, nine tenths, 99 of 100 and all were at most this.
    """

    count: int
    p50: int
    p90: int
    p99: int
    max: int


class RecentHistogram:
    """A histogram of the times of the last seconds.

    Parameters
    ----------
    window_s
        How long a value counts: at least this less one slot, and at most this.
    slots
        Into how many slices the window is cut.

    Examples
    --------
    >>> recent = RecentHistogram(window_s=30, slots=6)
    >>> recent.add([10, 20, 30, 40], now=100.0)
    >>> recent.percentiles(now=101.0)
    Percentiles(count=4, p50=20, p90=40, p99=40, max=40)
    >>> recent.percentiles(now=200.0) is None
    True
    """

    def __init__(self, window_s: float = 30.0, slots: int = 6) -> None:
        self._slot_s = window_s / slots
        self._slots = [_Slot() for _ in range(slots)]

    def add(self, values_us: Sequence[int], now: float) -> None:
        """Add times in microseconds; those outside 1 us to 1 h count as the nearer bound."""
        current = int(now / self._slot_s)
        slot = self._slots[current % len(self._slots)]
        # An older slice than the slot's is outside the window: its slot is in use again.
        if values_us and slot.turn_to(current):
            slot.add(values_us)

    def merge(self, other: Self) -> None:
        """Add all values of another histogram with the same window and slots."""
        for mine, theirs in zip(self._slots, other._slots, strict=True):
            if theirs.slice >= 0 and mine.turn_to(theirs.slice):
                mine.histogram.add(theirs.histogram)

    def percentiles(self, now: float) -> Percentiles | None:
        """Return the percentiles of the values in the window, or None if there are none."""
        oldest = int(now / self._slot_s) - len(self._slots)
        whole = _histogram()
        for slot in self._slots:
            if slot.slice > oldest:
                whole.add(slot.histogram)
        if not whole.total_count:
            return None
        values = whole.get_percentile_to_value_dict([50, 90, 99, 100])
        return Percentiles(
            whole.total_count, *(min(values[part], MOST_US) for part in (50, 90, 99, 100))
        )


class _Slot:
    """The values of one slice of time.

    The library takes 2 us for a value, which is too much for thousands a second. So values are
    counted by bucket first, which takes a tenth of that, and whole buckets go to the histogram when
    somebody looks.
    """

    def __init__(self) -> None:
        self.slice = -1  # which slice of time, counted in slots since 1970
        self._histogram: Any = _histogram()
        self._counted: Counter[int] = Counter()

    def turn_to(self, current: int) -> bool:
        """Forget an older slice, and return whether the slot now holds the given one."""
        if self.slice < current:
            self.slice = current
            self._histogram.reset()
            self._counted.clear()
        return self.slice == current

    def add(self, values_us: Sequence[int]) -> None:
        if min(values_us) < LEAST_US or max(values_us) > MOST_US:
            values_us = [min(max(value, LEAST_US), MOST_US) for value in values_us]
        self._counted.update(
            [
                value if value < _EXACT else value >> (low := value.bit_length() - _BITS) << low
                for value in values_us
            ]
        )

    @property
    def histogram(self) -> Any:
        """The histogram of all values added so far."""
        for value, count in self._counted.items():
            self._histogram.record_value(value, count)
        self._counted.clear()
        return self._histogram


def _histogram() -> Any:
    return HdrHistogram(LEAST_US, MOST_US, _DIGITS)
