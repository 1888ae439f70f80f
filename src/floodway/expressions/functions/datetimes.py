"""Functions of dates and timestamps. The session's time zone is UTC."""

import datetime as dt
from typing import Any

from floodway.core.errors import ExpressionTypeError
from floodway.core.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    DecimalType,
)
from floodway.expressions.casts import convert, implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import is_numeric, mismatch
from floodway.expressions.functions.registry import FUNCTIONS, definer
from floodway.expressions.runtime import dates, moments
from floodway.expressions.tree import Call, Literal

define = definer("Dates and times")

_PARTS: tuple[tuple[str, str, str, str, tuple[int, int]], ...] = (
    ("year", "DATE", "{0}.year", "the year", (1, 9999)),
    ("quarter", "DATE", "(({0}.month + 2) // 3)", "the quarter, 1 to 4", (1, 4)),
    ("month", "DATE", "{0}.month", "the month, 1 to 12", (1, 12)),
    ("day, dayofmonth", "DATE", "{0}.day", "the day of the month, 1 to 31", (1, 31)),
    ("dayofweek", "DATE", "({0}.isoweekday() % 7 + 1)", "1 for Sunday to 7 for Saturday", (1, 7)),
    ("weekday", "DATE", "{0}.weekday()", "0 for Monday to 6 for Sunday", (0, 6)),
    ("dayofyear", "DATE", "{0}.timetuple().tm_yday", "the day of the year, 1 to 366", (1, 366)),
    ("weekofyear", "DATE", "{0}.isocalendar()[1]", "the ISO week, 1 to 53", (1, 53)),
    ("hour", "TIMESTAMP", "{0}.hour", "the hour, 0 to 23", (0, 23)),
    ("minute", "TIMESTAMP", "{0}.minute", "the minute, 0 to 59", (0, 59)),
    ("second", "TIMESTAMP", "{0}.second", "the second, 0 to 59", (0, 59)),
)


def _part(template: str, kind: str, bounds: tuple[int, int]) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        # A timestamp in UTC has the parts of a date, so the cast between them can be saved.
        code = codes[0]
        if not (kind == "DATE" and code.type == TIMESTAMP):
            converted = implied(assembly, code, DATE if kind == "DATE" else TIMESTAMP)
            if converted is None:
                raise mismatch(text, codes, "use a DATE or a TIMESTAMP")
            code = converted
        return assembly.strict(
            [code], lambda c: template.format(c[0].source), INTEGER, text, bounds=bounds
        )

    return build


for _name, _kind, _template, _doc, _range in _PARTS:
    define(_name, "date ANY", INTEGER, _part(_template, _kind, _range), _doc, builder=True)

define("dayname", "date DATE", STRING, dates.day_name, "the short name of the day: Mon")
define("monthname", "date DATE", STRING, dates.month_name, "the short name of the month: Jan")
define("last_day", "date DATE", DATE, dates.last_day, "the last day of the month")
define(
    "next_day",
    "date DATE, weekday STRING",
    DATE,
    dates.next_day,
    "the next date of a weekday such as 'Mon'",
)
define(
    "date_add, dateadd",
    "date DATE, days STRICT INT",
    DATE,
    moments.plus_days,
    "that many days later",
)
define("date_sub", "date DATE, days STRICT INT", DATE, dates.minus_days, "that many days earlier")
define(
    "datediff, date_diff",
    "end DATE, start DATE",
    INTEGER,
    "({0}.toordinal() - {1}.toordinal())",
    "the days from start to end",
    bounds=(-3_652_059, 3_652_059),
)
define(
    "add_months",
    "date DATE, months INT",
    DATE,
    moments.plus_months,
    "that many months later, on the last day of the month where the day is missing",
)
define(
    "months_between",
    "end TIMESTAMP, start TIMESTAMP, [round BOOLEAN]",
    DOUBLE,
    dates.months_between,
    "the months from start to end, a month's rest counted in 31sts",
)


def _trunc(assembly: Assembly, codes: list[Code], text: str) -> Code:
    unit = codes[1]
    if unit.constant and unit.value is not None and not dates.is_unit(unit.value, time=False):
        # Spark looks at the unit first, and at the date only if there is such a unit.
        return assembly.null(DATE, text)
    return assembly.call(dates.truncate_date, codes, DATE, text, nullable=True)


define(
    "trunc",
    "date DATE, unit STRING",
    DATE,
    _trunc,
    "the first day of the year, quarter, month or week; NULL for other units",
    builder=True,
)
# How many leading parts of a moment a unit keeps; the constructor is faster than replace().
_KEPT = {"YEAR": 1, "MONTH": 2, "DAY": 3, "HOUR": 4, "MINUTE": 5, "SECOND": 6}
_MOMENT_PARTS = ("year", "month", "day", "hour", "minute", "second")
_SMALLEST = (None, 1, 1, 0, 0, 0)


def _date_trunc(assembly: Assembly, codes: list[Code], text: str) -> Code:
    """Set the smaller parts to their least value, if the unit is a constant and has such parts."""
    unit, moment = codes
    if unit.constant and unit.value is not None:
        if not dates.is_unit(unit.value, time=True):
            return assembly.null(TIMESTAMP, text)
        kept = _KEPT.get(unit.value.upper())
        if kept is not None:
            return _first_moment(assembly, moment, kept, text)
    return assembly.call(dates.truncate_moment, codes, TIMESTAMP, text, nullable=True)


def _first_moment(assembly: Assembly, moment: Code, kept: int, text: str) -> Code:
    assembly.names["_utc"] = dt.UTC
    make = assembly.refer(dt.datetime)

    def body(codes: list[Code]) -> str:
        parts = [f"{codes[0].source}.{part}" for part in _MOMENT_PARTS[:kept]]
        parts += [str(least) for least in _SMALLEST[kept:]]
        return f"{make}({', '.join(parts)}, 0, _utc)"

    return assembly.strict([moment], body, TIMESTAMP, text, twice=[0])


define(
    "date_trunc",
    "unit STRING, time TIMESTAMP",
    TIMESTAMP,
    _date_trunc,
    "the first moment of the unit, from year to microsecond; NULL for other units",
    builder=True,
)
define(
    "unix_date",
    "date STRICT DATE",
    INTEGER,
    "({0}.toordinal() - 719163)",
    "the days since 1970-01-01",
)
define(
    "date_from_unix_date",
    "days INT",
    DATE,
    dates.from_unix_date,
    "the date that many days after 1970-01-01",
)
define(
    "make_date",
    "year INT, month INT, day INT",
    DATE,
    dates.make_date,
    "the date of a year, a month and a day",
)


def _timestamp_seconds(assembly: Assembly, codes: list[Code], text: str) -> Code:
    code = codes[0]
    if not is_numeric(code.type) and code.type != NULL:
        raise mismatch(text, codes, "use a number of seconds")
    if isinstance(code.type, DecimalType) and code.type.scale > 6:
        raise mismatch(text, codes, f"round it to microseconds: round({code.text}, 6)")
    if code.type == DOUBLE:
        return assembly.call(dates.from_seconds_or_null, codes, TIMESTAMP, text, nullable=True)
    return assembly.renamed(convert(assembly, code, TIMESTAMP), text)


define(
    "timestamp_seconds",
    "seconds ANY",
    TIMESTAMP,
    _timestamp_seconds,
    "the moment that many seconds after 1970",
    builder=True,
)
define(
    "timestamp_millis",
    "milliseconds INTEGRAL",
    TIMESTAMP,
    dates.from_millis,
    "the moment that many milliseconds after 1970",
)
define(
    "timestamp_micros",
    "microseconds INTEGRAL",
    TIMESTAMP,
    moments.from_micros,
    "the moment that many microseconds after 1970",
)
define(
    "unix_seconds",
    "time STRICT TIMESTAMP",
    LONG,
    dates.unix_seconds,
    "the seconds since 1970, rounded down",
    bounds=(-62135596800, 253402300799),
)
define(
    "unix_millis",
    "time STRICT TIMESTAMP",
    LONG,
    dates.unix_millis,
    "the milliseconds since 1970, rounded down",
    bounds=(-62135596800000, 253402300799999),
)
define(
    "unix_micros",
    "time STRICT TIMESTAMP",
    LONG,
    moments.micros,
    "the microseconds since 1970",
    bounds=(-62135596800000000, 253402300799999999),
)
define(
    "from_utc_timestamp",
    "time TIMESTAMP, zone STRING",
    TIMESTAMP,
    dates.from_utc,
    "the wall-clock time of a time zone, as if it were UTC",
)
define(
    "to_utc_timestamp",
    "time TIMESTAMP, zone STRING",
    TIMESTAMP,
    dates.to_utc_from,
    "the moment at which a wall clock of a time zone shows this time",
)

_FIELDS: dict[str, str] = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    "doy": "dayofyear",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
}
_SECONDS = ("second", "s", "sec", "seconds", "secs")


def _extract(assembly: Assembly, call: Call) -> Code:
    field, operand = call.arguments
    if not isinstance(field, Literal) or not isinstance(field.value, str):
        raise ExpressionTypeError(
            f"{call.text} needs the name of a field", remedy="write extract(HOUR FROM time)"
        )
    name = field.value.lower()
    if name in _FIELDS:
        return FUNCTIONS[_FIELDS[name]].build(assembly, Call(call.text, _FIELDS[name], (operand,)))
    code = assembly.lower(operand)
    if name not in _SECONDS or code.type not in (TIMESTAMP, DATE):
        raise ExpressionTypeError(
            f"{call.text} has no field {field.value} of {code.type}",
            remedy=f"use one of: {', '.join(dict.fromkeys([*_FIELDS.values(), 'second']))}",
        )
    moment = convert(assembly, code, TIMESTAMP)
    return assembly.call(dates.seconds_part, [moment], DecimalType(8, 6), call.text)


define(
    "extract, date_part, datepart",
    "field STRING, time TIMESTAMP",
    INTEGER,
    _extract,
    "a part of a date or time: `extract(HOUR FROM time)`",
    tree=True,
)
