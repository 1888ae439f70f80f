"""The kernel of a look-up whose results are facts: late updates of the table correct nothing.

Nothing has to be kept but the table, so a record's way is a few lines of generated code: compute
the key, find the row of the record's time, join.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from floodway.operators.base import LATE, MAIN, CopyKernel, Outputs
from floodway.operators.code import CodeWriter
from floodway.operators.history import EvolvingTable
from floodway.operators.joiner import has_null
from floodway.operators.keyed import EVERYWHERE
from floodway.operators.on_error import ErrorHandler

if TYPE_CHECKING:
    from floodway.operators.lookup_join import LookupJoin

NEVER = -(2**63)


class LookupFactsKernel(CopyKernel):
    """Keeps the table's versions, and looks records up in them."""

    remembers = ("_table", "_horizon")
    keyed = ("_table.histories",)

    def __init__(self, operator: "LookupJoin", outputs: Outputs) -> None:
        self._retention = operator.retention_ms
        self._broadcast = operator.broadcast
        self.handlers = [ErrorHandler(operator, operator.on_error, outputs)]
        self.code = CodeWriter()
        self._run = _write(self.code, operator, self.handlers[0], outputs)
        self._table = EvolvingTable(versioned=True)
        self._horizon = NEVER
        self.changes = 0

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Look records up, or take changes of the table."""
        if port == 0:
            space = self._table.histories
            fetch = None if space.cold is None else space.fetch
            self._run(rows, space.hot, fetch, self._horizon)
        else:
            self.changes += 1
            for change in rows:
                self._table.assign(change)

    def advance(self, stream_time: int) -> None:
        """Forget versions from before the retention."""
        self._horizon = stream_time - self._retention
        self._table.forget(self._horizon)

    def look_from(self, stream_time: int | None) -> None:
        """See stream time without forgetting anything: an earlier time may follow."""
        self._horizon = NEVER if stream_time is None else stream_time - self._retention

    @property
    def table_size(self) -> int:
        """How many keys the table has."""
        return len(self._table.histories)

    def table_rows(self) -> list[tuple[Any, Any]]:
        """Return the table: keys and their histories."""
        return list(self._table.histories.everything())

    def replace_table(self, rows: Sequence[tuple[Any, Any]]) -> None:
        """Look into another table from now on."""
        self._table = EvolvingTable(versioned=True)
        for key, history in rows:
            self._table.histories.load(key, history)

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a history of the table is back."""
        self._table.loaded(key, row)

    def route(self, name: str, key: Any) -> Any:
        """Return the key or, where every task has a copy of the table, that."""
        return EVERYWHERE if self._broadcast else key


def _write(code: CodeWriter, operator: "LookupJoin", failed: ErrorHandler, outputs: Outputs) -> Any:
    code.names |= {
        "emit": outputs[MAIN].append,
        "late": outputs[LATE].append,
        "failed": failed,
        "join": operator.joiner.function,
        "has_null": has_null,
        "bisect_right": bisect_right,
    }
    code.line("def run(rows, histories, fetch, horizon):").indent()
    code.line("for t, k, v in rows:").indent()
    code.line("if t < horizon:").indent().line("late((t, k, v)); continue").dedent()
    wanted = code.inline(operator.on) if operator.on else "k"
    # Only a key of several columns, or one of which nothing is known, can be null in part.
    plain = operator.on is not None and not operator.on.schema.opaque
    null = "w is None" if plain else "has_null(w)"
    found = "histories.get(w) or (fetch and fetch(w))"
    code.guarded("failed", f"w = {wanted}", f"h = None if {null} else {found}")
    code.line("r = None")
    code.line("if h is not None:").indent()
    code.line("if h[0][-1] <= t: r = h[1][-1]")
    code.line("else:").indent()
    code.line("i = bisect_right(h[0], t)")
    code.line("if i: r = h[1][i - 1]").dedent().dedent()
    if operator.how == "inner":
        code.line("if r is None: continue")
    code.guarded("failed", "j = join(v, r)")
    code.line("emit((t, k, j))")
    return code.compile("run")
