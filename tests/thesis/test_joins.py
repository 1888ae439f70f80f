"""Examples 19 to 23 of the thesis, figures 5.4 to 5.8, event by event.

Figure 5.4 gives positions on a time line, not numbers; the timestamps here are the ones that the
text of examples 19 and 21 allows (A1 at 1, A2 at 2, A5 at most 6 after A2 and more than 6 after
A1, B5 more than 6 after B1). Figure 5.7 is known from its description: in S the record E4 comes
last and A2 is at offset 2, in the other stream D2 is out of order.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from floodway import Flow
from floodway.testing import Driver, Emitted, equivalent, latest
from tests.engines import Engine

LEFT = [(1, "A1"), (2, "A2"), (3, "C3"), (5, "E4"), (9, "B5")]
RIGHT = [(2, "B1"), (4, "D2"), (6, "E3"), (7, "E4"), (8, "A5")]
UNORDERED_LEFT = [(1, "A1"), (3, "C3"), (2, "A2"), (9, "B5"), (5, "E4")]
UNORDERED_RIGHT = [(2, "B1"), (6, "E3"), (4, "D2"), (7, "E4"), (8, "A5")]

INNER = [(6, "E4-E3"), (7, "E4-E4"), (8, "A2-A5")]
ALONE_LEFT = [(1, "A1-_"), (3, "C3-_"), (9, "B5-_")]
ALONE_RIGHT = [(2, "_-B1"), (4, "_-D2")]
FIGURE_5_4 = {
    "inner": INNER,
    "left": INNER + ALONE_LEFT,
    "right": INNER + ALONE_RIGHT,
    "full": INNER + ALONE_LEFT + ALONE_RIGHT,
}


def pair(left: str | None, right: str | None) -> str:
    return f"{left or '_'}-{right or '_'}"


def joining(how: str, emit: str = "eager") -> Flow:
    flow = Flow("join")
    left = flow.source("left", schema=str).key_by("left(value, 1) AS letter")
    right = flow.source("right", schema=str).key_by("left(value, 1) AS letter")
    left.join(right, within=6, how=how, emit=emit, joiner=pair, schema=str).to("out")
    return flow


def interleaved(left: list[Any], right: list[Any]) -> Iterable[tuple[str, int, str]]:
    """Yield the records of both in processing order: always the smaller of the two next ones."""
    left, right = list(left), list(right)
    while left or right:
        take_left = bool(left) and (not right or left[0][0] <= right[0][0])
        yield ("left", *left.pop(0)) if take_left else ("right", *right.pop(0))


def run(engine: Engine, flow: Flow, records: Iterable[tuple[str, int, str]]) -> list[Emitted]:
    with engine(flow) as driver:
        for source, time, value in records:
            driver.push(source, value, at=time)
        driver.finish()
        return driver.read("out")


def shown(records: Iterable[Emitted]) -> list[tuple[int, str]]:
    return sorted((record.timestamp, record.value) for record in records)


@pytest.mark.parametrize("how", FIGURE_5_4)
@pytest.mark.parametrize("emit", ["eager", "lazy"])
def test_example_19_figure_5_4(engine: Engine, how: str, emit: str) -> None:
    result = run(engine, joining(how, emit), interleaved(LEFT, RIGHT))
    assert shown(latest(result)) == sorted(FIGURE_5_4[how])
    if emit == "lazy":
        assert all(record.id is None for record in result)


FIGURE_5_6 = {
    "left": [
        ("A1-_", (0, None)),
        ("A2-_", (1, None)),
        ("C3-_", (2, None)),
        ("E4-_", (3, None)),
        ("E4-E3", (3, None)),
        ("E4-E4", (3, 3)),
        ("A2-A5", (1, None)),
        ("B5-_", (4, None)),
    ],
    "right": [
        ("_-B1", (None, 0)),
        ("_-D2", (None, 1)),
        ("E4-E3", (3, 2)),
        ("E4-E4", (3, 3)),
        ("A2-A5", (1, 4)),
    ],
}


Named = list[tuple[str, tuple[int | None, int | None]]]


def check_named(result: list[Emitted], expected: Named) -> None:
    """Compare values and names; a partition counts offsets of its own, so only who shares one.

    Offsets of the two sides are told apart, and each stands for one offset of the thesis.
    """
    assert [record.value for record in result] == [value for value, _ in expected]
    meaning: dict[tuple[int, int], int] = {}
    for record, (_, offsets) in zip(result, expected, strict=True):
        for side, (found, wanted) in enumerate(zip(record.id, offsets, strict=True)):
            assert (found is None) == (wanted is None)
            if found is not None and wanted is not None:
                assert meaning.setdefault((side, found), wanted) == wanted
    per_side = [[wanted for (s, _), wanted in meaning.items() if s == side] for side in (0, 1)]
    assert all(len(set(wanted)) == len(wanted) for wanted in per_side)


@pytest.mark.parametrize("how", FIGURE_5_6)
def test_on_one_partition_offsets_are_those_of_figure_5_6(how: str) -> None:
    result = run(Driver, joining(how), interleaved(LEFT, RIGHT))
    assert [(record.value, record.id) for record in result] == FIGURE_5_6[how]


@pytest.mark.parametrize("how", FIGURE_5_6)
def test_example_21_figure_5_6_event_by_event(engine: Engine, how: str) -> None:
    result = run(engine, joining(how), interleaved(LEFT, RIGHT))
    check_named(result, FIGURE_5_6[how])


FIGURE_5_7 = {
    "left": [
        ("A1-_", (0, None)),
        ("C3-_", (1, None)),
        ("A2-_", (2, None)),
        ("A2-A5", (2, None)),
        ("B5-_", (3, None)),
        ("E4-E3", (4, 1)),
        ("E4-E4", (4, 3)),
    ],
    "right": [
        ("_-B1", (None, 0)),
        ("_-E3", (None, 1)),
        ("_-D2", (None, 2)),
        ("_-E4", (None, 3)),
        ("A2-A5", (2, 4)),
        ("E4-E3", (None, 1)),
        ("E4-E4", (None, 3)),
    ],
    "full": [
        ("A1-_", (0, None)),
        ("_-B1", (None, 0)),
        ("C3-_", (1, None)),
        ("A2-_", (2, None)),
        ("_-E3", (None, 1)),
        ("_-D2", (None, 2)),
        ("_-E4", (None, 3)),
        ("A2-A5", (2, None)),
        ("B5-_", (3, None)),
        ("E4-E3", (None, 1)),
        ("E4-E4", (None, 3)),
    ],
}


@pytest.mark.parametrize("how", FIGURE_5_7)
def test_on_one_partition_offsets_are_those_of_figure_5_7(how: str) -> None:
    result = run(Driver, joining(how), interleaved(UNORDERED_LEFT, UNORDERED_RIGHT))
    assert [(record.value, record.id) for record in result] == FIGURE_5_7[how]


@pytest.mark.parametrize("how", FIGURE_5_7)
def test_example_22_figure_5_7_event_by_event(engine: Engine, how: str) -> None:
    result = run(engine, joining(how), interleaved(UNORDERED_LEFT, UNORDERED_RIGHT))
    check_named(result, FIGURE_5_7[how])


def test_example_22_inner_join_needs_no_updates(engine: Engine) -> None:
    result = run(engine, joining("inner"), interleaved(UNORDERED_LEFT, UNORDERED_RIGHT))
    assert [record.value for record in result] == ["A2-A5", "E4-E3", "E4-E4"]
    assert all(record.id is None for record in result)


@pytest.mark.parametrize("how", FIGURE_5_4)
def test_examples_19_21_and_22_are_equivalent(engine: Engine, how: str) -> None:
    lazy = run(engine, joining(how, "lazy"), interleaved(LEFT, RIGHT))
    eager = run(engine, joining(how), interleaved(LEFT, RIGHT))
    unordered = run(engine, joining(how), interleaved(UNORDERED_LEFT, UNORDERED_RIGHT))
    assert equivalent(lazy, eager)
    assert equivalent(eager, unordered)


TABLE = [(2, "A", 1), (3, "B", 2), (4, "B", 3), (6, "A", None)]
STREAM = [(1, "A"), (3, "B"), (4, "A"), (5, "B"), (6, "A")]
FIGURE_5_5 = {
    "inner": [(3, "B-2"), (4, "A-1"), (5, "B-3")],
    "left": [(1, "A-_"), (3, "B-2"), (4, "A-1"), (5, "B-3"), (6, "A-_")],
}


def looking_up(how: str) -> Flow:
    flow = Flow("look-up")
    table = flow.table("table", schema=int, key=str)
    stream = flow.source("stream", schema=str)
    joined = stream.join(table, on="value", how=how, joiner=pair, schema=str)
    joined.to("out")
    return flow


def by_time(*, delayed: tuple[int, str, int] | None = None) -> list[tuple[Any, ...]]:
    """Return both inputs by timestamp, the table first; `delayed` comes after everything."""
    events = [(time, 0, "table", key, value) for time, key, value in TABLE]
    events += [(time, 1, "stream", None, value) for time, value in STREAM]
    events.sort(key=lambda event: event[:2])
    if delayed is not None:
        events.append(events.pop(events.index((delayed[0], 0, "table", *delayed[1:]))))
    return events


def look_up(engine: Engine, how: str, events: list[tuple[Any, ...]]) -> list[Emitted]:
    with engine(looking_up(how)) as driver:
        for time, _, source, key, value in events:
            if source == "table":
                driver.update("table", key, value, at=time)
            else:
                driver.push("stream", value, at=time)
        driver.finish()
        return driver.read("out")


@pytest.mark.parametrize("how", FIGURE_5_5)
def test_example_20_figure_5_5(engine: Engine, how: str) -> None:
    result = look_up(engine, how, by_time())
    assert [(record.timestamp, record.value) for record in result] == FIGURE_5_5[how]


@pytest.mark.parametrize("how", FIGURE_5_5)
def test_example_20_late_table_update_corrects_the_result(engine: Engine, how: str) -> None:
    result = look_up(engine, how, by_time(delayed=(4, "B", 3)))
    assert shown(latest(result)) == sorted(FIGURE_5_5[how])
    corrected = [record for record in result if record.timestamp == 5]
    assert [record.value for record in corrected] == ["B-2", "B-3"]
    assert corrected[0].id == corrected[1].id


def test_example_20_late_delete_takes_the_result_back(engine: Engine) -> None:
    inner = look_up(engine, "inner", by_time(delayed=(6, "A", None)))
    assert [r.value for r in inner if r.timestamp == 6] == ["A-1", None]
    left = look_up(engine, "left", by_time(delayed=(6, "A", None)))
    assert [r.value for r in left if r.timestamp == 6] == ["A-1", "A-_"]


def test_example_23_figure_5_8(engine: Engine) -> None:
    flow = Flow("tables")
    left = flow.table("left", schema=str, key=str)
    right = flow.table("right", schema=str, key=str)
    left.join(right, joiner=pair, schema=str, name="joined", versions=True).changes().to("changes")
    with engine(flow) as driver:
        driver.update("left", "k", "A1", at=1)
        driver.update("right", "k", "B2", at=2)
        driver.update("right", "k", "B3", at=3)
        driver.update("left", "k", "A5", at=5)
        driver.update("left", "k", "A6", at=6)
        driver.update("right", "k", "B6", at=6)
        table = driver.table("joined")
        versions = {time: table.lookup("k", at=time) for time in range(1, 7)}
        changes = [(r.timestamp, r.value.value) for r in driver.read("changes")]
    assert versions == {1: None, 2: "A1-B2", 3: "A1-B3", 4: "A1-B3", 5: "A5-B3", 6: "A6-B6"}
    assert [change for change in changes if change[1] is not None] == [
        (2, "A1-B2"),
        (3, "A1-B3"),
        (5, "A5-B3"),
        (6, "A6-B3"),
        (6, "A6-B6"),
    ]
