"""Grouping a table aggregates each version of it (definition 73), in any order of updates."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.testing import Driver, fold
from floodway.testing.strategies import arrivals, changelogs, skewed
from tests.behaviour.oracles import LAST, NaiveTable, by_definition_58
from tests.engines import Engine

Row = tuple[str, int]
Updates = list[tuple[int, str, Row | None]]
UPDATES = changelogs(
    skewed("pqr"), st.tuples(skewed("ab"), st.integers(0, 5)), max_time=30, max_size=9
)


def amount(row: Row) -> int | None:
    return row[1] or None


def amounts(rows: list[Row]) -> list[int]:
    return [row[1] for row in rows if row[1]]


def or_none(function: Callable[[list[int]], Any]) -> Callable[[list[Row]], Any]:
    return lambda rows: function(amounts(rows)) if amounts(rows) else None


FUNCTIONS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], Callable[[list[Row]], Any]]] = {
    "count": ("count", (), {}, len),
    "count_amount": ("count", (amount,), {}, lambda rows: len(amounts(rows))),
    "sum": ("sum", (amount,), {}, or_none(sum)),
    "min": ("min", (amount,), {}, or_none(min)),
    "max": ("max", (amount,), {}, or_none(max)),
    "mean": ("mean", (amount,), {}, or_none(lambda values: sum(values) / len(values))),
    "top": ("top", (2, amount), {}, lambda rows: sorted(r for r in rows if r[1])[::-1][:2]),
    "collect": ("collect", (amount,), {}, lambda rows: sorted(amounts(rows))),
    "custom": (
        "aggregate",
        (lambda row: 2 ** row[1], lambda a, b: a * b),
        {"subtract": lambda a, b: a // b},
        lambda rows: 2 ** sum(row[1] for row in rows),
    ),
}


@cache
def flow_of(*, versions: bool, input_versions: bool = False) -> Flow:
    flow = Flow("groups")
    grouped = flow.table("rows", schema=tuple, key=str, versions=input_versions).group_by(
        lambda row: row[0]
    )
    for name, (method, arguments, more, _) in FUNCTIONS.items():
        getattr(grouped, method)(*arguments, **more, name=name, versions=versions).to(f"{name}.log")
    return flow


def apply(driver: Driver, updates: Updates) -> None:
    for timestamp, key, value in updates:
        driver.update("rows", key, value, at=timestamp)


def grouped_values(naive: NaiveTable, at: int, function: Callable[[list[Row]], Any]) -> Any:
    groups: dict[str, list[Row]] = {}
    for row in naive.values(at).values():
        groups.setdefault(row[0], []).append(row)
    return {g: function(rows) for g, rows in groups.items() if function(rows) is not None}


@settings(max_examples=300)
@given(UPDATES)
def test_each_version_is_the_aggregate_of_the_same_version(
    engine: Engine, updates: Updates
) -> None:
    naive = NaiveTable(updates)
    with engine(flow_of(versions=True)) as driver:
        apply(driver, updates)
        for name, (*_, meaning) in FUNCTIONS.items():
            log = driver.read(f"{name}.log")
            folded = by_definition_58(log)
            for at in range(LAST // 2 + 2):
                expected = grouped_values(naive, at, meaning)
                assert driver.table(name).values(at) == expected, (name, at)
                assert folded.values(at) == expected, (name, at)
            assert driver.table(name).values() == fold(log) == expected, name


@pytest.mark.parametrize("input_versions", [False, True])
@settings(max_examples=300)
@given(UPDATES)
def test_without_versions_the_latest_is_the_same(
    engine: Engine, input_versions: bool, updates: Updates
) -> None:
    naive = NaiveTable(updates)
    with engine(flow_of(versions=False, input_versions=input_versions)) as driver:
        apply(driver, updates)
        for name, (*_, meaning) in FUNCTIONS.items():
            expected = grouped_values(naive, LAST, meaning)
            assert driver.table(name).values() == expected, name
            assert fold(driver.read(f"{name}.log")) == expected, name


@settings(max_examples=300)
@given(data=st.data(), updates=UPDATES)
def test_any_order_gives_the_same_rows_and_timestamps(
    engine: Engine, data: st.DataObject, updates: Updates
) -> None:
    unique = [(t, k, v) for (t, k), v in {(t, k): v for t, k, v in updates}.items()]
    with engine(flow_of(versions=True)) as one, engine(flow_of(versions=True)) as other:
        apply(one, sorted(unique, key=lambda update: update[0]))
        apply(other, data.draw(arrivals(unique)))
        for name in FUNCTIONS:
            assert one.table(name).rows() == other.table(name).rows(), name
            assert one.table(name).modified() == other.table(name).modified(), name


@cache
def several() -> Flow:
    flow = Flow("several")
    table = flow.table("rows", schema=int, key=str)
    table.group_by("value % 2 AS odd").agg(
        name="several", n=fw.count(), least=fw.min("value"), total=fw.sum("value")
    )
    return flow


@settings(max_examples=300)
@given(changelogs(skewed("pqr"), st.integers(0, 5), max_time=30, max_size=9))
def test_agg_computes_several_at_once(engine: Engine, updates: list[Any]) -> None:
    rows = NaiveTable(updates).values().values()
    with engine(several()) as driver:
        apply(driver, updates)
        found = driver.table("several").values()
    for odd in (0, 1):
        group = [value for value in rows if value % 2 == odd]
        row = found.get(odd)
        assert (row is None) == (not group)
        if row is not None:
            assert (row.n, row.least, row.total) == (len(group), min(group), sum(group))
