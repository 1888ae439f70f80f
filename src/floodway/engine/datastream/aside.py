"""Work that a task's thread must not wait for: writing state, handing epochs to sinks.

`Errands` is the order in which things are done, and done again if they could not be done: a pure
queue with a clock from outside. `Aside` is who does one thing at a time: a thread, or in a
simulation something that takes as long as the simulation says.
"""

import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import Unavailable
from floodway.core.errors import DiskFullError

Work = Callable[[], Any]
Done = Callable[[Any], None]

Outcome = tuple[Any, BaseException | None]
"""What came of a piece of work: its result, or what it raised."""


class Aside(Protocol):
    """Does one piece of work at a time, beside the task's own."""

    def begin(self, work: Work) -> None:
        """Begin a piece of work."""

    def outcome(self) -> Outcome | None:
        """Return what came of it, or None if it is not done; a second time None."""

    def close(self) -> None:
        """Finish what was begun, and begin nothing more."""


class Waker(Protocol):
    """Wakes a thread when a descriptor becomes readable."""

    def watch(self, descriptor: int) -> None:
        """Wake up for a descriptor."""

    def unwatch(self, descriptor: int) -> None:
        """Wake up for a descriptor no more."""


class ThreadAside:
    """Does work in a thread of its own, and wakes whoever waits for it."""

    def __init__(self, name: str, waker: Waker) -> None:
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._done: Outcome | None = None
        self._lock = threading.Lock()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._waker = waker
        waker.watch(self._bell)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                outcome: Outcome = (work(), None)
            except BaseException as error:  # the task's thread judges it
                outcome = (None, error)
            with self._lock:  # done and rung for are one
                self._done = outcome
                os.eventfd_write(self._bell, 1)

    def begin(self, work: Work) -> None:
        """Begin a piece of work."""
        self._work.put(work)

    def outcome(self) -> Outcome | None:
        """Return what came of it, or None if it is not done."""
        with self._lock:
            outcome, self._done = self._done, None
            if outcome is not None:
                os.eventfd_read(self._bell)
        return outcome

    def close(self) -> None:
        """Finish what was begun."""
        if self._thread.is_alive():
            self._work.put(None)
            self._thread.join()
            self._waker.unwatch(self._bell)
            os.close(self._bell)


class Errands:
    """Things to do, one after another, and again as long as they cannot be done.

    Attributes
    ----------
    away
        Why the first of them cannot be done now, or None.
    """

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._waiting: deque[tuple[Work, Done]] = deque()
        self._busy = False
        self._retry_us = 0
        self._backoff = Backoff()
        self.away: str | None = None

    def add(self, work: Work, done: Done) -> None:
        """Have something done; `done` is called with its result, by whoever calls `turn`."""
        self._waiting.append((work, done))

    def __len__(self) -> int:
        return len(self._waiting)

    def turn(self, now: int) -> bool:
        """See what is done and begin the next; return whether something was done."""
        finished = False
        while self._waiting and now >= self._retry_us:
            if not self._busy:
                self._busy = True
                self._aside.begin(self._waiting[0][0])
            outcome = self._aside.outcome()
            if outcome is None:
                break
            self._busy = False
            finished = self._judge(outcome, now) or finished
        return finished

    def _judge(self, outcome: Outcome, now: int) -> bool:
        result, error = outcome
        if isinstance(error, Unavailable | DiskFullError):
            self.away = error.reason if isinstance(error, Unavailable) else error.problem
            self._retry_us = now + int(self._backoff.next_ms() * 1000)
            return False
        _, done = self._waiting.popleft()
        self.away = None
        self._backoff.reset()
        if error is not None:
            raise error
        done(result)
        return True

    def due(self) -> list[int]:
        """Return when to try again what could not be done."""
        return [self._retry_us] if self._waiting and not self._busy else []

    def close(self) -> None:
        """Finish what was begun and forget the rest."""
        self._waiting.clear()
        self._aside.close()
