"""Work aside: in order, again if it could not be done, and finished before it is closed."""

import os
import select
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.connectors.base import Unavailable
from floodway.core.errors import DiskFullError, EngineError
from floodway.engine.datastream.aside import Errands, Outcome, ThreadAside
from tests.engine.datastream.fakes import Bell, Hands

LONG = 60_000_000
"""Microseconds: longer than any back-off."""


class Server:
    """Something that is away for a while: it fails so often, with these errors, before it works."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def settle(errands: Errands, hands: Hands, now: int = 0) -> int:
    """Work until nothing is left, waiting as long as it says; return what the clock shows then."""
    for _ in range(1000):
        errands.turn(now)
        if not len(errands):
            return now
        if hands.work is not None:
            hands.finish()
        else:
            now = max([now, *errands.due()])
    raise AssertionError("it does not come to an end")


# --------------------------------------------------------------------- the queue


def test_errands_are_done_in_order_and_one_at_a_time() -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    done: list[Any] = []
    for number in range(3):
        errands.add(lambda number=number: number * 10, done.append)  # type: ignore[misc]
    assert len(errands) == 3
    for number in range(3):
        assert not errands.turn(0)  # begins it
        assert not errands.turn(0)  # not done yet
        assert done == [n * 10 for n in range(number)]
        hands.finish()
        assert errands.turn(0)
    assert done == [0, 10, 20]
    assert not len(errands)
    assert not errands.turn(0)


def test_what_is_added_by_what_was_done_comes_last() -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    done: list[str] = []
    errands.add(lambda: "a", lambda a: (done.append(a), errands.add(lambda: "c", done.append)))  # type: ignore[arg-type, func-returns-value]
    errands.add(lambda: "b", done.append)
    settle(errands, hands)
    assert done == ["a", "b", "c"]


AWAY: dict[str, Callable[[], Exception]] = {
    "a sink that is away": lambda: Unavailable("no server"),
    "a full disk": lambda: DiskFullError("no room", remedy="make some"),
}


@pytest.mark.parametrize("error", AWAY.values(), ids=AWAY)
def test_what_cannot_be_done_now_is_done_later(error: Callable[[], Exception]) -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    server = Server(error(), error())
    done: list[str] = []
    errands.add(server, done.append)
    errands.add(lambda: "next", done.append)
    now, waits = 0, []
    for _ in range(2):
        errands.turn(now)
        hands.finish()
        assert not errands.turn(now)
        assert errands.away in ("no server", "no room")
        (due,) = errands.due()
        waits.append(due - now)
        assert not errands.turn(due - 1)
        assert hands.work is None  # nothing is begun before it is time, the next one neither
        now = due
    assert waits[1] > waits[0] > 0  # with back-off
    settle(errands, hands, now)
    assert errands.away is None
    assert done == ["done", "next"]
    assert server.calls == 3


def test_back_off_begins_anew_after_success() -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    first = Server(*(Unavailable("away") for _ in range(6)))
    errands.add(first, lambda _: None)
    now = settle(errands, hands)
    errands.add(Server(Unavailable("away")), lambda _: None)
    errands.turn(now)
    hands.finish()
    errands.turn(now)
    (due,) = errands.due()
    assert due - now < 200_000


def test_error_is_raised_in_its_turn_and_only_once() -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    done: list[str] = []
    errands.add(lambda: "before", done.append)
    errands.add(Server(EngineError("broken", remedy="mend")), done.append)
    errands.add(lambda: "after", done.append)
    errands.turn(0)
    hands.finish()
    errands.turn(0)
    assert done == ["before"]
    hands.finish()
    with pytest.raises(EngineError, match="broken"):
        errands.turn(0)
    settle(errands, hands)
    assert done == ["before", "after"]


def test_nothing_is_due_while_something_is_being_done() -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    assert errands.due() == []
    errands.add(lambda: 1, lambda _: None)
    assert errands.due() == [0]  # at once
    errands.turn(5)
    assert errands.due() == []  # whoever does it will wake us


def test_closing_forgets_what_was_not_begun() -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    done: list[int] = []
    for number in range(3):
        errands.add(lambda number=number: number, done.append)  # type: ignore[misc]
    errands.turn(0)
    errands.close()
    assert hands.closed
    assert not len(errands)
    assert not errands.turn(LONG)
    assert done == []


@settings(max_examples=100)
@given(st.lists(st.lists(st.sampled_from(sorted(AWAY)), max_size=4), max_size=6))
def test_whatever_is_away_all_is_done_in_order_and_once(failures: list[list[str]]) -> None:
    hands = Hands(quick=False)
    errands = Errands(hands)
    done: list[int] = []
    servers = [Server(*(AWAY[name]() for name in names)) for names in failures]
    for number, server in enumerate(servers):
        errands.add(server, lambda _, number=number: done.append(number))  # type: ignore[misc]
    settle(errands, hands)
    assert done == list(range(len(servers)))
    assert [server.calls for server in servers] == [len(names) + 1 for names in failures]


# --------------------------------------------------------------------- the thread


class Bells(Bell):
    """Waits for those that are watched now."""

    def ring(self, seconds: float) -> bool:
        """Wait until one of them is readable; return whether one is."""
        return bool(select.select(list(self.watched), [], [], seconds)[0])


def outcome(aside: ThreadAside, bells: Bells) -> Outcome:
    """Wait for the bell and return what came of the work."""
    assert bells.ring(30)
    found = aside.outcome()
    assert found is not None
    return found


def test_thread_does_the_work_and_rings() -> None:
    bells = Bells()
    aside = ThreadAside("test-aside", bells)
    assert aside.outcome() is None
    assert not bells.ring(0)
    for number in range(3):
        aside.begin(lambda number=number: (number, threading.current_thread().name))  # type: ignore[misc]
        assert outcome(aside, bells) == ((number, "test-aside"), None)
        assert not bells.ring(0)  # once for each piece of work
        assert aside.outcome() is None
    aside.close()


def test_error_of_the_thread_is_handed_over() -> None:
    bells = Bells()
    aside = ThreadAside("test-aside", bells)
    aside.begin(Server(KeyError("missing")))
    result, error = outcome(aside, bells)
    assert result is None
    assert isinstance(error, KeyError)
    aside.begin(Server())  # and it goes on
    assert outcome(aside, bells) == ("done", None)
    aside.close()


def test_closing_finishes_what_was_begun_and_leaves_nothing() -> None:
    bells = Bells()
    aside = ThreadAside("test-aside", bells)
    (bell,) = bells.watched
    began, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []

    def slow() -> None:
        began.set()
        ended.append(may_end.wait(30))

    aside.begin(slow)
    assert began.wait(30)
    closing = threading.Thread(target=aside.close)
    closing.start()
    assert ended == []
    may_end.set()
    closing.join(30)
    assert ended == [True]
    assert bells.watched == set()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(bell)
    assert "test-aside" not in {thread.name for thread in threading.enumerate()}
    aside.close()  # once more does nothing


def test_outcome_may_be_asked_for_at_any_moment() -> None:
    bells = Bells()
    aside = ThreadAside("test-aside", bells)
    for number in range(200):
        aside.begin(lambda number=number: number)  # type: ignore[misc]
        while (found := aside.outcome()) is None:
            pass
        assert found == (number, None)
    assert not bells.ring(0)
    aside.close()


def test_errands_in_a_thread_are_done_in_order() -> None:
    bells = Bells()
    errands = Errands(ThreadAside("test-aside", bells))
    done: list[int] = []
    for number in range(50):
        errands.add(lambda number=number: number, done.append)  # type: ignore[misc]
    while len(errands):
        errands.turn(0)
        if len(errands):
            assert bells.ring(30)
    errands.close()
    assert done == list(range(50))
