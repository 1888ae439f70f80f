"""The aggregate's kernel with versions: algorithm 5 of the thesis, and its inverse.

A group's history is a list of entries, one per timestamp at which it has records: how many
records it has there, how many up to there, the partial up to there and its value. A record at
``t`` makes an entry at ``t`` if there is none and is combined into that entry and every later one.
Taking a record back subtracts it from the same entries. An entry without records stays, unseen,
until nothing older can come: changes up to it have been sent, and have to be followed by others.

Every later version has another value then, and a change to say so: what a record costs grows with
how many timestamps of its group are newer. A table that nobody asks for versions does not use this
kernel.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from floodway.operators.aggregate_latest import ALWAYS, NEVER, table_key
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Outputs, Revision, View
from floodway.operators.code import grouping
from floodway.operators.history import Expiry
from floodway.operators.keyed import Windowed
from floodway.operators.on_error import ErrorHandler
from floodway.operators.windows import Session

if TYPE_CHECKING:
    from floodway.operators.aggregate import Aggregate


Version = tuple[int, Any]


class Entry:
    """A group from one timestamp on."""

    __slots__ = ("here", "partial", "timestamp", "total", "value")

    def __init__(self, timestamp: int, here: int, total: int, partial: Any, value: Any) -> None:
        self.timestamp = timestamp
        self.here = here
        self.total = total
        self.partial = partial
        self.value = value


class VersionsKernel(Kernel, View):
    """Aggregates facts or revisions into an evolving table."""

    remembers = ("state", "_expiry", "_horizon")
    keyed = ("state",)
    derived = ("_expiry",)
    row_classes = (Entry,)

    def __init__(self, operator: "Aggregate", outputs: Outputs) -> None:
        assert not isinstance(operator.windows, Session)
        self._windows = operator.windows
        self._retention = operator.retention_ms
        function = operator.function.retractable() if operator.retracts else operator.function
        self._function, self.layout = function.compiled(), function.layout
        self._revisions = operator.retracts
        self._group = grouping(operator.group)
        self._out = outputs[MAIN]
        self._late = outputs.get(LATE)
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self.state: Windowed[int | None, Any, list[Entry]] = Windowed()
        self._expiry = Expiry()
        self._horizon = NEVER

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Add facts, or replace what revisions replace."""
        revisions: Sequence[Revision] = rows if self._revisions else [(0, None, r) for r in rows]
        for _, old, new in revisions:
            if old is not None:
                self._apply(old, sign=-1)
            if new is not None:
                self._apply(new, sign=1)

    def _apply(self, fact: Fact, *, sign: int) -> None:
        timestamp, key, value = fact
        try:
            group = self._group(value, key)
            lifted = self._function.lift(timestamp, key, value)
            starts = list(self._starts(timestamp))
            for start in starts:
                self._update(start, group, timestamp, lifted, sign)
        except Exception as error:
            # What failed on a record taken back was reported when the record came.
            if sign > 0:
                self.handlers[0](error, timestamp, key, value)
            return
        if not starts and sign > 0 and self._late is not None:
            self._late.append(fact)

    def _starts(self, timestamp: int) -> Iterator[int | None]:
        if self._windows is None:
            yield ALWAYS
            return
        for start in self._windows.starts(timestamp):
            if start + self._windows.size_ms > self._horizon:
                yield start

    def _update(
        self, start: int | None, group: Any, timestamp: int, lifted: Any, sign: int
    ) -> None:
        groups = self.state.space(start)
        entries = groups.get(group, [])
        first = bisect_left(entries, timestamp, key=_timestamp)
        floor = entries[first - 1].value if first else None
        before = [(entry.timestamp, entry.value) for entry in entries[first:]]
        # Whatever may raise is computed before anything is changed.
        tail = [
            self._combined(entry, lifted, sign) for entry in self._tail(entries, first, timestamp)
        ]
        tail[0].here += sign
        entries[first:] = tail
        after = [(entry.timestamp, entry.value) for entry in entries[first:]]
        self._emit(table_key(group, start, self._windows), floor, before, after)
        groups[group] = entries
        self._remember(group, entries, timestamp, first)

    def _remember(self, group: Any, entries: list[Entry], timestamp: int, first: int) -> None:
        """Look at a group again when there is something to settle: two entries, or no records."""
        if self._windows is None and (len(entries) > 1 or not entries[0].total):
            self._expiry.add(timestamp, group)
            for entry in entries[first + 1 : first + 2]:
                self._expiry.add(entry.timestamp, group)

    def _tail(self, entries: list[Entry], first: int, timestamp: int) -> list[Entry]:
        """Return the entries from `timestamp` on, with one at `timestamp` unless settled."""
        exists = first < len(entries) and entries[first].timestamp == timestamp
        settled = bool(entries) and first == 0 and entries[0].timestamp <= self._horizon
        if exists or settled:
            return entries[first:]
        below = entries[first - 1] if first else Entry(timestamp, 0, 0, None, None)
        return [Entry(timestamp, 0, below.total, below.partial, below.value), *entries[first:]]

    def _combined(self, entry: Entry, lifted: Any, sign: int) -> Entry:
        function, partial, total = self._function, entry.partial, entry.total + sign
        if sign > 0:
            partial = function.combine(partial, lifted) if entry.total else lifted
        elif total:
            assert function.subtract is not None
            partial = function.subtract(partial, lifted)
        value = function.lower(partial) if total else None
        return Entry(entry.timestamp, entry.here, total, partial, value)

    def _emit(self, key: Any, floor: Any, before: list[Version], after: list[Version]) -> None:
        """Write what changed from `before` to `after`; `floor` is the value below both."""
        times = sorted({t for t, _ in before} | {t for t, _ in after})
        for timestamp, until in zip(times, [*times[1:], None], strict=True):
            old, new = _value_at(before, timestamp, floor), _value_at(after, timestamp, floor)
            self._out.append((timestamp, key, new, old, until))

    def advance(self, stream_time: int) -> None:
        """Forget windows past the retention, and versions before the horizon."""
        self._horizon = stream_time - self._retention
        if self._windows is None:
            self._settle()
            return
        size = self._windows.size_ms
        for start in [s for s in self.state if s is not None and s + size <= self._horizon]:
            del self.state[start]

    def _settle(self) -> None:
        """Merge the entries before the horizon into the last of them."""
        groups = self.state.get(ALWAYS)
        if groups is None:
            return
        for _, group in self._expiry.due(self._horizon):
            entries = groups.get(group)
            if entries is None:
                continue
            settled = bisect_right(entries, self._horizon, key=_timestamp)
            if settled > 1:
                seen = _seen(entries, settled)
                kept = entries[settled - 1]
                kept.here = sum(entry.here for entry in entries[:settled])
                kept.timestamp = kept.timestamp if seen is None else seen.timestamp
                del entries[: settled - 1]
                groups.touch(group)
            if len(entries) == 1 and not entries[0].total and entries[0].timestamp <= self._horizon:
                del groups[group]

    def loaded(self, name: str, namespace: Any, key: Any, row: list[Entry]) -> None:
        """See that the entries of a group are back."""
        if self._windows is None:
            for entry in row if not row[0].total else row[1:]:
                self._expiry.add(entry.timestamp, key)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a row of version `at`, or of the latest."""
        group, start = (key, ALWAYS) if self._windows is None else key[:2]
        groups = self.state.get(start)
        return None if groups is None else _row(groups.get(group, []), at)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all rows of version `at`, or of the latest."""
        found = (
            (table_key(group, start, self._windows), _row(entries, at))
            for start, groups in self.state.items()
            for group, entries in groups.everything()
        )
        return {key: row for key, row in found if row is not None}

    def modified(self) -> dict[int, set[Any]]:
        """Return the modified key set of each version."""
        sets: dict[int, set[Any]] = {}
        for start, groups in self.state.items():
            for group, entries in groups.everything():
                key = table_key(group, start, self._windows)
                for entry in entries:
                    if entry.here:
                        sets.setdefault(entry.timestamp, set()).add(key)
        return dict(sorted(sets.items()))


def _timestamp(entry: Entry) -> int:
    return entry.timestamp


def _seen(entries: list[Entry], stop: int) -> Entry | None:
    """Return the last of the first `stop` entries that has records."""
    return next((entries[i] for i in range(stop - 1, -1, -1) if entries[i].here), None)


def _row(entries: list[Entry], at: int | None) -> tuple[int, Any] | None:
    """Return timestamp and value in version `at`, or in the latest."""
    stop = len(entries) if at is None else bisect_right(entries, at, key=_timestamp)
    found = _seen(entries, stop)
    return None if found is None or found.value is None else (found.timestamp, found.value)


def _value_at(history: list[Version], timestamp: int, floor: Any) -> Any:
    index = bisect_right(history, timestamp, key=itemgetter(0))
    return history[index - 1][1] if index else floor
