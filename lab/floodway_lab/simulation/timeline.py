"""Virtual time: what happens when, one thing after another, and a digest of all of it.

Whatever happens in a simulation happens because an action was put on the timeline. Actions of the
same moment run in the order in which they were put there. Everything that could differ between two
runs of a seed goes into the digest, so that one difference anywhere shows at the end.
"""

import hashlib
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

START_US = 1_700_000_000_000_000
"""What the clock shows at the beginning, in microseconds since 1970."""

Action = Callable[[], None]


class Timeline:
    """The clock of a simulation.

    Parameters
    ----------
    seed
        What decides everything that is left to chance.
    tell
        Told, in words, what happens.

    Attributes
    ----------
    now
        The time, in microseconds.
    random
        The only source of chance.
    steps
        How many actions have run.
    """

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.now = START_US
        self.random = Random(seed)
        self.steps = 0
        self._tell = tell
        self._actions: list[tuple[int, int, Action]] = []
        self._numbers = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def at(self, time: int, action: Action) -> None:
        """Have something happen at a time, or now if that is over."""
        self._numbers += 1
        heappush(self._actions, (max(time, self.now), self._numbers, action))

    def after(self, microseconds: int, action: Action) -> None:
        """Have something happen after a while."""
        self.at(self.now + microseconds, action)

    def between(self, least: int, most: int) -> int:
        """Return a random number of microseconds; short ones are more likely than long ones."""
        return least + int((most - least) * self.random.random() ** 3)

    def chance(self, probability: float) -> bool:
        """Return whether something that is only likely comes to pass."""
        return self.random.random() < probability

    def step(self) -> bool:
        """Let the next thing happen; return whether there was one."""
        if not self._actions:
            return False
        time, _, action = heappop(self._actions)
        self.now = time
        self.steps += 1
        action()
        return True

    def note(self, *what: object) -> None:
        """Take note that something happened."""
        self._digest.update(f"{self.now} {what}\n".encode())

    def say(self, text: str) -> None:
        """Take note of something that a person wants to know, and say it."""
        self.note(text)
        if self._tell is not None:
            self._tell(f"{self.seconds:9.4f} {text}")

    @property
    def seconds(self) -> float:
        """How many seconds have passed since the beginning."""
        return (self.now - START_US) / 1e6

    @property
    def trace_hash(self) -> str:
        """A digest of all that has happened so far."""
        return self._digest.hexdigest()
