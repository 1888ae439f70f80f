"""Sources at work: where they are, how much they have brought in, and when they may read."""

from typing import Any

import pytest

from floodway import Flow
from floodway.connectors.base import Split
from floodway.engine.control import SourceTime
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.task import Task
from floodway.plan import Plan
from tests.engine.datastream.fakes import (
    Bell,
    Feed,
    FeedReader,
    NoBell,
    OneOff,
    Shown,
    only_task,
    straight,
)


def opened(feed: Feed, positions: dict[str, Any] | None = None) -> Sources:
    sources = Sources(only_task(straight(feed, Shown())), NoBell(), lambda text: None)
    sources.open(Split(), 0, positions)
    return sources


def read_all(sources: Sources, now: int = 0) -> None:
    while sources.read(now):
        pass


def test_position_comes_with_how_many_records_were_brought_in() -> None:
    sources = opened(Feed([1, 2, 3], [4]))
    assert sources.positions() == {"numbers": (0, 0)}
    sources.allow(["numbers"], 0)
    sources.read(0)
    assert sources.positions() == {"numbers": (1, 3)}
    sources.read(0)
    assert sources.positions() == {"numbers": (2, 4)}


def test_source_goes_on_where_it_was_and_goes_on_counting() -> None:
    feed = Feed([1, 2, 3], [4], [5, 6])
    sources = opened(feed, {"numbers": [1, 3]})  # as it comes back from a record
    assert feed.opened == [1]
    sources.allow(["numbers"], 0)
    read_all(sources)
    assert sources.positions() == {"numbers": (3, 6)}
    assert sources.times(0) == [SourceTime("numbers", 0, 0, ended=False, count=6)]


def test_source_that_was_not_there_before_begins_at_its_beginning() -> None:
    feed = Feed([1])
    opened(feed, {"others": [5, 5]})
    assert feed.opened == [None]


@pytest.mark.parametrize(
    ("count", "expected"), [(0, True), (3, True), (4, False), (5, False), (None, True)]
)
def test_as_much_is_read_as_was_then_when_the_count_is_reached(
    count: int | None, expected: bool
) -> None:
    sources = opened(Feed([1, 2, 3], [4, 5]))
    sources.allow(["numbers"], 0)
    sources.read(0)
    counts = {} if count is None else {"numbers": count}
    assert sources.reached(counts) == expected
    sources.read(0)
    assert sources.reached(counts)


def test_source_that_has_ended_is_not_waited_for() -> None:
    """It had less to give than before, and will never have more."""
    sources = opened(Feed([1], None))
    sources.allow(["numbers"], 0)
    read_all(sources)
    assert sources.reached({"numbers": 100})


def test_source_that_cannot_go_back_is_not_waited_for() -> None:
    sources = opened(OneOff([1]))
    assert sources.reached({"numbers": 100})


def test_all_sources_of_a_task_have_to_reach_their_count() -> None:
    flow = Flow("both")
    one, two = Feed([1, 2]), Feed([3])
    left = flow.source("one", one, schema=int)
    left.merge(flow.source("two", two, schema=int), name="both").to(Shown())
    plan = Plan.of(flow)
    task = Task(plan, plan.stage_of("one"), 0, lambda number, frame: None)
    sources = Sources(task, NoBell(), lambda text: None)
    sources.open(Split(), 0)
    assert {source.name for source in sources} == {"one", "two"}
    sources.allow(["one"], 0)
    read_all(sources)
    assert sources.positions() == {"one": (1, 2), "two": (0, 0)}
    assert not sources.reached({"one": 2, "two": 1})
    sources.allow(["two"], 0)
    read_all(sources)
    assert sources.reached({"one": 2, "two": 1})


def test_nothing_is_read_before_it_is_allowed_nor_after_it_is_paused() -> None:
    sources = opened(Feed([1], [2], [3]))
    assert not sources.read(0)
    sources.allow(["others"], 0)
    assert not sources.read(0)
    sources.allow(["numbers"], 0)
    assert sources.read(0)
    sources.pause()
    assert not sources.read(0)
    assert sources.positions() == {"numbers": (1, 1)}
    assert not any(source.ended for source in sources)  # it goes on another time


def test_reader_is_told_what_is_committed() -> None:
    feed = Feed([1], [2])
    sources = opened(feed)
    sources.allow(["numbers"], 0)
    sources.read(0)
    at = sources.positions()
    sources.read(0)
    sources.committed(at)
    assert feed.committed == [1]
    sources.committed({})  # an epoch that this task has not taken part in
    assert feed.committed == [1]


@pytest.mark.parametrize("with_epochs", [True, False])
def test_reader_knows_whether_it_will_be_told_what_is_committed(with_epochs: bool) -> None:
    feed = Feed()
    sources = Sources(only_task(straight(feed, Shown())), NoBell(), lambda text: None)
    sources.open(Split(), 0, with_epochs=with_epochs)
    assert feed.by_epochs == with_epochs


def test_source_that_had_ended_is_not_read_again() -> None:
    feed = Feed([1], None, [7])
    task = only_task(straight(feed, Shown()))
    sources = Sources(task, NoBell(), lambda text: None)
    sources.open(Split(), 0)
    sources.allow(["numbers"], 0)
    read_all(sources)
    standing, positions = task.standing(), sources.positions()
    again = only_task(task.plan)
    again.resume(standing)
    sources = Sources(again, NoBell(), lambda text: None)
    sources.open(Split(), 0, positions)
    sources.allow(["numbers"], 0)
    assert not sources.read(0)
    assert again.ended
    assert sources.times(0) == [SourceTime("numbers", None, 0, ended=True, count=1)]


def test_closed_sources_close_their_readers() -> None:
    feed = Feed()
    sources = opened(feed)
    assert sources
    sources.close()
    assert feed.closed == 1
    assert not sources


def test_nobody_wakes_up_for_what_is_not_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # A task that was blocked, or whose block was full, woke up again and again without a pause.
    monkeypatch.setattr(FeedReader, "fileno", lambda _: 7)
    bell = Bell()
    sources = Sources(only_task(straight(Feed(), Shown())), bell, lambda text: None)
    sources.open(Split(), 0)
    sources.allow(["numbers"], 0)
    sources.read(0)
    assert (bell.watched, sources.due(5)) == ({7}, [])
    sources.ignore()
    assert (bell.watched, sources.due(5)) == (set(), [5])  # look at it at once when it may be read
    sources.read(5)
    assert (bell.watched, sources.due(5)) == ({7}, [])
    sources.throttle("numbers", 0.5)
    sources.read(6)
    assert (bell.watched, sources.due(6)) == (set(), [1006])
    sources.throttle("numbers", None)
    sources.read(7)
    sources.pause()
    sources.read(8)
    assert bell.watched == set()


def test_a_task_without_sources_has_nothing_to_look_at_at_once() -> None:
    # It did, again and again, after it had been blocked once.
    sources = Sources(only_task(straight(Feed(), Shown())), NoBell(), lambda text: None)
    sources.ignore()
    assert sources.due(5) == []
