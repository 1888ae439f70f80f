"""What a checkpoint would have of a kernel: rows as they changed, kept apart from it."""

import copy
from collections.abc import Iterator
from typing import Any

from floodway.operators.base import Kernel
from floodway.operators.keyed import GONE, Space, Windowed


class Shelf:
    """Rows that are put away, and looked after as if they were not in memory."""

    def __init__(self) -> None:
        self.rows: dict[Any, Any] = {}

    def fetch(self, key: Any) -> Any:
        """Return the row of `key` and forget it here; None if there is none."""
        return self.rows.pop(key, None)

    def has(self, key: Any) -> bool:
        """Return whether there is a row of `key`."""
        return key in self.rows

    def remove(self, key: Any) -> bool:
        """Forget the row of `key`; return whether there was one."""
        return self.rows.pop(key, None) is not None

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Go through keys and rows, which are copies as they would be elsewhere."""
        return iter(copy.deepcopy(self.rows).items())

    def __len__(self) -> int:
        return len(self.rows)

    def clear(self) -> None:
        """Forget all rows."""
        self.rows.clear()


class Store:
    """Takes what a kernel has changed, and gives everything to another.

    Of the rows it gives, every second one is put away, to be fetched when it is needed.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[Any, dict[Any, Any]]] = {}  # by space, namespace and key
        self._scalars: dict[str, Any] = {}

    def take(self, kernel: Kernel) -> bool:
        """Take what has changed since the last time; return whether anything has."""
        scalars = copy.deepcopy(kernel.scalars())
        changed = scalars != self._scalars
        self._scalars = scalars
        for name, space in kernel.spaces().items():
            rows = self._rows.setdefault(name, {})
            if isinstance(space, Windowed):
                changes, dropped = space.take()
            else:
                changes, dropped = {None: space.take()}, set()
            for namespace in dropped:
                rows.pop(namespace, None)
            for namespace, fresh in changes.items():
                _apply(rows.setdefault(namespace, {}), fresh)
            changed = changed or bool(dropped) or any(changes.values())
        return changed

    def give(self, kernel: Kernel) -> None:
        """Let a new kernel go on from here."""
        for name, space in kernel.spaces().items():
            for namespace, rows in self._rows[name].items():
                target = space.space(namespace) if isinstance(space, Windowed) else space
                _load(target, copy.deepcopy(rows))
                for key, row in rows.items():
                    kernel.loaded(name, namespace, key, copy.deepcopy(row))
        kernel.adopt([copy.deepcopy(self._scalars)])


def _apply(rows: dict[Any, Any], changed: dict[Any, Any]) -> None:
    for key, row in copy.deepcopy(changed).items():
        if row is GONE:
            rows.pop(key, None)
        else:
            rows[key] = row


def _load(space: Space[Any, Any], rows: dict[Any, Any]) -> None:
    shelf = space.cold = Shelf()
    for number, (key, row) in enumerate(rows.items()):
        if number % 2:
            shelf.rows[key] = row
        else:
            space.load(key, row)
