"""The aggregate's first half: records become partials, one for each group and window.

Because ``combine`` is commutative and associative, many records of a group can be combined wherever
they are, and only the partial goes to the task that has the group's state (`LatestKernel.merge`).
A hot key then costs its owner one row, not one for each record.

A record that cannot be combined is left over, for the owner to deal with as it would anyway: one
that fails, and one whose window has ended, because what becomes of it is of interest by itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from floodway.operators.aggregate import Aggregate
from floodway.operators.aggregate_latest import ALWAYS, NEVER, LatestKernel
from floodway.operators.base import MAIN, Edge, Fact, Operator
from floodway.operators.changes import Changes
from floodway.operators.code import CodeWriter
from floodway.operators.emit import AfterWindowEnd, AtMostEvery, Final, Latest
from floodway.operators.key_by import tuple_source
from floodway.operators.windows import Session, Tumbling

Partial = tuple[Any, int | None, int, Any, int]
"""Group, start of the window, latest timestamp, the partial itself, how many records it is of."""

Consumers = Mapping[Edge, tuple[tuple[Operator, int], ...]]


class Combiner:
    """Combines records of one aggregate.

    Parameters
    ----------
    lag_ms
        How far behind stream time the aggregate lives.
    consumers
        Who reads what in the flow.
    """

    def __init__(self, operator: Aggregate, lag_ms: int, consumers: Consumers) -> None:
        self.operator = operator
        self._windowed = operator.windows is not None
        ends = any(isinstance(emit, AfterWindowEnd) for emit in _emits(operator, consumers))
        # Who waits for the end of a window wants to see every update after it.
        self._behind_ms = 0 if ends else lag_ms + operator.retention_ms
        self.code = CodeWriter()
        self._run = _write(self.code, operator)

    def horizon(self, stream_time: int | None) -> int:
        """Return when a window must end for its records to be combined."""
        if stream_time is None or not self._windowed:
            return NEVER
        return stream_time - self._behind_ms

    def combine(
        self, rows: Sequence[Fact], into: dict[Any, tuple[int, Any, int]], horizon: int
    ) -> list[Fact]:
        """Combine records into partials by group and window; return those that are left over."""
        left: list[Fact] = []
        self._run(rows, into, left.append, horizon)
        return left


def partials(combined: Mapping[Any, tuple[int, Any, int]]) -> list[Partial]:
    """Return what was combined as rows."""
    return [(group, start, m, p, n) for (group, start), (m, p, n) in combined.items()]


def combinable(operator: Operator, consumers: Consumers, *, versioned: bool) -> bool:
    """Return whether nobody can tell if an aggregate got records or partials.

    Somebody who sees every update can: partials make fewer updates of the same rows.
    """
    if not isinstance(operator, Aggregate) or versioned or operator.retracts:
        return False
    function = operator.function
    if isinstance(operator.windows, Session) or function.holistic or not function.plain:
        return False
    emits = _emits(operator, consumers)
    return (
        operator.on_error == "fail"
        and bool(emits)
        and all(isinstance(emit, Latest | AtMostEvery | AfterWindowEnd | Final) for emit in emits)
    )


def _emits(operator: Operator, consumers: Consumers) -> list[Any]:
    """Return the strategies of all who read a table; None for a reader that has none."""
    readers = consumers.get(Edge(operator, MAIN), ())
    return [reader.emit if isinstance(reader, Changes) else None for reader, _ in readers]


def _write(code: CodeWriter, operator: Aggregate) -> Any:
    function, windows = operator.function, operator.windows
    assert not isinstance(windows, Session)
    code.names |= function.names
    code.line("def run(rows, into, left, horizon):").indent()
    code.line("for row in rows:").indent()
    code.line("t, k, v = row")
    code.line("try:").indent()
    code.line(f"g = {tuple_source(code, operator.group)}")
    if function.argument is not None:
        code.line(f"x = {code.inline(function.argument)}")
    code.line(f"b = {function.lift('x', 't')}")
    if windows is None:
        _write_one(code, operator, f"(g, {ALWAYS})")
    elif isinstance(windows, Tumbling):
        code.line(f"w = t - t % {windows.size_ms}")
        code.line(f"if w + {windows.size_ms} <= horizon:").indent()
        code.line("left(row); continue").dedent()
        _write_one(code, operator, "(g, w)")
    else:
        size, advance = windows.size_ms, windows.advance_ms
        code.line(f"first = (t - {size}) // {advance} * {advance} + {advance}")
        code.line(f"if first + {size} <= horizon:").indent()
        code.line("left(row); continue").dedent()
        # All or none: a record that fails in one window must not have been counted in another.
        code.line("made, one = [], 1")
        code.line(f"for w in range(first, t + 1, {advance}):").indent()
        _write_combined(code, operator, "(g, w)", one="one")
        code.line("one = 0")  # a record counts once, in however many windows it is
        code.line("made.append((key, q))").dedent()
        code.line("into.update(made)")
    code.dedent().line("except Exception:").indent().line("left(row)").dedent()
    return code.compile("run")


def _write_combined(code: CodeWriter, operator: Aggregate, key: str, *, one: str = "1") -> None:
    code.line(f"key = {key}")
    code.line("q = into.get(key)")
    code.line(f"if q is None: q = (t, b, {one})")
    code.line("else:").indent()
    code.line("m, a, n = q")
    code.line(f"q = (t if t > m else m, {operator.function.combine('a', 'b')}, n + {one})").dedent()


def _write_one(code: CodeWriter, operator: Aggregate, key: str) -> None:
    _write_combined(code, operator, key)
    code.line("into[key] = q")


def merges(kernel: Any) -> bool:
    """Return whether a kernel takes partials."""
    return isinstance(kernel, LatestKernel)
