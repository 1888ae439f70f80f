"""process in windows: a state per key and window, handed out when the window closes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodway.core.duration import show_ms
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Operator, Outputs
from floodway.operators.code import Snippet, grouping
from floodway.operators.facts import Facts, State, passing
from floodway.operators.keyed import Windowed
from floodway.operators.lag import Held
from floodway.operators.on_error import ErrorHandler, OnError
from floodway.operators.partitioning import Hash, Partitioning
from floodway.operators.process import as_fact
from floodway.operators.windows import FixedWindows, Window

WindowInit = Callable[[Any, Window], Any]
WindowUpdate = Callable[[int, Any, Window, Any, Any], Any]
Finalize = Callable[[Any, Window, Any], Iterable[Fact]]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class WindowProcess(Operator):
    """Calls ``update(time, key, window, value, state)`` for each record and window.

    ``init(key, window)`` makes the state of a window that gets its first record; ``update``
    returns the new state. When stream time has passed the window's end and the retention,
    ``finalize(key, window, state)`` returns the records to send. Windows are finalized in the
    order of their starts.

    Examples
    --------
    >>> from floodway import Flow, tumbling
    >>> from floodway.testing import run
    >>> words = Flow("longest").source("words", schema=str)
    >>> longest = (
    ...     words.group_by("length(value) % 2 AS odd")
    ...     .window(tumbling(10))
    ...     .process(
    ...         init=lambda key, window: "",
    ...         update=lambda time, key, window, value, state: max(state, value, key=len),
    ...         finalize=lambda key, window, state: [(window.end - 1, key, state)],
    ...         schema=str,
    ...         name="longest",
    ...     )
    ... )
    >>> run(longest, [(1, "a"), (2, "abc"), (3, "ab"), (11, "x")], keys=True)
    [(9, 1, 'abc'), (9, 0, 'ab'), (19, 1, 'x')]
    """

    group: tuple[Snippet, ...]
    windows: FixedWindows
    init: WindowInit
    update: WindowUpdate
    finalize: Finalize
    retention_ms: int
    on_error: OnError = "fail"

    @property
    def _held(self) -> Held:
        """Results come when the window is closed."""
        return Held(self.retention_ms, self.windows)

    @property
    def facts(self) -> Facts:
        """The functions may send records of any key."""
        return passing(keys="scattered", away="no", held=self._held, emit=None, joins=None)

    def state(self, *, versioned: bool = False) -> State:
        """Remember a state per key and window."""
        return State(kernel=WindowProcessKernel, layout="", versions=False, inputs="nothing")

    def details(self) -> Mapping[str, str]:
        """Return grouping, window and retention."""
        return {
            "by": ", ".join(snippet.text for snippet in self.group),
            "window": str(self.windows),
            "retention": show_ms(self.retention_ms),
        }

    def partitioning(self, port: int) -> Partitioning:
        """All records of a group meet in one task."""
        return Hash(self.group)

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that keeps the windows."""
        return WindowProcessKernel(self, outputs)


class WindowProcessKernel(Kernel):
    """Keeps a state per window and key: in a tuple, for it may be None."""

    remembers = ("state", "_horizon")
    keyed = ("state",)

    def __init__(self, operator: WindowProcess, outputs: Outputs) -> None:
        self._operator = operator
        self._group = grouping(operator.group)
        self._size = operator.windows.size_ms
        self._out, self._late = outputs[MAIN], outputs[LATE]
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self.state: Windowed[int, Any, tuple[Any]] = Windowed()
        self._horizon: int | None = None

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Update the states of all windows a record is in."""
        for timestamp, key, value in rows:
            starts = self._operator.windows.starts(timestamp)
            open_starts = [
                s for s in starts if self._horizon is None or s + self._size > self._horizon
            ]
            if not open_starts:
                self._late.append((timestamp, key, value))
                continue
            try:
                group = self._group(value, key)
                states = [self._updated(start, group, timestamp, value) for start in open_starts]
            except Exception as error:
                self.handlers[0](error, timestamp, key, value)
                continue
            for start, state in zip(open_starts, states, strict=True):
                self.state.space(start)[group] = (state,)

    def _updated(self, start: int, group: Any, timestamp: int, value: Any) -> Any:
        window = Window(start, start + self._size)
        states = self.state.get(start)
        found = None if states is None else states.get(group)
        if states is None or found is None:
            state = self._operator.init(group, window)
        else:
            (state,) = found
            states.touch(group)  # what fails may have changed it in place
        return self._operator.update(timestamp, group, window, value, state)

    def advance(self, stream_time: int) -> None:
        """Finalize the windows that are closed now."""
        self._horizon = stream_time - self._operator.retention_ms
        for start in sorted(s for s in self.state if s + self._size <= self._horizon):
            self._close(start)

    def finish(self) -> None:
        """Finalize all windows."""
        for start in sorted(self.state):
            self._close(start)

    def _close(self, start: int) -> None:
        window = Window(start, start + self._size)
        try:
            for group, (state,) in self.state[start].everything():
                self._finalize(window, group, state)
        finally:
            del self.state[start]

    def _finalize(self, window: Window, group: Any, state: Any) -> None:
        try:
            results = self._operator.finalize(group, window, state)
            self._out.extend([as_fact(result) for result in results])
        except Exception as error:
            self.handlers[0](error, window.end - 1, group, state)
