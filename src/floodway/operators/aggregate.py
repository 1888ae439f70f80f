"""aggregate: a stream becomes a table (thesis, definition 64 and algorithm 5).

The table's key is the group, and in windows the group with the window: ``(group, start, end)``.
Each record updates the row of its group at once; a record that comes out of order updates the
version of its own timestamp and every later one. The result does not depend on the order of
arrival (definition 66).

Four kernels share the work: one keeps the latest version only and is written as generated code; one
does so over a stream with updates, and takes back what is replaced; one keeps versions; one merges
sessions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from floodway.core.duration import show_ms
from floodway.operators.aggregate_latest import LatestKernel
from floodway.operators.aggregate_partials import Combiner, combinable, unseen
from floodway.operators.aggregate_session import SessionKernel
from floodway.operators.aggregate_updates import UpdatesKernel
from floodway.operators.aggregate_versions import VersionsKernel
from floodway.operators.aggregates import AggregateFunction
from floodway.operators.base import Consumers, Kernel, Outputs, TableOperator, View
from floodway.operators.code import Snippet
from floodway.operators.facts import Facts, State
from floodway.operators.lag import Lag
from floodway.operators.on_error import OnError
from floodway.operators.partitioning import Hash, Partitioning
from floodway.operators.windows import Session, Windows

_AggregateKernel = SessionKernel | VersionsKernel | UpdatesKernel | LatestKernel


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Aggregate(TableOperator):
    """Groups a stream, optionally in windows, and keeps an aggregate per group in a table.

    Order of arrival does not matter. A record too old for its window (all its windows ended
    longer than `retention` ago) goes to the late stream. A group whose aggregate is null has no
    row.

    Examples
    --------
    >>> from floodway import Flow, tumbling
    >>> from floodway.testing import Driver
    >>> flow = Flow("clicks")
    >>> clicks = flow.source("clicks", schema=str)
    >>> counts = clicks.group_by("value AS country").window(tumbling(2)).count(name="counts")
    >>> with Driver(flow) as driver:
    ...     driver.push_at("clicks", (0, "GER"), (1, "GER"), (1, "US"), (2, "US"))
    ...     driver.table("counts").lookup("GER", window=0)
    2
    """

    group: tuple[Snippet, ...]
    function: AggregateFunction
    windows: Windows | None
    retention_ms: int
    on_error: OnError = "fail"

    @property
    def facts(self) -> Facts:
        """Rows of windows belong to their group and not to their key; sessions themselves move."""
        return Facts(
            keys="gathered" if self.windows is None else "scattered",
            windows=self.windows,
            keeps_windows=False,
            reads_versions=frozenset(),
            versionable=not isinstance(self.windows, Session),
            away="no",
            chained=False,
            held=None,
            emit=None,
            joins=None,
            host="task",
            most=None,
        )

    def state(self, *, versioned: bool = False) -> State:
        """Remember the groups."""
        kernel = self._kernel(versioned=versioned)
        retractable = kernel in (UpdatesKernel, VersionsKernel)
        layout = self.function.layout if retractable else ""
        return State(kernel=kernel, layout=layout, versions=True, inputs="nothing")

    def details(self) -> Mapping[str, str]:
        """Return grouping, function, window and retention."""
        shown = {"by": ", ".join(snippet.text for snippet in self.group), "of": self.function.text}
        if self.windows is not None:
            shown |= {"window": str(self.windows), "retention": show_ms(self.retention_ms)}
        return shown

    @property
    def retracts(self) -> bool:
        """Whether the input is a stream with updates."""
        return self.inputs[0].output.kind == "revisions"

    def partitioning(self, port: int) -> Partitioning:
        """All records of a group meet in one task."""
        return Hash(self.group)

    def combinable(self, consumers: Consumers, *, versioned: bool) -> bool:
        """Return whether nobody can tell if it got records or partials."""
        return combinable(self, consumers, versioned=versioned)

    def combiner(self, lag: Lag, consumers: Consumers) -> Combiner:
        """Return the first half of the aggregate."""
        return Combiner(self, lag, consumers)

    def combine_first(
        self, kernel: Kernel, lag: Lag, consumers: Consumers, *, versioned: bool
    ) -> None:
        """Let a kernel that keeps the latest version touch a group once for many records."""
        match kernel:
            case LatestKernel() if self.combinable(consumers, versioned=versioned):
                kernel.combine_first(self.combiner(lag, consumers))
            case SessionKernel() if unseen(self, consumers, versioned=versioned):
                kernel.combine_first()

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return the kernel for this input, window and demand for versions."""
        return self._kernel(versioned=versioned)(self, outputs)

    def _kernel(self, *, versioned: bool) -> type[_AggregateKernel]:
        if isinstance(self.windows, Session):
            return SessionKernel
        if versioned:
            return VersionsKernel
        return UpdatesKernel if self.retracts else LatestKernel

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the kernel's table."""
        assert isinstance(kernel, View)
        return kernel
