"""The aggregate's kernel for sessions: windows that grow and merge.

A record opens a session from its timestamp to `gap` later and is merged with every session of its
group that it overlaps or touches, as in Spark: a record exactly one gap after the last one goes on
with its session. So a session has ended once stream time is past its end.

Because a session's bounds are part of its row's key, a session that grows is a row that is deleted
and another that is inserted.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from floodway.operators.aggregate_latest import NEVER
from floodway.operators.aggregates.inlining import inlined
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Outputs, View
from floodway.operators.code import CodeWriter, tuple_source
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
    row_classes = (Open,)

    def __init__(self, operator: "Aggregate", outputs: Outputs) -> None:
        assert isinstance(operator.windows, Session)
        self._gap, self._reach = operator.windows.gap_ms, operator.windows.reach_ms
        self._retention = operator.retention_ms
        self._function = operator.function.compiled()
        self._out, self._late = outputs[MAIN], outputs[LATE]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self._write = partial(_write, operator, self)
        self._run = self._write()
        self.state: Space[Any, list[Open]] = Space()
        self._expiry = Expiry()
        self._horizon = NEVER

    def combine_first(self) -> None:
        """Say what became of a session once for all records that come together, from now on.

        Somebody who sees every update would notice, so it is for aggregates of which nobody does.
        """
        self.combines = True
        self._run = self._write()

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Open, extend and merge sessions."""
        ended = self._horizon + self._retention - self._reach  # with a last record up to then
        self._run(rows, self.state, ended)

    def add(self, group: Any, fact: Fact) -> None:
        """Add a record wherever it may belong: before a session, between two, to one that ended."""
        timestamp = fact[0]
        sessions = self.state.get(group, [])
        # Sessions are kept in order and lie more than a gap apart, so that only the one before and
        # the one after a record can be near it.
        after = bisect_left(sessions, timestamp, key=_start)
        first = max(after - 1, 0)
        near = [s for s in sessions[first : after + 1] if distance(s, timestamp) < self._reach]
        if not near and timestamp + self._reach <= self._horizon:
            self._late.append(fact)
            return
        together = self._function.lift(*fact)
        for session in near:
            together = self._function.combine(session.partial, together)
        start = min([timestamp, *(s.start for s in near)])
        last = max([timestamp, *(s.last for s in near)])
        merged = Open(start, last, together, self._function.lower(together))
        place = sessions.index(near[0], first) if near else after
        sessions[place : place + len(near)] = [merged]
        self.state[group] = sessions
        if not near or start != near[0].start:
            self._expiry.add(last + self._reach, (group, start))
        self._emit(group, near, merged)

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

    def settle(self, group: Any, sessions: list[Open], before: int | None, old: Any) -> None:
        """Find the value of a group's only session after several records, and `tell`."""
        sessions[0].value = self._function.lower(sessions[0].partial)
        self.tell(group, sessions, before, old)

    def tell(self, group: Any, sessions: list[Open], before: int | None, old: Any) -> None:
        """Say what became of a group's only session.

        Its last record was at `before` and its value `old`; or it is new, and they are None.
        """
        session = sessions[0]
        last, end = session.last, session.last + self._gap
        self.state.dirty[group] = sessions
        if before is None:
            self._expiry.add(last + self._reach, (group, session.start))
        elif before != last:
            if old is not None:
                gone = (group, session.start, before + self._gap)
                self._out.append((last, gone, None, old, None))
            old = None
        self._out.append((last, (group, session.start, end), session.value, old, None))

    def _key(self, group: Any, session: Open) -> tuple[Any, int, int]:
        return (group, session.start, session.last + self._gap)

    def advance(self, stream_time: int) -> None:
        """Forget sessions that ended longer than the retention ago."""
        self._horizon = stream_time - self._retention
        for _, (group, start) in self._expiry.due(self._horizon):
            self._look(group, start)

    def _look(self, group: Any, start: int) -> None:
        """Forget a session that has ended; if it has grown meanwhile, look at it again."""
        sessions = self.state.get(group, [])
        place = bisect_left(sessions, start, key=_start)
        if place == len(sessions) or sessions[place].start != start:
            return  # it has become part of another
        over = sessions[place].last + self._reach
        if over > self._horizon:
            self._expiry.add(over, (group, start))
        elif len(sessions) == 1:
            del self.state[group]
        else:
            del sessions[place]
            self.state.touch(group)

    def loaded(self, name: str, namespace: Any, key: Any, row: list[Open]) -> None:
        """See that the sessions of a group are back."""
        for session in row:
            self._expiry.add(session.last + self._reach, (key, session.start))

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


def _write(operator: "Aggregate", kernel: SessionKernel) -> Any:
    """Write the loop over records.

    Nearly all of them open the only session of their group, or extend it at its end while it has
    not ended yet. Those are dealt with here; `SessionKernel.add` deals with the others.
    """
    code, windows = CodeWriter(), operator.windows
    assert isinstance(windows, Session)
    function = inlined(code, operator.function)
    code.names |= {"Open": Open, "failed": kernel.handlers[0]}
    code.names |= {"add": kernel.add, "tell": kernel.tell, "settle": kernel.settle}
    code.line("def run(rows, space, ended):").indent()
    code.line("groups, touched = space.hot, {}")
    code.line("for t, k, v in rows:").indent().line("try:").indent()
    code.line(f"g = {tuple_source(code, operator.group)}")
    for statement in function.arguments:
        code.line(statement)
    code.line("row = groups.get(g)")
    code.line("if row is None: row = space.fetch(g)")
    code.line("if row is None:").indent()
    code.line("if t > ended:").indent()
    _write_open(code, operator, function.lift, combines=kernel.combines)
    code.dedent().dedent()
    code.line("elif len(row) == 1:").indent()
    code.line("s = row[0]")
    code.line(f"if s.last > ended and 0 <= t - s.last < {windows.reach_ms}:").indent()
    _write_extend(code, operator, function.add, combines=kernel.combines)
    code.dedent().dedent()
    if kernel.combines:
        code.line("if g in touched: settle(g, *touched.pop(g))")
    code.line("add(g, (t, k, v))").dedent()
    code.line("except Exception as error: failed(error, t, k, v)").dedent()
    if kernel.combines:
        code.line("for g, (row, before, old) in touched.items(): settle(g, row, before, old)")
    return code.compile("run")


def _write_open(code: CodeWriter, operator: "Aggregate", lift: str, *, combines: bool) -> None:
    if combines:
        code.line(f"groups[g] = row = [Open(t, t, {lift}, None)]")
        code.line("touched[g] = (row, None, None)")
    else:
        code.line(f"p = {lift}")
        code.line(f"groups[g] = row = [Open(t, t, p, {operator.function.lower('p')})]")
        code.line("tell(g, row, None, None)")
    code.line("continue")


def _write_extend(code: CodeWriter, operator: "Aggregate", add: str, *, combines: bool) -> None:
    code.line("a = s.partial")
    code.line(f"p = {add}")  # what may fail comes first: then nothing has changed
    if combines:
        code.line("if g not in touched: touched[g] = (row, s.last, s.value)")
        code.line("s.last, s.partial = t, p")
    else:
        code.line(f"n, before, old = {operator.function.lower('p')}, s.last, s.value")
        code.line("s.last, s.partial, s.value = t, p, n")
        code.line("tell(g, row, before, old)")
    code.line("continue")
