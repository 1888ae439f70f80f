"""Stream time, moved by marks alone, decides what is late and what is forgotten (section 5.3.3)."""

from functools import cache
from operator import attrgetter, itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow, Window
from floodway.testing import Driver
from floodway.testing.strategies import changelogs, cuts, interleavings, skewed, streams
from tests.behaviour.oracles import LAST, NaiveTable, StreamTime, bag, final, joined_facts, per_key
from tests.engines import Engine

RETENTION = 6
GAP = 4
ITEMS = streams(skewed("ab"), max_time=50, max_size=12)
FIXED: dict[str, Any] = {"tumbling": fw.tumbling(7), "hopping": fw.hopping(9, advance=4)}


@cache
def counting(window: str, *, versions: bool) -> Flow:
    flow = Flow(window, retention=RETENTION)
    windows = FIXED.get(window) or fw.session(GAP)
    grouped = flow.source("items", schema=str).group_by("value AS item").window(windows)
    counts = grouped.count(name="counts", versions=versions)
    counts.late.to("late")
    counts.to("log")
    return flow


def starts_of(windows: Any, time: int) -> list[int]:
    size, advance = windows.size_ms, getattr(windows, "advance_ms", windows.size_ms)
    return [s for s in range(-10 * advance, LAST, advance) if s <= time < s + size]


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize("window", FIXED)
@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_windows(
    engine: Engine, window: str, versions: bool, data: st.DataObject, stream: Any
) -> None:
    windows, time_of = FIXED[window], StreamTime("items")
    counts: dict[Any, list[int]] = {}
    late = []
    with (
        engine(counting(window, versions=versions), auto_mark=False) as driver,
        engine(counting(window, versions=versions), auto_mark=False) as other,
    ):
        for epoch in data.draw(cuts(stream)):
            for time, item in epoch:
                time_of.saw("items", time)
                ends = [s + windows.size_ms for s in starts_of(windows, time)]
                open_ends = [end for end in ends if not time_of.passed(end, RETENTION)]
                if not open_ends:
                    late.append((time, item))
                for end in open_ends:
                    key = (item, Window(end - windows.size_ms, end))
                    counts.setdefault(key, []).append(time)
            driver.push_at("items", *epoch)
            for push in data.draw(cuts(epoch)):  # cut otherwise between the same marks
                other.push_at("items", *push)
            driver.mark()
            other.mark()
            time_of.mark()
            counts = {k: v for k, v in counts.items() if not time_of.passed(k[1].end, RETENTION)}
            expected = {key: (max(times), len(times)) for key, times in counts.items()}
            assert driver.table("counts").rows() == other.table("counts").rows() == expected
        read = [(r.timestamp, r.value) for r in driver.read("late")]
        assert per_key(read, itemgetter(1)) == per_key(late, itemgetter(1))
        assert driver.stats("counts").late == other.stats("counts").late == len(late)
        logs = [per_key(each.read("log"), attrgetter("key")) for each in (driver, other)]
        assert logs[0] == logs[1]


@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_sessions(engine: Engine, data: st.DataObject, stream: Any) -> None:
    time_of = StreamTime("items")
    open_sessions: list[tuple[str, list[int]]] = []
    late = []
    with engine(counting("session", versions=False), auto_mark=False) as driver:
        for epoch in data.draw(cuts(stream)):
            for time, item in epoch:
                time_of.saw("items", time)
                near = [
                    (key, times)
                    for key, times in open_sessions
                    if key == item and min(times) - GAP <= time <= max(times) + GAP
                ]
                if not near and time_of.passed(time + GAP + 1, RETENTION):
                    late.append((time, item))
                    continue
                open_sessions = [s for s in open_sessions if s not in near]
                open_sessions.append((item, [time, *(t for _, times in near for t in times)]))
            driver.push_at("items", *epoch)
            driver.mark()
            time_of.mark()
            open_sessions = [
                s for s in open_sessions if not time_of.passed(max(s[1]) + GAP + 1, RETENTION)
            ]
            assert driver.table("counts").rows() == {
                (key, Window(min(times), max(times) + GAP)): (max(times), len(times))
                for key, times in open_sessions
            }
        read = [(r.timestamp, r.value) for r in driver.read("late")]
        assert per_key(read, itemgetter(1)) == per_key(late, itemgetter(1))
        assert driver.stats("counts").late == len(late)


Item = tuple[str, int]
PAIRS = streams(st.tuples(skewed("ab"), st.integers(0, 9)), max_time=50, max_size=8)
WITHIN = 5


def key_of(item: Item) -> str:
    return item[0]


@cache
def joining() -> Flow:
    flow = Flow("joins", retention=RETENTION)
    left = flow.source("left", schema=tuple).key_by(key_of)
    right = flow.source("right", schema=tuple).key_by(key_of)
    for emit in ("eager", "lazy"):
        joined = left.join(
            right, within=WITHIN, how="full", emit=emit, joiner=lambda a, b: (a, b), name=emit
        )
        joined.to(f"{emit}.out")
        joined.late.to(f"{emit}.late")
    return flow


@settings(max_examples=300)
@given(data=st.data(), left=PAIRS, right=PAIRS)
def test_stream_joins(engine: Engine, data: st.DataObject, left: Any, right: Any) -> None:
    time_of, sides = StreamTime("left", "right"), ("left", "right")
    taken: tuple[list[Any], list[Any]] = ([], [])
    late = []
    with engine(joining(), auto_mark=False) as driver:
        for epoch in data.draw(cuts(data.draw(interleavings(left, right)))):
            for side, (time, item) in epoch:
                time_of.saw(sides[side], time)
                driver.push_at(sides[side], (time, item))
                if time_of.passed(time + 1, RETENTION):
                    late.append((time, item))
                else:
                    taken[side].append((time, item[0], item))
            driver.mark()
            time_of.mark()
        driver.finish()
        expected = bag(joined_facts(*taken, WITHIN, "full", lambda a, b: (a, b)))
        for emit in ("eager", "lazy"):
            assert final(driver.read(f"{emit}.out")) == expected, emit
            assert [(r.timestamp, r.value) for r in driver.read(f"{emit}.late")] == late
            assert driver.stats(emit).late == len(late)


UPDATES = changelogs(
    skewed("ab"), st.tuples(skewed("ab"), st.integers(0, 9)), max_time=50, max_size=8
)


@cache
def tables() -> Flow:
    flow = Flow("tables", retention=RETENTION)
    left = flow.table("left", schema=tuple, key=str, versions=True)
    right = flow.table("right", schema=tuple, key=str, versions=True)
    left.late.to("left.late")
    right.late.to("right.late")
    for versions in (False, True):
        name = "versions" if versions else "latest"
        left.join(right, how="full", joiner=pair, name=f"{name}.key", versions=versions)
        left.join(right, on=key_of, joiner=pair, name=f"{name}.foreign", versions=versions)
        left.group_by(key_of).collect(lambda row: row[1], name=f"{name}.group", versions=versions)
    return flow


def pair(left: Any, right: Any) -> str:
    return f"{left}-{right}"


def answers(left: dict[Any, Any], right: dict[Any, Any]) -> dict[str, dict[Any, Any]]:
    groups: dict[Any, list[int]] = {}
    for row in left.values():
        groups.setdefault(row[0], []).append(row[1])
    return {
        "key": {k: pair(left.get(k), right.get(k)) for k in left.keys() | right.keys()},
        "foreign": {k: pair(v, right[v[0]]) for k, v in left.items() if v[0] in right},
        "group": {key: sorted(numbers) for key, numbers in groups.items()},
    }


def push_update(driver: Driver, table: str, update: tuple[int, Any, Any]) -> None:
    driver.update(table, update[1], update[2], at=update[0])


@settings(max_examples=300)
@given(data=st.data(), left=UPDATES, right=UPDATES)
def test_tables(engine: Engine, data: st.DataObject, left: Any, right: Any) -> None:
    time_of, sides = StreamTime("left", "right"), ("left", "right")
    naive = NaiveTable(), NaiveTable()
    late: dict[str, list[Any]] = {"left": [], "right": []}
    with engine(tables(), auto_mark=False) as driver:
        for epoch in data.draw(cuts(data.draw(interleavings(left, right)))):
            for side, update in epoch:
                time_of.saw(sides[side], update[0])
                push_update(driver, sides[side], update)
                if time_of.passed(update[0] + 1, RETENTION):
                    late[sides[side]].append(update)
                else:
                    naive[side].update(*update)
            driver.mark()
            time_of.mark()
        for side in sides:
            sent = [(r.timestamp, r.key, r.value) for r in driver.read(f"{side}.late")]
            assert sent == late[side]
            assert driver.stats(side).late == len(late[side])
        for name, rows in answers(naive[0].values(), naive[1].values()).items():
            assert driver.table(f"latest.{name}").values() == rows, name
            assert driver.table(f"versions.{name}").values() == rows, name
        kept = 0 if time_of.now is None else max(time_of.now - RETENTION, 0)
        for at in (*range(kept, 52), LAST):
            for side in (0, 1):
                assert driver.table(sides[side]).values(at) == naive[side].values(at)
            for name, rows in answers(naive[0].values(at), naive[1].values(at)).items():
                assert driver.table(f"versions.{name}").values(at) == rows, (name, at)


@cache
def looking_up() -> Flow:
    flow = Flow("lookup", retention=RETENTION)
    table = flow.table("right", schema=tuple, key=str)
    joined = flow.source("left", schema=tuple).join(
        table, on=key_of, how="left", joiner=pair, name="join"
    )
    joined.to("out")
    joined.late.to("late")
    return flow


@settings(max_examples=300)
@given(data=st.data(), left=PAIRS, right=UPDATES)
def test_lookup_joins(engine: Engine, data: st.DataObject, left: Any, right: Any) -> None:
    time_of, naive = StreamTime("left", "right"), NaiveTable()
    taken, late = [], []
    with engine(looking_up(), auto_mark=False) as driver:
        for epoch in data.draw(cuts(data.draw(interleavings(left, right)))):
            for side, record in epoch:
                is_late = time_of.passed(record[0] + 1, RETENTION)
                time_of.saw(("left", "right")[side], record[0])
                if side == 1:
                    push_update(driver, "right", record)
                    if not is_late:
                        naive.update(*record)
                else:
                    driver.push_at("left", record)
                    (late if is_late else taken).append(record)
            driver.mark()
            time_of.mark()
        assert [(r.timestamp, r.value) for r in driver.read("late")] == late
        assert driver.stats("join").late == len(late)
        expected = [(t, None, pair(item, naive.values(t).get(item[0]))) for t, item in taken]
        assert final(driver.read("out")) == bag(expected)


def test_an_idle_source_does_not_hold_back_time_for_ever(engine: Engine) -> None:
    flow = Flow("idle", retention=0, idle="10s")
    busy, silent = flow.source("busy", schema=str), flow.source("silent", schema=str)
    counts = busy.merge(silent).group_by("value AS item").window(fw.tumbling(5)).count(name="n")
    counts.changes(emit=fw.emit.final()).to("out")
    with engine(flow) as driver:
        driver.push_at("busy", (1, "a"), (20, "a"))
        assert driver.read("out") == []  # the silent source might still bring something
        driver.advance("9s")
        driver.push_at("busy", (21, "a"))
        assert driver.read("out") == []
        driver.advance("1s")
        assert [r.value.window for r in driver.read("out")] == [Window(0, 5)]
        driver.push_at("silent", (2, "a"))  # comes back, and finds its window closed
        assert driver.stats("n").late == 1


def test_an_ended_source_does_not_hold_back_time(engine: Engine) -> None:
    flow = Flow("ended", retention=0)
    one, two = flow.source("one", schema=str), flow.source("two", schema=str)
    counts = one.merge(two).group_by("value AS item").window(fw.tumbling(5)).count(name="n")
    counts.changes(emit=fw.emit.final()).to("out")
    with engine(flow) as driver:
        driver.push_at("one", (1, "a"), (20, "a"))
        driver.end("two")
        assert [r.value.window for r in driver.read("out")] == [Window(0, 5)]


def test_stream_time_stands_still_while_all_sources_are_idle(engine: Engine) -> None:
    flow = Flow("idle", retention=0, idle="10s")
    one, two = flow.source("one", schema=str), flow.source("two", schema=str)
    counts = one.merge(two).group_by("value AS item").window(fw.tumbling(5)).count(name="n")
    counts.changes(emit=fw.emit.final()).to("out")
    with engine(flow) as driver:
        driver.push_at("one", (1, "a"), (20, "a"))
        driver.push_at("two", (2, "a"))
        driver.advance("1h")
        assert driver.stream_time == 2
        driver.push_at("two", (3, "a"))  # the first to come back counts alone
        assert driver.stream_time == 3
        driver.end("one")
        assert driver.stream_time == 3
        driver.advance("1h")
        assert driver.stream_time == 3  # and does not jump to where the other was
        driver.push_at("two", (4, "a"))
        assert driver.stats("n").late == 0
        driver.end("two")
        assert driver.stream_time == 20
        assert [(r.value.window.start, r.value.value) for r in driver.read("out")] == [
            (0, 4),
            (20, 1),
        ]
