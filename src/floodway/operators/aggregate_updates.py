"""The aggregate's kernel for streams with updates: facts are taken back, one version is kept.

A revision says that a fact was this and is that. The one is subtracted from its group, the other
combined into its own, and if that is the same group its row changes once. What it costs does not
depend on how many records a group has, nor on how old the record is.

The timestamp of a row is that of the newest record its group has had, taken back or not. A group
without records stays, unseen, until nothing older can come: changes up to there have been sent, and
have to be followed by others.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodway.operators.aggregate_latest import ALWAYS, NEVER, table_key
from floodway.operators.base import LATE, MAIN, Fact, Outputs, Revision
from floodway.operators.code import grouping
from floodway.operators.on_error import ErrorHandler
from floodway.operators.tallied import TalliedKernel
from floodway.operators.tallies import Move, Tallies
from floodway.operators.windows import Session

if TYPE_CHECKING:
    from floodway.operators.aggregate import Aggregate


Steps = dict[tuple[int | None, Any], tuple[int, list[Move]]]
"""What happens to the groups, and when, by window and group."""


class UpdatesKernel(TalliedKernel):
    """Aggregates revisions into the latest version of a table."""

    def __init__(self, operator: "Aggregate", outputs: Outputs) -> None:
        assert not isinstance(operator.windows, Session)
        self._windows = operator.windows
        self._retention = operator.retention_ms
        self._group = grouping(operator.group)
        self._out = outputs[MAIN]
        self._late = outputs.get(LATE)
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        function = operator.function.retractable()
        self._tallies, self.layout = Tallies(function), function.layout
        self._horizon = NEVER

    def process(self, port: int, rows: Sequence[Revision]) -> None:
        """Replace what revisions replace."""
        for _, old, new in rows:
            steps: Steps = {}
            if old is not None:
                self._lift(old, -1, steps)
            if new is not None:
                self._lift(new, 1, steps)
            blamed = new or old
            if blamed is not None:
                self._apply(blamed, steps)

    def _lift(self, fact: Fact, sign: int, steps: Steps) -> None:
        """Find the groups of a fact, and what it is to them."""
        timestamp, key, value = fact
        try:
            group = self._group(value, key)
            step = (sign, self._tallies.function.lift(timestamp, key, value), fact)
        except Exception as error:
            # What failed on a record taken back was reported when the record came.
            if sign > 0:
                self.handlers[0](error, timestamp, key, value)
            return
        starts = self._starts(timestamp)
        for start in starts:
            newest, changes = steps.get((start, group)) or (timestamp, [])
            steps[start, group] = (max(newest, timestamp), [*changes, step])
        if not starts and sign > 0 and self._late is not None:
            self._late.append(fact)

    def _starts(self, timestamp: int) -> Sequence[int | None]:
        """Return the windows of a timestamp that are not forgotten."""
        windows = self._windows
        if windows is None:
            return (ALWAYS,)
        size, horizon = windows.size_ms, self._horizon
        return [start for start in windows.starts(timestamp) if start + size > horizon]

    def _apply(self, blamed: Fact, steps: Steps) -> None:
        for (start, group), (newest, changes) in steps.items():
            try:
                timestamp, now, was = self._tallies.change(start, group, newest, changes, start)
            except Exception as error:
                self.handlers[0](error, *blamed)
                singly = self._tallies.change_singly
                timestamp, now, was = singly(start, group, newest, changes, start)
            if now is not None or was is not None:
                key = table_key(group, start, self._windows)
                self._out.append((timestamp, key, now, was, None))

    def advance(self, stream_time: int) -> None:
        """Forget windows past the retention, and groups without records."""
        self._horizon = stream_time - self._retention
        self._tallies.settle(self._horizon)
        if self._windows is not None:
            size = self._windows.size_ms
            for start in [s for s in self._tallies.groups if s + size <= self._horizon]:
                self._tallies.drop(start)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a row; only the latest version is kept."""
        group, start = (key, ALWAYS) if self._windows is None else key[:2]
        return self._tallies.entry(start, group)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all rows."""
        return {
            table_key(group, start, self._windows): row
            for start, group, row in self._tallies.rows()
        }
