"""Dates and timestamps: conversions and arithmetic within Python's years 1 to 9999."""

import calendar
import datetime as dt
import math
from decimal import Decimal
from typing import NoReturn

from floodway.expressions.runtime.failures import cast_failed, fail

UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


def to_utc(moment: dt.datetime) -> dt.datetime:
    """Return the moment in UTC; one without a time zone is in UTC already."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def micros(moment: dt.datetime) -> int:
    """Return the microseconds since 1970."""
    span = moment - EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def from_micros(microseconds: int) -> dt.datetime:
    """Return the moment that many microseconds after 1970."""
    try:
        return EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        outside(f"{microseconds} microseconds")


def from_seconds(seconds: int) -> dt.datetime:
    """Return the moment that many seconds after 1970."""
    return from_micros(seconds * 1_000_000)


def from_double(seconds: float) -> dt.datetime:
    """Return the moment a fractional number of seconds after 1970."""
    if not math.isfinite(seconds):
        cast_failed(seconds, "TIMESTAMP")
    return from_micros(int(seconds * 1_000_000))


def from_decimal(seconds: Decimal) -> dt.datetime:
    """Return the moment a decimal number of seconds after 1970."""
    return from_micros(int(seconds * 1_000_000))


def outside(what: str) -> NoReturn:
    """Refuse a moment that Python's dates cannot hold."""
    fail(f"{what} is outside the years 1 to 9999", "filter such records out before")


def midnight(day: dt.date) -> dt.datetime:
    """Return the first moment of a day."""
    return dt.datetime(day.year, day.month, day.day, tzinfo=UTC)


def moment_text(moment: dt.datetime) -> str:
    """Return a timestamp as Spark writes it, without trailing zeros of the fraction."""
    text = moment.isoformat(" ")[:26].removesuffix("+00:00")
    return text.rstrip("0") if moment.microsecond else text[:19]


def plus_span(moment: dt.datetime, span: dt.timedelta) -> dt.datetime:
    """Return a moment some time later."""
    try:
        return moment + span
    except OverflowError:
        outside(f"{moment} plus {span}")


def plus_days(day: dt.date, days: int) -> dt.date:
    """Return the date that many days later."""
    ordinal = day.toordinal() + days
    if 1 <= ordinal <= 3_652_059:
        return dt.date.fromordinal(ordinal)
    outside(f"{day} plus {days} days")


def plus_months(day: dt.date, months: int) -> dt.date:
    """Return the date that many months later, on the last day where the day is missing."""
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        outside(f"{day} plus {months} months")
    last = calendar.monthrange(year, month + 1)[1]
    return day.replace(year=year, month=month + 1, day=min(day.day, last))


def add_spans(left: dt.timedelta, right: dt.timedelta) -> dt.timedelta:
    """Return the sum of two intervals."""
    try:
        return left + right
    except OverflowError:
        fail(f"{left} plus {right} is too long an interval", "add shorter intervals")
