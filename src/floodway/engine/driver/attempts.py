"""Attempts: which one each task is in, and who is about to begin the next.

Those who begin an attempt do so together, since they have to know each other's addresses and
attempts. First all of them have to be there, then they are told to start, and when all are ready
they go. Who is lost meanwhile sends all of them back to the first of these steps, in a new attempt.
"""

from collections.abc import Iterable, Set


class Attempts:
    """Numbers the attempts of tasks, and sees those who begin through to their going.

    Parameters
    ----------
    latest
        The number of the last attempt of an earlier run.

    Attributes
    ----------
    latest
        The number of the latest attempt.
    of
        In which attempt each task is, by number.
    beginning
        The tasks that are about to begin one.
    """

    def __init__(self, tasks: Iterable[int], latest: int) -> None:
        self.latest = latest
        self.of = dict.fromkeys(tasks, 0)
        self.beginning: set[int] = set()
        self._called = False
        self._ready: set[int] = set()

    @property
    def numbers(self) -> list[int]:
        """In which attempt each task is, in the order of their numbers."""
        return list(self.of.values())

    def begin(self, tasks: Iterable[int]) -> set[int]:
        """Let tasks begin a new attempt; return all who do.

        Those that were about to begin start again: they have to know the others anew.
        """
        self.latest += 1
        self.beginning |= set(tasks)
        for task in self.beginning:
            self.of[task] = self.latest
        self._ready -= self.beginning
        self._called = False
        return self.beginning

    @property
    def waiting(self) -> set[int]:
        """The tasks that are to begin, and wait for others to come."""
        return set() if self._called else self.beginning

    def call(self, there: Set[int]) -> list[int]:
        """Return whom to tell to start: all who begin, once they are there; nobody twice."""
        if self._called or not self.beginning <= there:
            return []
        self._called = True
        return sorted(self.beginning)

    def ready(self, task: int) -> None:
        """Take note that a task has started and waits for the others."""
        self._ready.add(task)

    @property
    def all_ready(self) -> bool:
        """Whether there are tasks that begin, and they can go."""
        return bool(self.beginning) and self.beginning <= self._ready

    def go(self) -> set[int]:
        """Take note that those who begin go; return them."""
        begun, self.beginning = self.beginning, set()
        return begun
