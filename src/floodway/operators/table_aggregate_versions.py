"""The table aggregate's kernel with versions: each version of a group is that of its rows.

A change of the input says that over some versions a row was this and is that. So over those
versions the old value is subtracted from its group and the new one combined into its group, which
may be another.

Values in order (of min, max, top) that are from windows are told apart by the end of their window.
When it is closed every version that is left has the same of its values, and none of them leaves any
more: those that still count are kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodway.operators.aggregates.bag import union
from floodway.operators.base import MAIN, Kernel, Outputs, RowChange, View
from floodway.operators.code import grouping
from floodway.operators.history import Expiry
from floodway.operators.keyed import Space
from floodway.operators.on_error import ErrorHandler
from floodway.operators.windows import WindowInKey

if TYPE_CHECKING:
    from floodway.operators.table_aggregate import TableAggregate

Group = tuple[int, int, Any, Any]
"""A group from one timestamp on: timestamp, number of rows, partial, value."""


NOTHING: Group = (0, 0, None, None)
"""A group before its first row."""


def gone_by(window: WindowInKey | None, horizon: int | None, end: int | None) -> bool:
    """Return whether the groups of a window that ends at `end` are forgotten."""
    if window is None or horizon is None:
        return False
    return end is not None and end <= horizon


class TableVersionsKernel(Kernel, View):
    """Keeps a history of partials and values per group."""

    remembers = ("_groups", "_expiry", "_ends", "_horizon")
    keyed = ("_groups",)
    derived = ("_expiry", "_ends")

    def __init__(self, operator: "TableAggregate", outputs: Outputs) -> None:
        self._group = grouping(operator.group)
        function = operator.function.retractable()
        self._function, self.layout = function.compiled(), function.layout
        self._retention = operator.retention_ms
        self._ending, self._window = operator.ending, operator.window
        self._lasting = operator.lasting()
        self._several = bool(operator.function.parts)
        self._out = outputs[MAIN]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self._groups: Space[Any, list[Group]] = Space()
        self._expiry = Expiry()
        self._ends = Expiry()
        self._horizon: int | None = None

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Move rows from their old group to their new one."""
        for timestamp, key, new, old, until in rows:
            if until is not None and self._horizon is not None and until <= self._horizon:
                continue  # it touches no version that is kept
            end = None if self._ending is None else self._ending.end(key)
            if gone_by(self._window, self._horizon, end):
                continue  # nor does what is about a window that is closed
            steps: dict[Any, list[tuple[int, Any]]] = {}
            for sign, value in ((-1, old), (1, new)):
                if value is None:
                    continue
                try:
                    # The timestamp of a row is not part of it: it must lift to the same partial
                    # when it is taken out again.
                    lifted = self._function.lift(0, key, value)
                    if self._lasting and end is not None:
                        lifted = self._told_apart(lifted, end)
                    group = self._group(value, key)
                    steps.setdefault(group, []).append((sign, lifted))
                    if self._lasting and end is not None and sign > 0:
                        self._due_at(end, group)
                except Exception as error:
                    if sign > 0:
                        self.handlers[0](error, timestamp, key, value)
            for group, changes in steps.items():
                try:
                    self._apply(group, timestamp, until, changes)
                except Exception as error:
                    self.handlers[0](error, timestamp, key, new)

    def _apply(
        self, group: Any, timestamp: int, until: int | None, steps: list[tuple[int, Any]]
    ) -> None:
        history = self._groups.get(group, [])
        if self._horizon is not None:
            timestamp = max(timestamp, self._horizon)  # what came before is settled
        if not history and self._window is not None:
            self._ends.add(self._window.end(group), group)
        start = bisect_left(history, timestamp, key=_timestamp)
        stop = len(history) if until is None else bisect_left(history, until, key=_timestamp)
        below = history[start - 1] if start else NOTHING
        first = [] if start else [entry[0] for entry in history[:1]]
        before = history[start:stop]
        if not before or before[0][0] != timestamp:
            before.insert(0, (timestamp, *below[1:]))
        changed = [self._step(entry, steps) for entry in before]
        following = history[stop : stop + 1]
        if until is not None and [entry[0] for entry in following] != [until]:
            following.insert(0, (until, *before[-1][1:]))
        history[start : stop + 1] = _squeezed(changed + following, below)
        if history:
            self._groups[group] = history
        else:
            self._groups.pop(group, None)
        ends = [*(entry[0] for entry in changed[1:]), until]
        for was, now, end in zip(before, changed, ends, strict=True):
            self._out.append((now[0], group, now[3], was[3], end))
        self._remember(group, history, [timestamp, until, *first])

    def _remember(self, group: Any, history: list[Group], changed: list[int | None]) -> None:
        """Look at a group again where it changed, if there is something to forget by then.

        That are entries with another after them, and groups without rows.
        """
        empty = [entry[0] for entry in history[:1] if not entry[1]]
        if len(history) > 1 or empty:
            for timestamp in (*changed, *empty):
                if timestamp is not None:
                    self._expiry.add(timestamp, group)

    def _step(self, entry: Group, steps: list[tuple[int, Any]]) -> Group:
        timestamp, count, partial, _ = entry
        for sign, lifted in steps:
            if sign > 0:
                partial = self._function.combine(partial, lifted) if count else lifted
            elif count > 1:
                assert self._function.subtract is not None
                partial = self._function.subtract(partial, lifted)
            count += sign
        if not count:
            return (timestamp, 0, None, None)
        return (timestamp, count, partial, self._function.lower(partial))

    def advance(self, stream_time: int) -> None:
        """Forget versions from before the retention, and groups of windows that are closed."""
        horizon = self._horizon = stream_time - self._retention
        for _, group in self._ends.due(horizon):
            if self._lasting:
                self._close(group, horizon)
            else:
                self._groups.pop(group, None)
        for _, group in self._expiry.due(horizon):
            history = self._groups.get(group, [])
            settled = bisect_right(history, horizon, key=_timestamp) - 1
            if settled > 0:
                del history[:settled]
                self._groups.touch(group)
            if len(history) == 1 and history[0][1] == 0 and history[0][0] <= horizon:
                del self._groups[group]

    def loaded(self, name: str, namespace: Any, key: Any, row: list[Group]) -> None:
        """See that the history of a group is back."""
        for entry in row if row[0][1] == 0 else row[1:]:
            self._expiry.add(entry[0], key)
        if self._window is not None:
            self._ends.add(self._window.end(key), key)
        for end in {end for entry in row for end in self._origins(entry[2])}:
            self._ends.add(end, key)

    # ------------------------------------------------------------------ windows that close

    def _told_apart(self, lifted: Any, end: int) -> Any:
        """Return what was lifted with the end of its window beside each value in order."""
        parts = list(lifted) if self._several else [lifted]
        for number in self._lasting:
            parts[number] = [(by, (text, end), value) for by, text, value in parts[number]]
        return tuple(parts) if self._several else parts[0]

    def _due_at(self, end: int, group: Any) -> None:
        groups = self._ends.at(end)
        if group not in groups[-1:]:  # most come one after the other
            groups.append(group)

    def _origins(self, partial: Any) -> set[int]:
        """Return the ends of the windows of which a partial has values in order."""
        if partial is None:
            return set()
        parts = partial if self._several else (partial,)
        return {end for number in self._lasting for _, (_, end), _ in parts[number]}

    def _close(self, group: Any, horizon: int) -> None:
        """Keep of windows that are closed what still counts."""
        history = self._groups.get(group)
        if history is not None:
            history[:] = [
                (timestamp, count, partial and self._kept(partial, horizon), value)
                for timestamp, count, partial, value in history
            ]
            self._groups.touch(group)

    def _kept(self, partial: Any, horizon: int) -> Any:
        parts = list(partial) if self._several else [partial]
        for number, kept in self._lasting.items():
            closed = [entry for entry in parts[number] if entry[1][1] <= horizon]
            open_ = [entry for entry in parts[number] if entry[1][1] > horizon]
            parts[number] = union(open_, closed[kept])
        return tuple(parts) if self._several else parts[0]

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a group's row in version `at`, or the latest."""
        return _row(self._groups.get(key, []), at)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all groups of version `at`, or of the latest."""
        found = ((group, _row(history, at)) for group, history in self._groups.everything())
        return {group: row for group, row in found if row is not None}

    def modified(self) -> dict[int, set[Any]]:
        """Return the modified key set of each version."""
        sets: dict[int, set[Any]] = {}
        for group, history in self._groups.everything():
            for entry in history:
                sets.setdefault(entry[0], set()).add(group)
        return dict(sorted(sets.items()))


def _timestamp(entry: Group) -> int:
    return entry[0]


def _row(history: list[Group], at: int | None) -> tuple[int, Any] | None:
    """Return timestamp and value in version `at`, or in the latest."""
    index = len(history) if at is None else bisect_right(history, at, key=_timestamp)
    found = history[index - 1] if index else None
    return None if found is None or found[3] is None else (found[0], found[3])


def _squeezed(piece: list[Group], below: Group) -> list[Group]:
    """Return a piece of history without entries that say the same as the one before."""
    kept = [below]
    for entry in piece:
        if entry[1:] != kept[-1][1:]:
            kept.append(entry)
    return kept[1:]
