"""join of two tables: each version with the same version (thesis, definition 74).

Rows meet by primary key, or the left row names the right row's key (a foreign key). A change on
one side holds over an interval of versions; over that interval it meets the pieces of the other
side's history, and each piece is one change of the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from floodway.operators.base import MAIN, Change, Kernel, Outputs, TableOperator, View
from floodway.operators.code import Snippet
from floodway.operators.history import EvolvingTable, Expiry
from floodway.operators.joiner import Joiner
from floodway.operators.on_error import ErrorHandler, OnError

TableJoinKind = Literal["inner", "left", "full"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class TableJoin(TableOperator):
    """Joins two tables into a table that follows both.

    With primary keys the result has the common key; with a foreign key, that of the left table.
    The timestamp of a result row is the later one of its two rows. Deleting a row deletes or, in
    outer joins, empties its side of the result.

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
    windowed: bool
    retention_ms: int
    on_error: OnError = "fail"

    def details(self) -> Mapping[str, str]:
        """Return the kind of join and what it joins on."""
        return {"how": self.how, "on": self.foreign.text if self.foreign else "key"}

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps both sides."""
        return TableJoinKernel(self, outputs, versioned=versioned)

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the result."""
        assert isinstance(kernel, View)
        return kernel


class TableJoinKernel(Kernel, View):
    """Keeps both tables and the foreign keys that point from left to right."""

    remembers = ("_left", "_right", "_pointing", "_expiry")

    def __init__(self, operator: TableJoin, outputs: Outputs, *, versioned: bool) -> None:
        self._how = operator.how
        self._join = operator.joiner.function
        self._foreign = operator.foreign.call() if operator.foreign else _own_key
        self._by_key = operator.foreign is None
        self._windowed, self._retention = operator.windowed, operator.retention_ms
        self._versioned = versioned
        self._out = outputs[MAIN]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self._left = EvolvingTable(versioned=versioned)
        self._right = EvolvingTable(versioned=versioned)
        self._pointing: dict[Any, set[Any]] = {}
        self._expiry = Expiry()

    def process(self, port: int, rows: Sequence[Change]) -> None:
        """Take changes of one side and meet them with the other."""
        take = self._change_left if port == 0 else self._change_right
        for change in rows:
            try:
                results = take(change)
            except Exception as error:
                self.handlers[0](error, change[0], change[1], change[2])
                continue
            for result in results:
                if self._versioned or result[2] is not None or result[3] is not None:
                    self._out.append(result)

    def _change_left(self, change: Change) -> list[Change]:
        timestamp, key, new, old, until = change
        to_new, to_old = self._pointed(new, key), self._pointed(old, key)
        results = []
        for start, end, right in self._right.segments(to_new, timestamp, until):
            was = right if to_old == to_new else self._right.lookup(to_old, self._at(start))
            results.append((start, key, self._pair(new, right), self._pair(old, was), end))
        self._left.assign(change)
        self._remember(key)
        if new is not None and not self._by_key:
            self._pointing.setdefault(to_new, set()).add(key)
        if not self._versioned and old is not None and to_old != to_new:
            self._pointing.get(to_old, set()).discard(key)
        return results if to_old == to_new or not self._versioned else self._cut(change, results)

    def _cut(self, change: Change, results: list[Change]) -> list[Change]:
        """Cut results where the row that was pointed to before changes within a piece."""
        _, key, _, old, _ = change
        pieces: list[Change] = []
        for start, _, new, _, end in results:
            for a, b, was in self._right.segments(self._pointed(old, key), start, end):
                pieces.append((a, key, new, self._pair(old, was), b))
        return pieces

    def _change_right(self, change: Change) -> list[Change]:
        timestamp, key, new, old, until = change
        results = []
        keys = [key] if self._by_key else sorted(self._pointing.get(key, ()), key=repr)
        for pointing in keys:
            for start, end, left in self._left.segments(pointing, timestamp, until):
                if self._by_key or (left is not None and self._pointed(left, pointing) == key):
                    pair, was = self._pair(left, new), self._pair(left, old)
                    results.append((start, pointing, pair, was, end))
        self._right.assign(change)
        self._remember(key)
        return results

    def _pointed(self, value: Any, key: Any) -> Any:
        return None if value is None and not self._by_key else self._foreign(value, key)

    def _at(self, timestamp: int) -> int | None:
        return timestamp if self._versioned else None

    def _pair(self, left: Any, right: Any) -> Any:
        if left is None and (right is None or self._how != "full"):
            return None
        if right is None and self._how == "inner":
            return None
        return self._join(left, right)

    def _remember(self, key: Any) -> None:
        if self._windowed:
            self._expiry.add(key[2], key)

    def advance(self, stream_time: int) -> None:
        """Forget versions and windows from before the retention."""
        horizon = stream_time - self._retention
        self._right.forget(horizon)
        for key in self._left.forget(horizon):
            for pointing in self._pointing.values():
                pointing.discard(key)
        for _, key in self._expiry.due(horizon):
            self._left.drop(key)
            self._right.drop(key)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a result row in version `at`, or the latest."""
        left = self._left.entry(key, at)
        target = self._pointed(left[1] if left else None, key)
        right = self._right.entry(target, at)
        value = self._pair(left[1] if left else None, right[1] if right else None)
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
        if self._by_key:
            for timestamp, keys in self._right.modified().items():
                sets[timestamp] = sets.get(timestamp, set()) | keys
        return dict(sorted(sets.items()))


def _own_key(value: Any, key: Any) -> Any:
    return key
