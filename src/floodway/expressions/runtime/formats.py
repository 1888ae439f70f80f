"""Date and time formats: a pattern becomes a plan once, and the plan is walked per value."""

import datetime as dt
import re
from collections.abc import Callable

from floodway.expressions.runtime.dates import DAYS, LONG_DAYS, MONTHS
from floodway.expressions.runtime.failures import fail
from floodway.expressions.runtime.moments import UTC

WritePlan = tuple[str | Callable[[dt.datetime], str], ...]
_PIECE = re.compile(r"'((?:[^']|'')*)'|([a-zA-Z])\2*|([^a-zA-Z'#{}\[\]]+)")
_LONG_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


class UnknownFormat(ValueError):
    """A letter of a format that is not supported."""


class ReadPlan:
    """A regular expression for a format, and the parts its groups are."""

    def __init__(self, pattern: str, expression: str, parts: list[str]) -> None:
        self.pattern = pattern
        self.match = re.compile(expression, re.ASCII).fullmatch
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadPlan) and other.pattern == self.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __reduce__(self) -> tuple[Callable[[str], "ReadPlan"], tuple[str]]:
        return read_plan, (self.pattern,)


_WRITERS: dict[str, Callable[[dt.datetime], str]] = {
    "y": lambda t: str(t.year),
    "yyyy": lambda t: f"{t.year:04d}",
    "yy": lambda t: f"{t.year % 100:02d}",
    "M": lambda t: str(t.month),
    "MM": lambda t: f"{t.month:02d}",
    "MMM": lambda t: MONTHS[t.month - 1],
    "MMMM": lambda t: _LONG_MONTHS[t.month - 1],
    "d": lambda t: str(t.day),
    "dd": lambda t: f"{t.day:02d}",
    "D": lambda t: str(t.timetuple().tm_yday),
    "DDD": lambda t: f"{t.timetuple().tm_yday:03d}",
    "E": lambda t: DAYS[t.weekday()],
    "EE": lambda t: DAYS[t.weekday()],
    "EEE": lambda t: DAYS[t.weekday()],
    "EEEE": lambda t: LONG_DAYS[t.weekday()],
    "Q": lambda t: str((t.month + 2) // 3),
    "QQ": lambda t: f"{(t.month + 2) // 3:02d}",
    "H": lambda t: str(t.hour),
    "HH": lambda t: f"{t.hour:02d}",
    "h": lambda t: str((t.hour - 1) % 12 + 1),
    "hh": lambda t: f"{(t.hour - 1) % 12 + 1:02d}",
    "a": lambda t: "AM" if t.hour < 12 else "PM",
    "m": lambda t: str(t.minute),
    "mm": lambda t: f"{t.minute:02d}",
    "s": lambda t: str(t.second),
    "ss": lambda t: f"{t.second:02d}",
    "S": lambda t: f"{t.microsecond:06d}"[:1],
    "SS": lambda t: f"{t.microsecond:06d}"[:2],
    "SSS": lambda t: f"{t.microsecond:06d}"[:3],
    "SSSSSS": lambda t: f"{t.microsecond:06d}",
}
_READERS: dict[str, tuple[str, str]] = {
    "yyyy": ("year", r"(\d{4})"),
    "MM": ("month", r"(\d{2})"),
    "M": ("month", r"(\d{1,2})"),
    "dd": ("day", r"(\d{2})"),
    "d": ("day", r"(\d{1,2})"),
    "HH": ("hour", r"(\d{2})"),
    "H": ("hour", r"(\d{1,2})"),
    "mm": ("minute", r"(\d{2})"),
    "m": ("minute", r"(\d{1,2})"),
    "ss": ("second", r"(\d{2})"),
    "s": ("second", r"(\d{1,2})"),
    "S": ("fraction", r"(\d{1})"),
    "SS": ("fraction", r"(\d{2})"),
    "SSS": ("fraction", r"(\d{3})"),
    "SSSSSS": ("fraction", r"(\d{6})"),
}


def _pieces(pattern: str) -> list[tuple[str, str]]:
    """Return the format's letters and its literal texts, each with its kind."""
    pieces: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        found = _PIECE.match(pattern, at)
        if found is None:
            raise UnknownFormat(f"{pattern[at]!r} is not supported")
        quoted, letter, plain = found.groups()
        if letter:
            pieces.append(("letters", found.group()))
        else:
            pieces.append(("text", plain or quoted.replace("''", "'") or "'"))
        at = found.end()
    return pieces


def write_plan(pattern: str) -> WritePlan:
    """Return the plan that writes a format."""
    plan: list[str | Callable[[dt.datetime], str]] = []
    for kind, piece in _pieces(pattern):
        if kind == "letters" and piece not in _WRITERS:
            raise UnknownFormat(f"{piece} is not supported")
        plan.append(_WRITERS[piece] if kind == "letters" else piece)
    return tuple(plan)


def write_moment(moment: dt.datetime, plan: WritePlan) -> str:
    """Write a moment."""
    return "".join(piece if isinstance(piece, str) else piece(moment) for piece in plan)


def read_plan(pattern: str) -> ReadPlan:
    """Return the plan that reads a format."""
    expression, parts = "", []
    previous = ""
    for kind, piece in _pieces(pattern):
        if kind == "text":
            expression += re.escape(piece)
        elif piece not in _READERS or _READERS[piece][0] in parts:
            raise UnknownFormat(f"{piece} is not supported here")
        elif previous == "letters":
            # Spark reads neighbouring numbers by rules of its own.
            raise UnknownFormat(f"{piece} follows another number without a separator")
        else:
            name, group = _READERS[piece]
            expression += group
            parts.append(name)
        previous = kind
    if "year" not in parts:
        raise UnknownFormat("it has no year (yyyy)")
    return ReadPlan(pattern, expression, parts)


def read_moment(text: str, plan: ReadPlan, lenient: bool) -> dt.datetime | None:  # noqa: FBT001
    """Read a moment, or fail, or give None if lenient."""
    found = plan.match(text)
    if found is not None:
        values = dict(zip(plan.parts, found.groups(), strict=True))
        microsecond = int(values.pop("fraction", "0").ljust(6, "0"))
        fields = {"month": 1, "day": 1, **{name: int(value) for name, value in values.items()}}
        try:
            return dt.datetime(**fields, microsecond=microsecond, tzinfo=UTC)
        except ValueError:
            pass
    if lenient:
        return None
    fail(f"{text!r} is not in the format {plan.pattern!r}", "use try_to_timestamp to get NULL")
