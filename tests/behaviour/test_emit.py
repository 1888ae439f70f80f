"""Emit strategies differ in when they speak, and agree on the last word (section 5.3.2)."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow, emit
from floodway.testing import Emitted
from floodway.testing.strategies import cuts, skewed, streams
from tests.behaviour.oracles import StreamTime
from tests.engines import Engine

RETENTION = 6
INTERVAL = 10
ITEMS = streams(skewed("abc"), max_time=40, max_size=12)
WINDOWS: dict[str, Any] = {
    "tumbling": fw.tumbling(7),
    "hopping": fw.hopping(7, advance=3),
    "session": fw.session(4),
}
STRATEGIES: dict[str, Any] = {
    "every": emit.every_update(),
    "interval": emit.at_most_every(INTERVAL),
    "end": emit.after_window_end(),
    "final": emit.final(),
}


@cache
def flow_of(window: str, *, versions: bool = False) -> Flow:
    """Return one table with four subscribers, each with its own strategy."""
    flow = Flow(window, retention=RETENTION)
    grouped = flow.source("items", schema=str).group_by("value AS item").window(WINDOWS[window])
    counts = grouped.count(name="counts", versions=versions)
    for name, strategy in STRATEGIES.items():
        counts.changes(emit=strategy, name=f"{name}.changes").to(name)
    return flow


def last_words(records: list[Emitted]) -> dict[Any, Any]:
    """Return the last value sent of each row; rows deleted in the end are left out."""
    said = {(r.value.key, r.value.window): r.value.value for r in records}
    return {row: value for row, value in said.items() if value is not None}


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_strategies(engine: Engine, window: str, data: st.DataObject, stream: Any) -> None:
    time_of = StreamTime("items")
    sent: dict[str, list[Emitted]] = {name: [] for name in STRATEGIES}
    more = window == "session"  # it goes on with a record at its very end
    with engine(flow_of(window)) as driver:
        clock, spoken = 0, {}
        for push in data.draw(cuts(stream)):
            before = time_of.now
            for time, _ in push:
                time_of.saw("items", time)
            driver.push_at("items", *push)
            assert driver.read("interval") == []  # only the clock lets it speak
            time_of.mark()
            step = data.draw(st.integers(0, 15))
            driver.advance(step)
            clock += step
            for name in STRATEGIES:
                new = driver.read(name)
                sent[name] += new
                for record in new:
                    row, end = (record.value.key, record.value.window), record.value.window.end
                    if name == "end":
                        assert time_of.passed(end + more, 0)
                    elif name == "final":
                        assert time_of.passed(end + more, RETENTION)
                        assert before is None or end + more > before - RETENTION
                    elif name == "interval":
                        assert clock - spoken.get(row, -INTERVAL) >= INTERVAL
                        spoken[row] = clock
        driver.finish()
        for name in STRATEGIES:
            sent[name] += driver.read(name)
    answers = {name: last_words(records) for name, records in sent.items()}
    assert answers["interval"] == answers["end"] == answers["final"] == answers["every"]
    rows = [(r.value.key, r.value.window) for r in sent["final"]]
    assert len(rows) == len(set(rows))
    for records in sent.values():  # each subscriber is told what it saw before
        seen: dict[Any, Any] = {}
        for record in records:
            row = (record.value.key, record.value.window)
            assert record.value.previous == seen.get(row)
            seen[row] = record.value.value


@cache
def coalescing(window: str) -> Flow:
    """Return a table nobody of whose subscribers wants every update: it may get partials."""
    flow = Flow(window, retention=RETENTION)
    grouped = flow.source("items", schema=str).group_by("value AS item").window(WINDOWS[window])
    counts = grouped.count(name="counts")
    strategies = STRATEGIES | {"latest": emit.latest()}
    for name, strategy in strategies.items():
        if name != "every":
            counts.changes(emit=strategy, name=f"{name}.changes").to(name)
    return flow


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_who_does_not_want_every_update_hears_the_same(
    engine: Engine, window: str, data: st.DataObject, stream: Any
) -> None:
    names = ("latest", "interval", "end", "final")
    steps = [(push, data.draw(st.integers(0, 15))) for push in data.draw(cuts(stream))]
    with engine(coalescing(window)) as driver, fw.testing.Driver(flow_of(window)) as reference:
        heard: dict[str, list[Emitted]] = {name: [] for name in names}
        expected: dict[str, list[Emitted]] = {name: [] for name in STRATEGIES}
        for push, step in steps:
            for each, records in ((driver, heard), (reference, expected)):
                each.push_at("items", *push)
                each.advance(step)
                for name in records:
                    records[name] += each.read(name)
        driver.finish()
        reference.finish()
        for each, records in ((driver, heard), (reference, expected)):
            for name in records:
                records[name] += each.read(name)
        for name in ("interval", "end", "final"):
            assert sorted(map(str, heard[name])) == sorted(map(str, expected[name])), name
        assert last_words(heard["latest"]) == last_words(expected["every"])
        assert len(heard["latest"]) <= len(expected["every"])
        assert driver.stats("counts").received == reference.stats("counts").received
        assert driver.stats("counts").late == reference.stats("counts").late
    seen: dict[Any, Any] = {}
    for record in heard["latest"]:
        row = (record.value.key, record.value.window)
        assert record.value.previous == seen.get(row)
        seen[row] = record.value.value


@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_strategies_over_a_table_with_versions(
    engine: Engine, data: st.DataObject, stream: Any
) -> None:
    with engine(flow_of("tumbling")) as plain, engine(flow_of("tumbling", versions=True)) as kept:
        for push in data.draw(cuts(stream)):
            plain.push_at("items", *push)
            kept.push_at("items", *push)
        plain.finish()
        kept.finish()
        expected = last_words(plain.read("every"))
        for name in ("end", "final"):
            assert last_words(kept.read(name)) == expected, name
        for name in ("every", "interval"):
            records = sorted(kept.read(name), key=lambda record: record.timestamp)
            assert last_words(records) == expected, name


def test_an_interval_keeps_an_update_of_version_zero_apart_from_the_latest(engine: Engine) -> None:
    flow = Flow("zero")
    table = flow.table("rows", schema=int, key=str, versions=True)
    table.changes(emit=emit.at_most_every(INTERVAL)).to("out")
    with engine(flow) as driver:
        driver.update("rows", "a", 2, at=5)
        driver.update("rows", "a", 1, at=0)
        driver.advance(INTERVAL)
        assert {(r.timestamp, r.value.value) for r in driver.read("out")} == {(5, 2), (0, 1)}
