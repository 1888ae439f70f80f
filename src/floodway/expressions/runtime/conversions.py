"""The rest of the casts: moments and decimals as plain numbers."""

import datetime as dt
from decimal import Decimal

from floodway.expressions.runtime.failures import cast_failed
from floodway.expressions.runtime.moments import micros
from floodway.expressions.runtime.numbers import decimal_cast


def moment_seconds(moment: dt.datetime) -> int:
    """Return the whole seconds since 1970, rounded down."""
    return micros(moment) // 1_000_000


def moment_int_seconds(moment: dt.datetime) -> int:
    """Return the whole seconds since 1970 if they fit into an INT."""
    seconds = moment_seconds(moment)
    return seconds if -(2**31) <= seconds < 2**31 else cast_failed(moment, "INT")


def moment_double(moment: dt.datetime) -> float:
    """Return the seconds since 1970."""
    return micros(moment) / 1_000_000


def moment_decimal(moment: dt.datetime, precision: int, scale: int) -> Decimal:
    """Return the seconds since 1970 as a decimal."""
    return decimal_cast(Decimal(micros(moment)).scaleb(-6), precision, scale)


def decimal_double(value: Decimal) -> float:
    """Return a decimal as a double."""
    return float(value)


def decimal_boolean(value: Decimal) -> bool:
    """Whether a decimal is not zero."""
    return value != 0
