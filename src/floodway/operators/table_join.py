"""join of two tables: each version with the same version (thesis, definition 74).

Rows meet by primary key, or the left row names the right row's key (a foreign key). A change on
one side holds over an interval of versions; over that interval it meets the pieces of the other
side's history, and each piece is one change of the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from floodway.operators.base import MAIN, Fact, Kernel, Outputs, RowChange, TableOperator, View
from floodway.operators.code import Snippet, grouping
from floodway.operators.facts import Facts, State, of_table
from floodway.operators.history import EvolvingTable, Expiry
from floodway.operators.joiner import Joiner, has_null
from floodway.operators.keyed import Space
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import BY_KEY, Partitioning, Single
from floodway.operators.windows import WindowInKey

TableJoinKind = Literal["inner", "left", "full"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class TableJoin(TableOperator):
    """Joins two tables into a table that follows both.

    With primary keys the result has the common key; with a foreign key, that of the left table.
    The timestamp of a result row is the later one of its two rows. Deleting a row deletes or, in
    outer joins, empties its side of the result. A foreign key that is null points to nothing. A
    row for which the joiner fails has no result; `on_error` says whether it is also reported.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("pairs")
    >>> left = flow.table("left", schema=str, key=int)
    >>> right = flow.table("right", schema=str, key=int)
    >>> pairs = left.join(right, joiner=lambda a, b: f"{a}-{b}", schema=str, name="pairs")
    >>> with Driver(flow) as driver:
    ...     driver.update("left", 1, "a", at=1)
    ...     driver.update("right", 1, "b", at=2)
    ...     driver.table("pairs").lookup(1)
    'a-b'
    """

    how: TableJoinKind
    joiner: Joiner
    foreign: Snippet | None
    window: WindowInKey | None
    retention_ms: int
    on_error: OnError = "fail"

    @property
    def facts(self) -> Facts:
        """Rows keep their key and window; a foreign key takes all rows to one task."""
        return of_table(
            keys="scattered" if self.foreign else "gathered",
            windows=None,
            keeps_windows=True,
            away="no",
            joins="tables" if self.how == "inner" else None,
        )

    def state(self, *, versioned: bool = False) -> State:
        """Remember both tables."""
        return State(kernel=TableJoinKernel, layout="", versions=True, inputs="rows")

    def details(self) -> Mapping[str, str]:
        """Return the kind of join and what it joins on."""
        return {"how": self.how, "on": self.foreign.text if self.foreign else "key"}

    def partitioning(self, port: int) -> Partitioning:
        """Rows meet by key; a foreign key may point anywhere, so one task sees them all."""
        return BY_KEY if self.foreign is None else Single()

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps both sides."""
        return TableJoinKernel(self, outputs, versioned=versioned)

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the result."""
        assert isinstance(kernel, View)
        return kernel


class TableJoinKernel(Kernel, View):
    """Keeps both tables and the foreign keys that point from left to right."""

    remembers = ("_left", "_right", "_pointing", "_sent_at", "_expiry")
    keyed = ("_left.histories", "_right.histories", "_pointing", "_sent_at")
    derived = ("_expiry",)

    def __init__(self, operator: TableJoin, outputs: Outputs, *, versioned: bool) -> None:
        self._how = operator.how
        self._join = operator.joiner.function
        self._foreign = grouping((operator.foreign,)) if operator.foreign else _own_key
        self._by_key = operator.foreign is None
        self._window, self._retention = operator.window, operator.retention_ms
        self._versioned = versioned
        self._out = outputs[MAIN]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self._left = EvolvingTable(versioned=versioned)
        self._right = EvolvingTable(versioned=versioned)
        self._pointing: Space[Any, set[Any]] = Space()
        self._sent_at: Space[Any, int] = Space()
        self._expiry = Expiry()

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Take changes of one side and meet them with the other."""
        take = self._change_left if port == 0 else self._change_right
        for change in rows:
            if change[4] is not None and not self._versioned:
                continue  # of an older version, which the input keeps for somebody else
            for result in take(change):
                if self._versioned or result[2] is not None or result[3] is not None:
                    self._out.append(result if self._versioned else self._not_before(result))

    def _not_before(self, result: RowChange) -> RowChange:
        """Return a change of the latest version, not earlier than the one before it.

        A row that points to another partner may get an earlier timestamp than it had. Whoever
        reads the changelog would take its change for one of an older version.
        """
        if self._by_key:
            return result
        timestamp, key, *rest = result
        timestamp = self._sent_at[key] = max(timestamp, self._sent_at.get(key, timestamp))
        return (timestamp, key, rest[0], rest[1], rest[2])

    def _change_left(self, change: RowChange) -> list[RowChange]:
        timestamp, key, new, old, until = change
        try:
            to_new = self._pointed(new, key)
        except Exception as error:
            self.handlers[0](error, timestamp, key, new)
            to_new, new = None, None
        to_old = self._pointed_before(old, key)
        pieces = self._segments(to_new, timestamp, until)
        if self._versioned and to_old != to_new:
            # Cut also where the row that was pointed to before changes.
            pieces = [
                (a, b, right)
                for start, end, right in pieces
                for a, b, _ in self._segments(to_old, start, end)
            ]
        results = []
        for start, end, right in pieces:
            at = start if self._versioned else None
            was = right if to_old == to_new else self._lookup(to_old, at)
            pair = self._pair(new, right, (start, key, new))
            results.append((start, key, pair, self._pair_before(old, was), end))
        self._left.assign((timestamp, key, new, old, until))
        self._remember(key)
        if not self._by_key:
            self._point(key, to_new, to_old)
        return results

    def _point(self, key: Any, to_new: Any, to_old: Any) -> None:
        """Remember who points where; in any version, if there are versions."""
        if not self._versioned and to_old is not None and to_old != to_new:
            self._no_longer(key, to_old)
        if to_new is not None:
            self._pointing.setdefault(to_new, set()).add(key)
            self._pointing.touch(to_new)

    def _no_longer(self, key: Any, target: Any) -> None:
        pointing = self._pointing.get(target)
        if pointing is None:
            return
        pointing.discard(key)
        if pointing:
            self._pointing.touch(target)
        else:
            del self._pointing[target]

    def _change_right(self, change: RowChange) -> list[RowChange]:
        timestamp, key, new, old, until = change
        results = []
        keys = [key] if self._by_key else sorted(self._pointing.get(key, ()), key=repr)
        for pointing in keys:
            for start, end, left in self._left.segments(pointing, timestamp, until):
                if self._by_key or self._pointed_before(left, pointing) == key:
                    pair = self._pair(left, new, (start, pointing, left))
                    results.append((start, pointing, pair, self._pair_before(left, old), end))
        self._right.assign(change)
        if self._by_key:
            self._remember(key)
        return results

    def _pointed(self, value: Any, key: Any) -> Any:
        """Return the right key that a left row points to, or None."""
        if self._by_key:
            return key
        target = None if value is None else self._foreign(value, key)
        return None if has_null(target) else target

    def _pointed_before(self, value: Any, key: Any) -> Any:
        """Return where a row pointed; one that failed, which was reported, points nowhere."""
        try:
            return self._pointed(value, key)
        except Exception:
            return None

    def _segments(
        self, target: Any, start: int, end: int | None
    ) -> list[tuple[int, int | None, Any]]:
        if target is None and not self._by_key:
            return [(start, end, None)]
        return self._right.segments(target, start, end)

    def _lookup(self, target: Any, at: int | None) -> Any:
        entry = self._partner(target, at)
        return None if entry is None else entry[1]

    def _partner(self, target: Any, at: int | None) -> tuple[int, Any] | None:
        return None if target is None and not self._by_key else self._right.entry(target, at)

    def _pair(self, left: Any, right: Any, row: Fact) -> Any:
        """Return the joined value; if the joiner fails, report `row` and return None."""
        try:
            return self._joined(left, right)
        except Exception as error:
            self.handlers[0](error, *row)
            return None

    def _pair_before(self, left: Any, right: Any) -> Any:
        """Return the value as it was; a failure was reported then."""
        try:
            return self._joined(left, right)
        except Exception:
            return None

    def _joined(self, left: Any, right: Any) -> Any:
        if left is None and (right is None or self._how != "full"):
            return None
        if right is None and self._how == "inner":
            return None
        return self._join(left, right)

    def _remember(self, key: Any) -> None:
        if self._window is not None:
            self._expiry.add(self._window.end(key), key)

    def advance(self, stream_time: int) -> None:
        """Forget versions and windows from before the retention."""
        horizon = stream_time - self._retention
        self._right.forget(horizon)
        gone = set(self._left.forget(horizon))
        for _, key in self._expiry.due(horizon):
            gone.add(key)
            if self._by_key:
                self._right.drop(key)
            elif not self._versioned:
                self._no_longer(key, self._pointed_before(self._left.lookup(key), key))
            self._left.drop(key)
        if gone and not self._by_key:
            self._unpoint(gone)

    def _unpoint(self, gone: set[Any]) -> None:
        """Forget where rows that are gone have pointed; in any version, if there are versions."""
        if self._versioned:
            everyone = self._pointing.everything()
            for target, key in [(to, key) for to, keys in everyone for key in gone & keys]:
                self._no_longer(key, target)
        for key in gone:
            self._sent_at.pop(key, None)

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a row of one side is back."""
        tables = {"_left.histories": self._left, "_right.histories": self._right}
        if name in tables:
            tables[name].loaded(key, row)
            if self._by_key or tables[name] is self._left:
                self._remember(key)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a result row in version `at`, or the latest."""
        left = self._left.entry(key, at)
        right = self._partner(self._pointed_before(left[1] if left else None, key), at)
        value = self._pair_before(left[1] if left else None, right[1] if right else None)
        if value is None:
            return None
        return max(entry[0] for entry in (left, right) if entry is not None), value

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all result rows of version `at`, or of the latest."""
        keys = dict.fromkeys(self._left.rows(at))
        if self._how == "full":
            keys |= dict.fromkeys(self._right.rows(at))
        entries = ((key, self.entry(key, at)) for key in keys)
        return {key: entry for key, entry in entries if entry is not None}

    def modified(self) -> dict[int, set[Any]]:
        """Return the keys modified on either side, by version."""
        sets = self._left.modified()
        for timestamp, keys in self._right.modified().items():
            reached = keys if self._by_key else self._pointing_to(keys, timestamp)
            if reached:
                sets[timestamp] = sets.get(timestamp, set()) | reached
        return dict(sorted(sets.items()))

    def _pointing_to(self, targets: set[Any], at: int) -> set[Any]:
        return {
            key
            for target in targets
            for key in self._pointing.get(target, ())
            if self._pointed_before(self._left.lookup(key, at), key) == target
        }


def _own_key(value: Any, key: Any) -> Any:
    return key
