"""Whole numbers from rates and costs, without being fooled by the last digit of a float.

A float makes 0.1 * 3 a little more than 0.3, and so a task too many. What differs by less than a
billionth is the same here; no cost is measured that well.
"""

import math

TOLERANCE = 1e-9
"""The relative difference below which two numbers are the same."""


def up(number: float) -> int:
    """Return the smallest whole number, 1 or more, that is not below `number`.

    Examples
    --------
    >>> up(2.1), up(3.0), up(0.1 * 3 * 10), up(0)
    (3, 3, 3, 1)
    """
    return max(1, math.ceil(number * (1 - TOLERANCE)))


def above(number: float) -> int:
    """Return the smallest whole number that is above `number`.

    Examples
    --------
    >>> above(2.1), above(3.0), above(2.9999999999999996)
    (3, 4, 4)
    """
    return math.floor(number * (1 + TOLERANCE)) + 1


def exceeds(number: float, bound: float) -> bool:
    """Return whether a number is larger than its bound by more than rounding.

    Examples
    --------
    >>> exceeds(5.1, 5), exceeds(5.000000000001, 5)
    (True, False)
    """
    return number > bound * (1 + TOLERANCE)
