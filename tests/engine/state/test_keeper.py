"""The keeper: what it stores of an epoch, and what new kernels get back."""

import time
from pathlib import Path

import pytest

from floodway import Record
from floodway.core.errors import CorruptError, OperatorError
from floodway.engine.checkpoint.state_files import StateFiles
from floodway.engine.checkpoint.vault import FolderVault
from floodway.engine.state.keeper import Keeper
from floodway.engine.state.pickling import Pickling
from tests.engine.state.kernels import (
    StatelessKernel,
    TableKernel,
    WindowsKernel,
    keeper,
    rows_of,
    windows_of,
)


class Point(Record):
    x: int


def filled(folder: Path) -> tuple[Keeper, TableKernel, WindowsKernel]:
    table, windows = TableKernel(), WindowsKernel()
    kept = keeper(folder, [Point], table=table, windows=windows, map=StatelessKernel())
    return kept, table, windows


def test_new_kernels_get_back_what_was_stored(tmp_path: Path) -> None:
    kept, table, windows = filled(tmp_path)
    table.rows["a"], table.rows["b"] = [1], Point(2)
    table.latest = 5
    windows.windows.space(0)["x"], windows.windows.space(10)["y"] = 1, 2
    windows.counts = {"x": 1}
    parts = [kept.changes()]
    table.rows["a"].append(3)
    table.rows.touch("a")
    del table.rows["b"]
    table.latest = 7
    del windows.windows[0]
    windows.windows.space(10)["z"] = 3
    parts.append(kept.changes())

    again, table, windows = filled(tmp_path)
    again.load(parts)
    again.adopt()
    assert rows_of(table.rows) == {"a": [1, 3]}
    assert table.queue == [("a", [1, 3])]
    assert table.latest == 7
    assert windows_of(windows.windows) == {10: {"y": 2, "z": 3}}
    assert sorted(windows.seen) == [("windows", 10, "y"), ("windows", 10, "z")]
    assert windows.counts == {"x": 1}


def test_an_epoch_stores_only_what_has_changed(tmp_path: Path) -> None:
    kept, table, _ = filled(tmp_path)
    for key in range(10_000):
        table.rows[key] = key
    first = kept.changes()
    table.rows[5] = 6
    second = kept.changes()
    third = kept.changes()
    assert len(second) < len(first) / 50
    assert len(third) < len(second)
    again, table, _ = filled(tmp_path)
    again.load([first, second, third])
    assert rows_of(table.rows) == {**{key: key for key in range(10_000)}, 5: 6}


def test_loaded_rows_are_not_changes(tmp_path: Path) -> None:
    kept, table, _ = filled(tmp_path)
    table.rows["a"] = 1
    parts = [kept.changes()]
    again, table, _ = filled(tmp_path)
    again.load(parts)
    again.adopt()
    assert len(again.changes()) < len(parts[0])


def test_a_namespace_that_was_dropped_and_made_again_has_only_new_rows(tmp_path: Path) -> None:
    kept, _, windows = filled(tmp_path)
    windows.windows.space(0)["old"] = 1
    parts = [kept.changes()]
    del windows.windows[0]
    windows.windows.space(0)["new"] = 2
    parts.append(kept.changes())
    again, _, windows = filled(tmp_path)
    again.load(parts)
    assert windows_of(windows.windows) == {0: {"new": 2}}


def test_state_that_is_not_plain_data_is_an_error_that_names_its_operator(tmp_path: Path) -> None:
    kept, table, windows = filled(tmp_path)
    table.rows["fine"] = 1
    windows.copies["a"] = {"deep": [object()]}
    with pytest.raises(OperatorError, match=r"builtins\.object is not plain data") as raised:
        kept.changes()
    assert raised.value.operator == "windows"
    kept, table, _ = filled(tmp_path)
    table.latest = object()  # type: ignore[assignment]
    with pytest.raises(OperatorError, match="not plain data") as raised:
        kept.changes()
    assert raised.value.operator == "table"


# ------------------------------------------------------------------ files


def test_state_comes_back_from_its_files_with_progress(tmp_path: Path) -> None:
    vault, pickling = FolderVault(tmp_path / "vault"), Pickling([Point])
    kept, table, _ = filled(tmp_path / "cold")
    files = StateFiles(vault, "state/table-0", pickling)
    for epoch in range(40):
        for key in range(epoch, epoch + 100):
            table.rows[key] = epoch
        files.store(epoch, 0, kept.changes())
    steps: list[tuple[int, int]] = []
    again, loaded, _ = filled(tmp_path / "cold")
    again.load(files.parts(), progress=lambda done, total: steps.append((done, total)))
    again.adopt()
    assert rows_of(loaded.rows) == rows_of(table.rows)
    total = sum(ref.size for ref in files.refs)
    assert steps == sorted(steps)
    assert steps[-1] == (total, total)
    assert len(steps) > len(files.refs)


def test_an_operator_that_is_not_there_any_more_is_left_out(tmp_path: Path) -> None:
    kept, table, windows = filled(tmp_path)
    table.rows["a"] = Point(1)  # a class that the new flow does not have
    windows.copies["b"] = 2
    part = kept.changes()
    windows = WindowsKernel()
    kept = keeper(tmp_path, windows=windows)
    kept.load([part])
    kept.adopt()
    assert rows_of(windows.copies) == {"b": 2}


def test_a_space_that_an_operator_does_not_keep_any_more_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept, table, _ = filled(tmp_path)
    table.rows["a"] = 1
    windows = WindowsKernel()
    keeper(tmp_path, table=windows).load([kept.changes()])
    assert caplog.messages == ["table does not keep rows any more: it is left out"]
    assert (windows_of(windows.windows), rows_of(windows.copies)) == ({}, {})


def test_damaged_parts_are_refused(tmp_path: Path) -> None:
    kept, table, _ = filled(tmp_path)
    table.rows["a"] = 1
    part = kept.changes()
    for damaged in (b"", part[:-1], part[:30], part + b"x"):
        with pytest.raises(CorruptError):
            filled(tmp_path)[0].load([damaged])


def test_many_changes_are_taken_in_little_time(tmp_path: Path) -> None:
    kept, table, _ = filled(tmp_path)
    taken = []
    for epoch in range(3):
        for key in range(100_000):
            table.rows[key] = (key * 1000, key, epoch)
        start = time.thread_time()
        kept.changes()
        taken.append(time.thread_time() - start)
    assert min(taken) < 0.1  # about 0.02
