"""Arithmetic where Python's and Spark's differ: signs of remainders, decimals, NaN."""

import decimal
import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from floodway.expressions.runtime.failures import cast_failed, division_by_zero, overflow

# Wide enough for the exact product and quotient of two 38-digit numbers, so that rounding
# happens once, where Spark rounds.
EXACT = decimal.Context(prec=120, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999)
# Spark computes products to 39 digits before it rounds to the scale of the result.
SPARK = decimal.Context(prec=39, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999)
_STEPS = [Decimal(1).scaleb(-scale) for scale in range(40)]
_LIMITS = [Decimal(10) ** digits for digits in range(40)]


def long_quotient(left: int, right: int, text: str) -> int:
    """Return ``left DIV right``, cut off towards zero."""
    if right == 0:
        division_by_zero(text)
    quotient = abs(left) // abs(right)
    result = quotient if (left < 0) == (right < 0) else -quotient
    return result if result < 9223372036854775808 else overflow(text, "BIGINT")


def long_remainder(left: int, right: int, text: str) -> int:
    """Return ``left % right`` with the sign of the left operand."""
    if right == 0:
        division_by_zero(text)
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def double_remainder(left: float, right: float, text: str) -> float:
    """Return the remainder of doubles with the sign of the left operand."""
    if right == 0:
        division_by_zero(text)
    return float_remainder(left, right)


def float_remainder(left: float, right: float) -> float:
    """Return the IEEE remainder with the left operand's sign; NaN where there is none."""
    if math.isinf(left) or right == 0 or left != left or right != right:
        return math.nan
    return math.fmod(left, right)


def long_pmod(left: int, right: int, text: str, width: int) -> int:
    """Return the remainder that is not negative for a positive divisor."""
    remainder = long_remainder(left, right, text)
    if remainder >= 0:
        return remainder
    shifted = remainder + right
    if shifted < -(1 << width - 1):
        # Spark computes this sum without a check, so it wraps round.
        shifted += 1 << width
    return long_remainder(shifted, right, text)


def double_pmod(left: float, right: float, text: str) -> float:
    """Return ``pmod`` of doubles."""
    if right == 0:
        division_by_zero(text)
    remainder = float_remainder(left, right)
    return float_remainder(remainder + right, right) if remainder < 0 else remainder


def fit(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return the value rounded half up to the scale, or None if it has too many digits."""
    if not value.same_quantum(_STEPS[scale]):
        value = value.quantize(_STEPS[scale], ROUND_HALF_UP, EXACT)
    return value if abs(value) < _LIMITS[precision - scale] else None


def decimal_or_fail(value: Decimal, precision: int, scale: int, text: str) -> Decimal:
    """Return the value in the type of a result."""
    result = fit(value, precision, scale)
    return overflow(text, f"DECIMAL({precision},{scale})") if result is None else result


def decimal_add(left: Decimal, right: Decimal, precision: int, scale: int, text: str) -> Decimal:
    """Return the sum."""
    return decimal_or_fail(EXACT.add(left, right), precision, scale, text)


def decimal_subtract(
    left: Decimal, right: Decimal, precision: int, scale: int, text: str
) -> Decimal:
    """Return the difference."""
    return decimal_or_fail(EXACT.subtract(left, right), precision, scale, text)


def decimal_multiply(
    left: Decimal, right: Decimal, precision: int, scale: int, text: str
) -> Decimal:
    """Return the product."""
    return decimal_or_fail(SPARK.multiply(left, right), precision, scale, text)


def decimal_divide(left: Decimal, right: Decimal, precision: int, scale: int, text: str) -> Decimal:
    """Return the quotient, which Spark first rounds to 39 digits after the point."""
    if right == 0:
        division_by_zero(text)
    quotient = EXACT.divide(left, right).quantize(_STEPS[39], ROUND_HALF_UP, EXACT)
    return decimal_or_fail(quotient, precision, scale, text)


def decimal_remainder(
    left: Decimal, right: Decimal, precision: int, scale: int, text: str
) -> Decimal:
    """Return the remainder with the sign of the left operand."""
    if right == 0:
        division_by_zero(text)
    return decimal_or_fail(EXACT.remainder(left, right), precision, scale, text)


def decimal_pmod(left: Decimal, right: Decimal, precision: int, scale: int, text: str) -> Decimal:
    """Return ``pmod`` of decimals."""
    if right == 0:
        division_by_zero(text)
    remainder = EXACT.remainder(left, right)
    if remainder < 0:
        remainder = EXACT.remainder(EXACT.add(remainder, right), right)
    return decimal_or_fail(remainder, precision, scale, text)


def decimal_quotient(left: Decimal, right: Decimal, text: str) -> int:
    """Return ``left DIV right`` as a BIGINT."""
    if right == 0:
        division_by_zero(text)
    result = int(EXACT.divide_int(left, right))
    if not -9223372036854775808 <= result <= 9223372036854775807:
        overflow(text, "BIGINT")
    return result


def decimal_cast(value: Decimal, precision: int, scale: int) -> Decimal:
    """Return a decimal in another decimal type."""
    result = fit(value, precision, scale)
    return cast_failed(value, f"DECIMAL({precision},{scale})") if result is None else result


def integer_to_decimal(value: int, precision: int, scale: int) -> Decimal:
    """Return an integer as a decimal."""
    return decimal_cast(Decimal(value), precision, scale)


def double_to_decimal(value: float, precision: int, scale: int) -> Decimal:
    """Return a double as a decimal, by way of its shortest decimal form."""
    if not math.isfinite(value):
        cast_failed(value, f"DECIMAL({precision},{scale})")
    exact = Decimal(repr(value))
    if exact.adjusted() >= 39:
        cast_failed(value, f"DECIMAL({precision},{scale})")
    return decimal_cast(exact, precision, scale)


def to_integer(value: float | Decimal, low: int, high: int, target: str) -> int:
    """Return a fractional number cut off towards zero."""
    if isinstance(value, float) and not math.isfinite(value):
        cast_failed(value, target)
    result = int(value)
    if result == 2**63 and isinstance(value, float) and high == 2**63 - 1:
        # Spark compares with the largest BIGINT as a double, which is this very number.
        return high
    return result if low <= result <= high else cast_failed(value, target)


def double_text(value: float) -> str:
    """Return a double as Java writes it: ``1.0``, ``1.0E10``, ``NaN``."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, digits, exponent = _shortest(value)
    if -3 <= exponent < 7:
        plain = Decimal((sign, tuple(map(int, digits)), exponent - len(digits) + 1))
        text = format(plain, "f")
        return text if "." in text else text + ".0"
    return f"{'-' if sign else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float) -> tuple[int, str, int]:
    """Return sign, digits and exponent of the shortest text, of two digits if one is enough."""
    text = repr(value)
    if len(text.lstrip("-").partition("e")[0].replace(".", "").strip("0")) == 1:
        # Java shows at least two digits and picks the nearest: 4.9E-324, not 5.0E-324.
        two = format(value, ".1e")
        text = two if float(two) == value else text
    sign, digits, exponent = Decimal(text).as_tuple()
    shown = "".join(map(str, digits))
    kept = shown.rstrip("0") or "0"
    return sign, kept, int(exponent) + len(shown) - 1


def decimal_text(value: Decimal, scale: int) -> str:
    """Return a decimal with all the digits of its scale."""
    return format(value.quantize(_STEPS[scale], ROUND_DOWN, EXACT), "f")
