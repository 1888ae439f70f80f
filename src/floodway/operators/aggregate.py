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
from floodway.operators.aggregate_session import SessionKernel
from floodway.operators.aggregate_updates import UpdatesKernel
from floodway.operators.aggregate_versions import VersionsKernel
from floodway.operators.aggregates import AggregateFunction
from floodway.operators.base import Kernel, Outputs, TableOperator, View
from floodway.operators.code import Snippet
from floodway.operators.on_error import OnError
from floodway.operators.partitioning import Hash, Partitioning
from floodway.operators.windows import Session, Windows


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

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return the kernel for this input, window and demand for versions."""
        if isinstance(self.windows, Session):
            return SessionKernel(self, outputs)
        if versioned:
            return VersionsKernel(self, outputs)
        return UpdatesKernel(self, outputs) if self.retracts else LatestKernel(self, outputs)

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the kernel's table."""
        assert isinstance(kernel, View)
        return kernel
