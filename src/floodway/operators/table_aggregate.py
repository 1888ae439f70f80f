"""aggregate on tables: rows are grouped, and each group is one row (thesis, definition 73).

A change of the input says that over some versions a row was this and is that. So over those
versions the old value is subtracted from its group and the new one combined into its group, which
may be another.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodway.operators.aggregates import AggregateFunction
from floodway.operators.base import MAIN, Change, Kernel, Outputs, TableOperator, View
from floodway.operators.code import Snippet, grouping
from floodway.operators.history import Expiry
from floodway.operators.keyed import Space
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import Hash, Partitioning

Group = tuple[int, int, Any, Any]
"""A group from one timestamp on: timestamp, number of rows, partial, value."""


NOTHING: Group = (0, 0, None, None)
"""A group before its first row."""


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class TableAggregate(TableOperator):
    """Groups the rows of a table and keeps an aggregate per group, up to date with every change.

    A row that changes leaves its old group and joins its new one; a group without rows has no
    row. The aggregate must be subtractable: all built-in ones are. Each version of the result is
    the aggregate of the same version of the input, and the timestamp of a row is that of the
    change that made the group what it is.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("people")
    >>> homes = flow.table("homes", schema=str, key=str)
    >>> cities = homes.group_by("value AS city").count(name="cities")
    >>> with Driver(flow) as driver:
    ...     driver.update("homes", "ann", "Bern", at=1)
    ...     driver.update("homes", "bob", "Bern", at=2)
    ...     driver.update("homes", "ann", "Rome", at=3)
    ...     driver.table("cities").values()
    {'Bern': 1, 'Rome': 1}
    """

    group: tuple[Snippet, ...]
    function: AggregateFunction
    retention_ms: int
    on_error: OnError = "fail"

    def details(self) -> Mapping[str, str]:
        """Return grouping and function."""
        return {"by": ", ".join(snippet.text for snippet in self.group), "of": self.function.text}

    def partitioning(self, port: int) -> Partitioning:
        """All rows of a group meet in one task."""
        return Hash(self.group)

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps the groups."""
        return TableAggregateKernel(self, outputs, versioned=versioned)

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the groups."""
        assert isinstance(kernel, View)
        return kernel


class TableAggregateKernel(Kernel, View):
    """Keeps a history of partials and values per group."""

    remembers = ("_groups", "_expiry", "_horizon")
    keyed = ("_groups",)
    derived = ("_expiry",)

    def __init__(self, operator: TableAggregate, outputs: Outputs, *, versioned: bool) -> None:
        self._group = grouping(operator.group)
        self._function = operator.function.retractable().compiled()
        self._retention = operator.retention_ms
        self._versioned = versioned
        self._out = outputs[MAIN]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self._groups: Space[Any, list[Group]] = Space()
        self._expiry = Expiry()
        self._horizon: int | None = None

    def process(self, port: int, rows: Sequence[Change]) -> None:
        """Move rows from their old group to their new one."""
        for timestamp, key, new, old, until in rows:
            if until is not None and not self._reaches(until):
                continue
            steps: dict[Any, list[tuple[int, Any]]] = {}
            for sign, value in ((-1, old), (1, new)):
                if value is None:
                    continue
                try:
                    # The timestamp of a row is not part of it: it must lift to the same partial
                    # when it is taken out again.
                    lifted = self._function.lift(0, key, value)
                    steps.setdefault(self._group(value, key), []).append((sign, lifted))
                except Exception as error:
                    if sign > 0:
                        self.handlers[0](error, timestamp, key, value)
            for group, changes in steps.items():
                try:
                    self._apply(group, timestamp, until, changes)
                except Exception as error:
                    self.handlers[0](error, timestamp, key, new)

    def _reaches(self, until: int) -> bool:
        """Return whether a change that ends at `until` touches a version that is kept."""
        return self._versioned and (self._horizon is None or until > self._horizon)

    def _apply(
        self, group: Any, timestamp: int, until: int | None, steps: list[tuple[int, Any]]
    ) -> None:
        history = self._groups.get(group, [])
        if self._horizon is not None:
            timestamp = max(timestamp, self._horizon)  # what came before is settled
        if not self._versioned:
            timestamp = max([timestamp, *(entry[0] for entry in history)])
            history = [(timestamp, *entry[1:]) for entry in history]
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
        piece = changed + following
        # Without versions a group without rows stays until nothing older can come, so that its
        # changes follow each other.
        history[start : stop + 1] = _squeezed(piece, below) if self._versioned else piece
        if history:
            self._groups[group] = history
        else:
            self._groups.pop(group, None)
        ends = [*(entry[0] for entry in changed[1:]), until]
        for was, now, end in zip(before, changed, ends, strict=True):
            if self._versioned or now[3] is not None or was[3] is not None:
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
        """Forget versions from before the retention."""
        horizon = self._horizon = stream_time - self._retention
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
