"""Joins of tables join each version with the same version (definition 74), in any interleaving."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow
from floodway.testing import Driver, fold
from floodway.testing.strategies import changelogs, interleavings, skewed
from tests.behaviour.oracles import LAST, NaiveTable, Table, by_definition_58
from tests.engines import Engine

Left = list[tuple[int, str, Any]]
LEFT = changelogs(
    skewed("abc"),
    st.tuples(st.one_of(skewed("xy"), st.none()), st.integers(0, 9)),
    max_time=30,
    max_size=8,
)
RIGHT = changelogs(skewed("abc"), st.integers(0, 9), max_time=30, max_size=8)
CITIES = changelogs(skewed("xy"), st.integers(0, 9), max_time=30, max_size=8)


def pair(left: Any, right: Any) -> str:
    return f"{left}-{right}"


def city_of(row: tuple[str | None, int]) -> str | None:
    return row[0]


@cache
def by_key(*, versions: bool) -> Flow:
    flow = Flow("by_key")
    left = flow.table("left", schema=tuple, key=str)
    right = flow.table("right", schema=int, key=str)
    for how in ("inner", "left", "full"):
        left.join(
            right, how=how, joiner=pair, schema=str, name=f"{how}_join", versions=versions
        ).to(f"{how}.log")
    return flow


@cache
def by_foreign_key(*, versions: bool) -> Flow:
    flow = Flow("by_foreign_key")
    left = flow.table("left", schema=tuple, key=str)
    right = flow.table("right", schema=int, key=str)
    for how in ("inner", "left"):
        left.join(
            right,
            on=city_of,
            how=how,
            joiner=pair,
            schema=str,
            name=f"{how}_join",
            versions=versions,
        ).to(f"{how}.log")
    return flow


def play(driver: Driver, turns: list[tuple[int, Any]]) -> None:
    for side, (timestamp, key, value) in turns:
        driver.update(("left", "right")[side], key, value, at=timestamp)


def joined(left: Table, right: Table, how: str, target: Callable[[str, Any], Any]) -> Table:
    """Join two versions; `target` gives the right key of a left row."""
    rows: Table = {}
    for key, (time, value) in left.items():
        partner = right.get(target(key, value))
        if partner is not None:
            rows[key] = (max(time, partner[0]), pair(value, partner[1]))
        elif how != "inner":
            rows[key] = (time, pair(value, None))
    if how == "full":
        for key, (time, value) in right.items():
            if key not in left:
                rows[key] = (time, pair(None, value))
    return rows


CASES: dict[str, tuple[Any, Any, tuple[str, ...], Callable[[str, Any], Any]]] = {
    "key": (by_key, RIGHT, ("inner", "left", "full"), lambda key, row: key),
    "foreign_key": (by_foreign_key, CITIES, ("inner", "left"), lambda key, row: row[0]),
}


@pytest.mark.parametrize("on", CASES)
@settings(max_examples=300)
@given(data=st.data(), left=LEFT)
def test_each_version_is_the_join_of_the_same_versions(
    engine: Engine, on: str, data: st.DataObject, left: Left
) -> None:
    flow, rights, hows, target = CASES[on]
    right = data.draw(rights)
    naive = NaiveTable(left), NaiveTable(right)
    with engine(flow(versions=True)) as driver:
        play(driver, data.draw(interleavings(left, right)))
        for how in hows:
            log = driver.read(f"{how}.log")
            folded = by_definition_58(log)
            for at in range(LAST // 2 + 2):
                expected = joined(naive[0].versions[at], naive[1].versions[at], how, target)
                assert driver.table(f"{how}_join").rows(at) == expected, (how, at)
                values = {key: value for key, (_, value) in expected.items()}
                assert folded.values(at) == values, (how, at)
            assert driver.table(f"{how}_join").rows() == expected
            assert fold(log) == values


@pytest.mark.parametrize("on", CASES)
@settings(max_examples=300)
@given(data=st.data(), left=LEFT)
def test_without_versions_the_latest_is_the_same(
    engine: Engine, on: str, data: st.DataObject, left: Left
) -> None:
    flow, rights, hows, target = CASES[on]
    right = data.draw(rights)
    latest = NaiveTable(left).latest, NaiveTable(right).latest
    with engine(flow(versions=False)) as driver:
        play(driver, data.draw(interleavings(left, right)))
        for how in hows:
            expected = joined(*latest, how, target)
            assert driver.table(f"{how}_join").rows() == expected, how
            assert fold(driver.read(f"{how}.log")) == {k: v for k, (_, v) in expected.items()}, how


@cache
def mixed() -> Flow:
    """Return a join without versions of tables that keep them for somebody else."""
    flow = Flow("mixed")
    left = flow.table("left", schema=tuple, key=str, versions=True)
    right = flow.table("right", schema=int, key=str, versions=True)
    left.join(right, how="full", joiner=pair, schema=str, name="full").to("full.log")
    left.join(right, on=city_of, how="left", joiner=pair, schema=str, name="foreign").to("f.log")
    return flow


@settings(max_examples=300)
@given(data=st.data(), left=LEFT, right=RIGHT)
def test_older_versions_of_the_inputs_do_not_touch_a_latest_result(
    engine: Engine, data: st.DataObject, left: Left, right: Left
) -> None:
    latest = NaiveTable(left).latest, NaiveTable(right).latest
    with engine(mixed()) as driver:
        play(driver, data.draw(interleavings(left, right)))
        expected = joined(*latest, "full", lambda key, row: key)
        assert driver.table("full").rows() == expected
        assert fold(driver.read("full.log")) == {k: v for k, (_, v) in expected.items()}
        expected = joined(*latest, "left", lambda key, row: row[0])
        assert driver.table("foreign").rows() == expected


def strict(left: Any, right: Any) -> str:
    if left is None or right is None or (left[1] + right) % 3 == 0:
        raise ValueError("no result")
    return pair(left, right)


@cache
def failing(*, versions: bool) -> Flow:
    flow = Flow("failing")
    left = flow.table("left", schema=tuple, key=str)
    right = flow.table("right", schema=int, key=str)
    left.join(
        right,
        on=city_of,
        how="left",
        joiner=strict,
        schema=str,
        name="left_join",
        versions=versions,
        on_error="skip",
    ).to("log")
    return flow


@pytest.mark.parametrize("versions", [False, True])
@settings(max_examples=300)
@given(data=st.data(), left=LEFT, right=CITIES)
def test_a_row_whose_join_fails_has_no_row(
    engine: Engine, versions: bool, data: st.DataObject, left: Left, right: Left
) -> None:
    latest = NaiveTable(left).latest, NaiveTable(right).latest
    expected = {}
    for key, (time, row) in latest[0].items():
        partner = latest[1].get(row[0])
        if partner is not None and (row[1] + partner[1]) % 3:
            expected[key] = (max(time, partner[0]), pair(row, partner[1]))
    with engine(failing(versions=versions)) as driver:
        play(driver, data.draw(interleavings(left, right)))
        assert driver.table("left_join").rows() == expected
        assert fold(driver.read("log")) == {k: v for k, (_, v) in expected.items()}
