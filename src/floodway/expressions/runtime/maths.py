"""Mathematics with Java's answers where Python raises: NaN, infinities, saturation."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from floodway.expressions.runtime.failures import overflow
from floodway.expressions.runtime.numbers import (
    EXACT,
    decimal_or_fail,
    float_remainder,
)

_MAX, _MIN = 2**63 - 1, -(2**63)
_HALVES = {"ROUND_HALF_UP": ROUND_HALF_UP, "ROUND_HALF_EVEN": ROUND_HALF_EVEN}
_ONE = Decimal(1)


def ceil_double(value: float, text: str) -> int:
    """Round up to a BIGINT; NaN gives 0, as in Spark."""
    if -9.3e18 < value < 9.3e18 and _MIN <= (result := math.ceil(value)) <= _MAX:
        return result
    return 0 if value != value else overflow(text, "BIGINT")


def floor_double(value: float, text: str) -> int:
    """Round down to a BIGINT; NaN gives 0, as in Spark."""
    if -9.3e18 < value < 9.3e18 and _MIN <= (result := math.floor(value)) <= _MAX:
        return result
    return 0 if value != value else overflow(text, "BIGINT")


def ceil_decimal(value: Decimal) -> Decimal:
    """Round up to a whole number."""
    return value.quantize(_ONE, ROUND_CEILING, EXACT)


def floor_decimal(value: Decimal) -> Decimal:
    """Round down to a whole number."""
    return value.quantize(_ONE, ROUND_FLOOR, EXACT)


def round_double(value: float, digits: int, half: str) -> float:
    """Round the shortest decimal form of a double."""
    if not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    if int(exact.as_tuple().exponent) >= -digits:
        return value + 0.0
    return float(exact.quantize(_ONE.scaleb(-digits), _HALVES[half], EXACT)) + 0.0


def round_integer(
    value: int, digits: int, half: str, low: int, high: int, text: str, type_name: str
) -> int:
    """Round an integer to tens, hundreds and so on."""
    result = int(Decimal(value).quantize(_ONE.scaleb(-digits), _HALVES[half], EXACT))
    return result if low <= result <= high else overflow(text, type_name)


def round_decimal(
    value: Decimal, digits: int, half: str, precision: int, scale: int, text: str
) -> Decimal:
    """Round a decimal."""
    if int(value.as_tuple().exponent) < -digits:
        value = value.quantize(_ONE.scaleb(-digits), _HALVES[half], EXACT)
    return decimal_or_fail(value, precision, scale, text)


def square_root(value: float) -> float:
    """Return the square root, NaN of a negative number."""
    return math.nan if value < 0 else math.sqrt(value)


def exponential(value: float) -> float:
    """Return e to a power."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def exponential_less_one(value: float) -> float:
    """Return e to a power, minus one."""
    try:
        return math.expm1(value)
    except OverflowError:
        return math.inf


def nearest(value: float) -> float:
    """Return the nearest whole number, the even one of two."""
    if not math.isfinite(value):
        return value
    return math.copysign(round(value), value)


def sine(value: float) -> float:
    """Return the sine."""
    return math.nan if math.isinf(value) else math.sin(value)


def cosine(value: float) -> float:
    """Return the cosine."""
    return math.nan if math.isinf(value) else math.cos(value)


def tangent(value: float) -> float:
    """Return the tangent."""
    return math.nan if math.isinf(value) else math.tan(value)


def _inverse(value: float) -> float:
    return 1.0 / value if value else math.copysign(math.inf, value)


def cotangent(value: float) -> float:
    """Return one over the tangent."""
    return _inverse(tangent(value))


def secant(value: float) -> float:
    """Return one over the cosine."""
    return _inverse(cosine(value))


def cosecant(value: float) -> float:
    """Return one over the sine."""
    return _inverse(sine(value))


def arc_sine(value: float) -> float:
    """Return the angle of a sine."""
    return math.asin(value) if -1 <= value <= 1 else math.nan


def arc_cosine(value: float) -> float:
    """Return the angle of a cosine."""
    return math.acos(value) if -1 <= value <= 1 else math.nan


def hyperbolic_sine(value: float) -> float:
    """Return the hyperbolic sine."""
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def hyperbolic_cosine(value: float) -> float:
    """Return the hyperbolic cosine."""
    try:
        return math.cosh(value)
    except OverflowError:
        return math.inf


def signum(value: float) -> float:
    """Return the sign as a double; zero and NaN stay as they are."""
    return value if value != value or value == 0 else math.copysign(1.0, value)


def logarithm(value: float) -> float | None:
    """Return the natural logarithm."""
    return None if value <= 0 else math.log(value)


def logarithm_2(value: float) -> float | None:
    """Return the logarithm to base 2."""
    return None if value <= 0 else math.log2(value)


def logarithm_10(value: float) -> float | None:
    """Return the logarithm to base 10."""
    return None if value <= 0 else math.log10(value)


def logarithm_plus_one(value: float) -> float | None:
    """Return the natural logarithm of one plus the value."""
    return None if value <= -1 else math.log1p(value)


def logarithm_base(base: float, value: float) -> float | None:
    """Return the logarithm to a base."""
    if base <= 0 or value <= 0:
        return None
    bottom, top = math.log(base), math.log(value)
    if bottom:
        return top / bottom
    return math.nan if top == 0 or top != top else math.copysign(math.inf, top)


def power(base: float, exponent: float) -> float:
    """Return base to the exponent, by Java's rules at the edges."""
    if abs(base) == 1 and not math.isfinite(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent == math.floor(exponent) and exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base == 0:
            odd = exponent == math.floor(exponent) and exponent % 2 == 1
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def angle(y: float, x: float) -> float:
    """Return the angle of a point; -0.0 counts as 0.0."""
    return math.atan2(y + 0.0, x + 0.0)


def factorial(number: int) -> int | None:
    """Return the factorial, or None where it does not fit."""
    return math.factorial(number) if 0 <= number <= 20 else None


def width_bucket(value: float, low: float, high: float, count: int) -> int | None:
    """Return the number of a bucket, from 1; 0 is below all and count + 1 above."""
    if count <= 0 or count == _MAX or value != value or low == high:
        return None
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    below, above = min(low, high), max(low, high)
    if value < below:
        return 0 if low < high else count + 1
    if value > above or (value == above and low < high):
        return count + 1 if low < high else 0
    if low < high:
        return int(count * (value - low) / (high - low)) + 1
    return count + 1 if value == below else int(count * (low - value) / (low - high)) + 1


def float_or_null(left: float, right: float) -> float | None:
    """Return the remainder of doubles, or None for a zero divisor."""
    return None if right == 0 else float_remainder(left, right)


def remainder_or_null(left: int, right: int) -> int | None:
    """Return the remainder of integers, or None for a zero divisor."""
    if right == 0:
        return None
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def bit_count(value: int) -> int:
    """Return the number of bits set in 64-bit two's complement."""
    return (value & 0xFFFFFFFFFFFFFFFF).bit_count()


def _signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def shift_left(value: int, bits: int, width: int) -> int:
    """Move bits left; as in Java, only the low bits of the count matter."""
    return _signed(value << (bits & (width - 1)), width)


def shift_right(value: int, bits: int, width: int) -> int:
    """Move bits right, keeping the sign."""
    return value >> (bits & (width - 1))


def shift_right_unsigned(value: int, bits: int, width: int) -> int:
    """Move bits right, filling with zeros."""
    return _signed((value & ((1 << width) - 1)) >> (bits & (width - 1)), width)
