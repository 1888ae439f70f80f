"""Rows without a time of their own, in every engine: which time they get, and what moves."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway import ARRIVAL, Flow, Record
from floodway.operators.source import BEGINNING
from floodway.testing.clock import VirtualClock
from tests.engines import Engine

NOW = 1_800_000_000_000


class User(Record):
    id: int
    at: int


def table(**options: Any) -> Flow:
    flow = Flow("undated", retention="100000d")
    flow.table("rows", schema=User, key=int, **options).changes().to("out")
    return flow


def stream(**options: Any) -> Flow:
    flow = Flow("undated", retention="100000d")
    flow.source("rows", schema=User, **options).to("out")
    return flow


def test_value_that_is_pushed_without_a_time_is_where_its_source_is(engine: Engine) -> None:
    driver = engine(stream(), clock=VirtualClock(NOW))
    driver.push("rows", User(1, 0), at=500)
    driver.push("rows", User(2, 0))
    assert [record.timestamp for record in driver.read("out")] == [500, 500]
    assert driver.stream_time == 500


def test_values_that_never_have_a_time_move_with_the_clock(engine: Engine) -> None:
    driver = engine(stream(), clock=VirtualClock(NOW))
    driver.push("rows", User(1, 0))
    driver.clock.advance(7)
    driver.push("rows", User(2, 0))
    assert [record.timestamp for record in driver.read("out")] == [NOW, NOW + 7]
    assert driver.stream_time == NOW + 7


def test_time_of_arrival_is_that_of_the_clock_whatever_came_before(engine: Engine) -> None:
    driver = engine(stream(timestamp=ARRIVAL), clock=VirtualClock(NOW))
    driver.push("rows", User(1, 0), at=500)
    driver.push("rows", User(2, 0))
    assert [record.timestamp for record in driver.read("out")] == [500, NOW]
    assert driver.stream_time == NOW


def test_deletion_without_a_time_deletes_what_is_there(engine: Engine) -> None:
    # It was from the time at which the driver's clock begins, so the row stayed.
    with engine(table(timestamp="at")) as driver:
        driver.update("rows", 1, User(1, 500))
        driver.delete("rows", 1)
        assert driver.table("rows").values() == {}
        assert driver.stream_time == 500
        driver.update("rows", 1, User(1, 500))
        assert driver.table("rows").values() == {1: User(1, 500)}


@pytest.mark.parametrize("at", [None, 900])
def test_deletion_never_moves_a_table_whose_values_have_times(
    engine: Engine, at: int | None
) -> None:
    driver = engine(table(timestamp="at"), clock=VirtualClock(NOW))
    driver.delete("rows", 1, at=at)
    assert driver.stream_time is None
    driver.update("rows", 2, User(2, 500))
    driver.delete("rows", 2, at=at)
    assert driver.stream_time == 500


TIMES = st.none() | st.integers(0, 40)
VALUES = st.builds(User, st.just(1), st.integers(0, 40))
ROWS = st.lists(st.tuples(TIMES, st.integers(1, 3), VALUES | st.none()), max_size=12)


@given(ROWS, st.booleans())
def test_table_is_what_its_dated_updates_make_of_it(
    engine: Engine, rows: list[tuple[int | None, int, User | None]], in_values: bool
) -> None:
    """The oracle dates every row as it comes, then lets the last of the latest time hold."""
    driver = engine(table(timestamp="at" if in_values else None), clock=VirtualClock(NOW))
    last: dict[int, tuple[int, User | None]] = {}
    latest: int | None = None
    for at, key, value in rows:
        driver.update("rows", key, value, at=at)
        own = (None if value is None else value.at) if in_values else at
        if own is not None:
            latest = own if latest is None else max(latest, own)
        time = at if own is None and in_values else own
        if time is None:
            time = latest if latest is not None else BEGINNING if in_values else NOW
        if time >= last.get(key, (time, None))[0]:
            last[key] = (time, value)
    assert driver.table("rows").rows() == {k: row for k, row in last.items() if row[1] is not None}
