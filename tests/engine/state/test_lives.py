"""Epochs, pages, merges and crashes in any order: the state is what dictionaries would have."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.engine.checkpoint.state_files import StateFiles
from floodway.engine.checkpoint.vault import FolderVault
from floodway.engine.state.pickling import Pickling
from tests.engine.state.kernels import TableKernel, WindowsKernel, keeper, rows_of, windows_of

KEYS = st.sampled_from(
    ["a", "b", "c", 1, 1.0, True, 2, ("a", 1), ("a", 1.0), None, b"a", *range(10, 30)]
)
STARTS = st.sampled_from([0, 10, 20])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("append"), KEYS, st.integers(0, 9)),
        st.tuples(st.sampled_from(["delete", "get", "pop", "setdefault", "has"]), KEYS),
        st.tuples(st.just("set_in"), STARTS, KEYS, st.integers(0, 9)),
        st.tuples(st.sampled_from(["delete_in", "get_in"]), STARTS, KEYS),
        st.tuples(st.sampled_from(["drop", "pop_window"]), STARTS),
        st.tuples(st.sampled_from(["clear", "epoch", "epoch", "epoch", "crash", "check"])),
    ),
    max_size=60,
)


class World:
    """A task with a budget, its files, and dictionaries that say what should be there."""

    def __init__(self, folder: Path, budget: int | None) -> None:
        self._folder, self._budget = folder, budget
        self._pickling = Pickling([])
        self._vault = FolderVault(folder / "vault")
        self._epoch = self._attempt = 0
        self.rows: dict[Any, Any] = {}
        self.windows: dict[Any, dict[Any, Any]] = {}
        self._stored: tuple[Any, Any] = ({}, {})
        self._files = self._new_files(())
        self._begin()

    def _new_files(self, refs: Any) -> StateFiles:
        return StateFiles(self._vault, "state/t-0", self._pickling, refs, most=4, small=300)

    def _begin(self) -> None:
        self.kernel, self.other = TableKernel(), WindowsKernel()
        folder = self._folder / f"cold-{self._attempt}"
        self.kept = keeper(folder, budget=self._budget, table=self.kernel, other=self.other)

    def epoch(self) -> None:
        self._epoch += 1
        self.kernel.latest = self._epoch
        self._files.store(self._epoch, self._attempt, self._end_epoch())
        self._stored = _copied(self.rows, self.windows)

    def _end_epoch(self) -> bytes:
        delta = self.kept.changes()
        self.kept.relieve()
        return delta

    def crash(self) -> None:
        self.kept.close()
        self._attempt += 1
        self._begin()
        self._files = self._new_files(self._files.refs)
        self.kept.load(self._files.parts())
        self.kept.adopt()
        self.rows, self.windows = _copied(*self._stored)
        assert dict(self.kernel.queue) == self.rows
        assert len(self.kernel.queue) == len(self.rows)
        assert (self.kernel.latest or 0) == self._epoch

    def check(self) -> None:
        assert rows_of(self.kernel.rows) == self.rows
        assert windows_of(self.other.windows) == {s: r for s, r in self.windows.items() if r}
        assert self.kept.state_keys == len(self.rows) + sum(map(len, self.windows.values()))

    def set(self, key: Any, value: int) -> None:
        self.kernel.rows[key] = [value]
        self.rows[key] = [value]

    def append(self, key: Any, value: int) -> None:
        row = self.kernel.rows.get(key)
        assert row == self.rows.get(key)
        if row is not None:
            row.append(value)
            self.kernel.rows.touch(key)
            self.rows[key] = [*self.rows[key], value]

    def delete(self, key: Any) -> None:
        if key in self.rows:
            del self.kernel.rows[key]
            del self.rows[key]

    def get(self, key: Any) -> None:
        assert self.kernel.rows.get(key) == self.rows.get(key)

    def has(self, key: Any) -> None:
        assert (key in self.kernel.rows) == (key in self.rows)

    def pop(self, key: Any) -> None:
        assert self.kernel.rows.pop(key, None) == self.rows.pop(key, None)

    def setdefault(self, key: Any) -> None:
        assert self.kernel.rows.setdefault(key, [0]) == self.rows.setdefault(key, [0])

    def clear(self) -> None:
        self.kernel.rows.clear()
        self.rows.clear()

    def set_in(self, start: int, key: Any, value: int) -> None:
        self.other.windows.space(start)[key] = (value, value)
        self.windows.setdefault(start, {})[key] = (value, value)

    def get_in(self, start: int, key: Any) -> None:
        space = self.other.windows.get(start)
        found = None if space is None else space.get(key)
        assert found == self.windows.get(start, {}).get(key)

    def delete_in(self, start: int, key: Any) -> None:
        if key in self.windows.get(start, {}):
            del self.other.windows[start][key]
            del self.windows[start][key]

    def drop(self, start: int) -> None:
        if start in self.other.windows:
            del self.other.windows[start]
        self.windows.pop(start, None)

    def pop_window(self, start: int) -> None:
        space = self.other.windows.pop(start, None)
        assert ({} if space is None else rows_of(space)) == self.windows.pop(start, {})


def _copied(rows: dict[Any, Any], windows: dict[Any, dict[Any, Any]]) -> tuple[Any, Any]:
    return (
        {key: list(row) for key, row in rows.items()},
        {start: dict(rows) for start, rows in windows.items() if rows},
    )


@settings(max_examples=120)
@given(STEPS, st.sampled_from([None, 1500, 4000]))
def test_any_use_epochs_pages_merges_and_crashes_leave_what_dictionaries_would_have(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]], budget: int | None
) -> None:
    world = World(tmp_path_factory.mktemp("world"), budget)
    try:
        for name, *arguments in [*steps, ("check",), ("epoch",), ("check",), ("crash",)]:
            getattr(world, name)(*arguments)
        world.check()
    finally:
        world.kept.close()
