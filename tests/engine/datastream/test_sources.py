"""Sources at work: where they are, how much they have brought in, and when they may read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway import Flow
from floodway.connectors.base import Reader, SourceConnector, Split, Unavailable
from floodway.engine.control.messages import SourceTime
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.task import Task
from floodway.engine.driver.stream_time import StreamTime
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


class Clock:
    """A clock that is never set, and another that may be."""

    def __init__(self) -> None:
        self.steady = self.now = 0

    def pass_by(self, microseconds: int) -> None:
        self.steady += microseconds
        self.now += microseconds


def opened(feed: Feed, positions: dict[str, Any] | None = None) -> Sources:
    sources = Sources(only_task(straight(feed, Shown())), NoBell(), lambda text: None, lambda: 0)
    sources.open(Split(), positions)
    return sources


def read_all(sources: Sources, now: int = 0) -> None:
    while sources.read(now):
        pass


def test_position_comes_with_how_many_records_were_brought_in() -> None:
    sources = opened(Feed([1, 2, 3], [4]))
    assert sources.positions() == {"numbers": (0, 0)}
    sources.allow(["numbers"])
    sources.read(0)
    assert sources.positions() == {"numbers": (1, 3)}
    sources.read(0)
    assert sources.positions() == {"numbers": (2, 4)}


def test_source_goes_on_where_it_was_and_goes_on_counting() -> None:
    feed = Feed([1, 2, 3], [4], [5, 6])
    sources = opened(feed, {"numbers": [1, 3]})  # as it comes back from a record
    assert feed.opened == [1]
    sources.allow(["numbers"])
    read_all(sources)
    assert sources.positions() == {"numbers": (3, 6)}
    assert sources.times() == [SourceTime("numbers", 0, 0, ended=False, count=6)]


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
    sources.allow(["numbers"])
    sources.read(0)
    counts = {} if count is None else {"numbers": count}
    assert sources.reached(counts) == expected
    sources.read(0)
    assert sources.reached(counts)


def test_source_that_has_ended_is_not_waited_for() -> None:
    """It had less to give than before, and will never have more."""
    sources = opened(Feed([1], None))
    sources.allow(["numbers"])
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
    sources = Sources(task, NoBell(), lambda text: None, lambda: 0)
    sources.open(Split())
    assert {source.name for source in sources} == {"one", "two"}
    sources.allow(["one"])
    read_all(sources)
    assert sources.positions() == {"one": (1, 2), "two": (0, 0)}
    assert not sources.reached({"one": 2, "two": 1})
    sources.allow(["two"])
    read_all(sources)
    assert sources.reached({"one": 2, "two": 1})


def test_nothing_is_read_before_it_is_allowed_nor_after_it_is_paused() -> None:
    sources = opened(Feed([1], [2], [3]))
    assert not sources.read(0)
    sources.allow(["others"])
    assert not sources.read(0)
    sources.allow(["numbers"])
    assert sources.read(0)
    sources.pause()
    assert not sources.read(0)
    assert sources.positions() == {"numbers": (1, 1)}
    assert not any(source.ended for source in sources)  # it goes on another time


def test_reader_is_told_what_is_committed() -> None:
    feed = Feed([1], [2])
    sources = opened(feed)
    sources.allow(["numbers"])
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
    sources = Sources(only_task(straight(feed, Shown())), NoBell(), lambda text: None, lambda: 0)
    sources.open(Split(), with_epochs=with_epochs)
    assert feed.by_epochs == with_epochs


def test_source_that_had_ended_is_not_read_again() -> None:
    feed = Feed([1], None, [7])
    task = only_task(straight(feed, Shown()))
    sources = Sources(task, NoBell(), lambda text: None, lambda: 0)
    sources.open(Split())
    sources.allow(["numbers"])
    read_all(sources)
    standing, positions = task.standing(), sources.positions()
    again = only_task(task.plan)
    again.resume(standing)
    sources = Sources(again, NoBell(), lambda text: None, lambda: 0)
    sources.open(Split(), positions)
    sources.allow(["numbers"])
    assert not sources.read(0)
    assert again.ended
    assert sources.times() == [SourceTime("numbers", None, 0, ended=True, count=1)]


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
    sources = Sources(only_task(straight(Feed(), Shown())), bell, lambda text: None, lambda: 0)
    sources.open(Split())
    sources.allow(["numbers"])
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


def test_a_source_that_should_have_been_asked_meanwhile_is_asked_at_once() -> None:
    # Nobody was told when: if a mark took longer than the source's pause, it was asked again with
    # the next report, and all that became due until then was 50 ms late.
    steady = 0
    feed = Feed()
    sources = Sources(only_task(straight(feed, Shown())), NoBell(), print, lambda: steady)
    sources.open(Split())
    sources.allow(["numbers"])
    sources.read(0)
    assert sources.due(5) == [5 + 1000]
    steady = 1000  # the rest of the turn took so long
    assert sources.due(7) == [7]
    steady = 5000
    assert sources.due(9) == [9]
    sources.pause()
    assert sources.due(9) == []  # nor is it asked without need
    sources.allow(["numbers"])
    feed.batches.append(None)
    sources.read(10)
    assert sources.due(10) == []  # it has ended


def test_a_task_without_sources_has_nothing_to_look_at_at_once() -> None:
    # It did, again and again, after it had been blocked once.
    sources = Sources(only_task(straight(Feed(), Shown())), NoBell(), lambda text: None, lambda: 0)
    sources.ignore()
    assert sources.due(5) == []


# --------------------------------------------------------------------- silence


IDLE_US = 1_000_000


class Moody(Feed):
    """Has something or nothing, is away or cannot be reached, as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.mood = "empty"
        self.asked = 0

    def open(self, split: Split, position: Any = None) -> Reader:
        return MoodyReader(self)


class MoodyReader(Reader):
    def __init__(self, feed: Moody) -> None:
        self._feed = feed

    def poll(self, limit: int) -> list[int]:
        self._feed.asked += 1
        if self._feed.mood == "away":
            raise Unavailable("gone")
        return [1] if self._feed.mood == "full" else []

    @property
    def there(self) -> bool:  # type: ignore[override]
        return self._feed.mood != "unreachable"

    @property
    def amid(self) -> bool:  # type: ignore[override]
        return self._feed.mood == "half a line"


class Asked:
    """A source that is asked whenever its task has time for it."""

    def __init__(self) -> None:
        self.feed, self.clock = Moody(), Clock()
        task = only_task(straight(self.feed, Shown()))
        self.sources = Sources(task, NoBell(), lambda text: None, lambda: self.clock.steady)
        self.sources.open(Split())
        self.sources.allow(["numbers"])

    @property
    def silent_us(self) -> int:
        (said,) = self.sources.times()
        return said.silent_ms * 1000

    def ask(self, microseconds: int) -> None:
        """Ask again and again, every 50 ms, for some time."""
        for _ in range(microseconds // 50_000):
            self.clock.pass_by(50_000)
            self.sources.read(self.clock.now)


def test_source_that_is_asked_and_has_nothing_is_silent() -> None:
    asked = Asked()
    asked.ask(IDLE_US)
    assert asked.silent_us == IDLE_US - 50_000  # since it was asked first
    asked.feed.mood = "full"
    asked.ask(50_000)
    assert asked.silent_us == 0


@pytest.mark.parametrize("pause_us", [300_000, 1_900_000, 10_000_000, 3_600_000_000])
def test_time_in_which_nobody_asks_does_not_count(pause_us: int) -> None:
    asked = Asked()
    asked.ask(IDLE_US // 2)
    before = asked.silent_us
    asked.clock.pass_by(pause_us)
    assert asked.silent_us == before
    asked.sources.read(asked.clock.now)
    assert asked.silent_us in (0, before)


@pytest.mark.parametrize(
    "hindrance",
    [
        lambda asked: asked.sources.pause(),
        lambda asked: asked.sources.throttle("numbers", 0.001),
        lambda asked: asked.sources.ignore(),
    ],
    ids=["paused", "throttled", "held back"],
)
def test_source_that_may_not_be_asked_is_not_silent(hindrance: Any) -> None:
    asked = Asked()
    asked.ask(200_000)
    before, count = asked.silent_us, asked.feed.asked
    hindrance(asked)
    if asked.sources.due(0) == [0]:
        asked.clock.pass_by(60_000_000)  # a task that is blocked does not ask
    else:
        asked.ask(60_000_000)
    assert asked.feed.asked == count
    assert asked.silent_us <= before
    asked.sources.throttle("numbers", None)
    asked.sources.allow(["numbers"])
    asked.ask(50_000)
    assert asked.silent_us == 0  # after so long the count begins anew


@pytest.mark.parametrize("mood", ["away", "unreachable", "half a line"])
def test_source_that_cannot_be_reached_is_not_silent(mood: str) -> None:
    asked = Asked()
    asked.ask(IDLE_US // 2)
    asked.feed.mood = mood
    asked.ask(20 * IDLE_US)
    assert asked.silent_us == 0
    asked.feed.mood = "empty"
    asked.ask(20 * IDLE_US)
    assert asked.silent_us > 0


class Backlog(SourceConnector):
    """Has a line every now and then, until there are many."""

    def __init__(self) -> None:
        self.waiting: list[int] = []

    def open(self, split: Split, position: Any = None) -> Reader:
        return BacklogReader(self)


class BacklogReader(Reader):
    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog

    def poll(self, limit: int) -> list[int]:
        rows = self._backlog.waiting[:limit]
        del self._backlog.waiting[:limit]
        return rows


def test_source_that_was_idle_says_how_far_it_was_when_it_came_back() -> None:
    # It said how far it was when it was asked: by then it had read its backlog, and was ahead.
    backlog, clock = Backlog(), Clock()
    flow = Flow("back")
    numbers = flow.source("numbers", backlog, schema=int, timestamp="value", idle="1s")
    numbers.to(Shown(), name="out")
    sources = Sources(only_task(Plan.of(flow)), NoBell(), lambda text: None, lambda: clock.steady)
    sources.open(Split())
    sources.allow(["numbers"])
    time = StreamTime({"numbers": 1000, "others": 1000})

    def ask(microseconds: int) -> None:
        for _ in range(microseconds // 50_000):
            clock.pass_by(50_000)
            sources.read(clock.now)
        others = SourceTime("others", 90_100, 0, ended=False)
        time.take(0, [*sources.times(), others])
        time.advance()

    backlog.waiting = [100]
    ask(500_000)
    ask(3_000_000)
    assert time.time == 90_100
    backlog.waiting = list(range(200, 95_000, 100))
    ask(500_000)
    assert sources.times()[0].latest == 94_900
    assert time.returns == {"numbers": 1}
    (text,) = time.warnings()
    assert "what it brings is 89.9 s behind stream time" in text
    ask(500_000)
    assert time.warnings() == []


@pytest.mark.parametrize("jump_us", [-3_600_000_000, 3_600_000_000])
def test_clock_that_is_set_changes_nothing_about_silence_and_pauses(jump_us: int) -> None:
    asked = Asked()
    asked.ask(IDLE_US)
    before, count = asked.silent_us, asked.feed.asked
    asked.clock.now += jump_us
    asked.ask(100_000)
    assert asked.silent_us == before + 100_000
    assert asked.feed.asked == count + 2
    assert asked.sources.due(asked.clock.now) == [asked.clock.now + 1000]


@given(st.lists(st.tuples(st.sampled_from(["empty", "full", "away"]), st.integers(1, 4_000_000))))
def test_silence_is_never_longer_than_what_was_seen(times: list[tuple[str, int]]) -> None:
    """The oracle adds up what lies between two empty answers, one right after the other."""
    asked, most = Asked(), 0
    last = None
    for mood, passed in times:
        asked.feed.mood = mood
        asked.clock.pass_by(passed)
        count = asked.feed.asked
        asked.sources.read(asked.clock.now)
        if asked.feed.asked == count:  # it had to pause
            passed_since = passed if last is None else last + passed
            last = passed_since if last is not None else None
            continue
        since = None if last is None else last + passed
        most = most + since if mood == "empty" and since is not None else 0
        last = 0 if mood == "empty" else None
        assert asked.silent_us <= most
