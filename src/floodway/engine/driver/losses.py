"""Who is lost: tasks that have fallen silent, or whose successors do not come.

A pure state machine. A successor that waits for a slot is not lost, however long that takes. Time
in which the driver itself stood still counts for nobody: what was said meanwhile is still unread.
"""

from collections import Counter
from collections.abc import Callable, Iterable

MOST_TRIES = 10
"""So often one task may be lost without a single epoch committed in between."""

START_MS = 60_000
"""So long the successor of a lost task, once it has a slot, has to say hello."""

QUEUED_MS = 5_000
"""A successor that waits for a slot for longer is worth a word."""


class Losses:
    """Keeps what was last heard of tasks, and how often each was lost.

    Parameters
    ----------
    silent_ms
        After which silence a task that was there is lost.

    Attributes
    ----------
    queued
        Since when tasks wait for a slot, those that do.
    """

    def __init__(self, silent_ms: int) -> None:
        self._silent_ms = silent_ms
        self._heard: dict[int, int] = {}
        self._tries: Counter[int] = Counter()
        self._stuck: dict[int, str] = {}
        self.queued: dict[int, int] = {}
        self._told: set[int] = set()

    def heard(self, task: int, now_ms: int) -> None:
        """Take note of a sign of life."""
        self._heard[task] = now_ms

    def excuse(self, ms: int) -> None:
        """Do not count a time in which nobody listened."""
        self._heard = {task: at + ms for task, at in self._heard.items()}

    def queue(self, tasks: Iterable[int], now_ms: int) -> list[int]:
        """Take note of who waits for a slot; return those who have waited for long, each once."""
        self.queued = {task: self.queued.get(task, now_ms) for task in tasks}
        long = {task for task, at in self.queued.items() if now_ms - at > QUEUED_MS}
        fresh = long - self._told
        self._told = long
        return sorted(fresh)

    def stuck(self, task: int, where: str) -> None:
        """Take note that a task has been in one call for long; nowhere if it goes on."""
        self._stuck[task] = where

    def reason(self, task: int, reason: str) -> str:
        """Return why a task is lost, with the call that it was in, if that took long."""
        where = self._stuck.get(task)
        return f"{reason}; it {where}" if where else reason

    def lost(self, task: int) -> None:
        """Take note that a task is lost."""
        self._tries[task] += 1

    def forget(self, task: int) -> None:
        """Forget when a process was heard of that is gone: another one takes its place."""
        self._heard.pop(task, None)
        self._stuck.pop(task, None)

    def tries(self, task: int) -> int:
        """Return how often a task was lost since the last committed epoch."""
        return self._tries[task]

    def committed(self) -> None:
        """Count anew."""
        self._tries.clear()

    def silent(
        self, tasks: Iterable[int], there: Callable[[int], bool], now_ms: int
    ) -> tuple[int, str] | None:
        """Return a task to give up, and why; `there` tells who has said hello."""
        for task in sorted(tasks):
            if task in self.queued:
                self._heard[task] = now_ms
            limit = self._silent_ms if there(task) else START_MS
            if now_ms - self._heard.setdefault(task, now_ms) > limit:
                silent = f"silent for {limit // 1000} s"
                return task, silent if there(task) else "its successor did not start"
        return None
