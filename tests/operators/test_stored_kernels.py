"""A kernel that goes on from stored state does what one does that was never interrupted."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from floodway.operators.base import Kernel, Operator, View
from floodway.operators.history import EvolvingTable
from floodway.operators.keyed import Space
from floodway.testing.stores import Store
from floodway.testing.strategies import skewed
from tests.behaviour.kernels import weight
from tests.operators.cases import (
    CHANGES,
    FACTS,
    LOOKUPS,
    OF_WINDOWS,
    corrected,
    corrected_windows,
    operator_of,
)

FAR = 1000


class Twin:
    """A kernel and what it has written."""

    def __init__(self, operator: Operator, *, versioned: bool) -> None:
        self._operator, self._versioned = operator, versioned
        self._store = Store()
        self.kernel = self._new()

    def _new(self) -> Kernel:
        self._out: dict[str, list[Any]] = {port: [] for port in self._operator.outputs}
        kernel = self._operator.kernel(self._out, versioned=self._versioned)
        kernel.number(1, 3)
        return kernel

    def restart(self) -> None:
        """Go on with a new kernel from what was stored."""
        self._store.take(self.kernel)
        self.kernel = self._new()
        self._store.give(self.kernel)

    def written(self) -> dict[str, Counter[str]]:
        """Return what was written since the last time; its order is not fixed."""
        found = {port: Counter(map(repr, rows)) for port, rows in self._out.items()}
        for rows in self._out.values():
            rows.clear()
        return found

    def table(self) -> Any:
        """Return the rows and, with versions, which of them were modified when."""
        if not isinstance(self.kernel, View):
            return None
        return self.kernel.rows(), self.kernel.modified() if self._versioned else None


ROWS = st.lists(
    st.tuples(st.integers(0, 15), skewed("ab"), st.integers(0, 5)), min_size=1, max_size=4
)
AFTER_RESTART = st.sampled_from([True, True, True, False])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["left", "right"]), ROWS, AFTER_RESTART),
        st.tuples(st.just("advance"), st.integers(0, 6), AFTER_RESTART),
    ),
    max_size=12,
)
"""Rows for a port, or time that passes; and whether there is a new kernel for that."""


class Feed:
    """Makes what comes in at the ports: facts, revisions, updates, or changes of a table."""

    def __init__(self, *kinds: str, versioned: bool = False) -> None:
        self._kinds = kinds
        self._tables = [EvolvingTable(versioned=versioned) for _ in kinds]
        self._sent: dict[int, Any] = {}

    def rows(self, side: str, drawn: list[Any]) -> tuple[int, list[Any]]:
        """Return a port and its rows."""
        port = min(("left", "right").index(side), len(self._kinds) - 1)
        make = getattr(self, self._kinds[port])
        made = [make(self._tables[port], *each) for each in drawn]
        return port, [row for row in made if row is not None]

    def facts(self, _: Any, time: int, name: str, number: int) -> Any:
        return (time, name, (name, number))

    def updates(self, _: Any, time: int, name: str, number: int) -> Any:
        return (time, name, (name, number) if number else None)

    def revisions(self, _: Any, time: int, name: str, number: int) -> Any:
        old, new = self._sent.get(number), (time, name, (name, number)) if time % 3 else None
        self._sent[number] = new
        return (number, old, new) if old or new else None

    def changes(self, table: EvolvingTable, time: int, name: str, number: int) -> Any:
        return table.update(time, name, (name, number) if number else None)

    def windows(self, table: EvolvingTable, time: int, name: str, number: int) -> Any:
        start = time - time % 5
        return table.update(time, (name, start, start + 5), (name, number) if number else None)

    def groups(self, table: EvolvingTable, time: int, name: str, number: int) -> Any:
        return table.update(time, time - time % 5, number or None)


def check(operator: Operator, feed: Feed, steps: list[Any], *, versioned: bool) -> None:
    """Bring the same to both twins; compare what they write, and what they have left."""
    calm, shaken = (Twin(operator, versioned=versioned) for _ in range(2))
    time = 0
    for kind, drawn, after_restart in [*steps, ("advance", FAR, True)]:
        if after_restart:
            shaken.restart()
        if kind == "advance":
            time += drawn
        else:
            port, rows = feed.rows(kind, drawn)
        for each in (calm, shaken):
            if kind == "advance":
                each.kernel.advance(time)
                each.kernel.tick(time)
                each.kernel.marked()
            elif rows:
                each.kernel.process(port, rows)
        assert (shaken.written(), shaken.table()) == (calm.written(), calm.table())
    assert weight(shaken.kernel.snapshot()) == weight(calm.kernel.snapshot())
    for each in (calm, shaken):
        each.kernel.finish()
    assert shaken.written() == calm.written()


@pytest.mark.parametrize("case", FACTS)
@settings(max_examples=60)
@given(steps=STEPS)
def test_kernel_of_records_goes_on(case: str, steps: list[Any]) -> None:
    operator = operator_of(FACTS[case])
    feed = Feed(*["facts" for _ in operator.inputs])
    check(operator, feed, steps, versioned=case.endswith("versions"))


@pytest.mark.parametrize("versioned", [False, True])
@settings(max_examples=60)
@given(steps=STEPS)
def test_table_goes_on(versioned: bool, steps: list[Any]) -> None:
    operator = operator_of(lambda f: f.table("op", schema=tuple, key=str, versions=versioned))
    check(operator, Feed("updates"), steps, versioned=versioned)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("write", [corrected, corrected_windows])
@settings(max_examples=60)
@given(steps=STEPS)
def test_aggregate_of_revisions_goes_on(write: Any, versioned: bool, steps: list[Any]) -> None:
    operator = operator_of(lambda f: write(f, versions=versioned))
    check(operator, Feed("revisions"), steps, versioned=versioned)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("case", CHANGES)
@settings(max_examples=60)
@given(steps=STEPS)
def test_kernel_of_changes_goes_on(case: str, versioned: bool, steps: list[Any]) -> None:
    operator = operator_of(CHANGES[case])
    feed = Feed(*["changes" for _ in operator.inputs], versioned=versioned)
    check(operator, feed, steps, versioned=versioned)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("case", OF_WINDOWS)
@settings(max_examples=60)
@example(steps=[("left", [(0, "a", 1), (0, "a", 0)], True)])  # a value that left before its window
@given(steps=STEPS)
def test_kernel_of_windows_goes_on(case: str, versioned: bool, steps: list[Any]) -> None:
    operator = operator_of(OF_WINDOWS[case])
    kind = "groups" if case == "ends of groups" else "windows"
    feed = Feed(*[kind for _ in operator.inputs], versioned=versioned)
    check(operator, feed, steps, versioned=versioned)


@pytest.mark.parametrize("case", LOOKUPS)
@settings(max_examples=60)
@given(steps=STEPS)
def test_look_up_goes_on(case: str, steps: list[Any]) -> None:
    feed = Feed("facts", "changes", versioned=True)
    check(operator_of(LOOKUPS[case]), feed, steps, versioned=False)


def test_row_that_points_elsewhere_is_not_stored_where_it_pointed_before() -> None:
    twin = Twin(operator_of(CHANGES["pointing"]), versioned=False)
    twin.kernel.process(0, [(1, "x", ("x", 0), None, None), (1, "y", ("y", 0), None, None)])
    twin.restart()
    twin.kernel.process(0, [(2, "x", ("x", 1), ("x", 0), None)])
    twin.restart()
    pointing = twin.kernel.spaces()["_pointing"]
    assert isinstance(pointing, Space)
    assert dict(pointing.everything()) == {"a": {"y"}, "b": {"x"}}
