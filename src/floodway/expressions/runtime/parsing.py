"""Strings -> numbers, booleans, dates and timestamps, as Spark's CAST reads them."""

import datetime as dt
import re
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from floodway.expressions.runtime.failures import cast_failed
from floodway.expressions.runtime.numbers import fit

UTC = dt.UTC
# Spark trims white space and ISO control characters around the text of a cast.
_BLANK = "".join(map(chr, [*range(33), 127]))
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\Z", re.ASCII | re.S)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](?:(\d{1,2})(?::(\d{1,2})"
    r"(?::(\d{1,2})(?:\.(\d*))?)?)?(.*))?)?)?)?\Z",
    re.ASCII | re.S,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?\Z", re.ASCII)
_SPECIAL = {
    "inf": float("inf"),
    "+inf": float("inf"),
    "infinity": float("inf"),
    "+infinity": float("inf"),
    "-inf": float("-inf"),
    "-infinity": float("-inf"),
    "nan": float("nan"),
    "+nan": float("nan"),
    "-nan": float("nan"),
}
_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}


def string_to_integer(text: str, low: int, high: int, target: str) -> int:
    """Return the whole number that a text is."""
    stripped = text.strip(_BLANK)
    if _INTEGER.match(stripped) and low <= (value := int(stripped)) <= high:
        return value
    cast_failed(text, target)


def string_to_double(text: str) -> float:
    """Return the number that a text is; ``NaN`` and ``Infinity`` are numbers too."""
    stripped = text.strip(_BLANK)
    if _NUMBER.match(stripped):
        return float(stripped)
    if stripped[-1:] in ("d", "D", "f", "F") and _NUMBER.match(stripped[:-1]):
        return float(stripped[:-1])
    special = _SPECIAL.get(stripped.lower())
    return cast_failed(text, "DOUBLE") if special is None else special


def string_to_decimal(text: str, precision: int, scale: int) -> Decimal:
    """Return the decimal that a text is."""
    stripped = text.strip(_BLANK)
    value = None
    if _NUMBER.match(stripped):
        number = Decimal(stripped)
        if number.adjusted() < 60:
            value = fit(number, precision, scale)
    return cast_failed(text, f"DECIMAL({precision},{scale})") if value is None else value


def string_to_boolean(text: str) -> bool:
    """Return the truth value that a text names."""
    lowered = text.strip(_BLANK).lower()
    if lowered in _TRUE:
        return True
    return False if lowered in _FALSE else cast_failed(text, "BOOLEAN")


def string_to_date(text: str) -> dt.date:
    """Return the date that a text begins with."""
    found = _DATE.match(text.strip(_BLANK))
    if found and found[1] != "-":
        try:
            return dt.date(int(found[2]), int(found[3] or 1), int(found[4] or 1))
        except ValueError:
            pass
    cast_failed(text, "DATE")


def string_to_timestamp(text: str) -> dt.datetime:
    """Return the moment that a text names; without a time zone it is in UTC."""
    found = _TIMESTAMP.match(text.strip(_BLANK))
    if found and found[1] != "-":
        year, month, day, hour, minute, second = (int(found[i] or 0) for i in range(2, 8))
        microsecond = int((found[8] or "").ljust(6, "0")[:6])
        try:
            moment = dt.datetime(year, month or 1, day or 1, hour, minute, second, microsecond)
            zone = read_zone((found[9] or "").strip())
            return moment.replace(tzinfo=UTC) if zone is UTC else _in_utc(moment, zone)
        except (ValueError, OverflowError, ZoneInfoNotFoundError, OSError):
            pass
    cast_failed(text, "TIMESTAMP")


def _in_utc(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    return moment.replace(tzinfo=zone).astimezone(UTC)


def read_zone(name: str) -> dt.tzinfo:
    """Return the time zone of an id such as ``Z``, ``+01:00`` or ``Europe/Paris``."""
    if name in ("", "Z", "UTC", "GMT", "UT"):
        return UTC
    found = _OFFSET.match(name)
    if found is None:
        return ZoneInfo(name)
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60 + int(found[4] or 0)
    if seconds > 18 * 3600 or int(found[3] or 0) > 59 or int(found[4] or 0) > 59:
        raise ValueError(name)
    return dt.timezone(dt.timedelta(seconds=-seconds if found[1] == "-" else seconds))
