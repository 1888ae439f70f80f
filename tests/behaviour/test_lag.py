"""What comes after windows lives in the past: far enough for nothing to be late, and no more."""

from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway.testing.strategies import cuts
from tests.engines import Engine

FIRST: dict[str, Any] = {
    "tumbling": fw.tumbling(6),
    "hopping": fw.hopping(7, advance=3),
    "session": fw.session(4),
}
SECOND: dict[str, Any] = {
    "same": fw.tumbling(6),
    "several": fw.hopping(12, advance=6),
    "other": fw.tumbling(5),
}


class Count(fw.Record, frozen=True):
    """How often something came."""

    item: str
    count: int


@cache
def counted_twice(first: str, second: str, strategy: str) -> fw.Flow:
    """Return a flow that adds up in windows what it has counted in windows."""
    emit = getattr(fw.emit, strategy)
    flow = fw.Flow("twice", retention=0)
    items = flow.source("items", schema=str).group_by("value AS item").window(FIRST[first])
    counts = items.count(name="counts").changes(emit=emit(), name="ended")
    sums = (
        counts.map(lambda c: Count(c.key, c.value), schema=Count, name="values")
        .group_by("item")
        .window(SECOND[second])
        .sum("count", name="sums")
    )
    sums.late.to("late")
    sums.changes(emit=emit(), name="all.ended").to("out")
    counts.to("first")
    return flow


@pytest.mark.parametrize("strategy", ["after_window_end", "final"])
@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", FIRST)
@settings(max_examples=100)
@given(data=st.data(), items=st.lists(st.tuples(st.integers(0, 60), st.sampled_from("ab"))))
def test_nothing_is_late_after_windows(
    engine: Engine, first: str, second: str, strategy: str, data: st.DataObject, items: Any
) -> None:
    with engine(counted_twice(first, second, strategy)) as driver:
        for push in data.draw(cuts(sorted(items))):
            driver.push_at("items", *push)
        driver.finish()
        assert driver.read("late") == []
        expected: Counter[Any] = Counter()
        for record in driver.read("first"):
            for start in SECOND[second].starts(record.timestamp):
                expected[record.key, start] += record.value.value
        out = driver.read("out")
    assert {(r.value.key, r.value.window.start): r.value.value for r in out} == expected
    assert len(out) == len(expected)


def test_windows_that_end_together_are_over_at_once(engine: Engine) -> None:
    with engine(counted_twice("tumbling", "several", "after_window_end")) as driver:
        driver.push("items", "a", at=5)
        driver.push("items", "a", at=11)
        assert [r.value.window.start for r in driver.read("out")] == [-6]
        driver.push("items", "a", at=12)
        assert [r.value.window.start for r in driver.read("out")] == [0]


def test_explain_says_how_far_in_the_past(engine: Engine) -> None:
    shown = counted_twice("hopping", "same", "after_window_end").explain()
    assert "up to 7ms behind stream time" in shown
