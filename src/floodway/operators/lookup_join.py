"""join of a stream with a table: each record with the table as it was then (definitions 68, 69).

A record is joined with the version of the table at the record's own timestamp. If an update of
the table comes late, after records that should have seen it, those records are joined again and
the corrected results replace the ones sent before. For that the records are kept for `retention`;
with ``late_updates="ignore"`` they are not, and the result is a stream of facts. Once the table's
input has ended no update can come, and nothing is kept either way.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from floodway.core.duration import show_ms
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Operator, Outputs, RowChange, beyond
from floodway.operators.code import Snippet, grouping
from floodway.operators.facts import Facts, State
from floodway.operators.history import EvolvingTable, Expiry
from floodway.operators.joiner import Joiner, has_null
from floodway.operators.keyed import EVERYWHERE, Space
from floodway.operators.lookup_facts import LookupFactsKernel
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import BY_KEY, FORWARD, Broadcast, Hash, Partitioning

LookupKind = Literal["inner", "left"]
LateUpdates = Literal["correct", "ignore"]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class LookupJoin(Operator):
    """Looks up each record's key in a table, at the record's time.

    Results have the timestamp of the stream's record. Updates of the table give no results of
    their own; a late one corrects earlier results, or takes them back where its row was deleted.
    A record whose key is null, or has a null column, finds nothing. A record older than stream
    time minus `retention` is late.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("enrich")
    >>> prices = flow.table("prices", schema=int, key=str)
    >>> orders = flow.source("orders", schema=str)
    >>> orders.join(prices, on="value", joiner=lambda o, p: f"{o} {p}", schema=str).to("out")
    >>> with Driver(flow) as driver:
    ...     driver.update("prices", "tea", 3, at=1)
    ...     driver.push("orders", "tea", at=5)
    ...     driver.update("prices", "tea", 4, at=2)  # late: corrects the order
    ...     [(record.value, record.id) for record in driver.read("out")]
    [('tea 3', 0), ('tea 4', 0)]
    """

    how: LookupKind
    on: Snippet | None
    joiner: Joiner
    late_updates: LateUpdates
    retention_ms: int
    broadcast: bool = False
    on_error: OnError = "fail"

    @property
    def facts(self) -> Facts:
        """Versions of the table are looked into; where late updates do not matter, in a copy."""
        return Facts(
            keys="scattered",
            windows=None,
            keeps_windows=False,
            reads_versions=frozenset({1}),
            versionable=False,
            away="with a copy" if self._kernel is LookupFactsKernel else "no",
            chained=False,
            held=None,
            emit=None,
            joins="lookup" if self.how == "inner" else None,
            host="task",
            most=None,
        )

    def state(self, *, versioned: bool = False) -> State:
        """Remember the table, and records for late updates."""
        return State(kernel=self._kernel, layout="", versions=False, inputs="rows")

    def details(self) -> Mapping[str, str]:
        """Return kind, key, and what late updates do."""
        return {
            "how": self.how,
            "on": self.on.text if self.on else "key",
            "late updates": self.late_updates,
            **({"table": "copied to every task"} if self.broadcast else {}),
            "retention": show_ms(self.retention_ms),
        }

    def partitioning(self, port: int) -> Partitioning:
        """Let records go to the rows they look up or, with a copy of the table each, stay."""
        if self.broadcast:
            return FORWARD if port == 0 else Broadcast()
        return Hash((self.on,)) if port == 0 and self.on else BY_KEY

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps the table and, to correct results, records."""
        return self._kernel(self, outputs)

    @property
    def _kernel(self) -> type["LookupFactsKernel | LookupJoinKernel"]:
        return LookupFactsKernel if self.late_updates == "ignore" else LookupJoinKernel


Correctable = tuple[int, int, Any, Any]
"""A record that a late update may reach: timestamp, offset, key, value."""


class LookupJoinKernel(Kernel):
    """Keeps the table's versions and the records that looked into them."""

    remembers = ("_table", "_kept", "_expiry", "_offset", "_horizon", "_correct")
    keyed = ("_table.histories", "_kept")
    derived = ("_expiry",)

    def __init__(self, operator: LookupJoin, outputs: Outputs) -> None:
        self._inner = operator.how == "inner"
        self._key = grouping((operator.on,)) if operator.on else _own_key
        self._join, self._retention = operator.joiner.function, operator.retention_ms
        self._correct, self._broadcast = True, operator.broadcast
        self._out, self._late = outputs[MAIN], outputs[LATE]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self._table = EvolvingTable(versioned=True)
        self._kept: Space[Any, list[Correctable]] = Space()
        self._expiry = Expiry()
        self._offset, self._step = 0, 1
        self._horizon: int | None = None

    def number(self, first: int, step: int) -> None:
        """Count records from `first` in steps of `step`."""
        self._offset, self._step = first, step

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Look records up, or take changes of the table."""
        if port == 0:
            for fact in rows:
                self._look_up(fact)
        else:
            for change in rows:
                self._change(change)

    def _look_up(self, fact: Fact) -> None:
        timestamp, key, value = fact
        if self._horizon is not None and timestamp < self._horizon:
            self._late.append(fact)
            return
        offset, self._offset = self._offset, self._offset + self._step
        try:
            wanted = self._key(value, key)
        except Exception as error:
            self.handlers[0](error, timestamp, key, value)
            return
        row = None if has_null(wanted) else self._table.lookup(wanted, timestamp)
        joined = self._joined(timestamp, key, value, row)
        # Kept even if the joiner failed: a late update may give it a row that it can take.
        if self._correct and not has_null(wanted):
            insort(self._kept.setdefault(wanted, []), (timestamp, offset, key, value), key=_order)
            self._kept.touch(wanted)
            self._expiry.add(timestamp, wanted)
        if joined is not None:
            self._out.append((offset, None, joined))

    def _joined(
        self, timestamp: int, key: Any, value: Any, row: Any, *, again: bool = False
    ) -> Fact | None:
        """Return a result, or None; a failure is reported unless it was before (`again`)."""
        if row is None and self._inner:
            return None
        try:
            return (timestamp, key, self._join(value, row))
        except Exception as error:
            if not again:
                self.handlers[0](error, timestamp, key, value)
            return None

    def _change(self, change: RowChange) -> None:
        self._table.assign(change)
        start, wanted, new, old, until = change
        kept = self._kept.get(wanted)
        if not kept:
            return
        first = bisect_left(kept, (start, -1), key=_order)
        last = len(kept) if until is None else bisect_left(kept, (until, -1), key=_order)
        for timestamp, offset, key, value in kept[first:last]:
            was = self._joined(timestamp, key, value, old, again=True)
            now = self._joined(timestamp, key, value, new)
            if was is not None or now is not None:
                self._out.append((offset, was, now))

    def advance(self, stream_time: int) -> None:
        """Forget versions and records from before the retention."""
        self._horizon = stream_time - self._retention
        self._table.forget(self._horizon)
        for _, wanted in self._expiry.due(self._horizon - 1):
            kept = self._kept.get(wanted)
            if kept is None:
                continue
            del kept[: bisect_left(kept, (self._horizon, -1), key=_order)]
            if kept:
                self._kept.touch(wanted)
            else:
                del self._kept[wanted]

    def ended(self, port: int) -> None:
        """Without further updates of the table there is nothing to correct."""
        if port == 1:
            self._correct = False
            self._kept.clear()
            self._expiry = Expiry()

    def adopt(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """Go on, and count on where no record was counted before."""
        offset = beyond([scalars["_offset"] for scalars in saved], self._offset, self._step)
        super().adopt(saved)
        self._offset = offset

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a history of the table, or the records of a key, are back."""
        if name == "_kept":
            for kept in row:
                self._expiry.add(kept[0], key)
        else:
            self._table.loaded(key, row)

    def route(self, name: str, key: Any) -> Any:
        """Return the key that is looked up or, where every task has a copy of the table, that."""
        return EVERYWHERE if self._broadcast and name != "_kept" else key


def _order(kept: Correctable) -> tuple[int, int]:
    return kept[:2]


def _own_key(value: Any, key: Any) -> Any:
    return key
