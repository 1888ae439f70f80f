"""Partials: what many records come to, so that they need not travel one by one.

An operator that can be given partials in place of its records says so (`Operator.combinable`), and
makes what combines records wherever they are. The owner of the state merges them.
"""

from collections.abc import Sequence
from typing import Any, Protocol

Partial = tuple[Any, int | None, int, Any, int]
"""Group, start of the window, latest timestamp, the partial itself, how many records it is of."""

Panes = dict[int | None, dict[Any, list[Any]]]
"""What was combined: for each pane and group the latest timestamp, the partial, and of how many."""


class Combines(Protocol):
    """Combines the records of one operator.

    Attributes
    ----------
    name
        The name of the operator.
    """

    name: str

    def time(self, stream_time: int | None) -> int | None:
        """Return what time it is for the operator."""

    def horizon(self, time: int | None) -> int:
        """Return when a window must end, at least, for its records to be combined at `time`."""

    def combine(self, rows: Sequence[Any], into: Panes, horizon: int) -> list[Any]:
        """Combine records into partials by pane and group; return those that are left over."""

    def partials(self, combined: Panes) -> list[Partial]:
        """Return what was combined as rows, one for each group and window."""
