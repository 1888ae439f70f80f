"""source: where records enter the flow, and get their time."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floodway.core.bounds import HIGHEST, LOWEST
from floodway.core.errors import ExpressionError
from floodway.core.types import IntegerType, LongType, can_be_key
from floodway.operators.code import CodeWriter, Snippet, tuple_source
from floodway.operators.facts import Facts, connected, in_chain
from floodway.operators.stateless import Stateless

BEGINNING = -62_135_596_800_000
"""The beginning of time: the first day of the year 1, in milliseconds. No event is older."""


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Source(Stateless):
    """Brings in values from outside and gives each its event time.

    The event time is the `timestamp` column or expression; without one it is the time at which
    the value came in (ingestion time), unless whoever brings it says another. With `arrival`
    somebody has said that ingestion time is what is meant. A source that has been silent for `idle`
    no longer holds stream time back. Rows reach the kernel as ``(ingestion time, None, value)``.

    Only values with an event time of their own move stream time. If whoever brings them says the
    times of some, those without get the latest time that was said, or the ingestion time if none
    was yet. Where nobody ever says a time, ingestion time moves stream time.

    Examples
    --------
    >>> from floodway import Flow, Record
    >>> from floodway.testing import run
    >>> class Click(Record):
    ...     page: str
    ...     second: int
    >>> clicks = Flow("clicks").source("clicks", schema=Click, timestamp="second * 1000")
    >>> run(clicks, [(0, Click("home", 5))])
    [(5000, Click(page='home', second=5))]
    """

    timestamp: Snippet | None = None
    arrival: bool = False
    preload: bool = False
    idle_ms: int
    connector: Any = None

    @property
    def moves_time(self) -> bool:
        """Whether stream time depends on this source."""
        return True

    @property
    def brings_updates(self) -> bool:
        """Whether what comes in are updates of a table."""
        return False

    @property
    def facts(self) -> Facts:
        """Records come in at any task; decoding them can be done anywhere."""
        return connected(in_chain(keys="scattered"), self.connector)

    def details(self) -> Mapping[str, str]:
        """Return where time comes from."""
        if self.timestamp is not None:
            return {"time": self.timestamp.text}
        return {"time": "of the connector" if self.timed else "ingestion"}

    @property
    def timed(self) -> bool:
        """Whether times are those of events: from the value, or from the connector."""
        if self.timestamp is not None:
            return True
        return self.moves_time and not self.arrival and bool(self._given)

    @property
    def _given(self) -> bool | None:
        """Whether the connector gives times; None if nobody can say."""
        return getattr(self.connector, "timed", False)

    @property
    def dated_outside(self) -> bool:
        """Whether a record's time is what whoever brings it says; one of whom not is undated."""
        return self.timestamp is None and not self.arrival and self.moves_time

    @property
    def dates_values_only(self) -> bool:
        """Whether time is taken from values, and there are records without: deletions."""
        return False

    @property
    def taken_for_static(self) -> bool:
        """Whether it is a table without a time only because nobody has said that it has one."""
        return False

    @property
    def clocked(self) -> bool:
        """Whether times are those of a clock, though nobody has said that they should be."""
        said = self.timed or self.arrival or self.connector is None  # a driver says what time it is
        return self.moves_time and self._given is False and not said

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write ``t = ...``."""
        if self.timestamp is not None:
            code.guarded(failed, f"t = {_time_source(code, self.timestamp)}")


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Changelog(Source):
    """Brings in the updates of a table: values with their keys, or None to delete.

    The key is a column or expression of the value; a deletion, which has no value, brings its key
    along. So does every update if no `key` is given. A deletion's time is what whoever brings it
    says. Without that it is the time to which the source has come: the latest of its rows.

    With a `timestamp`, which deletions have no value for, no deletion moves stream time. One before
    the first row deletes nothing, and nothing that comes later.

    A `static` table has no time: its rows are there from the beginning of time, and of several
    with the same key the last holds. It neither moves stream time nor holds it back. That it is
    static is `presumed` if nobody has said so.

    Examples
    --------
    >>> from floodway import Flow, Record
    >>> from floodway.testing import Driver
    >>> class User(Record):
    ...     id: int
    ...     city: str
    >>> flow = Flow("users")
    >>> users = flow.table("users", schema=User, key="id")
    >>> with Driver(flow) as driver:
    ...     driver.push("users", User(1, "Bern"), User(2, "Rome"), at=1)
    ...     driver.delete("users", 1, at=2)
    ...     driver.table("users").values()
    {2: User(id=2, city='Rome')}
    """

    key: tuple[Snippet, ...]
    static: bool = False
    presumed: bool = False

    @property
    def brings_updates(self) -> bool:
        """That is what it is for."""
        return True

    @property
    def moves_time(self) -> bool:
        """Whether the updates have a time."""
        return not self.static

    @property
    def dates_values_only(self) -> bool:
        """Whether deletions have no time where rows take theirs from the value."""
        return self.timestamp is not None

    @property
    def taken_for_static(self) -> bool:
        """Whether it has no time only because nobody has said that it has one."""
        return self.static and self.presumed

    def details(self) -> Mapping[str, str]:
        """Return where time comes from, and whether others wait for this."""
        first = {"preload": "other sources wait for it"} if self.preload else {}
        time = {"time": "none: holds from the beginning"} if self.static else Source.details(self)
        return {**time, **first}

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write ``t`` and ``k`` for updates; deletions bring both, unless they have no time."""
        statements = []
        if self.static:
            code.line(f"t = {BEGINNING}")
        if self.timestamp is not None:
            statements.append(f"if v is not None: t = {_time_source(code, self.timestamp)}")
        statements += self._key_statements(code)
        if statements:
            code.guarded(failed, *statements)

    def _key_statements(self, code: CodeWriter) -> list[str]:
        """Return what makes the key; one of unknown type is tried, so that `on_error` decides."""
        key = self.outputs["main"].key
        made = tuple_source(code, self.key) if self.key else "k"
        if key is not None and any(can_be_key(field.type) is None for field in key.fields):
            return [f"u = {made} if v is not None else k", "hash(u)", "k = u"]
        return [f"if v is not None: k = {made}"] if self.key else []


def _time_source(code: CodeWriter, snippet: Snippet) -> str:
    """Return source that computes the event time; whole numbers need no conversion."""
    whole = isinstance(snippet.schema.type, IntegerType | LongType) and not snippet.schema.nullable
    if snippet.expression is not None and whole:
        return code.inline(snippet)
    return f"{code.bind('event_time', event_time)}({code.inline(snippet)})"


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def event_time(value: Any) -> int:
    """Return an event time in milliseconds; a datetime without a time zone is UTC.

    >>> event_time(5000), event_time(dt.datetime(1970, 1, 1, 0, 0, 5))
    (5000, 5000)
    """
    if type(value) is int:
        if not LOWEST <= value <= HIGHEST:
            raise ExpressionError(
                f"an event time of {value.bit_length()} bits does not fit into 64",
                remedy="make the timestamp milliseconds since 1970",
            )
        return value
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - _EPOCH) // dt.timedelta(milliseconds=1)
    raise ExpressionError(
        f"{value!r} is not an event time",
        remedy="make the timestamp expression give milliseconds or a timestamp, never null",
    )
