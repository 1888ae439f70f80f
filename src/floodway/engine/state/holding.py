"""One name in a kernel's state, whether it has namespaces or not."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from floodway.core.errors import OperatorError
from floodway.engine.program.program import Node
from floodway.engine.state.delta import Compartment, StoredRows
from floodway.engine.state.sizes import SLOT_BYTES, Scale
from floodway.operators.base import Operator
from floodway.operators.keyed import GONE, Space, Windowed

AnySpace = Space[Any, Any]


class Holding:
    """A space of a kernel, or a space per namespace, as one.

    Attributes
    ----------
    scale
        What its rows weigh.
    uses
        By namespace, how often keys have been used; only under pressure.
    """

    def __init__(self, node: Node, name: str) -> None:
        self._operator = node.operators[0]
        self.kernel = node.kernel
        self.name = name
        self.scale = Scale()
        self.uses: dict[Any, Counter[Any]] = {}

    def place(self, namespace: Any) -> Compartment:
        """Return where rows of a namespace belong."""
        return (self._operator.name, self.name, namespace)

    def naming(self) -> AbstractContextManager[None]:
        """Make errors about state say whose state it is."""
        return naming(self._operator)

    # ------------------------------------------------------------------ rows

    @property
    def _state(self) -> AnySpace | Windowed[Any, Any, Any]:
        # Asked for each time: a kernel may replace what it remembers as a whole.
        return self.kernel.spaces()[self.name]

    def spaces(self) -> list[tuple[Any, AnySpace]]:
        """Return namespaces and their spaces."""
        state = self._state
        return list(state.items()) if isinstance(state, Windowed) else [(None, state)]

    def space(self, namespace: Any) -> AnySpace:
        """Return the space of a namespace; make it if there is none."""
        state = self._state
        return state.space(namespace) if isinstance(state, Windowed) else state

    def take(self) -> tuple[dict[Any, StoredRows], set[Any]]:
        """Return what has changed since the last time, and which namespaces were dropped."""
        state = self._state
        if isinstance(state, Windowed):
            return state.take()
        return {None: state.take()}, set()

    @property
    def hot_rows(self) -> int:
        """How many rows are in memory."""
        return sum(len(space.hot) for _, space in self.spaces())

    @property
    def hot_bytes(self) -> float:
        """About how many bytes the rows in memory need, with what is known of their use."""
        counts = sum(map(len, self.uses.values()))
        return self.hot_rows * self.scale.row_bytes + counts * SLOT_BYTES

    def row_bytes(self, uses: int | None) -> float:
        """Return about how many bytes it frees to put a row aside that was used so often."""
        return self.scale.row_bytes + (SLOT_BYTES if uses else 0)

    # ------------------------------------------------------------------ use

    def uses_of(self, namespace: Any) -> Counter[Any]:
        """Return the use counts of a namespace."""
        uses = self.uses.get(namespace)
        if uses is None:
            uses = self.uses[namespace] = Counter()
        return uses

    def changed(self, namespace: Any, rows: StoredRows) -> None:
        """Count one use of each key that was changed, and forget those that are gone."""
        if not rows:
            return
        uses = self.uses_of(namespace)
        uses.update(rows.keys())
        if GONE in rows.values():
            for key, row in rows.items():
                if row is GONE:
                    del uses[key]

    def forget_uses(self) -> None:
        """Forget counts of namespaces that are gone."""
        if self.uses:
            there = {namespace for namespace, _ in self.spaces()}
            self.uses = {n: counts for n, counts in self.uses.items() if n in there}

    def halve_uses(self) -> None:
        """Let the past count half, and forget what is not in memory."""
        for namespace, space in self.spaces():
            counts = self.uses.get(namespace)
            if counts:
                hot = space.hot
                halved = {k: count >> 1 for k, count in counts.items() if count > 1 and k in hot}
                self.uses[namespace] = Counter(halved)


@contextmanager
def naming(operator: Operator) -> Iterator[None]:
    """Make errors about state say whose state it is."""
    try:
        yield
    except OperatorError as error:
        raise error.at(operator.name, operator.place) from None
