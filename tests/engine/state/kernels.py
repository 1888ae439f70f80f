"""Small kernels whose state can be compared with dictionaries, and what surrounds them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from floodway.engine.state.keeper import Keeper
from floodway.operators.base import Kernel
from floodway.operators.keyed import EVERYWHERE, Space, Windowed


class TableKernel(Kernel):
    """A row per key, a queue that follows from the rows, and a scalar."""

    remembers = ("rows", "queue", "latest")
    keyed = ("rows",)
    derived = ("queue",)

    def __init__(self) -> None:
        self.rows: Space[Any, Any] = Space()
        self.queue: list[tuple[Any, Any]] = []
        self.latest: int | None = None

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        assert (name, namespace) == ("rows", None)
        self.queue.append((key, row))


class WindowsKernel(Kernel):
    """A row per window and key, and a table of which every task has a copy."""

    remembers = ("windows", "copies", "counts")
    keyed = ("windows", "copies")

    def __init__(self) -> None:
        self.windows: Windowed[int, Any, Any] = Windowed()
        self.copies: Space[Any, Any] = Space()
        self.counts: dict[str, int] = {}
        self.adopted: list[Mapping[str, Any]] = []
        self.seen: list[tuple[str, Any, Any]] = []

    def adopt(self, saved: Sequence[Mapping[str, Any]]) -> None:
        self.adopted = list(saved)
        self.counts = max((s["counts"] for s in saved), key=len)

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        self.seen.append((name, namespace, key))

    def route(self, name: str, key: Any) -> Any:
        return EVERYWHERE if name == "copies" else key


class StatelessKernel(Kernel):
    """Remembers nothing."""


def program(**kernels: Kernel) -> Any:
    nodes = [
        SimpleNamespace(operators=(SimpleNamespace(name=name, place=None),), kernel=kernel)
        for name, kernel in kernels.items()
    ]
    return SimpleNamespace(nodes=nodes)


def keeper(
    folder: Path,
    classes: Sequence[type[msgspec.Struct]] = (),
    *,
    budget: int | None = None,
    **kernels: Kernel,
) -> Keeper:
    return Keeper(program(**kernels), classes, budget=budget, folder=folder)


def rows_of(space: Space[Any, Any]) -> dict[Any, Any]:
    """Return all rows, and check that none is there twice."""
    listed = list(space.everything())
    rows = dict(listed)
    assert len(rows) == len(listed) == len(space)
    return rows


def windows_of(windows: Windowed[Any, Any, Any]) -> dict[Any, dict[Any, Any]]:
    """Return the rows of all windows that have any."""
    return {start: rows for start, space in windows.items() if (rows := rows_of(space))}
