"""Spaces are dictionaries that know what has changed, wherever their rows are."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from floodway.operators.keyed import EVERYWHERE, GONE, Gone, Space, Windowed
from floodway.testing.stores import Shelf

KEYS = st.sampled_from([0, 1, True, 2.0, "a", (1, "b"), None])
ROWS = st.integers(0, 9).map(lambda number: [number])
STARTS = st.sampled_from([None, 0, 10])


def with_shelf() -> Space[Any, list[int]]:
    space: Space[Any, list[int]] = Space()
    space.cold = Shelf()
    return space


def put_away(space: Space[Any, Any], key: Any) -> None:
    """Do what whoever keeps the state does with a row that is little used."""
    if key in space.hot and space.cold is not None:
        assert isinstance(space.cold, Shelf)
        space.cold.rows[key] = copy.deepcopy(space.hot.pop(key))


def applied(stored: dict[Any, Any], changes: dict[Any, Any]) -> None:
    for key, row in copy.deepcopy(changes).items():
        if row is GONE:
            stored.pop(key, None)
        else:
            stored[key] = row


class SpaceIsADictionary(RuleBasedStateMachine):
    """Whatever is done to a space and to a dictionary, they hold the same.

    What is taken and applied to what was stored before gives the same once more.
    """

    @initialize(cold=st.booleans())
    def start(self, cold: bool) -> None:
        self.space = with_shelf() if cold else Space[Any, list[int]]()
        self.model: dict[Any, list[int]] = {}
        self.stored: dict[Any, list[int]] = {}

    @rule(key=KEYS, row=ROWS)
    def put(self, key: Any, row: list[int]) -> None:
        self.space[key] = row
        self.model[key] = list(row)

    @rule(key=KEYS, row=ROWS)
    def set_as_generated_code_does(self, key: Any, row: list[int]) -> None:
        found = self.space.hot.get(key)
        if found is None:
            found = self.space.fetch(key)
        assert found == self.model.get(key)
        self.space.hot[key] = self.space.dirty[key] = row
        self.model[key] = list(row)

    @rule(key=KEYS, number=st.integers(0, 9))
    def change_in_place(self, key: Any, number: int) -> None:
        row = self.space.get(key)
        if row is not None:
            row.append(number)
            self.space.touch(key)
            self.model[key].append(number)

    @rule(key=KEYS, row=ROWS)
    def set_default(self, key: Any, row: list[int]) -> None:
        assert self.space.setdefault(key, row) == self.model.setdefault(key, list(row))

    @rule(key=KEYS)
    def delete(self, key: Any) -> None:
        if key in self.model:
            del self.space[key]
            del self.model[key]
        else:
            with pytest.raises(KeyError):
                del self.space[key]

    @rule(key=KEYS, default=st.sampled_from([(), (None,), ([],)]))
    def pop(self, key: Any, default: tuple[Any, ...]) -> None:
        if key in self.model or default:
            assert self.space.pop(key, *default) == self.model.pop(key, *default)
        else:
            with pytest.raises(KeyError):
                self.space.pop(key)

    @rule()
    def clear(self) -> None:
        self.space.clear()
        self.model.clear()

    @rule(key=KEYS)
    def look(self, key: Any) -> None:
        assert (key in self.space) == (key in self.model)
        assert self.space.get(key) == self.model.get(key)
        assert self.space.get(key, "none") == self.model.get(key, "none")
        if key in self.model:
            assert self.space[key] == self.model[key]
        else:
            with pytest.raises(KeyError):
                self.space[key]

    @rule()
    def take(self) -> None:
        applied(self.stored, self.space.take())
        assert self.stored == self.model
        assert not self.space.dirty

    @rule(keys=st.sets(KEYS))
    def take_and_put_away(self, keys: set[Any]) -> None:
        self.take()
        for key in keys:
            put_away(self.space, key)

    @rule()
    def go_on_with_a_copy(self) -> None:
        self.take()
        self.space = copy.deepcopy(self.space)
        assert not self.space.dirty
        assert self.space.hot == self.model

    @rule(cold=st.booleans())
    def go_on_from_what_is_stored(self, cold: bool) -> None:
        self.take()
        self.space = with_shelf() if cold else Space()
        for key, row in copy.deepcopy(self.stored).items():
            self.space.load(key, row)
        assert not self.space.dirty

    @invariant()
    def holds_the_same(self) -> None:
        in_memory = len(self.space.hot)
        assert dict(self.space.everything()) == self.model
        assert set(self.space) == set(self.model)
        assert len(list(self.space)) == len(self.space) == len(self.model)
        assert len(self.space.hot) == in_memory  # looking at everything brings nothing in


class WindowedIsADictionaryOfDictionaries(RuleBasedStateMachine):
    @initialize(cold=st.booleans())
    def start(self, cold: bool) -> None:
        self.windows: Windowed[Any, Any, list[int]] = Windowed()
        if cold:
            self.windows.make_cold = lambda namespace: Shelf()
        self.model: dict[Any, dict[Any, list[int]]] = {}
        self.stored: dict[Any, dict[Any, list[int]]] = {}

    @rule(start=STARTS, key=KEYS, row=ROWS)
    def put(self, start: Any, key: Any, row: list[int]) -> None:
        self.windows.space(start)[key] = row
        self.model.setdefault(start, {})[key] = list(row)

    @rule(start=STARTS, key=KEYS)
    def pop(self, start: Any, key: Any) -> None:
        expected = self.model.get(start, {}).pop(key, None)
        assert self.windows.space(start).pop(key, None) == expected
        self.model.setdefault(start, {})

    @rule(start=STARTS)
    def drop(self, start: Any) -> None:
        if start in self.windows:
            del self.windows[start]
        else:
            with pytest.raises(KeyError):
                del self.windows[start]
        self.model.pop(start, None)

    @rule(start=STARTS)
    def pop_all_of(self, start: Any) -> None:
        found = self.windows.pop(start, None)
        expected = self.model.pop(start, None)
        assert (None if found is None else dict(found.everything())) == expected

    @rule()
    def clear(self) -> None:
        self.windows.clear()
        self.model.clear()

    @rule()
    def take(self) -> None:
        changes, dropped = self.windows.take()
        for start in dropped:
            self.stored.pop(start, None)
        for start, rows in changes.items():
            applied(self.stored.setdefault(start, {}), rows)
        kept = {start: rows for start, rows in self.stored.items() if rows}
        assert kept == {start: rows for start, rows in self.model.items() if rows}
        assert self.windows.take() == ({}, set())

    @rule(start=STARTS, keys=st.sets(KEYS))
    def take_and_put_away(self, start: Any, keys: set[Any]) -> None:
        self.take()
        if start in self.windows:
            for key in keys:
                put_away(self.windows[start], key)

    @rule()
    def go_on_with_a_copy(self) -> None:
        self.take()
        self.windows = copy.deepcopy(self.windows)
        assert self.windows.take() == ({}, set())

    @invariant()
    def holds_the_same(self) -> None:
        assert {s: dict(rows.everything()) for s, rows in self.windows.items()} == self.model


TestSpace = SpaceIsADictionary.TestCase
TestWindowed = WindowedIsADictionaryOfDictionaries.TestCase


@given(st.dictionaries(KEYS, ROWS, min_size=1))
def test_dropped_window_takes_its_rows_outside_of_memory_with_it(rows: dict[Any, Any]) -> None:
    shelves: list[Shelf] = []

    def shelf(namespace: Any) -> Shelf:
        shelves.append(Shelf())
        return shelves[-1]

    windows: Windowed[int, Any, Any] = Windowed()
    windows.make_cold = shelf
    for key, row in rows.items():
        windows.space(0)[key] = row
        put_away(windows[0], key)
    del windows[0]
    assert [len(each) for each in shelves] == [0]
    assert windows.take() == ({}, {0})


def test_window_that_is_dropped_and_made_anew_is_dropped_before_its_new_rows() -> None:
    windows: Windowed[int, str, int] = Windowed()
    windows.space(0)["old"] = 1
    windows.take()
    del windows[0]
    windows.space(0)["new"] = 2
    assert windows.take() == ({0: {"new": 2}}, {0})


def test_copy_does_not_share_rows() -> None:
    space: Space[str, list[int]] = Space()
    space["a"] = [1]
    other = copy.deepcopy(space)
    other["a"].append(2)
    assert space["a"] == [1]


def test_touching_a_row_that_is_not_in_memory_is_an_error() -> None:
    with pytest.raises(KeyError):
        Space[str, int]().touch("a")


def test_there_is_one_gone() -> None:
    assert Gone() is GONE
    assert copy.deepcopy(GONE) is GONE
    assert pickle.loads(pickle.dumps(GONE)) is GONE
    assert (repr(GONE), repr(EVERYWHERE)) == ("GONE", "EVERYWHERE")


def test_space_shows_its_rows() -> None:
    space = with_shelf()
    space["a"], space["b"] = [1], [2]
    put_away(space, "a")
    assert repr(space) == "Space({'b': [2], 'a': [1]})"
