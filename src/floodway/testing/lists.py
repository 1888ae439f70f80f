"""A source that reads a list and a sink that fills one."""

from collections.abc import Iterable
from typing import Any

from floodway.testing.items import Emitted


class ListSource:
    """Values from a list, with in-band `End`, `Abort` and `Pause`.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import At, Driver, ListSink, ListSource
    >>> flow, results = Flow("double"), ListSink()
    >>> numbers = flow.source("numbers", ListSource([At(1, 10), At(2, 20)]), schema=int)
    >>> numbers.map("value * 2").to(results)
    >>> Driver(flow).run()
    'ended'
    >>> results.values
    [20, 40]
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = list(items)


class ListSink:
    """Collects what it is sent."""

    def __init__(self) -> None:
        self.records: list[Emitted] = []

    @property
    def values(self) -> list[Any]:
        """The values alone."""
        return [record.value for record in self.records]
