"""Rows outside of memory: found under equal keys, forgotten for good, and gone with the store."""

import decimal
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.core.errors import EngineError, OperatorError
from floodway.engine.state.cold import READ_ROWS, ColdRows, ColdStore
from floodway.engine.state.pickling import Pickling


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ColdStore]:
    store = ColdStore(tmp_path / "scratch" / "cold", Pickling([]), memory=0)
    yield store
    store.close()


def put(store: ColdStore, cold: ColdRows, rows: dict[Any, Any]) -> None:
    store.write(cold.packed((key, row, "note") for key, row in rows.items()))
    cold.added(len(rows))


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_nothing_is_made_before_there_is_something_to_keep(
    store: ColdStore, tmp_path: Path
) -> None:
    cold = ColdRows(store)
    assert cold.fetch("a") is None
    assert not cold.has("a")
    assert not cold.remove("a")
    assert list(cold.items()) == []
    cold.clear()
    store.write(())
    assert list(tmp_path.iterdir()) == []


def test_a_row_is_fetched_once(store: ColdStore) -> None:
    cold = ColdRows(store)
    put(store, cold, {"a": (1, [2]), "b": (3, [])})
    assert (len(cold), store.rows) == (2, 2)
    assert cold.fetch("a") == (1, [2])
    assert cold.fetch("a") is None
    assert not cold.has("a")
    assert cold.has("b")
    assert dict(cold.items()) == {"b": (3, [])}
    assert (len(cold), store.rows, cold.used) == (1, 1, [("a", "note")])
    store.write(())
    assert cold.fetch("a") is None
    assert cold.remove("b")
    assert not cold.remove("b")
    assert (len(cold), store.rows) == (0, 0)


def test_a_row_may_come_back_after_it_was_fetched(store: ColdStore) -> None:
    cold = ColdRows(store)
    put(store, cold, {"a": 1})
    cold.fetch("a")
    put(store, cold, {"a": 2})
    assert cold.fetch("a") == 2


@pytest.mark.parametrize("other", [1, 1.0, True, decimal.Decimal("1.0")])
def test_equal_keys_find_one_row(store: ColdStore, other: Any) -> None:
    cold = ColdRows(store)
    put(store, cold, {1.0: "one", ("a", True): "pair"})
    assert cold.fetch(("a", other)) == "pair"
    assert cold.fetch(other) == "one"


def test_keys_come_back_as_they_were(store: ColdStore) -> None:
    cold = ColdRows(store)
    put(store, cold, {1.0: "one"})
    ((key, _),) = cold.items()
    assert type(key) is float


def test_spaces_do_not_see_each_others_rows(store: ColdStore) -> None:
    one, other = ColdRows(store), ColdRows(store)
    put(store, one, {"a": 1})
    put(store, other, {"a": 2, "b": 3})
    assert dict(one.items()) == {"a": 1}
    one.clear()
    assert dict(other.items()) == {"a": 2, "b": 3}
    store.write(())
    assert dict(other.items()) == {"a": 2, "b": 3}
    assert (len(one), store.rows) == (0, 2)


def test_what_was_cleared_does_not_come_back(store: ColdStore) -> None:
    cold = ColdRows(store)
    put(store, cold, {"a": 1, "b": 2})
    cold.clear()
    assert cold.fetch("a") is None
    put(store, cold, {"b": 3})
    assert dict(cold.items()) == {"b": 3}
    assert cold.fetch("a") is None


def test_more_rows_than_are_read_at_a_time_are_gone_through(store: ColdStore) -> None:
    cold = ColdRows(store)
    rows = {number: str(number) for number in range(2 * READ_ROWS + 7)}
    put(store, cold, rows)
    before, after = ColdRows(store), ColdRows(store)
    put(store, before, {"x": 1})
    put(store, after, {"y": 1})
    assert dict(cold.items()) == rows


def test_dropping_a_namespace_frees_its_room_on_the_disk(store: ColdStore, tmp_path: Path) -> None:
    windows = [ColdRows(store) for _ in range(8)]
    for number, cold in enumerate(windows):
        put(store, cold, {key: os.urandom(100) for key in range(20_000)})
        assert len(cold) == 20_000, number
    store.write(())
    full = on_disk(tmp_path)
    for cold in windows[:6]:
        cold.clear()
        store.write(())
    store.settle()
    assert on_disk(tmp_path) < full * 0.45
    assert store.rows == 40_000
    assert len(dict(windows[7].items())) == 20_000


def test_closing_leaves_nothing(tmp_path: Path) -> None:
    for _ in range(5):
        store = ColdStore(tmp_path / "cold", Pickling([]), memory=0)
        cold = ColdRows(store)
        put(store, cold, {key: os.urandom(100) for key in range(20_000)})
        cold.clear()
        put(store, cold, {key: os.urandom(100) for key in range(20_000)})
        abandoned = cold.items()  # nobody goes on with it, and it must not hold the store open
        next(abandoned)
        store.close()
        assert list(tmp_path.iterdir()) == []
        open_files = [os.readlink(f"/proc/self/fd/{n}") for n in listed_descriptors()]
        assert not [name for name in open_files if name.startswith(str(tmp_path))]
        store.close()


def listed_descriptors() -> list[str]:
    gc.collect()
    return [n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]


def test_a_place_that_cannot_be_written_to_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = ColdStore(tmp_path / "file" / "cold", Pickling([]), memory=0)
    cold = ColdRows(store)
    with pytest.raises(EngineError, match="beyond the memory budget") as raised:
        put(store, cold, {"a": 1})
    assert "TMPDIR" in raised.value.remedy


@pytest.mark.parametrize("rows", [{"a": object()}, {object(): 1}, {1j: 2}])
def test_rows_that_are_not_plain_data_are_refused(store: ColdStore, rows: Any) -> None:
    with pytest.raises(OperatorError, match="cannot be stored"):
        list(ColdRows(store).packed((*row, "note") for row in rows.items()))


KEYS = st.sampled_from(["a", "b", 1, 1.0, True, 2, ("a", 1), ("a", 1.0), None, b"a"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.dictionaries(KEYS, st.integers(), max_size=5)),
        st.tuples(st.sampled_from(["fetch", "has", "remove"]), KEYS),
        st.tuples(st.sampled_from(["clear", "items", "write"]), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(STEPS)
def test_cold_rows_are_a_dictionary_from_which_rows_are_taken(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    store = ColdStore(tmp_path_factory.mktemp("cold"), Pickling([]), memory=0)
    cold, model = ColdRows(store), dict[Any, Any]()
    try:
        for name, argument in steps:
            match name:
                case "put":
                    fresh = {k: v for k, v in argument.items() if k not in model}
                    put(store, cold, fresh)
                    model |= fresh
                case "fetch":
                    assert cold.fetch(argument) == model.pop(argument, None)
                case "has":
                    assert cold.has(argument) == (argument in model)
                case "remove":
                    assert cold.remove(argument) == (model.pop(argument, None) is not None)
                case "clear":
                    cold.clear()
                    model.clear()
                case "items":
                    assert dict(cold.items()) == model
                case "write":
                    store.write(())
            assert len(cold) == len(model) == store.rows
    finally:
        store.close()
