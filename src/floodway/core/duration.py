"""Durations, as users write them: ``"10s"``, ``timedelta(seconds=10)``, or whole milliseconds."""

import re
from datetime import timedelta

from floodway.core.errors import DurationError

Duration = str | int | timedelta

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_WORDS = {"millisecond": "ms", "second": "s", "minute": "m", "hour": "h", "day": "d"}
_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)")


def to_ms(duration: Duration, *, what: str = "duration", zero: bool = False) -> int:
    """Return a duration as whole milliseconds.

    Parameters
    ----------
    duration
        ``"250ms"``, ``"1m 30s"``, ``"10 minutes"``, a `datetime.timedelta`, or
        milliseconds.
    what
        The name of the option, for the error.
    zero
        Whether nothing at all is allowed.

    Examples
    --------
    >>> to_ms("1m 30s")
    90000
    >>> to_ms(250)
    250
    """
    milliseconds = _read(duration, what)
    if milliseconds < 0 or (milliseconds == 0 and not zero):
        raise DurationError(
            f"{what} must be {'zero or more' if zero else 'more than zero'}, not {duration!r}",
            remedy="give a positive duration such as '10s'",
        )
    return milliseconds


def show_ms(milliseconds: int) -> str:
    """Return milliseconds in the largest unit that divides them.

    >>> show_ms(90_000), show_ms(3_600_000)
    ('90s', '1h')
    """
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % _UNIT_MS[unit] == 0 and milliseconds >= _UNIT_MS[unit]:
            return f"{milliseconds // _UNIT_MS[unit]}{unit}"
    return f"{milliseconds}ms"


def _read(duration: Duration, what: str) -> int:
    if isinstance(duration, bool):
        raise _unreadable(duration, what)
    if isinstance(duration, int):
        return duration
    if isinstance(duration, timedelta):
        return round(duration.total_seconds() * 1000)
    if not isinstance(duration, str):
        raise _unreadable(duration, what)
    parts = _PATTERN.findall(duration)
    if not parts or _PATTERN.sub("", duration).strip(" ,"):
        raise _unreadable(duration, what)
    return round(sum(float(number) * _unit_ms(unit, duration, what) for number, unit in parts))


def _unit_ms(unit: str, duration: str, what: str) -> int:
    short = _WORDS.get(unit.lower().rstrip("s") if len(unit) > 3 else unit, unit)
    if short not in _UNIT_MS:
        raise _unreadable(duration, what)
    return _UNIT_MS[short]


def _unreadable(duration: object, what: str) -> DurationError:
    return DurationError(
        f"{what} {duration!r} is not a duration",
        remedy="write it like '250ms', '10s', '1m 30s', a timedelta, or whole milliseconds",
    )
