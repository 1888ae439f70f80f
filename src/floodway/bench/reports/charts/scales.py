"""From values to places on a chart, straight or logarithmic, and the marks beside them."""

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

LEAST, MOST = 1e-9, 1e15
"""The ends of a chart: smaller values (on a logarithmic scale) and larger ones are drawn there."""

_NICE = (1.0, 2.0, 5.0)
_CLOSE = 1e-9

Show = Callable[[float], str]
"""How a value is written at its mark."""


class Scale(msgspec.Struct, frozen=True):
    """Where values are on a chart.

    Attributes
    ----------
    low, high
        The values at both ends; what is outside of them is drawn there.
    start, stop
        The places of the ends.
    log
        Whether each step multiplies.

    Examples
    --------
    >>> scale = Scale(1, 100, 0, 200, log=True)
    >>> scale.at(10), scale.at(1_000), scale.ticks(4)
    (100.0, 200.0, [1.0, 10.0, 100.0])
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the place of a value."""
        inside = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            share = (inside - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round values to mark, not many more than that."""
        return self._log_ticks(most) if self.log else self._linear_ticks(most)

    def _linear_ticks(self, most: int) -> list[float]:
        step = _step((self.high - self.low) / max(most, 1))
        first = math.ceil(self.low / step - _CLOSE)
        last = math.floor(self.high / step + _CLOSE)
        return [round(number * step, 12) for number in range(first, last + 1)]

    def _log_ticks(self, most: int) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        decades = [10.0**power for power in range(first, last + 1)]
        fine = self._inside([nice * decade for decade in decades for nice in _NICE])
        if len(fine) <= most:
            return fine
        whole = self._inside(decades)
        chosen = whole if len(whole) > 1 else fine
        return chosen[:: math.ceil(len(chosen) / max(most, 1))]

    def _inside(self, values: Sequence[float]) -> list[float]:
        low, high = self.low * (1 - _CLOSE), self.high * (1 + _CLOSE)
        return [value for value in values if low <= value <= high]


def scaled(values: Iterable[float], start: float, stop: float, *, log: bool = False) -> Scale:
    """Return a scale on which all values are, from one round value to another.

    >>> scaled([3, 80], 0, 1), scaled([3, 80], 0, 1, log=True)
    (Scale(low=0.0, high=80.0, start=0, stop=1, log=False),
     Scale(low=2.0, high=100.0, start=0, stop=1, log=True))
    """
    finite = [min(max(value, -MOST), MOST) for value in values if math.isfinite(value)]
    low, high = _log_ends(finite) if log else _linear_ends(finite)
    return Scale(low, high, start, stop, log)


def _linear_ends(values: Sequence[float]) -> tuple[float, float]:
    """Return round values around all others, and around 0: lengths are to be compared."""
    low, high = min([0.0, *values]), max([0.0, *values])
    if high - low < LEAST:
        high = low + 1
    step = _step((high - low) / 10)
    return math.floor(low / step + _CLOSE) * step, math.ceil(high / step - _CLOSE) * step


def _log_ends(values: Sequence[float]) -> tuple[float, float]:
    positive = [max(value, LEAST) for value in values if value > 0]
    if not positive:
        return 1.0, 10.0
    low, high = _nice_below(min(positive)), _nice_above(max(positive))
    return (low, high) if high > low * 1.5 else (low, low * 10)


def _step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20 ... (or 0.5 ...) that is not smaller than that."""
    return _nice_above(least)


def _nice_above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next((n * power for n in _NICE if n * power >= value * (1 - _CLOSE)), 10 * power)


def _nice_below(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next((n * power for n in reversed(_NICE) if n * power <= value * (1 + _CLOSE)), power)


def show_plain(value: float) -> str:
    """Return a value as it is.

    >>> show_plain(0.25), show_plain(20.0)
    ('0.25', '20')
    """
    return f"{value:g}"


def show_count(value: float) -> str:
    """Return how many.

    >>> [show_count(value) for value in (0, 500, 20_000, 1_500_000, 4e9)]
    ['0', '500', '20 k', '1.5 M', '4 G']
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def show_duration(ms: float) -> str:
    """Return a time.

    >>> [show_duration(value) for value in (0, 0.2, 5, 2_000)]
    ['0', '200 µs', '5 ms', '2 s']
    """
    if ms >= 1000:
        return f"{ms / 1000:g} s"
    return f"{ms:g} ms" if ms >= 1 else f"{1000 * ms:g} µs" if ms > 0 else f"{ms:g}"


def show_share(value: float) -> str:
    """Return a share.

    >>> show_share(0.001), show_share(0.5)
    ('0.1 %', '50 %')
    """
    return f"{100 * value:g} %"
