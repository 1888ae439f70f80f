"""The memory budget: rows that are used stay, others are put aside and come back, none is lost."""

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodway.core.errors import OperatorError
from floodway.engine.state.keeper import Keeper
from floodway.engine.state.sizes import Scale, weight
from tests.engine.state.kernels import TableKernel, WindowsKernel, keeper, rows_of, windows_of

BUDGET = 200_000


@pytest.fixture
def table() -> TableKernel:
    return TableKernel()


@pytest.fixture
def kept(tmp_path: Path, table: TableKernel) -> Iterator[Keeper]:
    kept = keeper(tmp_path / "cold", budget=BUDGET, table=table)
    yield kept
    kept.close()


def end_epoch(kept: Keeper) -> bytes:
    delta = kept.changes()
    kept.relieve()
    return delta


def test_state_above_its_budget_is_put_aside_and_found_again(
    kept: Keeper, table: TableKernel
) -> None:
    for key in range(4000):
        table.rows[key] = (key, key, key)
    assert kept.state_bytes > BUDGET
    end_epoch(kept)
    assert 0.5 * BUDGET < kept.state_bytes < 0.92 * BUDGET
    assert kept.state_keys == 4000
    assert kept.cold_keys == 4000 - len(table.rows.hot) > 0
    assert all(table.rows.get(key) == (key, key, key) for key in range(4000))
    assert kept.cold_keys == 0


def test_state_within_its_budget_makes_no_files(
    kept: Keeper, table: TableKernel, tmp_path: Path
) -> None:
    for epoch in range(5):
        for key in range(100):
            table.rows[key] = (key, epoch)
        end_epoch(kept)
    assert kept.cold_keys == 0
    assert list(tmp_path.iterdir()) == []


def test_without_a_budget_everything_stays(tmp_path: Path, table: TableKernel) -> None:
    kept = keeper(tmp_path, table=table)
    for key in range(5000):
        table.rows[key] = (key, key, key)
    end_epoch(kept)
    assert (kept.cold_keys, kept.state_keys) == (0, 5000)
    assert kept.state_bytes > 5000 * 100


def test_keys_that_are_used_stay_in_memory(kept: Keeper, table: TableKernel) -> None:
    chosen = random.Random(3)
    often = range(300)
    for epoch in range(30):
        for key in often:
            table.rows[key] = (key, epoch, 0)
        for _ in range(400):
            key = chosen.randrange(300, 10_000)
            table.rows[key] = (table.rows.get(key, (0,))[0], epoch, 0)
        end_epoch(kept)
    assert kept.cold_keys > 2000
    assert all(key in table.rows.hot for key in often)


def test_keys_that_are_only_read_count_as_used(kept: Keeper, table: TableKernel) -> None:
    for key in range(4000):
        table.rows[key] = (key, 0, 0)
    end_epoch(kept)
    read = [key for key in range(4000) if key not in table.rows.hot][:100]
    for epoch in range(6):
        for key in read:
            table.rows.get(key)
        for key in range(5000 + 300 * epoch, 5300 + 300 * epoch):
            table.rows[key] = (key, 0, 0)
        end_epoch(kept)
        assert sum(key in table.rows.hot for key in read) >= (100 if epoch > 1 else 0)


def test_what_was_used_long_ago_is_forgotten(kept: Keeper, table: TableKernel) -> None:
    for epoch in range(10):
        for key in range(300):
            table.rows[key] = (key, epoch, 0)
        for key in range(1000 * (epoch + 1), 1000 * (epoch + 1) + 500):
            table.rows[key] = (key, epoch, 0)
        end_epoch(kept)
    assert all(key in table.rows.hot for key in range(300))
    for epoch in range(40):
        for key in range(50_000, 50_300):
            table.rows[key] = (key, epoch, 0)
        for key in range(60_000 + 300 * epoch, 60_300 + 300 * epoch):
            table.rows[key] = (key, epoch, 0)
        end_epoch(kept)
    assert sum(key in table.rows.hot for key in range(300)) < 100
    assert all(key in table.rows.hot for key in range(50_000, 50_300))


def test_rows_that_are_not_stored_yet_stay(kept: Keeper, table: TableKernel) -> None:
    for key in range(3000):
        table.rows[key] = (key, 0, 0)
    kept.changes()
    for key in range(100):
        table.rows[key] = (key, 1, 0)
    kept.relieve()
    assert kept.cold_keys > 0
    assert all(key in table.rows.hot for key in range(100))


def test_keys_that_are_not_equal_to_themselves_stay(kept: Keeper, table: TableKernel) -> None:
    nans = [float("nan") for _ in range(3)]
    for nan in nans:
        table.rows[nan] = "nan"
    for key in range(3000):
        table.rows[key] = (key, 0, 0)
    end_epoch(kept)
    assert kept.cold_keys > 0
    assert [table.rows.get(nan) for nan in nans] == ["nan"] * 3


def test_memory_is_given_back_when_rows_are_put_aside(kept: Keeper, table: TableKernel) -> None:
    tracemalloc.start()
    try:
        for key in range(20_000):
            table.rows[1_000_000 + key] = (key * 1000, key * 1000, key * 1000)
        kept.changes()
        full, _ = tracemalloc.get_traced_memory()
        kept.relieve()
        less, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert less < full * 0.2


@pytest.mark.parametrize(
    "row",
    [
        lambda n: (n * 1000, n * 1000, n * 1000),
        lambda n: [(n * 1000, "text" + str(n))],
        lambda n: ([n * 1000], [str(n)]),
        lambda n: {"a": n * 1000, "b": [n * 1000 + 1]},
    ],
)
def test_the_estimated_weight_is_about_what_rows_need(row: Any) -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        rows = {str(n): row(n) for n in range(10_000)}
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    scale = Scale()
    scale.show(rows)
    assert 0.7 < scale.row_bytes * len(rows) / (after - before) < 1.5


def test_long_values_are_weighed_by_a_part_of_them() -> None:
    assert 0.9 < weight([float(n) for n in range(10_000)]) / (10_000 * (8 + 24)) < 1.1


def test_state_above_its_budget_is_loaded_without_filling_memory(
    tmp_path: Path, kept: Keeper, table: TableKernel
) -> None:
    windows = WindowsKernel()
    source = keeper(tmp_path / "unused", windows=windows, table=table)
    for key in range(8000):
        table.rows[key] = (key, key, key)
        windows.windows.space(key % 3)[key] = (key, key, key)
    parts = [source.changes()]
    for key in range(0, 8000, 2):
        table.rows[key] = (key, 0, 0)
    del windows.windows[1]
    parts.append(source.changes())
    again, other = TableKernel(), WindowsKernel()
    small = keeper(tmp_path / "small", budget=BUDGET, windows=other, table=again)
    try:
        small.load(parts)
        small.adopt()
        assert small.state_bytes < 1.2 * BUDGET
        assert small.cold_keys > 8000
        assert len(again.queue) == 8000
        end_epoch(small)
        assert rows_of(again.rows) == rows_of(table.rows)
        assert windows_of(other.windows) == windows_of(windows.windows)
    finally:
        small.close()


def test_a_window_that_is_dropped_takes_its_cold_rows_along(tmp_path: Path) -> None:
    windows = WindowsKernel()
    kept = keeper(tmp_path / "cold", budget=BUDGET, windows=windows)
    try:
        for start in range(0, 40, 10):
            for key in range(2000):
                windows.windows.space(start)[key] = (key, start, 0)
        end_epoch(kept)
        assert kept.cold_keys > 4000
        popped = windows.windows.pop(0)
        assert rows_of(popped) == {key: (key, 0, 0) for key in range(2000)}
        del windows.windows[10]
        windows.windows.space(10)["new"] = (1, 2, 3)
        end_epoch(kept)
        assert kept.state_keys == 4001
        assert rows_of(windows.windows[10]) == {"new": (1, 2, 3)}
        windows.windows.clear()
        end_epoch(kept)
        assert (kept.state_keys, kept.cold_keys) == (0, 0)
    finally:
        kept.close()


def test_when_pressure_has_gone_nothing_is_counted_any_more(
    kept: Keeper, table: TableKernel
) -> None:
    for key in range(4000):
        table.rows[key] = (key, 0, 0)
    end_epoch(kept)
    for key in range(3900):
        del table.rows[key]
    for _ in range(3):
        for key in range(3900, 4000):
            table.rows[key] = (*table.rows[key][:2], 1)
        end_epoch(kept)
    assert kept.cold_keys == 0
    assert kept.state_bytes < 100 * 400


def test_rows_that_cannot_be_put_aside_are_an_error_that_names_their_operator(
    kept: Keeper, table: TableKernel
) -> None:
    for key in range(4000):
        table.rows[key] = [key, object()]
    with pytest.raises(OperatorError, match="not plain data"):
        kept.changes()
    with pytest.raises(OperatorError, match="not plain data") as raised:
        kept.relieve()
    assert raised.value.operator == "table"
    assert len(table.rows) == 4000
