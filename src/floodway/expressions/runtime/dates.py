"""Functions of dates and times."""

import calendar
import datetime as dt
import math
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfoNotFoundError

from floodway.expressions.runtime.failures import fail
from floodway.expressions.runtime.moments import (
    EPOCH_DAY,
    UTC,
    from_double,
    from_micros,
    micros,
    outside,
    plus_days,
    plus_months,
)
from floodway.expressions.runtime.numbers import EXACT
from floodway.expressions.runtime.parsing import read_zone

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = {
    short: number
    for number, name in enumerate(LONG_DAYS)
    for short in (name[:2].upper(), name[:3].upper(), name.upper())
}
_DATE_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 12),
    "QUARTER": 3,
    **dict.fromkeys(("MONTH", "MON", "MM"), 1),
}
_TIME_UNITS = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_DAY_SECONDS = 86_400


def minus_days(day: dt.date, days: int) -> dt.date:
    """Return the date that many days earlier."""
    return plus_days(day, -days)


def minus_months(day: dt.date, months: int) -> dt.date:
    """Return the date that many months earlier."""
    return plus_months(day, -months)


def day_name(day: dt.date) -> str:
    """Return the short name of a weekday."""
    return DAYS[day.weekday()]


def month_name(day: dt.date) -> str:
    """Return the short name of a month."""
    return MONTHS[day.month - 1]


def last_day(day: dt.date) -> dt.date:
    """Return the last day of the month."""
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def next_day(day: dt.date, weekday: str) -> dt.date:
    """Return the first such weekday after a date."""
    number = _WEEKDAYS.get(weekday.upper())
    if number is None:
        fail(f"{weekday!r} is not a weekday", "use the English name, e.g. 'Mon'")
    return plus_days(day, (number - day.weekday() - 1) % 7 + 1)


def from_unix_date(days: int) -> dt.date:
    """Return the date that many days after 1970-01-01."""
    ordinal = EPOCH_DAY + days
    if not 1 <= ordinal <= 3_652_059:
        outside(f"day {days} after 1970-01-01")
    return dt.date.fromordinal(ordinal)


def make_date(year: int, month: int, day: int) -> dt.date:
    """Return the date of its parts."""
    try:
        return dt.date(year, month, day)
    except (ValueError, OverflowError):
        fail(f"there is no date {year}-{month}-{day}", "check the parts before, e.g. with CASE")


def from_seconds_or_null(seconds: float) -> dt.datetime | None:
    """Return the moment that many seconds after 1970, or None of NaN and infinity."""
    return from_double(seconds) if math.isfinite(seconds) else None


def from_millis(milliseconds: int) -> dt.datetime:
    """Return the moment that many milliseconds after 1970."""
    return from_micros(milliseconds * 1000)


def unix_seconds(moment: dt.datetime) -> int:
    """Return the whole seconds since 1970."""
    return micros(moment) // 1_000_000


def whole_seconds(moment: dt.datetime) -> int:
    """Return the seconds since 1970 cut off towards zero, as unix_timestamp does."""
    total = micros(moment)
    return total // 1_000_000 if total >= 0 else -(-total // 1_000_000)


def unix_millis(moment: dt.datetime) -> int:
    """Return the whole milliseconds since 1970."""
    return micros(moment) // 1000


def _is_last_day(moment: dt.datetime) -> bool:
    return moment.day == calendar.monthrange(moment.year, moment.month)[1]


def months_between(end: dt.datetime, start: dt.datetime, rounded: bool = True) -> float:  # noqa: FBT001, FBT002
    """Return the months between two moments; a rest is counted in days of a 31-day month."""
    months = (end.year - start.year) * 12 + end.month - start.month
    if end.day == start.day or (_is_last_day(end) and _is_last_day(start)):
        return float(months)
    seconds = (end.day - start.day) * _DAY_SECONDS + _second_of_day(end) - _second_of_day(start)
    result = months + seconds / (31.0 * _DAY_SECONDS)
    if not rounded:
        return result
    return float(Decimal(result).quantize(Decimal("1e-8"), ROUND_HALF_UP, EXACT))


def _second_of_day(moment: dt.datetime) -> int:
    return moment.hour * 3600 + moment.minute * 60 + moment.second


def is_unit(name: str, *, time: bool) -> bool:
    """Whether a date, or a time, can be cut off to a unit of that name."""
    upper = name.upper()
    if upper == "WEEK" or upper in _DATE_UNITS:
        return True
    return time and (upper in _TIME_UNITS or upper in ("DAY", "DD"))


def truncate_date(day: dt.date, unit: str) -> dt.date | None:
    """Return the first day of a unit, or None."""
    upper = unit.upper()
    if upper == "WEEK":
        return plus_days(day, -day.weekday())
    step = _DATE_UNITS.get(upper)
    if step is None:
        return None
    return day.replace(month=(day.month - 1) // step * step + 1, day=1)


def truncate_moment(unit: str, moment: dt.datetime) -> dt.datetime | None:
    """Return the first moment of a unit, or None."""
    upper = unit.upper()
    size = _TIME_UNITS.get(upper)
    if size is not None:
        whole = micros(moment)
        return from_micros(whole - whole % size)
    day = moment.date() if upper in ("DAY", "DD") else truncate_date(moment.date(), upper)
    return None if day is None else dt.datetime(day.year, day.month, day.day, tzinfo=UTC)


def seconds_part(moment: dt.datetime) -> Decimal:
    """Return the seconds of a minute with their fraction."""
    return Decimal(moment.second * 1_000_000 + moment.microsecond).scaleb(-6)


def _zone(name: str) -> dt.tzinfo:
    try:
        return read_zone(name)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        fail(f"{name!r} is not a time zone", "use an id such as 'Europe/Paris' or '+01:00'")


def from_utc(moment: dt.datetime, zone: str) -> dt.datetime:
    """Return the wall-clock time of a zone, as if it were UTC."""
    return moment.astimezone(_zone(zone)).replace(tzinfo=UTC)


def to_utc_from(moment: dt.datetime, zone: str) -> dt.datetime:
    """Return the moment at which a wall clock of a zone shows this time."""
    return moment.replace(tzinfo=_zone(zone)).astimezone(UTC)
