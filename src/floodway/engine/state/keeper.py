"""Keeps the state of a task: says what has changed, loads what was stored, stays in its budget.

The kernels hold their state in spaces, which know what was changed in them. When an epoch ends the
keeper takes that and makes bytes of it. After a loss it gives the rows to new kernels. If there is
more state than memory for it, it puts the rows that are used least aside, into `cold`, where the
spaces find them again.
"""

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from floodway.engine.program.program import Node, Program
from floodway.engine.state.cold import ColdStore
from floodway.engine.state.delta import (
    Compartment,
    Part,
    Parts,
    PartWriter,
    StoredRows,
    Survivors,
    alive,
)
from floodway.engine.state.holding import Holding, naming
from floodway.engine.state.paging import Paging
from floodway.engine.state.pickling import Pickling
from floodway.engine.state.sizes import Size
from floodway.operators.base import Kernel

log = logging.getLogger(__name__)

Loaded = Callable[[int, int], None]
"""Told, again and again, how many bytes of how many are read."""


class Keeper:
    """The state of one task.

    Parameters
    ----------
    program
        The task's kernels.
    classes
        The record classes of the flow.
    budget
        How many bytes of state may be in memory, about; None for any number.
    folder
        Where state beyond the budget is kept; made when it is needed, removed by `close`.
    trusted
        Whether only this run reads what is stored; see `Pickling`.
    """

    def __init__(
        self,
        program: Program,
        classes: Sequence[type[msgspec.Struct]],
        *,
        budget: int | None,
        folder: Path,
        trusted: bool = False,
    ) -> None:
        self._pickling = Pickling(classes, trusted=trusted)
        self._nodes: dict[str, Node] = {
            node.operators[0].name: node for node in program.nodes if node.kernel.remembers
        }
        self._holdings = {
            (operator, name): Holding(node, name)
            for operator, node in self._nodes.items()
            for name in node.kernel.spaces()
        }
        self._store = ColdStore(folder, self._pickling, memory=budget or 0)
        self._paging = Paging(list(self._holdings.values()), self._store, budget)
        self._saved: list[dict[str, bytes]] = []

    # ------------------------------------------------------------------ storing

    def changes(self) -> bytes:
        """Return what has changed since the last time, as a part; a new epoch begins."""
        writer = PartWriter(self._pickling)
        for operator, node in self._nodes.items():
            with naming(node.operators[0]):
                for name in node.kernel.spaces():
                    self._write(self._holdings[operator, name], writer)
                writer.flush()
                writer.scalars(operator, node.kernel.scalars())
        return writer.finish()

    def _write(self, holding: Holding, writer: PartWriter) -> None:
        changed, dropped = holding.take()
        self._paging.changed(holding, changed)
        for namespace in dropped:
            writer.drop(holding.place(namespace))
        for namespace, rows in changed.items():
            writer.rows(holding.place(namespace), rows)

    # ------------------------------------------------------------------ loading

    def load(self, parts: Iterable[bytes], *, progress: Loaded | None = None) -> None:
        """Load what one task has stored, the oldest part first; then call `adopt`.

        Parameters
        ----------
        parts
            What was stored; `Parts` are read one at a time.
        progress
            Told, again and again, how many bytes of how many are done.
        """
        listed = parts if isinstance(parts, Sequence) else list(parts)
        total = listed.total if isinstance(listed, Parts) else sum(map(len, listed))
        counter = _Counter(total, progress)
        survivors = Survivors()
        with _without_collecting():
            for index in reversed(range(len(listed))):
                part = Part(listed[index], self._pickling)
                for place, rows in survivors.of(
                    part, oldest=index == 0, operators=self._nodes, progress=counter.add
                ):
                    self._load(place, alive(rows))
        counter.end()
        self._saved.append(survivors.scalars)

    def _load(self, place: Compartment, rows: StoredRows) -> None:
        operator, name, namespace = place
        holding = self._holdings.get((operator, name))
        if holding is None:
            log.warning("%s does not keep %s any more: it is left out", operator, name)
            return
        if not rows:
            return
        self._paging.load(holding, namespace, rows)
        kernel = holding.kernel
        if type(kernel).loaded is not Kernel.loaded:
            for key, row in rows.items():
                kernel.loaded(name, namespace, key, row)

    def adopt(self) -> None:
        """Give the kernels the scalars of all tasks that were loaded; once, after all loads."""
        for operator, node in self._nodes.items():
            saved = [scalars[operator] for scalars in self._saved if operator in scalars]
            if saved:
                node.kernel.adopt([self._pickling.loads(data) for data in saved])
        self._saved.clear()

    # ------------------------------------------------------------------ memory

    def relieve(self) -> None:
        """Put rows aside if there are more than the budget has room for; after `changes`."""
        self._paging.relieve()

    @property
    def state_bytes(self) -> int:
        """About how many bytes of memory the rows need that are in memory."""
        return self._paging.hot_bytes

    @property
    def state_keys(self) -> int:
        """How many rows there are, in memory and elsewhere."""
        return sum(holding.hot_rows for holding in self._holdings.values()) + self._store.rows

    @property
    def cold_keys(self) -> int:
        """How many rows are not in memory."""
        return self._store.rows

    @property
    def size(self) -> Size:
        """How much there is."""
        return Size(self.state_keys, self.state_bytes, self.cold_keys)

    def close(self) -> None:
        """Remove what was put aside."""
        self._store.close()


class _Counter:
    """Adds up how many bytes are done."""

    def __init__(self, total: int, progress: Loaded | None) -> None:
        self._total, self._done, self._progress = total, 0, progress

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)

    def end(self) -> None:
        self.add(self._total - self._done)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Look for no garbage while many objects are made, none of which is garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
