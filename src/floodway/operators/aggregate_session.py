"""The aggregate's kernel for sessions: windows that grow and merge.

A record opens a session from its timestamp to `gap` later and is merged with every session of its
group that overlaps. Because a session's bounds are part of its row's key, a session that grows is
a row that is deleted and another that is inserted.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodway.operators.aggregate_latest import NEVER
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Outputs, View
from floodway.operators.code import grouping
from floodway.operators.history import Expiry
from floodway.operators.keyed import Space
from floodway.operators.on_error import ErrorHandler
from floodway.operators.windows import Session

if TYPE_CHECKING:
    from floodway.operators.aggregate import Aggregate


class Open:
    """A session: first and last record, partial and value."""

    __slots__ = ("last", "partial", "start", "value")

    def __init__(self, start: int, last: int, partial: Any, value: Any) -> None:
        self.start = start
        self.last = last
        self.partial = partial
        self.value = value


class SessionKernel(Kernel, View):
    """Aggregates facts into one row per group and session."""

    remembers = ("state", "_expiry", "_horizon")
    keyed = ("state",)
    derived = ("_expiry",)

    def __init__(self, operator: "Aggregate", outputs: Outputs) -> None:
        assert isinstance(operator.windows, Session)
        self._gap = operator.windows.gap_ms
        self._retention = operator.retention_ms
        self._function = operator.function.compiled()
        self._group = grouping(operator.group)
        self._out, self._late = outputs[MAIN], outputs[LATE]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self.state: Space[Any, list[Open]] = Space()
        self._expiry = Expiry()
        self._horizon = NEVER

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Open, extend and merge sessions."""
        for timestamp, key, value in rows:
            try:
                group = self._group(value, key)
                lifted = self._function.lift(timestamp, key, value)
                self._add(group, (timestamp, key, value), lifted)
            except Exception as error:
                self.handlers[0](error, timestamp, key, value)

    def _add(self, group: Any, fact: Fact, lifted: Any) -> None:
        timestamp = fact[0]
        sessions = self.state.get(group, [])
        if len(sessions) == 1 and 0 <= timestamp - sessions[0].last < self._gap:
            self._extend(group, sessions[0], timestamp, lifted)
            return
        # Sessions are kept in order and lie at least a gap apart, so that only the one before and
        # the one after a record can be near it.
        after = bisect_left(sessions, timestamp, key=_start)
        first = max(after - 1, 0)
        near = [s for s in sessions[first : after + 1] if distance(s, timestamp) < self._gap]
        if not near and timestamp + self._gap <= self._horizon:
            self._late.append(fact)
            return
        partial = lifted
        for session in near:
            partial = self._function.combine(session.partial, partial)
        start = min([timestamp, *(s.start for s in near)])
        last = max([timestamp, *(s.last for s in near)])
        merged = Open(start, last, partial, self._function.lower(partial))
        place = sessions.index(near[0], first) if near else after
        sessions[place : place + len(near)] = [merged]
        self.state[group] = sessions
        self._expiry.add(last + self._gap, group)
        self._emit(group, near, merged)

    def _extend(self, group: Any, session: Open, timestamp: int, lifted: Any) -> None:
        """Add a record to the end of a group's only session: what nearly all of them do."""
        partial = self._function.combine(session.partial, lifted)
        value = self._function.lower(partial)
        before, last = session.value, session.last
        if timestamp != last and before is not None:
            self._out.append((timestamp, self._key(group, session), None, before, None))
        session.last, session.partial, session.value = timestamp, partial, value
        self.state.touch(group)
        old = before if timestamp == last else None
        self._out.append((timestamp, self._key(group, session), value, old, None))
        if timestamp != last:  # otherwise somebody looks at it then already
            self._expiry.add(timestamp + self._gap, group)

    def _emit(self, group: Any, gone: list[Open], merged: Open) -> None:
        bounds = (merged.start, merged.last)
        for session in gone:
            if (session.start, session.last) != bounds and session.value is not None:
                self._out.append(
                    (merged.last, self._key(group, session), None, session.value, None)
                )
        same = [s.value for s in gone if (s.start, s.last) == bounds]
        old = same[0] if same else None
        self._out.append((merged.last, self._key(group, merged), merged.value, old, None))

    def _key(self, group: Any, session: Open) -> tuple[Any, int, int]:
        return (group, session.start, session.last + self._gap)

    def advance(self, stream_time: int) -> None:
        """Forget sessions that ended longer than the retention ago."""
        self._horizon = stream_time - self._retention
        for _, group in self._expiry.due(self._horizon):
            sessions = self.state.get(group, [])
            kept = [s for s in sessions if s.last + self._gap > self._horizon]
            if kept:
                self.state[group] = kept
            else:
                self.state.pop(group, None)

    def loaded(self, name: str, namespace: Any, key: Any, row: list[Open]) -> None:
        """See that the sessions of a group are back."""
        for session in row:
            self._expiry.add(session.last + self._gap, key)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return the row of a session."""
        return self.rows().get(key)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all sessions."""
        return {
            self._key(group, session): (session.last, session.value)
            for group, sessions in self.state.everything()
            for session in sessions
            if session.value is not None
        }


def _start(session: Open) -> int:
    return session.start


def distance(session: Open, timestamp: int) -> int:
    """Return how far `timestamp` lies outside a session's records; 0 within."""
    return max(session.start - timestamp, timestamp - session.last, 0)
