"""aggregate on tables: rows are grouped, and each group is one row (thesis, definition 73).

A change of the input says that a row was this and is that. The old value is subtracted from its
group and the new one combined into its group, which may be another. One kernel keeps the latest
version of the groups; the other, if somebody asks for it, all within the retention.

The rows of a table with windows are forgotten when their windows are closed, and nothing takes them
out of their group before. So what they have added to a group stays. If the group has the window in
its key, nothing can be added either, and the group is forgotten, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodway.operators.aggregates import AggregateFunction
from floodway.operators.base import MAIN, Kernel, Outputs, RowChange, TableOperator, View
from floodway.operators.code import Snippet, grouping
from floodway.operators.facts import Facts, State, of_table
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import Hash, Partitioning
from floodway.operators.table_aggregate_versions import TableVersionsKernel, gone_by
from floodway.operators.tallied import TalliedKernel
from floodway.operators.tallies import Move, Tallies
from floodway.operators.windows import WindowInKey


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class TableAggregate(TableOperator):
    """Groups the rows of a table and keeps an aggregate per group, up to date with every change.

    A row that changes leaves its old group and joins its new one; a group without rows has no
    row. The aggregate must be subtractable: all built-in ones are. Each version of the result is
    the aggregate of the same version of the input, and the timestamp of a row is that of the
    change that made the group what it is.

    If the rows are those of windows, what a window has added to a group stays when the window is
    closed, that is, `retention` after its end. If the group is one of a window, it goes with it.

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
    ending: WindowInKey | None = None
    window: WindowInKey | None = None
    on_error: OnError = "fail"

    @property
    def facts(self) -> Facts:
        """All about a key comes from the task that has the key."""
        return of_table(keys="gathered", windows=None, keeps_windows=False, away="no", joins=None)

    def state(self, *, versioned: bool = False) -> State:
        """Remember the groups, and the values in them."""
        return State(
            kernel=_kernel(versioned=versioned),
            layout=self.function.retractable().layout,
            versions=True,
            inputs="nothing",
        )

    def details(self) -> Mapping[str, str]:
        """Return grouping and function."""
        return {"by": ", ".join(snippet.text for snippet in self.group), "of": self.function.text}

    def partitioning(self, port: int) -> Partitioning:
        """All rows of a group meet in one task."""
        return Hash(self.group)

    def lasting(self) -> dict[int, slice]:
        """Return of which aggregates values of closed windows stay, and which of them count."""
        if self.ending is None or self.window is not None:
            return {}
        parts = enumerate(self.function.parts or (self.function,))
        return {number: part.kept for number, part in parts if part.kept is not None}

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps the groups."""
        return _kernel(versioned=versioned)(self, outputs)

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the groups."""
        assert isinstance(kernel, View)
        return kernel


def _kernel(*, versioned: bool) -> type["TableVersionsKernel | TallyKernel"]:
    return TableVersionsKernel if versioned else TallyKernel


class TallyKernel(TalliedKernel):
    """Keeps the latest version of the groups."""

    def __init__(self, operator: TableAggregate, outputs: Outputs) -> None:
        self._group = grouping(operator.group)
        self._retention = operator.retention_ms
        self._ending, self._window = operator.ending, operator.window
        self._out = outputs[MAIN]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        function = operator.function.retractable()
        self._tallies = Tallies(function, spread=bool(self._ending) and self._window is None)
        self.layout = function.layout
        self._horizon: int | None = None

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Move rows from their old group to their new one."""
        horizon, lift, ending = self._horizon, self._tallies.function.lift, self._ending
        for timestamp, key, new, old, until in rows:
            if until is not None:  # it is about older versions
                continue
            end = None if ending is None else ending.end(key)
            if gone_by(self._window, horizon, end):
                continue
            steps: dict[Any, list[Move]] = {}
            for sign, value in ((-1, old), (1, new)):
                if value is None:
                    continue
                try:
                    # The timestamp of a row is not part of it: it must lift to the same partial
                    # when it is taken out again.
                    lifted = lift(0, key, value)
                    steps.setdefault(self._group(value, key), []).append((sign, lifted, key))
                except Exception as error:
                    if sign > 0:
                        self.handlers[0](error, timestamp, key, value)
            since = timestamp if horizon is None else max(timestamp, horizon)
            for group, changes in steps.items():
                try:
                    self._apply(group, since, changes, end)
                except Exception as error:
                    self.handlers[0](error, timestamp, key, new)
                    self._apply(group, since, changes, end, singly=True)

    def _apply(
        self,
        group: Any,
        timestamp: int,
        steps: list[Move],
        end: int | None,
        *,
        singly: bool = False,
    ) -> None:
        home = None if self._window is None else end
        change = self._tallies.change_singly if singly else self._tallies.change
        since, new, old = change(home, group, timestamp, steps, end)
        if new is not None or old is not None:
            self._out.append((since, group, new, old, None))

    def advance(self, stream_time: int) -> None:
        """Forget groups without rows, and what windows that are closed had of their own."""
        horizon = self._horizon = stream_time - self._retention
        self._tallies.settle(horizon)
        if self._window is not None:
            for end in [end for end in self._tallies.groups if end <= horizon]:
                self._tallies.drop(end)
        elif self._ending is not None:
            for end in {*self._tallies.members, *self._tallies.refused}:
                if end <= horizon:
                    self._tallies.close(end)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a group's row; only the latest version is kept."""
        return self._tallies.entry(None if self._window is None else self._window.end(key), key)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all groups."""
        return {group: row for _, group, row in self._tallies.rows()}
