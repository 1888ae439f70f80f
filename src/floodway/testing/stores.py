"""What a checkpoint would have of a task: rows as they changed, kept apart from the kernels."""

import copy
from typing import Any

from floodway.engine.datastream.program import Program
from floodway.operators.keyed import GONE, Windowed

Rows = dict[Any, dict[Any, Any]]
"""Namespace to key to row; without windows the namespace is None."""


class Store:
    """Takes what a program's kernels have changed, and gives everything to those of another."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Rows] = {}
        self._scalars: dict[str, dict[str, Any]] = {}

    def take(self, program: Program) -> None:
        """Take what has changed since the last time."""
        for node in program.nodes:
            self._scalars[node.name] = copy.deepcopy(node.kernel.scalars())
            for name, space in node.kernel.spaces().items():
                rows = self._rows.setdefault((node.name, name), {})
                if isinstance(space, Windowed):
                    changes, dropped = space.take()
                else:
                    changes, dropped = {None: space.take()}, set()
                for namespace in dropped:
                    rows.pop(namespace, None)
                for namespace, changed in changes.items():
                    _apply(rows.setdefault(namespace, {}), changed)

    def give(self, program: Program) -> None:
        """Let the kernels of a new program go on from here."""
        for node in program.nodes:
            kernel = node.kernel
            for name, space in kernel.spaces().items():
                for namespace, rows in self._rows[node.name, name].items():
                    target = space.space(namespace) if isinstance(space, Windowed) else space
                    for key, row in copy.deepcopy(rows).items():
                        target.load(key, row)
                        kernel.loaded(name, namespace, key, row)
            kernel.adopt([copy.deepcopy(self._scalars[node.name])])


def _apply(rows: dict[Any, Any], changed: dict[Any, Any]) -> None:
    for key, row in copy.deepcopy(changed).items():
        if row is GONE:
            rows.pop(key, None)
        else:
            rows[key] = row
