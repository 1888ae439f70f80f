"""Tables of updates are definition 58, whatever the order in which updates come."""

from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from floodway import Flow
from floodway.testing import Driver, fold
from floodway.testing.strategies import arrivals, changelogs, skewed
from tests.behaviour.oracles import LAST, NaiveTable, by_definition_58
from tests.engines import Engine

Updates = list[tuple[int, str, int | None]]
UPDATES = changelogs(skewed("abc"), st.integers(0, 9), max_time=30, max_size=10)
# The updates of example 14.
EXAMPLE_14: Updates = [
    (1, "A", 72),
    (3, "A", 89),
    (4, "B", 47),
    (2, "C", 33),
    (3, "A", None),
    (0, "B", 99),
    (1, "A", 28),
]


@cache
def flow_of(*, versions: bool) -> Flow:
    flow = Flow("table")
    flow.table("rows", schema=int, key=str, versions=versions).to("log")
    return flow


def apply(driver: Driver, table: str, updates: Updates) -> None:
    for timestamp, key, value in updates:
        if value is None:
            driver.delete(table, key, at=timestamp)
        else:
            driver.update(table, key, value, at=timestamp)


def last_of_equal(updates: Updates) -> Updates:
    """Return one update for each key and timestamp: of several the last holds."""
    return [(t, k, v) for (t, k), v in {(t, k): v for t, k, v in updates}.items()]


@settings(max_examples=300)
@example(EXAMPLE_14)
@given(UPDATES)
def test_every_version_is_that_of_definition_58(engine: Engine, updates: Updates) -> None:
    naive = NaiveTable(updates)
    with engine(flow_of(versions=True)) as driver:
        apply(driver, "rows", updates)
        table = driver.table("rows")
        assert table.modified() == naive.modified()
        for at in (*range(32), LAST):
            assert table.rows(at) == naive.versions[at]
        assert table.rows() == naive.latest
        log = driver.read("log")
        assert by_definition_58(log).versions == naive.versions
        assert fold(log) == naive.values()


@settings(max_examples=300)
@example(EXAMPLE_14)
@given(UPDATES)
def test_without_versions_the_latest_is_the_same(engine: Engine, updates: Updates) -> None:
    with engine(flow_of(versions=False)) as driver:
        apply(driver, "rows", updates)
        assert driver.table("rows").rows() == NaiveTable(updates).latest
        assert fold(driver.read("log")) == NaiveTable(updates).values()


@pytest.mark.parametrize("versions", [True, False])
@settings(max_examples=300)
@given(data=st.data(), updates=UPDATES)
def test_any_order_gives_the_same_table(
    engine: Engine, versions: bool, data: st.DataObject, updates: Updates
) -> None:
    updates = last_of_equal(updates)
    with engine(flow_of(versions=versions)) as driver:
        apply(driver, "rows", data.draw(arrivals(updates)))
        assert driver.table("rows").rows() == NaiveTable(updates).latest


@cache
def from_stream() -> Flow:
    flow = Flow("stream")
    pairs = flow.source("pairs", schema=tuple[str, int])
    pairs.key_by(lambda pair: pair[0]).to_table(name="rows", versions=True)
    return flow


@settings(max_examples=300)
@given(changelogs(skewed("abc"), st.integers(0, 9), max_time=30, max_size=10, deletes=False))
def test_a_keyed_stream_read_as_a_changelog(engine: Engine, updates: list[Any]) -> None:
    naive = NaiveTable((time, key, (key, value)) for time, key, value in updates)
    with engine(from_stream()) as driver:
        driver.push_at("pairs", *((time, (key, value)) for time, key, value in updates))
        for at in (*range(32), LAST):
            assert driver.table("rows").rows(at) == naive.versions[at]
