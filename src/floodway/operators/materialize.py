"""table: a changelog becomes a table (thesis, definitions 55 and 58)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodway.core.duration import show_ms
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Outputs, TableOperator, View
from floodway.operators.facts import Facts, State, of_table
from floodway.operators.history import EvolvingTable
from floodway.operators.partitioning import BY_KEY, Partitioning


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Materialize(TableOperator):
    """Applies a stream of updates to a table: the value of a key from a timestamp on.

    A value of None deletes. Updates may come out of order; each touches exactly the versions it
    should. Of two updates with the same key and timestamp the one that arrives last holds. An
    update older than stream time minus `retention` is late, except in a `static` table, whose rows
    are all from the beginning of time.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("users")
    >>> users = flow.table("users", schema=str, key=str, versions=True)
    >>> with Driver(flow) as driver:
    ...     driver.update("users", "ann", "Bern", at=1)
    ...     driver.update("users", "ann", "Rome", at=5)
    ...     driver.table("users").lookup("ann"), driver.table("users").lookup("ann", at=4)
    ('Rome', 'Bern')
    """

    retention_ms: int
    static: bool = False

    @property
    def facts(self) -> Facts:
        """All about a key comes from the task that has the key."""
        return of_table(keys="gathered", windows=None, keeps_windows=False, away="no", joins=None)

    def state(self, *, versioned: bool = False) -> State:
        """Remember the rows."""
        return State(kernel=MaterializeKernel, layout="", versions=True, inputs="nothing")

    def details(self) -> Mapping[str, str]:
        """Return the retention."""
        return {"retention": show_ms(self.retention_ms)}

    def partitioning(self, port: int) -> Partitioning:
        """All updates of a key meet in one task."""
        return BY_KEY

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps the table."""
        return MaterializeKernel(
            self.retention_ms, outputs, versioned=versioned, static=self.static
        )

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the table."""
        assert isinstance(kernel, View)
        return kernel


class MaterializeKernel(Kernel, View):
    """Keeps the table."""

    remembers = ("table", "_horizon")
    keyed = ("table.histories",)

    def __init__(
        self, retention_ms: int, outputs: Outputs, *, versioned: bool, static: bool = False
    ) -> None:
        self._retention, self._static = retention_ms, static
        self._horizon: int | None = None
        self._out, self._late = outputs[MAIN], outputs[LATE]
        self.table = EvolvingTable(versioned=versioned)

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Apply updates."""
        horizon, update, emit = self._horizon, self.table.update, self._out.append
        for timestamp, key, value in rows:
            if horizon is not None and timestamp < horizon:
                self._late.append((timestamp, key, value))
                continue
            change = update(timestamp, key, value)
            if change is not None:
                emit(change)

    def advance(self, stream_time: int) -> None:
        """Forget versions and deletions from before the retention."""
        horizon = stream_time - self._retention
        if not self._static:
            self._horizon = horizon
        # One before the horizon: an update at the horizon itself is still accepted.
        self.table.forget(horizon - 1)

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a history is back."""
        self.table.loaded(key, row)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a row of version `at`, or of the latest."""
        return self.table.entry(key, at)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all rows of version `at`, or of the latest."""
        return self.table.rows(at)

    def modified(self) -> dict[int, set[Any]]:
        """Return the modified key set of each version."""
        return self.table.modified()
