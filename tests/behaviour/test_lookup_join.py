"""A record joined with a table sees it as it was then, however late updates come (68, 69)."""

from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow, Record
from floodway.testing import Driver
from floodway.testing.strategies import changelogs, interleavings, skewed, streams
from tests.behaviour.oracles import NaiveTable, bag, final
from tests.engines import Engine


class Order(Record):
    item: str | None
    number: int


Orders = list[tuple[int, Order]]
Updates = list[tuple[int, str, int | None]]
ORDERS = streams(
    st.builds(Order, st.one_of(skewed("ab"), st.none()), st.integers(0, 99)),
    max_time=30,
    max_size=7,
)
PRICES = changelogs(skewed("ab"), st.integers(0, 9), max_time=30, max_size=8)


def shown(order: Order, price: int | None) -> str:
    return f"{order.number} for {price}"


def even_only(order: Order, price: int | None) -> str:
    if price is None or price % 2:
        raise ValueError("odd")
    return shown(order, price)


@cache
def joining() -> Flow:
    flow = Flow("joins")
    prices = flow.table("prices", schema=int, key=str)
    orders = flow.source("orders", schema=Order)
    for how in ("inner", "left"):
        orders.join(prices, on="item", how=how, joiner=shown, schema=str, name=f"{how}_on").to(how)
        orders.key_by("item").join(
            prices, how=how, joiner=shown, schema=str, name=f"{how}_keyed"
        ).to(f"{how}.keyed")
        orders.join(
            prices,
            on="item",
            how=how,
            joiner=even_only,
            schema=str,
            on_error="skip",
            name=f"{how}_failing",
        ).to(f"{how}.failing")
    return flow


def play(driver: Driver, turns: list[tuple[int, Any]]) -> None:
    for source, record in turns:
        if source == 0:
            driver.push_at("orders", record)
        elif record[2] is None:
            driver.delete("prices", record[1], at=record[0])
        else:
            driver.update("prices", record[1], record[2], at=record[0])


def looked_up(orders: Orders, updates: Updates) -> list[tuple[int, Order, int | None]]:
    table = NaiveTable(updates)
    return [(t, order, table.values(t).get(order.item)) for t, order in orders]


@settings(max_examples=300)
@given(data=st.data(), orders=ORDERS, updates=PRICES)
def test_each_record_sees_the_version_of_its_own_time(
    engine: Engine, data: st.DataObject, orders: Orders, updates: Updates
) -> None:
    found = looked_up(orders, updates)
    inner = [(t, o, p) for t, o, p in found if p is not None]
    with engine(joining()) as driver:
        play(driver, data.draw(interleavings(orders, updates)))
        for how, expected in (("inner", inner), ("left", found)):
            results = driver.read(how)
            assert final(results) == bag((t, None, shown(o, p)) for t, o, p in expected)
            assert len({r.id for r in results if r.value is not None}) >= len(expected)
            keyed = final(driver.read(f"{how}.keyed"))
            assert keyed == bag((t, o.item, shown(o, p)) for t, o, p in expected)
            even = [(t, None, shown(o, p)) for t, o, p in inner if p % 2 == 0]
            assert final(driver.read(f"{how}.failing")) == bag(even)


@cache
def ignoring() -> Flow:
    flow = Flow("ignore")
    prices = flow.table("prices", schema=int, key=str)
    orders = flow.source("orders", schema=Order)
    orders.join(prices, on="item", joiner=shown, schema=str, late_updates="ignore").to("out")
    return flow


@settings(max_examples=300)
@given(data=st.data(), orders=ORDERS, updates=PRICES)
def test_ignoring_late_updates_a_record_sees_what_is_known_when_it_comes(
    engine: Engine, data: st.DataObject, orders: Orders, updates: Updates
) -> None:
    turns = data.draw(interleavings(orders, updates))
    expected, known = [], NaiveTable()
    for source, record in turns:
        if source == 1:
            known.update(*record)
        elif (price := known.values(record[0]).get(record[1].item)) is not None:
            expected.append((record[0], None, shown(record[1], price)))
    with engine(ignoring()) as driver:
        play(driver, turns)
        results = driver.read("out")
    assert [(r.timestamp, r.key, r.value) for r in results] == expected
    assert all(r.id is None for r in results)


@settings(max_examples=300)
@given(data=st.data(), orders=ORDERS, updates=PRICES)
def test_a_table_that_has_ended_is_complete(
    engine: Engine, data: st.DataObject, orders: Orders, updates: Updates
) -> None:
    early = data.draw(st.integers(0, len(orders)))
    with engine(joining()) as driver:
        play(driver, data.draw(interleavings(orders[:early], updates)))
        driver.end("prices")
        driver.push_at("orders", *orders[early:])
        results = driver.read("left")
    expected = looked_up(orders, updates)
    assert final(results) == bag((t, None, shown(o, p)) for t, o, p in expected)
