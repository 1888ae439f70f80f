"""Copies of look-up tables: what the remote half looks into instead of the owner's table.

A copy is good as long as the table does not change. While changes are on their way the owner does
the look-up itself; so it does with a table that changes often, or that is too large to be copied.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from floodway.core.errors import OperatorError
from floodway.engine.opstream.blocks import write_file
from floodway.engine.opstream.halves import STREAM
from floodway.engine.program.program import Node, Program
from floodway.engine.state.pickling import Pickling
from floodway.operators.base import CopyKernel

MOST_ROWS = 200_000
"""A table with more rows is not copied: whoever has it would stand still meanwhile."""

QUIET_US = 500_000
"""A table that has changed is copied again when it has not changed for so long."""


class Copy(msgspec.Struct):
    """A copy of a table, and how often the table had changed when it was made."""

    changes: int
    path: Path


class Tables:
    """The look-up tables of one task, and their copies."""

    def __init__(self, program: Program, pickling: Pickling, folder: Path) -> None:
        self._kernels = {
            node.name: node.kernel for node in program.nodes if isinstance(node.kernel, CopyKernel)
        }
        self._pickling, self._folder = pickling, folder
        self._copies: dict[str, Copy] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._coming: Counter[str] = Counter()
        self._former: list[Path] = []
        self._made = 0

    def coming(self, names: Iterable[str]) -> None:
        """Take note that changes of tables have been collected."""
        self._coming.update(names)

    def came(self, names: Iterable[str]) -> None:
        """Take note that such changes have been merged."""
        self._coming.subtract(names)

    def stale(self, now: int) -> list[str]:
        """Return the look-ups that the owner has to do itself; make copies of the other tables."""
        return [name for name in self._kernels if not self._fresh(name, now)]

    def _fresh(self, name: str, now: int) -> bool:
        kernel, copy = self._kernels[name], self._copies.get(name)
        if self._coming[name] > 0:
            return False
        if copy is not None and copy.changes == kernel.changes:
            return True
        changes, since = self._seen.get(name, (-1, now))
        if changes != kernel.changes:
            self._seen[name] = changes, since = kernel.changes, now
        if copy is not None and now - since < QUIET_US:
            return False
        return self._make(name, kernel)

    def _make(self, name: str, kernel: CopyKernel) -> bool:
        if kernel.table_size > MOST_ROWS:
            return False
        self._made += 1
        path = self._folder / f"table-{self._made}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_file(path, [self._pickling.dumps(kernel.table_rows())])
        except (OSError, OperatorError):
            # There is no room for it, or it is not plain data. The owner has the table in any case.
            return False
        former = self._copies.get(name)
        self._copies[name] = Copy(kernel.changes, path)
        if former is not None:
            self._former.append(former.path)
        return True

    def tidy(self) -> None:
        """Remove former copies: nobody uses them any more."""
        for path in self._former:
            path.unlink(missing_ok=True)
        self._former.clear()

    def paths(self, names: Iterable[str]) -> dict[str, str]:
        """Return where the copies of some look-ups are."""
        return {name: str(self._copies[name].path) for name in names}


def reached(node: Node, port: int, *, seen: set[int] | None = None) -> set[str]:
    """Return the look-ups whose table may change by what comes into a node."""
    if isinstance(node.kernel, CopyKernel) and port != STREAM:
        return {node.name}
    seen = set() if seen is None else seen
    if id(node) in seen:
        return set()
    seen.add(id(node))
    found: set[str] = set()
    for out in node.ports:
        for reader, index in out.readers:
            found |= reached(reader, index, seen=seen)
    return found
