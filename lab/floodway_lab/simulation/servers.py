"""The servers that sources and sinks live on, a broker and a Redis: they die, and come back.

What a server was asked for when it died may have been done: then it is durable, and only the answer
is lost. Whoever has asked cannot tell that from what was not done, and asks again.
"""

from collections.abc import Callable
from random import Random
from typing import Literal

ServerName = Literal["broker", "redis"]

WAITS_US = 1_500_000
"""Most servers die just when somebody writes, if that is within so long."""

WAITING_SHARE = 0.7
"""This part of them does."""

UNDER_WAY_US = 500_000
"""Who asks so soon after a server died had asked it just before."""

DONE_SHARE = 0.7
"""This part of what a server was asked for when it died has been done."""


class Server:
    """A server: when it dies, for how long, and whose requests were under way then.

    Parameters
    ----------
    clock
        Returns the time, in microseconds.
    random
        Decides what was done of what was under way.
    """

    def __init__(self, clock: Callable[[], int], random: Random) -> None:
        self._clock, self._random = clock, random
        self._dies_at = self._lasts = 0
        self._asked: set[str] = set()

    def kill(self, lasts: int) -> None:
        """Let the server die, now or soon, and come back after a while."""
        waits = WAITS_US if self._random.random() < WAITING_SHARE else 0
        self._dies_at, self._lasts = self._clock() + waits, lasts
        self._asked.clear()

    @property
    def there(self) -> bool:
        """Whether it answers."""
        return not 0 <= self._clock() - self._dies_at < self._lasts

    def does_without_an_answer(self, who: str) -> bool:
        """Return whether it has done what somebody wants to write, and died before it answered."""
        self._dies_at = min(self._dies_at, self._clock())
        late = self._clock() - self._dies_at > UNDER_WAY_US
        if self.there or late or who in self._asked:
            return False
        self._asked.add(who)
        return self._random.random() < DONE_SHARE
