"""A grouped stream is a table: definition 64, in any order of arrival (definition 66)."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow, Record, Window
from floodway.testing import fold
from floodway.testing.strategies import arrivals, cuts, skewed, streams
from tests.behaviour.oracles import LAST, aggregated, by_definition_58, sessions
from tests.engines import Engine


class Sale(Record):
    shop: str
    pieces: int
    price: int | None


Sales = list[tuple[int, Sale]]
SALES = streams(
    st.builds(Sale, skewed("abc"), st.integers(-3, 9), st.one_of(st.integers(0, 5), st.none())),
    max_time=30,
    max_size=10,
)
Members = list[tuple[int, Sale]]


def prices(rows: Members) -> list[int]:
    return [sale.price for _, sale in rows if sale.price is not None]


def or_none(function: Callable[[list[int]], Any]) -> Callable[[Members], Any]:
    return lambda rows: function(prices(rows)) if prices(rows) else None


def by_text(rows: Iterable[tuple[Any, Any]]) -> list[Any]:
    return [value for _, value in sorted(rows, key=lambda pair: (pair[0], repr(pair[1])))]


def span(sale: Sale) -> tuple[int, int]:
    return (sale.pieces, sale.pieces)


def wider(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return (min(a[0], b[0]), max(a[1], b[1]))


# Method, arguments, and what it means for the records of one group.
Function = tuple[str, tuple[Any, ...], Callable[[Members], Any]]
FUNCTIONS: dict[str, Function] = {
    "count": ("count", (), len),
    "count_price": ("count", ("price",), lambda rows: len(prices(rows))),
    "sum": ("sum", ("pieces",), lambda rows: sum(sale.pieces for _, sale in rows)),
    "sum_price": ("sum", ("price",), or_none(sum)),
    "sum_function": ("sum", (lambda s: s.pieces,), lambda rows: sum(s.pieces for _, s in rows)),
    "min": ("min", ("pieces",), lambda rows: min(sale.pieces for _, sale in rows)),
    "min_price": ("min", ("price",), or_none(min)),
    "max": ("max", ("pieces",), lambda rows: max(sale.pieces for _, sale in rows)),
    "max_price": ("max", ("price",), or_none(max)),
    "mean": ("mean", ("pieces",), lambda rows: sum(s.pieces for _, s in rows) / len(rows)),
    "mean_price": ("mean", ("price",), or_none(lambda values: sum(values) / len(values))),
    "top": (
        "top",
        (2, "price"),
        lambda rows: by_text((s.price, s) for _, s in rows if s.price is not None)[::-1][:2],
    ),
    "custom": (
        "aggregate",
        (span, wider, lambda pair: pair[1] - pair[0]),
        lambda rows: max(s.pieces for _, s in rows) - min(s.pieces for _, s in rows),
    ),
}
HOLISTIC: dict[str, Function] = {
    "collect": (
        "collect",
        ("price",),
        lambda rows: by_text((t, s.price) for t, s in rows if s.price is not None),
    )
}
WINDOWS: dict[str, Any] = {
    "all": None,
    "tumbling": fw.tumbling(7),
    "hopping": fw.hopping(10, advance=4),
}


@cache
def windows_of(windows: Any, timestamp: int) -> list[Window]:
    size, advance = windows.size_ms, getattr(windows, "advance_ms", windows.size_ms)
    starts = range(-(LAST // advance) * advance, LAST, advance)
    return [Window(s, s + size) for s in starts if s <= timestamp < s + size]


def groups_of(windows: Any) -> Callable[[int, Any, Sale], list[Any]]:
    if windows is None:
        return lambda t, key, sale: [sale.shop]
    return lambda t, key, sale: [(sale.shop, window) for window in windows_of(windows, t)]


def functions(window: str) -> dict[str, Any]:
    return FUNCTIONS if window == "all" else FUNCTIONS | HOLISTIC


@cache
def flow_of(window: str, *, versions: bool = False) -> Flow:
    flow = Flow(window)
    grouped: Any = flow.source("sales", schema=Sale).group_by("shop")
    if WINDOWS[window] is not None:
        grouped = grouped.window(WINDOWS[window])
    for name, (method, arguments, _) in functions(window).items():
        table = getattr(grouped, method)(*arguments, name=name, versions=versions)
        table.to(f"{name}.log")
    return flow


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=300)
@given(data=st.data(), stream=SALES)
def test_the_table_is_the_fold_of_each_group_in_any_order(
    engine: Engine, window: str, data: st.DataObject, stream: Sales
) -> None:
    facts = [(time, None, sale) for time, sale in stream]
    with engine(flow_of(window)) as driver:
        for push in data.draw(cuts(data.draw(arrivals(stream)))):
            driver.push_at("sales", *push)
        for name, (*_, meaning) in functions(window).items():
            expected = aggregated(facts, groups_of(WINDOWS[window]), meaning)
            assert driver.table(name).rows() == expected, name
            changes = driver.read(f"{name}.log")
            assert fold(changes) == {key: value for key, (_, value) in expected.items()}, name


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=300)
@given(data=st.data(), stream=SALES)
def test_every_version_is_the_fold_of_the_records_up_to_it(
    engine: Engine, window: str, data: st.DataObject, stream: Sales
) -> None:
    facts = [(time, None, sale) for time, sale in stream]
    groups = groups_of(WINDOWS[window])
    modified: dict[int, set[Any]] = {}
    for time, key, sale in facts:
        modified.setdefault(time, set()).update(groups(time, key, sale))
    times = sorted({t + d for t, _ in stream for d in (-1, 0)})
    with engine(flow_of(window, versions=True)) as driver:
        driver.push_at("sales", *data.draw(arrivals(stream)))
        for name, (*_, meaning) in functions(window).items():
            table = driver.table(name)
            assert table.modified() == modified, name
            naive = by_definition_58(driver.read(f"{name}.log"))
            for at in times:
                expected = aggregated(facts, groups, meaning, at=at)
                assert table.rows(at) == expected, (name, at)
                if at >= 0:
                    assert naive.values(at) == {k: v for k, (_, v) in expected.items()}, (name, at)


@cache
def session_flow() -> Flow:
    flow = Flow("sessions")
    grouped: Any = flow.source("sales", schema=Sale).group_by("shop").window(fw.session(5))
    for name, (method, arguments, _) in functions("session").items():
        getattr(grouped, method)(*arguments, name=name).to(f"{name}.log")
    return flow


@settings(max_examples=300)
@given(data=st.data(), stream=SALES)
def test_sessions_are_split_where_nothing_came_for_the_gap(
    engine: Engine, data: st.DataObject, stream: Sales
) -> None:
    found = sessions([(time, sale.shop, sale) for time, sale in stream], gap=5)
    with engine(session_flow()) as driver:
        for push in data.draw(cuts(data.draw(arrivals(stream)))):
            driver.push_at("sales", *push)
        for name, (*_, meaning) in functions("session").items():
            expected = {
                (shop, Window(rows[0][0], rows[-1][0] + 5)): (rows[-1][0], meaning(rows))
                for shop, of_shop in found.items()
                for rows in of_shop
                if meaning(rows) is not None
            }
            assert driver.table(name).rows() == expected, name
            changes = driver.read(f"{name}.log")
            assert fold(changes) == {key: value for key, (_, value) in expected.items()}, name


@cache
def several(*, versions: bool) -> Flow:
    flow = Flow("several")
    grouped = flow.source("sales", schema=Sale).group_by("shop")
    specs = {name: getattr(fw, method)(*args) for name, (method, args, _) in FUNCTIONS.items()}
    grouped.agg(name="several", versions=versions, **specs)
    return flow


@pytest.mark.parametrize("versions", [False, True])
@settings(max_examples=300)
@given(data=st.data(), stream=SALES)
def test_agg_computes_all_as_each_alone(
    engine: Engine, versions: bool, data: st.DataObject, stream: Sales
) -> None:
    members: dict[str, Members] = {}
    for time, sale in stream:
        members.setdefault(sale.shop, []).append((time, sale))
    with engine(several(versions=versions)) as driver:
        driver.push_at("sales", *data.draw(arrivals(stream)))
        rows = driver.table("several").rows()
    assert rows.keys() == members.keys()
    for shop, (time, row) in rows.items():
        assert time == max(t for t, _ in members[shop])
        for name, (*_, meaning) in FUNCTIONS.items():
            assert getattr(row, name) == meaning(members[shop]), name
