"""What a changelog consists of: updates of rows, as records."""

from typing import TYPE_CHECKING, Any

from floodway.core.record import Record
from floodway.operators import base
from floodway.operators.base import MAIN, Kernel, Outputs
from floodway.operators.windows import Window

if TYPE_CHECKING:
    from floodway.operators.changes import Changes


class Change(Record, frozen=True):
    """An update of a table's row.

    Attributes
    ----------
    key
        The row's key; in a windowed table, the group.
    window
        The row's window, or None.
    value
        The new value; None if the row was deleted.
    previous
        The value that this subscriber saw before; None if the row is new to it.
    """

    key: Any
    window: Window | None
    value: Any
    previous: Any


def to_fact(timestamp: int, key: Any, new: Any, old: Any, *, windowed: bool) -> base.Fact:
    """Return a change as a record of the changelog."""
    if windowed:
        group, start, end = key
        return (timestamp, group, Change(group, Window(start, end), new, old))
    return (timestamp, key, Change(key, None, new, old))


class RowKernel(Kernel):
    """Remembers something of each row."""

    def __init__(self, operator: "Changes", outputs: Outputs) -> None:
        self._windowed, self._by_group = operator.windowed, operator.by_group
        self._out = outputs[MAIN]

    def route(self, name: str, key: Any) -> Any:
        """Return what decides to which task the changes of a row come."""
        return key[0] if self._by_group else key
