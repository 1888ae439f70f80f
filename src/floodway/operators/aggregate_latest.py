"""The aggregate's fast kernel: facts in, latest version only, generated code.

State is one row per group, ``(timestamp, partial, value)``, in one space per window, so that a
window is forgotten by dropping its space.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from floodway.operators.aggregates.inlining import inlined
from floodway.operators.base import LATE, MAIN, Fact, Kernel, Outputs, View
from floodway.operators.code import CodeWriter, tuple_source, unsure
from floodway.operators.keyed import Windowed
from floodway.operators.on_error import ErrorHandler
from floodway.operators.windows import FixedWindows, Session, Tumbling, Windows

if TYPE_CHECKING:
    from floodway.operators.aggregate import Aggregate
    from floodway.operators.aggregate_partials import Combiner
    from floodway.operators.partials import Panes

NEVER = -(2**63)
"""Before any stream time: nothing is late yet."""

ALWAYS = None
"""The one "window" of an aggregation without windows."""

LatestRow = tuple[int, Any, Any]

WORTH = 64
"""Combining fewer records before they are added to the state is not worth it."""

FEW = 0.75
"""Nor is it if that saves no more than a quarter of the updates: then records have little in
common. To combine one costs a fifth of what an update does."""

PAUSE = 50
"""Then so many batches of that size are not combined, before it is tried again. Batches of twice
the size are: the more records there are, the more they have in common."""


class LatestKernel(Kernel, View):
    """Aggregates facts into the latest version of a table."""

    remembers = ("state", "_horizon")
    keyed = ("state",)

    def __init__(self, operator: "Aggregate", outputs: Outputs) -> None:
        assert not isinstance(operator.windows, Session)
        self._windows = operator.windows
        self._retention = operator.retention_ms
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self.code = CodeWriter()
        self._run = _write(self.code, operator, self.handlers[0], outputs)
        self._merge: Any = None
        self._write_merge = partial(_write_merge, operator, self.handlers[0], outputs)
        self.state: Windowed[int | None, Any, LatestRow] = Windowed()
        self._horizon = NEVER
        self._combiner: Combiner | None = None
        self._pause = 0
        self._worth = WORTH
        self._overlap = len(self._windows.starts(0)) if self._windows is not None else 1

    def combine_first(self, combiner: "Combiner") -> None:
        """Combine records that come together before the state is touched, from now on.

        A group's row is then made once for all of them, and not once for each; somebody who sees
        every update would notice, so it is for aggregates of which nobody does.
        """
        self._combiner = combiner
        self.combines = True

    def process(self, port: int, rows: Sequence[Fact]) -> None:
        """Update the rows' groups."""
        if self._combiner is not None and len(rows) >= WORTH:
            if len(rows) >= self._worth:
                rows = self._combined(self._combiner, rows)
            else:
                self._pause -= 1
                self._worth = self._worth if self._pause else WORTH
        self._run(rows, self.state, self._horizon)

    def _combined(self, combiner: "Combiner", rows: Sequence[Fact]) -> Sequence[Fact]:
        """Update groups by what records come to; return those that are left."""
        time = None if self._horizon == NEVER else self._horizon + self._retention
        into: Panes = {}
        left = combiner.combine(rows, into, combiner.horizon(time))
        partials = combiner.partials(into)
        if len(partials) > FEW * len(rows) * self._overlap:
            self._worth, self._pause = 2 * len(rows), PAUSE
        self.merge(partials)
        return left

    def merge(self, rows: Sequence[Any]) -> None:
        """Update groups by partials, each of many records (see `aggregate_partials`)."""
        if self._merge is None:  # most kernels never get any
            self._merge = self._write_merge()
        self._merge(rows, self.state)

    def advance(self, stream_time: int) -> None:
        """Forget windows that ended longer than the retention ago."""
        if self._windows is None:
            return
        self._horizon = stream_time - self._retention
        size = self._windows.size_ms
        for start in [s for s in self.state if s is not None and s + size <= self._horizon]:
            del self.state[start]

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return a row; only the latest version is kept."""
        group, start = (key, ALWAYS) if self._windows is None else key[:2]
        groups = self.state.get(start)
        row = None if groups is None else groups.get(group)
        return None if row is None or row[2] is None else (row[0], row[2])

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all rows."""
        return {
            table_key(group, start, self._windows): (row[0], row[2])
            for start, groups in self.state.items()
            for group, row in groups.everything()
            if row[2] is not None
        }


def table_key(group: Any, start: int | None, windows: FixedWindows | None) -> Any:
    """Return the table's key of a group in a window."""
    return group if windows is None or start is None else (group, start, start + windows.size_ms)


def _write(code: CodeWriter, operator: "Aggregate", failed: ErrorHandler, outputs: Outputs) -> Any:
    windows, function = operator.windows, inlined(code, operator.function)
    code.names |= {"emit": outputs[MAIN].append, "failed": failed}
    code.line("def run(rows, state, horizon):").indent()
    if windows is None:
        _write_space(code, str(ALWAYS))
    else:
        code.names["late"] = outputs[LATE].append
        if isinstance(windows, Tumbling):
            code.line("last = None")
    code.line("for t, k, v in rows:").indent()
    group = [f"g = {tuple_source(code, operator.group)}"]
    group += ["hash(g)"] if unsure(operator.group) else []
    code.guarded("failed", *group, *function.arguments, f"b = {function.lift}")
    if windows is None:
        _write_update(code, operator, key="g")
    else:
        assert not isinstance(windows, Session)
        _write_windows(code, operator, windows)
    return code.compile("run")


def _write_merge(operator: "Aggregate", failed: ErrorHandler, outputs: Outputs) -> Any:
    windows, code = operator.windows, CodeWriter()
    code.names |= {"emit": outputs[MAIN].append, "failed": failed, **operator.function.names}
    code.line("def merge(rows, state):").indent()
    code.line("for g, w, t, b, n in rows:").indent()
    code.line("k, v = g, b")  # what a failure is about
    _write_space(code, "w")
    key = "g" if windows is None else f"(g, w, w + {_size(windows)})"
    _write_update(code, operator, key=key)
    return code.compile("merge")


def _size(windows: Windows) -> int:
    assert not isinstance(windows, Session)
    return windows.size_ms


def _write_windows(code: CodeWriter, operator: "Aggregate", windows: FixedWindows) -> None:
    size = windows.size_ms
    if isinstance(windows, Tumbling):
        code.line(f"w = t - t % {size}")
        # Most records are in the window of the record before.
        code.line("if w != last:").indent()
        code.line(f"if w + {size} <= horizon:").indent()
        code.line("late((t, k, v)); continue").dedent()
        code.line("last = w")
        _write_space(code, "w")
        code.dedent()
    else:
        # The last window a record is in ends last; if that one is gone, so are all the others.
        advance = windows.advance_ms
        code.line(f"last = t // {advance} * {advance}")
        code.line(f"if last + {size} <= horizon:").indent()
        code.line("late((t, k, v)); continue").dedent()
        first = f"(t - {size}) // {advance} * {advance} + {advance}"
        code.line(f"for w in range({first}, last + 1, {advance}):").indent()
        code.line(f"if w + {size} <= horizon: continue")
        _write_space(code, "w")
    _write_update(code, operator, key=f"(g, w, w + {size})")


def _write_space(code: CodeWriter, namespace: str) -> None:
    code.line(f"space = state.get({namespace})")
    code.line(f"if space is None: space = state.space({namespace})")
    code.line("groups, dirty = space.hot, space.dirty")


def _write_update(code: CodeWriter, operator: "Aggregate", *, key: str) -> None:
    function = operator.function
    code.line("row = groups.get(g)")
    code.line("if row is None: row = space.fetch(g)")
    code.line("if row is None:").indent()
    code.line("p, m, old = b, t, None").dedent()
    code.line("else:").indent()
    code.line("m, a, old = row")
    code.line("if t > m: m = t")
    code.guarded("failed", f"p = {function.combine('a', 'b')}").dedent()
    code.guarded("failed", f"new = {function.lower('p')}")
    code.line("groups[g] = dirty[g] = (m, p, new)")
    code.line(f"emit((m, {key}, new, old, None))")
