"""A run that dies and goes on gives what a run without accident gives."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.testing import Abort, At, Delete, Driver, Emitted, End, ListSink, ListSource, Pause
from floodway.testing.strategies import changelogs, skewed, streams
from tests.engines import Engine

SINKS = ("counts", "final", "lazy", "eager", "looked_up", "groups", "late", "process")
LEFT = streams(skewed("ab"), max_time=40, max_size=5)
RIGHT = changelogs(skewed("ab"), skewed("xy"), max_time=40, max_size=4)


def flow_of(left: list[Any], right: list[Any]) -> tuple[Flow, dict[str, ListSink]]:
    """Return a flow with every kind of state, and its sinks."""
    flow, sinks = Flow("all", retention=5), {name: ListSink() for name in SINKS}
    items = flow.source("items", ListSource(left), schema=str).key_by("value AS item")
    table = flow.table("rows", ListSource(right), schema=str, key=str)
    counts = items.group_by("item").window(fw.tumbling(8)).count(name="counts")
    counts.changes(name="every").to(sinks["counts"])
    counts.changes(emit=fw.emit.final(), name="finals").to(sinks["final"])
    counts.late.to(sinks["late"])
    for emit in ("lazy", "eager"):
        join = items.join(
            items.filter("value = 'a'"),
            within=3,
            how="full",
            emit=emit,
            joiner=lambda a, b: f"{a}{b}",
            schema=str,
            name=emit,
        )
        join.to(sinks[emit])
    found = items.join(table, how="left", joiner=lambda a, b: f"{a}{b}", schema=str, name="found")
    found.to(sinks["looked_up"])
    table.group_by("value").count(name="groups").to(sinks["groups"])
    items.process(
        init=lambda key: 0,
        update=lambda time, key, value, n: (n + 1, [(time, key, n)]),
        name="process",
    ).to(sinks["process"])
    return flow, sinks


def outcome(
    engine: Engine, left: list[Any], right: list[Any], every: int
) -> tuple[int, dict[str, list[Emitted]], list[Any]]:
    flow, sinks = flow_of(left, right)
    driver = engine(flow)
    aborts = 0
    while driver.run(every=every) == "aborted":
        aborts += 1
    stats = [driver.stats(name) for name in ("counts", "found", "groups", "process")]
    return aborts, {name: sink.records for name, sink in sinks.items()}, stats


@settings(max_examples=60)  # each of them with an abort at every position
@given(left=LEFT, right=RIGHT, every=st.integers(1, 4))
def test_an_abort_at_any_position_changes_nothing(
    engine: Engine, left: Any, right: Any, every: int
) -> None:
    items: list[Any] = [At(time, value) for time, value in left]
    updates: list[Any] = [At(t, v, k) if v is not None else Delete(k, t) for t, k, v in right]
    _, expected, stats = outcome(engine, items, updates, every)
    for place in range(len(items) + 1):
        dying = [*items[:place], Abort(), *items[place:]]
        assert outcome(engine, dying, updates, every) == (1, expected, stats), place
    for place in range(len(updates) + 1):
        dying = [*updates[:place], Abort(), *updates[place:]]
        assert outcome(engine, items, dying, every) == (1, expected, stats), place


def test_several_aborts(engine: Engine) -> None:
    items = [At(1, "a"), At(9, "b"), At(20, "a")]
    _, expected, _ = outcome(engine, items, [], 1)
    dying = [Abort(), items[0], Abort(), Abort(), items[1], items[2], Abort()]
    aborts, found, _ = outcome(engine, dying, [], 1)
    assert (aborts, found) == (4, expected)


def test_what_was_undone_is_not_read(engine: Engine) -> None:
    flow = Flow("read")
    flow.source("items", ListSource([At(1, 1), At(2, 2), Abort(), At(3, 3)]), schema=int).to("out")
    driver = engine(flow)
    assert driver.run(every=10) == "aborted"
    assert driver.read("out") == []
    assert driver.run(every=10) == "ended"
    assert [record.value for record in driver.read("out")] == [1, 2, 3]


def test_nothing_after_the_end_is_read(engine: Engine) -> None:
    flow, out = Flow("end"), ListSink()
    flow.source("items", ListSource([At(1, 1), End(), At(2, 2)]), schema=int).to(out)
    assert engine(flow).run() == "ended"
    assert out.values == [1]


def test_a_pause_lets_the_clock_go_on(engine: Engine) -> None:
    flow, out = Flow("pause"), ListSink()
    flow.source("items", ListSource([1, Pause("2s"), 2]), schema=int).to(out)
    engine(flow).run()
    assert [(record.timestamp, record.value) for record in out.records] == [(0, 1), (2000, 2)]


@cache
def ending() -> Flow:
    """Return a look-up in a table that is fed by windows which come out when they close."""
    flow = Flow("ending", retention=0)
    items = flow.source("items", schema=str)
    counts = items.group_by("value AS item").window(fw.tumbling(5)).count(name="counts")
    finals = counts.changes(emit=fw.emit.final()).map(lambda change: (change.key, change.value))
    sizes = finals.key_by(lambda pair: pair[0]).to_table(name="sizes", retention="1h")
    orders = flow.source("orders", schema=str)
    orders.join(
        sizes, on="value", how="left", joiner=lambda a, b: b and b[1], retention="1h", name="join"
    ).to("out")
    return flow


def test_what_an_ended_source_still_held_back_reaches_a_join(engine: Engine) -> None:
    driver: Driver
    with engine(ending()) as driver:
        driver.push_at("orders", (7, "a"))
        driver.push_at("items", (1, "a"), (2, "a"))
        driver.end("items")
        driver.finish()
        assert [record.value for record in driver.read("out")][-1] == 2


@pytest.mark.parametrize("name", ["nothing", ""])
def test_unknown_sources_are_refused(engine: Engine, name: str) -> None:
    with pytest.raises(fw.FloodwayError, match="no source"):
        engine(ending()).push_at(name, (1, "a"))


def test_driver_says_which_sources_hold_time_back(engine: Engine) -> None:
    flow = Flow("waiting")
    flow.table("prices", schema=int, key=str)
    flow.source("orders", schema=str).to("out")
    with engine(flow) as driver:
        assert driver.holding_back == ("prices", "orders")
        driver.update("prices", "tea", 3, at=0)
        driver.push("orders", "tea", at=50)
        assert (driver.stream_time, driver.holding_back) == (0, ("prices",))
        driver.end("prices")
        assert (driver.stream_time, driver.holding_back) == (50, ())
