"""Number and interval literals, and the names of types."""

import decimal
import re
from datetime import timedelta

from floodway.core.errors import ExpressionSyntaxError, UnsupportedExpressionError
from floodway.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
)

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1


class MonthsType(DataType, frozen=True):
    """An interval of whole months; it exists only inside expressions, as an ``int``."""

    def __str__(self) -> str:
        return "INTERVAL YEAR TO MONTH"


class DaysType(DataType, frozen=True):
    """An interval of whole days: added to a date, it gives a date."""

    def __str__(self) -> str:
        return "INTERVAL DAY"


MONTHS = MonthsType()
DAYS = DaysType()

_TYPES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": LONG,
    "LONG": LONG,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
}
_INSTEAD = {
    "TINYINT": "INT",
    "BYTE": "INT",
    "SMALLINT": "INT",
    "SHORT": "INT",
    "FLOAT": "DOUBLE",
    "REAL": "DOUBLE",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")

_UNITS: dict[str, tuple[str, int]] = {
    "YEAR": ("months", 12),
    "MONTH": ("months", 1),
    "WEEK": ("us", 604_800_000_000),
    "DAY": ("us", 86_400_000_000),
    "HOUR": ("us", 3_600_000_000),
    "MINUTE": ("us", 60_000_000),
    "SECOND": ("us", 1_000_000),
    "MILLISECOND": ("us", 1_000),
    "MICROSECOND": ("us", 1),
}
_DAY_TO_SECOND = re.compile(r"([+-]?)(\d+) (\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?")


def number(text: str, sign: str = "") -> tuple[object, DataType]:
    """Return the value and the type of a number literal.

    >>> number("1"), number("1", "-")
    ((1, IntegerType()), (-1, IntegerType()))
    >>> number("2.50")
    (Decimal('2.50'), DecimalType(precision=3, scale=2))
    """
    upper = sign + text.upper()
    if upper.endswith("BD"):
        return _decimal(upper[:-2])
    if upper[-1] in "SYF":
        raise UnsupportedExpressionError(
            f"the literal {text} has a type that Floodway does not have",
            remedy=f"write {text[:-1]}, or {text[:-1]}D for a double",
        )
    if upper.endswith("D") or "E" in upper:
        return float(upper.removesuffix("D")), DOUBLE
    if upper.endswith("L"):
        return _long(upper[:-1], text)
    if "." in upper:
        return _decimal(upper)
    value = int(upper)
    if -INT_MAX - 1 <= value <= INT_MAX:
        return value, INTEGER
    return (value, LONG) if -LONG_MAX - 1 <= value <= LONG_MAX else _decimal(upper)


def _long(digits: str, text: str) -> tuple[object, DataType]:
    value = int(digits)
    if not -LONG_MAX - 1 <= value <= LONG_MAX:
        raise ExpressionSyntaxError(
            f"the literal {text} does not fit into a BIGINT", remedy=f"write {text[:-1]}BD"
        )
    return value, LONG


def _decimal(text: str) -> tuple[object, DataType]:
    value = decimal.Decimal(text)
    if int(value.as_tuple().exponent) > 0 and value.adjusted() <= 38:
        value = decimal.Decimal(int(value))  # 1e3BD is 1000, of four digits
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    # Leading zeros do not count, digits after the point always do: 0.01 is DECIMAL(2,2).
    precision = max(len(str(int("".join(map(str, digits))))) + max(int(exponent), 0), scale)
    if precision > 38:
        raise ExpressionSyntaxError(
            f"the literal {text} has more than 38 digits",
            remedy=f"write {text}D for a double, or use fewer digits",
        )
    return value, DecimalType(precision, scale)


def type_named(name: str, parameters: list[int]) -> DataType:
    """Return the type of a name such as ``bigint`` or ``decimal`` with its parameters.

    >>> str(type_named("decimal", [10, 2]))
    'DECIMAL(10,2)'
    """
    upper = name.upper()
    if upper in _DECIMALS and len(parameters) <= 2:
        precision, scale = (*parameters, *(10, 0)[len(parameters) :])
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise ExpressionSyntaxError(
                f"DECIMAL({precision},{scale}) is not a type",
                remedy="use a precision of 1 to 38 and a scale of at most the precision",
            )
        return DecimalType(precision, scale)
    if upper in _TYPES and not parameters:
        return _TYPES[upper]
    raise UnsupportedExpressionError(
        f"{name} is not a type that expressions can cast to",
        remedy=f"use {_INSTEAD[upper]}"
        if upper in _INSTEAD
        else f"use one of: {', '.join([*_TYPES, 'DECIMAL(p,s)'])}, or a Python function",
    )


def interval(parts: list[tuple[str, str]], text: str) -> tuple[object, DataType]:
    """Return an interval of amounts and units.

    >>> interval([("1", "DAY"), ("2", "HOURS")], "")
    (datetime.timedelta(days=1, seconds=7200), IntervalType())
    """
    months, microseconds, kinds, smallest = 0, decimal.Decimal(0), set(), False
    for amount, unit in parts:
        singular = unit.upper().removesuffix("S")
        if singular not in _UNITS:
            raise _bad_interval(text)
        kind, factor = _UNITS[singular]
        kinds.add(kind)
        smallest = smallest or factor < 86_400_000_000
        try:
            value = decimal.Decimal(amount.strip())
        except decimal.InvalidOperation:
            raise _bad_interval(text) from None
        if value % 1 and singular != "SECOND":
            raise _bad_interval(text)
        if kind == "months":
            months += int(value) * factor
        else:
            microseconds += value * factor
    if len(kinds) != 1:
        raise UnsupportedExpressionError(
            f"{text} mixes months with days, whose length in days is not fixed",
            remedy="add the two parts one after the other",
        )
    if "months" in kinds:
        return months, MONTHS
    return timedelta(microseconds=int(microseconds)), INTERVAL if smallest else DAYS


def interval_between(amount: str, first: str, last: str, text: str) -> tuple[object, DataType]:
    """Return ``INTERVAL '1 02:03:04' DAY TO SECOND`` and its like."""
    ends = (first.upper(), last.upper())
    if ends == ("YEAR", "MONTH"):
        found = re.fullmatch(r"([+-]?)(\d+)-(\d{1,2})", amount.strip())
        if found:
            months = int(found[2]) * 12 + int(found[3])
            return -months if found[1] == "-" else months, MONTHS
    found = _DAY_TO_SECOND.fullmatch(amount.strip())
    if not found or ends not in (("DAY", "SECOND"), ("DAY", "MINUTE")):
        raise _bad_interval(text)
    sign, days, hours, minutes, seconds, fraction = found.groups()
    microseconds = int((fraction or "0").ljust(9, "0")[:6])
    span = timedelta(int(days), int(seconds or 0), microseconds, 0, int(minutes), int(hours))
    return -span if sign == "-" else span, INTERVAL


def _bad_interval(text: str) -> ExpressionSyntaxError:
    return ExpressionSyntaxError(
        f"{text} is not an interval",
        remedy="write it like INTERVAL 10 MINUTES, INTERVAL '1' DAY or "
        "INTERVAL '1 02:03:04' DAY TO SECOND",
    )
