"""Dates and timestamps in arithmetic: plus and minus days, intervals and each other."""

from floodway.core.types import DATE, INTEGER, INTERVAL, NULL, STRING, TIMESTAMP
from floodway.expressions.casts import convert
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import mismatch
from floodway.expressions.literals import DAYS, MONTHS
from floodway.expressions.runtime import dates, moments

TEMPORAL = (DATE, TIMESTAMP, INTERVAL, DAYS, MONTHS)
_SPANS = (INTERVAL, DAYS)


def temporal_arithmetic(
    assembly: Assembly, operator: str, left: Code, right: Code, text: str
) -> Code:
    """Return ``left operator right`` where one side is a date, a timestamp or an interval."""
    result = None
    if operator == "+":
        result = _plus(assembly, left, right, text) or _plus(assembly, right, left, text)
    elif operator == "-":
        result = _minus(assembly, left, right, text)
    if result is None:
        raise mismatch(
            text,
            [left, right],
            "add days or an INTERVAL to a date or timestamp, subtract two of them, or use "
            "datediff, unix_seconds or unix_micros to compute with numbers",
        )
    return result


def _plus(assembly: Assembly, left: Code, right: Code, text: str) -> Code | None:
    if right.type == MONTHS:
        if left.type in (DATE, TIMESTAMP):
            return assembly.call(moments.plus_months, [left, right], left.type, text)
        return None
    if right.type in _SPANS:
        return _plus_span(assembly, left, right, text)
    if left.type == DATE and right.type in (INTEGER, NULL):
        days = convert(assembly, right, INTEGER)
        return assembly.call(moments.plus_days, [left, days], DATE, text)
    return None


def _plus_span(assembly: Assembly, left: Code, right: Code, text: str) -> Code | None:
    if left.type in _SPANS:
        target = DAYS if left.type == right.type == DAYS else INTERVAL
        return assembly.call(moments.add_spans, [left, right], target, text)
    if left.type == DATE and right.type == DAYS:
        return assembly.call(moments.plus_span, [left, right], DATE, text)
    if left.type in (DATE, TIMESTAMP):
        moment = convert(assembly, left, TIMESTAMP)
        return assembly.call(moments.plus_span, [moment, right], TIMESTAMP, text)
    return None


def _minus(assembly: Assembly, left: Code, right: Code, text: str) -> Code | None:
    if right.type == MONTHS and left.type in (DATE, TIMESTAMP):
        return assembly.call(dates.minus_months, [left, right], left.type, text)
    if right.type in _SPANS:
        turned = assembly.strict(
            [right], lambda codes: f"(-{codes[0].source})", right.type, right.text
        )
        return _plus_span(assembly, left, turned, text)
    if left.type == DATE and right.type in (INTEGER, NULL):
        days = convert(assembly, right, INTEGER)
        return assembly.call(dates.minus_days, [left, days], DATE, text)
    if left.type == DATE and right.type == DATE:
        return assembly.strict(
            [left, right], lambda c: f"({c[0].source} - {c[1].source})", DAYS, text
        )
    kinds = {left.type, right.type}
    if TIMESTAMP in kinds and kinds <= {DATE, TIMESTAMP, STRING}:
        both = [convert(assembly, code, TIMESTAMP) for code in (left, right)]
        return assembly.strict(both, lambda c: f"({c[0].source} - {c[1].source})", INTERVAL, text)
    return None
