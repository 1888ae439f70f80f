"""Whether others are reached: what to tell people, and when to give somebody up.

The driver and the tasks watch all their links, each its own: a process that cannot be reached may
well be heard, and then nobody misses it, while the orders and credits it waits for never come.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

TELL_S = 2.0
"""A connection that is gone for longer is worth a word; shorter ones come and go unnoticed."""


class Connections(Protocol):
    """What is asked of a mailbox."""

    def down(self) -> dict[int, float]:
        """Return to whom there is no connection now, and for how many seconds there was none."""

    def pending(self, number: int) -> bool:
        """Return whether the other side misses something of us: frames, or an answer."""


class Contacts:
    """Watches the ways to tasks.

    Parameters
    ----------
    unreachable
        Told of a task that is not reached.
    lost
        Told of one that could not be reached for `silent_s`.
    reached
        Told that such a task is reached again.
    """

    def __init__(
        self,
        post: Connections,
        unreachable: Callable[[int], None],
        lost: Callable[[int], None],
        reached: Callable[[int], None],
        *,
        silent_s: float,
    ) -> None:
        self._post = post
        self._unreachable, self._lost, self._reached = unreachable, lost, reached
        self._silent_s = silent_s
        self._told: set[int] = set()
        self._given_up: set[int] = set()

    def look(self, tasks: Iterable[int]) -> None:
        """See whether what was sent to some tasks can reach them."""
        down = self._post.down()
        for task in sorted(self._told - down.keys()):
            self._told.discard(task)
            self._given_up.discard(task)
            self._reached(task)
        for task in sorted(down.keys() & set(tasks)):
            # To whom there is nothing to say one need not be connected: it may have left.
            if self._post.pending(task):
                self._see(task, down[task])

    def again(self) -> None:
        """Give up anew whoever cannot be reached: what was said before, nobody may have heeded."""
        self._given_up.clear()

    def _see(self, task: int, seconds: float) -> None:
        if seconds > TELL_S and task not in self._told:
            self._told.add(task)
            self._unreachable(task)
        if seconds <= self._silent_s:
            self._given_up.discard(task)  # a successor, whose connection is young
        elif task not in self._given_up:
            self._given_up.add(task)
            self._lost(task)
