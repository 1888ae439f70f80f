"""The low-level API calls the user's functions as a direct simulation would."""

from functools import cache
from operator import attrgetter, itemgetter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.testing.strategies import cuts, skewed, streams
from tests.behaviour.oracles import StreamTime, per_key
from tests.engines import Engine

Item = tuple[str, int]
ITEMS = streams(st.tuples(skewed("abc"), st.integers(0, 5)), max_time=40, max_size=10)
RETENTION = 5


def update(time: int, key: str, item: Item, state: list[int]) -> tuple[Any, list[Any]]:
    """Collect numbers; send and forget them when a 5 comes."""
    state = [*state, item[1]]
    if item[1] == 5:
        return None, [(time, key, tuple(state)), (time + 1, "sent", len(state))]
    return state, []


@cache
def processing() -> Flow:
    flow = Flow("process")
    items = flow.source("items", schema=tuple).key_by(lambda item: item[0])
    items.process(init=lambda key: [ord(key)], update=update, name="process").to("out")
    return flow


@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_process_keeps_a_state_per_key_in_order_of_arrival(
    engine: Engine, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    states: dict[str, Any] = {}
    expected = []
    for time, item in stream:
        state = states.get(item[0]) or [ord(item[0])]
        states[item[0]], sent = update(time, item[0], item, state)
        expected += sent
    with engine(processing()) as driver:
        for push in data.draw(cuts(stream)):
            driver.push_at("items", *push)
        read = [(r.timestamp, r.key, r.value) for r in driver.read("out")]
        found, wanted = per_key(read, itemgetter(1)), per_key(expected, itemgetter(1))
        # What is sent under another key comes from the tasks of several.
        assert sorted(found.pop("sent", [])) == sorted(wanted.pop("sent", []))
        assert found == wanted


WINDOWS = fw.hopping(8, advance=5)


@cache
def windowed() -> Flow:
    flow = Flow("windows")
    grouped = flow.source("items", schema=tuple).group_by(lambda item: item[0]).window(WINDOWS)
    result = grouped.process(
        init=lambda key, window: [window.start],
        update=lambda time, key, window, item, state: [*state, (time, item[1])],
        finalize=lambda key, window, state: [(window.end - 1, key, tuple(state))],
        retention=RETENTION,
        name="process",
    )
    result.to("out")
    result.late.to("late")
    return flow


@settings(max_examples=300)
@given(data=st.data(), stream=ITEMS)
def test_window_process_hands_out_each_window_once_when_it_closes(
    engine: Engine, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    time_of = StreamTime("items")
    states: dict[tuple[int, str], list[Any]] = {}
    late = []
    with engine(windowed()) as driver:
        for push in data.draw(cuts(stream)):
            for time, item in push:
                time_of.saw("items", time)
                starts = [s for s in range(-10, 50, 5) if s <= time < s + 8]
                open_starts = [s for s in starts if not time_of.passed(s + 8, RETENTION)]
                for start in open_starts:
                    state = states.setdefault((start, item[0]), [start])
                    state.append((time, item[1]))
                if not open_starts:
                    late.append((time, item))
            driver.push_at("items", *push)
            time_of.mark()
            closed = sorted(k for k in states if time_of.passed(k[0] + 8, RETENTION))
            results = [(r.timestamp, r.key, r.value) for r in driver.read("out")]
            assert sorted(results) == [
                (start + 7, key, tuple(states.pop((start, key)))) for start, key in closed
            ]
            for of_key in per_key(results, itemgetter(1)).values():
                assert [r[0] for r in of_key] == sorted(r[0] for r in of_key)
        read = [(r.timestamp, r.value) for r in driver.read("late")]
        key = lambda row: row[1][0]  # noqa: E731
        assert per_key(read, key) == per_key(late, key)
        assert driver.stats("process").late == len(late)
        driver.finish()
        rest = {(r.timestamp, r.key, r.value) for r in driver.read("out")}
        assert rest == {(s + 7, key, tuple(state)) for (s, key), state in states.items()}


def test_windows_are_handed_out_in_order_of_their_starts(engine: Engine) -> None:
    with engine(windowed()) as driver:
        driver.push_at("items", (12, ("a", 1)), (2, ("b", 2)))
        driver.finish()
        times = {
            key: [record.timestamp for record in records]
            for key, records in per_key(driver.read("out"), attrgetter("key")).items()
        }
        assert times == {"a": [12, 17], "b": [2, 7]}
