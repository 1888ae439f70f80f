"""map_values and filter on tables (thesis, definitions 71 and 72)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodway.operators.base import MAIN, Kernel, Outputs, RowChange, TableOperator, View
from floodway.operators.code import Snippet
from floodway.operators.facts import Facts, State, of_table
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import FORWARD, Partitioning

Transform = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class MapValues(TableOperator):
    """Replaces each row's value by what a function or expression makes of it; None drops the row.

    Key and timestamp stay, and so do the versions: each version of the result is the same
    version of the input, mapped. The result is not stored; it is computed when it is looked up.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("shout")
    >>> words = flow.table("words", schema=str, key=str)
    >>> loud = words.map_values("upper(value)", name="loud")
    >>> with Driver(flow) as driver:
    ...     driver.update("words", 1, "hey", at=1)
    ...     driver.table("loud").lookup(1)
    'HEY'
    """

    code: Snippet
    on_error: OnError = "fail"

    @property
    def facts(self) -> Facts:
        """Rows stay where they are, with their key and window."""
        return of_table(keys="kept", windows=None, keeps_windows=True, away="yes", joins=None)

    def state(self, *, versioned: bool = False) -> State | None:
        """Remember nothing."""
        return None

    def details(self) -> Mapping[str, str]:
        """Return the function or expression."""
        return {"to": self.code.text}

    def transform(self) -> Transform:
        """Return the function of value and key."""
        return self.code.call()

    def partitioning(self, port: int) -> Partitioning:
        """Take what the task before has."""
        return FORWARD

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that maps changes."""
        handler = ErrorHandler(self, self.on_error, outputs)
        return MapValuesKernel(self.transform(), handler, outputs, versioned=versioned)

    def view(self, kernel: Kernel, inputs: Sequence[View | None]) -> View:
        """Return the input's view, mapped."""
        assert inputs[0] is not None
        return MappedView(self.transform(), inputs[0])


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class FilterRows(MapValues):
    """Keeps the rows for which a predicate holds; a row that stops passing is deleted.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("long")
    >>> words = flow.table("words", schema=str, key=str)
    >>> long = words.filter("length(value) > 3", name="long")
    >>> with Driver(flow) as driver:
    ...     driver.update("words", 1, "hello", at=1)
    ...     driver.update("words", 1, "hey", at=2)
    ...     driver.table("long").rows()
    {}
    """

    def details(self) -> Mapping[str, str]:
        """Return the predicate."""
        return {"where": self.code.text}

    def transform(self) -> Transform:
        """Return the function that keeps a value or makes it None."""
        predicate = self.code.call()
        return lambda value, key: value if predicate(value, key) else None


class MapValuesKernel(Kernel):
    """Maps both sides of every change."""

    def __init__(
        self, transform: Transform, handler: ErrorHandler, outputs: Outputs, *, versioned: bool
    ) -> None:
        self._transform = transform
        self.handlers = [handler]
        self._out = outputs[MAIN]
        self._versioned = versioned

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Map changes; without versions, older ones and those that change nothing are left out."""
        for timestamp, key, new, old, until in rows:
            if until is not None and not self._versioned:
                continue
            mapped = None
            if new is not None:
                try:
                    mapped = self._transform(new, key)
                except Exception as error:
                    self.handlers[0](error, timestamp, key, new)
            before = absent_on_error(self._transform, old, key)
            if self._versioned or mapped is not None or before is not None:
                self._out.append((timestamp, key, mapped, before, until))


class MappedView(View):
    """A table seen through a function."""

    def __init__(self, transform: Transform, source: View) -> None:
        self._transform = transform
        self._source = source

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return the input's row, mapped."""
        found = self._source.entry(key, at)
        value = None if found is None else absent_on_error(self._transform, found[1], key)
        return None if found is None or value is None else (found[0], value)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return the input's rows, mapped."""
        entries = ((key, self.entry(key, at)) for key in self._source.rows(at))
        return {key: entry for key, entry in entries if entry is not None}

    def modified(self) -> dict[int, set[Any]]:
        """Return the input's modified key sets."""
        return self._source.modified()


def absent_on_error(transform: Transform, value: Any, key: Any) -> Any:
    """Return the mapped value; one that cannot be mapped has no row."""
    if value is None:
        return None
    try:
        return transform(value, key)
    except Exception:
        return None
