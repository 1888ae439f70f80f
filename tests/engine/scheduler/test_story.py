"""The story: what is told, kept, written and read."""

import json

import pytest

from floodway.core.errors import EngineError
from floodway.engine.scheduler.decisions import SetBatch, SwitchTo
from floodway.engine.scheduler.loads import OutletLoad, StageLoad, Topology
from floodway.engine.scheduler.replay import recorded, replay
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.story import Began, Entry, LoadRow, Observed, Story, read_story

TOPOLOGY = Topology(("count",))
FLOOD = StageLoad(
    stage="count",
    arrival_per_s=5012.3456,
    queue_records=9_000,
    data_per_s=1000.0,
    outlets=(OutletLoad("count", 100, 1.0, 2.0),),
)


def told(*, loads: bool = True) -> list[bytes]:
    lines: list[bytes] = []
    scheduler = Scheduler(TOPOLOGY, SchedulerSettings(warm_ms=0), Story(lines.append, loads=loads))
    scheduler.observe([FLOOD], 100)
    scheduler.observe([FLOOD], 200)
    scheduler.switched("count", 250, 1500)
    return lines


def test_decision_is_told_with_its_numbers() -> None:
    (line,) = (json.loads(line) for line in told() if b'"switch"' in line)
    assert (line["time_ms"], line["stage"]) == (200, "count")
    assert (line["from"], line["to"]) == ("data", "operation")
    assert line["range"] == ["count"]
    assert line["loads"][0]["arrival_per_s"] == 5012.0
    # K V T + C P_D is 0.5265 * 5012 * 0.1 + 0.109 * 1000
    assert line["point"]["l_switch"] == 372.8
    assert line["point"]["l_up"] == 447.4
    assert line["point"]["guessed"][0] == "operation_per_s"
    assert line["why"] == (
        "count holds 9,000 records, 11,006 in 0.50 s (L_up 447) at 5,012/s of 1,000/s it can; "
        "then the data paradigm takes 11.01 s, the operation paradigm 0.37 s with K 0.53 (guessed)"
    )


def test_story_is_read_as_it_was_written() -> None:
    began, first, second, entry, *_ = read_story(told())
    assert began == Began(TOPOLOGY, SchedulerSettings(warm_ms=0))
    assert isinstance(first, Observed)
    assert first.loads == (LoadRow.of(FLOOD.rounded()),)
    assert isinstance(second, Observed)
    assert isinstance(entry, Entry)
    assert entry.decision == SwitchTo("count", "operation")
    assert entry.loads == (FLOOD.rounded(),)


def test_story_without_loads_can_be_read() -> None:
    lines = told(loads=False)
    assert not any(isinstance(line, Observed) for line in read_story(lines))
    assert recorded(lines) == [(200, SwitchTo("count", "operation"))]


def test_entries_in_memory_are_bounded() -> None:
    story = Story(kept=3)
    for number in range(10):
        story.add(Entry(time_ms=number, what="stay", stage="count", why="so"))
    assert [entry.time_ms for entry in story.entries] == [7, 8, 9]


def test_entry_knows_its_decision() -> None:
    entry = Entry(time_ms=0, what="batch", stage="b", operator="a", after=10, why="so")
    assert entry.decision == SetBatch("a", 10)
    assert Entry(time_ms=0, what="stay", stage="b", why="so").decision is None


def test_line_that_is_not_finished_is_not_there_yet() -> None:
    lines = told()
    assert read_story([*lines, b'{"type":"entr']) == read_story(lines)
    with pytest.raises(EngineError, match="line 1"):
        read_story([b"what?", *lines])


def test_story_without_a_beginning_needs_to_be_told_whose_it_is() -> None:
    _, *rest = told()
    with pytest.raises(EngineError, match="no beginning"):
        replay(rest)
    assert replay(rest, TOPOLOGY, SchedulerSettings(warm_ms=0)) == recorded(rest)


def test_driver_that_began_again_is_replayed_so() -> None:
    lines = told() + told()
    assert replay(lines) == recorded(lines)
    assert len(replay(lines)) == 2
