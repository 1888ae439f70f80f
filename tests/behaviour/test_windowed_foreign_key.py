"""A windowed table joined on a foreign key: each window's row follows the row that it names."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow
from floodway.operators.windows import Window
from floodway.testing import fold
from floodway.testing.strategies import changelogs, interleavings, skewed, streams
from tests.behaviour.oracles import NaiveTable, sessions
from tests.engines import Engine

SIZE, GAP, RETENTION = 10, 4, 6
WINDOWS = {"tumbling": fw.tumbling(SIZE), "session": fw.session(GAP)}
ITEMS = streams(skewed("abc"), max_time=30, max_size=8)
NAMES = changelogs(skewed("abc"), st.integers(0, 9), max_time=30, max_size=8)


def pair(left: Any, right: Any) -> str:
    return f"{left}-{right}"


@cache
def flow_of(window: str, *, retention: int = 1000) -> Flow:
    flow = Flow("windowed", retention=retention)
    names = flow.table("names", schema=int, key=str)
    items: Any = flow.source("items", schema=str).group_by("value AS item")
    counts = items.window(WINDOWS[window]).count(name="counts")
    for how in ("inner", "left"):
        joined = counts.join(names, on="item", how=how, joiner=pair, schema=str, name=how)
        joined.to(f"{how}.log")
    return flow


def counted(window: str, items: Any) -> dict[tuple[str, Window], tuple[int, int]]:
    if window == "session":
        groups = sessions([(time, item, item) for time, item in items], GAP)
        return {
            (item, Window(rows[0][0], rows[-1][0] + GAP)): (rows[-1][0], len(rows))
            for item, found in groups.items()
            for rows in found
        }
    made: dict[tuple[str, Window], list[int]] = {}
    for time, item in items:
        start = time - time % SIZE
        made.setdefault((item, Window(start, start + SIZE)), []).append(time)
    return {key: (max(times), len(times)) for key, times in made.items()}


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=100)
@given(data=st.data(), items=ITEMS, names=NAMES)
def test_each_windows_row_follows_the_row_it_names(
    engine: Engine, window: str, data: st.DataObject, items: Any, names: Any
) -> None:
    named = NaiveTable(names).latest
    with engine(flow_of(window)) as driver:
        for side, event in data.draw(interleavings(items, names)):
            if side == 0:
                driver.push_at("items", event)
            else:
                time, key, value = event
                driver.update("names", key, value, at=time)
        for how in ("inner", "left"):
            expected = {}
            for (item, bounds), (time, count) in counted(window, items).items():
                partner = named.get(item)
                if partner is not None:
                    expected[item, bounds] = (max(time, partner[0]), pair(count, partner[1]))
                elif how == "left":
                    expected[item, bounds] = (time, pair(count, None))
            rows = driver.table(how).rows()
            assert {key: value for key, (_, value) in rows.items()} == {
                key: value for key, (_, value) in expected.items()
            }
            assert fold(driver.read(f"{how}.log")) == {k: v for k, (_, v) in expected.items()}


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_that_have_ended_are_forgotten(engine: Engine, window: str) -> None:
    with engine(flow_of(window, retention=RETENTION)) as driver:
        driver.update("names", "a", 7, at=0)
        for start in range(0, 500, 50):
            driver.push_at("items", (start, "a"), (start + 1, "a"))
            driver.update("names", "b", start, at=start + 1)  # stream time is that of both
            assert len(driver.table("left").rows()) == 1
        # The row that all of them name changes for those that are there.
        driver.read("left.log")
        driver.update("names", "a", 8, at=451)
        (record,) = driver.read("left.log")
        assert record.value.value == "2-8"
