"""Sums that anything can be taken out of again: what is left is as if it had never been in.

Floats round when they are added, so what is subtracted later leaves its rounding behind, and an
infinity or a NaN stays for good. Here the finite ones are added as fractions, exactly, and the
others counted. Whatever else there is (integers, decimals, a user's own numbers) is added as it is.
"""

from math import inf, nan
from typing import Any

ExactSum = tuple[int, int, int, int, int, int, int, Any]
"""An exact sum, as plain data.

The finite floats together as a fraction, numerator and then the power of two that is its
denominator; how many values there are, how many of them are floats, and how many of those are NaN,
infinity, and minus infinity; and all values together that are no floats, None if there are none.
"""

NONE: ExactSum = (0, 0, 0, 0, 0, 0, 0, None)
"""The sum of nothing."""


def lift(value: Any) -> ExactSum:
    """Return the sum of one value; null does not count.

    >>> total(lift(0.5))
    0.5
    """
    if value is None:
        return NONE
    if not isinstance(value, float):
        return (0, 0, 1, 0, 0, 0, 0, value)
    if value - value == 0.0:  # neither NaN nor infinite
        units, whole = value.as_integer_ratio()
        return (units, whole.bit_length() - 1, 1, 1, 0, 0, 0, None)
    return (0, 0, 1, 1, int(value != value), int(value == inf), int(value == -inf), None)


def combine(a: ExactSum, b: ExactSum) -> ExactSum:
    """Return the sum of both.

    >>> total(combine(lift(1e16), combine(lift(0.1), lift(-1e16))))
    0.1
    """
    rest = b[7] if a[7] is None else a[7] if b[7] is None else a[7] + b[7]
    return _together(a, b, 1, rest)


def subtract(a: ExactSum, b: ExactSum) -> ExactSum:
    """Return `a` without `b`, which is in it.

    >>> total(subtract(combine(lift(0.1), lift(float("inf"))), lift(float("inf"))))
    0.1
    """
    without = b[7] is not None and a[2] - a[3] == b[2] - b[3]
    rest = None if without else a[7] if b[7] is None else a[7] - b[7]
    return _together(a, b, -1, rest)


def _together(a: ExactSum, b: ExactSum, sign: int, rest: Any) -> ExactSum:
    units, scale, count, floats, nans, above, below, _ = a
    more, its_scale = b[:2]
    if its_scale > scale:
        units, scale = units << (its_scale - scale), its_scale
    elif its_scale < scale:
        more <<= scale - its_scale
    return (
        units + sign * more,
        scale,
        count + sign * b[2],
        floats + sign * b[3],
        nans + sign * b[4],
        above + sign * b[5],
        below + sign * b[6],
        rest,
    )


def total(exact: ExactSum) -> Any:
    """Return what a sum comes to, rounded once, as `math.fsum` does; null for the sum of nothing.

    >>> total(NONE) is None
    True
    >>> total(combine(lift(2), lift(3)))
    5
    """
    units, scale, _, floats, nans, above, below, rest = exact
    if not floats:
        return rest
    if nans or (above and below):
        return _beside(nan, rest)
    if above or below:
        return _beside(inf if above else -inf, rest)
    if isinstance(rest, int):
        return _rounded(units + (rest << scale), scale)
    return _beside(_rounded(units, scale), rest)


def mean(exact: ExactSum) -> float | None:
    """Return the mean; null for that of nothing.

    >>> mean(combine(lift(1), lift(0.5)))
    0.75
    """
    return float(total(exact)) / exact[2] if exact[2] else None


def _beside(floats: float, rest: Any) -> Any:
    return floats if rest is None else floats + rest


def _rounded(units: int, scale: int) -> float:
    try:
        return units / (1 << scale)
    except OverflowError:
        return inf if units > 0 else -inf
