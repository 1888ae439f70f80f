"""The aggregate's first half: records become partials, one for each group and window.

Because ``combine`` is commutative and associative, many records of a group can be combined wherever
they are, and only the partial goes to the task that has the group's state (`LatestKernel.merge`).
A hot key then costs its owner one row, not one for each record.

Windows that overlap are cut into *panes*, the longest stretches that no window begins or ends in. A
record goes into one pane, however many windows it is in, and panes become windows at the end.

A record that cannot be combined is left over, for the owner to deal with as it would anyway: one
that fails, and one whose window has ended, because what becomes of it is of interest by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

from floodway.operators.aggregate_latest import ALWAYS, NEVER
from floodway.operators.aggregates.inlining import inlined
from floodway.operators.base import MAIN, Consumers, Edge, Fact, Operator
from floodway.operators.code import CodeWriter, tuple_source
from floodway.operators.emit import AfterWindowEnd, EveryUpdate
from floodway.operators.lag import Lag
from floodway.operators.partials import Panes, Partial
from floodway.operators.windows import Hopping, Session, Windows

if TYPE_CHECKING:
    from floodway.operators.aggregate import Aggregate


class Combiner:
    """Combines records of one aggregate.

    Parameters
    ----------
    lag
        How far behind stream time the aggregate lives.
    consumers
        Who reads what in the flow.
    """

    def __init__(self, operator: "Aggregate", lag: Lag, consumers: Consumers) -> None:
        self.name = operator.name
        self._windows = operator.windows
        # Who waits for the end of a window wants to see every update after it, unless told so.
        ends = AfterWindowEnd(None) in _emits(operator, consumers)
        self._behind_ms = 0 if ends else operator.retention_ms
        self._lag = lag
        self.code = CodeWriter()
        self._run = _write(self.code, operator)
        self._function = operator.function.compiled()

    def time(self, stream_time: int | None) -> int | None:
        """Return what time it is for the aggregate."""
        return None if stream_time is None else self._lag.time(stream_time)

    def horizon(self, time: int | None) -> int:
        """Return when a window must end, at least, for its records to be combined at `time`."""
        return NEVER if time is None or self._windows is None else time - self._behind_ms

    def combine(self, rows: Sequence[Fact], into: Panes, horizon: int) -> list[Fact]:
        """Combine records into partials by pane and group; return those that are left over."""
        left: list[Fact] = []
        self._run(rows, into, left.append, horizon)
        return left

    def partials(self, combined: Panes) -> list[Partial]:
        """Return what was combined as rows, one for each group and window."""
        if isinstance(self._windows, Hopping):
            combined = self._joined(self._windows, combined)
        return [
            (group, start, latest, partial, count)
            for start, groups in combined.items()
            for group, (latest, partial, count) in groups.items()
        ]

    def _joined(self, windows: Hopping, panes: Panes) -> Panes:
        """Return the windows of panes."""
        combine, made = self._function.combine, Panes()
        for pane, groups in panes.items():
            assert pane is not None
            first, *others = windows.starts(pane)
            _add(made.setdefault(first, {}), groups, combine, once=True)
            for start in others:  # a record counts once, in however many windows it is
                _add(made.setdefault(start, {}), groups, combine, once=False)
        return made


def _add(
    into: dict[Any, list[Any]],
    groups: Mapping[Any, list[Any]],
    combine: Callable[[Any, Any], Any],
    *,
    once: bool,
) -> None:
    """Add the groups of a pane to those of a window."""
    for group, (latest, partial, count) in groups.items():
        held = into.get(group)
        if held is None:
            into[group] = [latest, partial, count if once else 0]
        else:
            held[0] = max(held[0], latest)
            held[1] = combine(held[1], partial)
            held[2] += count if once else 0


def combinable(operator: "Aggregate", consumers: Consumers, *, versioned: bool) -> bool:
    """Return whether nobody can tell if an aggregate got records or partials."""
    return (
        not isinstance(operator.windows, Session)
        and not operator.function.holistic
        and operator.function.plain
        and unseen(operator, consumers, versioned=versioned)
    )


def unseen(operator: "Aggregate", consumers: Consumers, *, versioned: bool) -> bool:
    """Return whether nobody can tell if updates that are made together come as one.

    Somebody who sees every update can: there are fewer of the same rows.
    """
    emits = _emits(operator, consumers)
    return (
        not (versioned or operator.retracts)
        and operator.on_error == "fail"
        and bool(emits)
        and not any(emit is None or isinstance(emit, EveryUpdate) for emit in emits)
    )


def _emits(operator: Operator, consumers: Consumers) -> list[Any]:
    """Return the strategies of all who read a table; None for a reader that has none."""
    readers = consumers.get(Edge(operator, MAIN), ())
    return [reader.facts.emit for reader, _ in readers]


def _write(code: CodeWriter, operator: "Aggregate") -> Any:
    function = inlined(code, operator.function)
    code.line("def run(rows, into, left, horizon):").indent()
    if operator.windows is None:
        code.line(f"groups = into.setdefault({ALWAYS}, {{}})")
    else:
        code.line("last = None")
    code.line("for row in rows:").indent()
    code.line("t, k, v = row")
    code.line("try:").indent()
    code.line(f"g = {tuple_source(code, operator.group)}")
    for statement in function.arguments:
        code.line(statement)
    if operator.windows is not None:
        _write_pane(code, operator.windows)
    code.line("q = groups.get(g)")
    code.line(f"if q is None: groups[g] = [t, {function.lift}, 1]")
    code.line("else:").indent()
    code.line("a = q[1]")
    code.line(f"q[1] = {function.add}")  # what may fail comes first: then nothing has changed
    code.line("if t > q[0]: q[0] = t")
    code.line("q[2] += 1").dedent()
    code.dedent().line("except Exception:").indent().line("left(row)").dedent()
    return code.compile("run")


def _write_pane(code: CodeWriter, windows: Windows) -> None:
    """Write what finds the groups of a record's pane; most are in that of the one before."""
    assert not isinstance(windows, Session)
    size = windows.size_ms
    advance = windows.advance_ms if isinstance(windows, Hopping) else size
    code.line(f"p = t - t % {gcd(size, advance)}")
    code.line("if p != last:").indent()
    # The first window that it is in ends first.
    code.line(f"if (p - {size}) // {advance} * {advance} + {advance + size} <= horizon:").indent()
    code.line("left(row); continue").dedent()
    code.line("groups = into.get(p)")
    code.line("if groups is None: groups = into[p] = {}")
    code.line("last = p").dedent()
