"""When how many events are due: rates that change over time.

A schedule knows how many events are due by a moment, all told. So whoever asks late gets what was
due in between, no event is due twice, and it does not matter how often one asks. Times are seconds
since the first event was due, rates are events per second.
"""

from typing import Protocol

import msgspec


class Schedule(Protocol):
    """When how many events are due."""

    def due(self, t: float) -> float:
        """Return how many events are due by a moment."""


class Recorded(msgspec.Struct, frozen=True, tag=True):
    """Rates that were once seen, each for the same time; the last one lasts.

    Examples
    --------
    >>> recorded = Recorded((100, 300, 200), each_s=2)
    >>> [recorded.due(t) for t in (1, 2, 3, 6, 7)]
    [100, 200, 500, 1200, 1400]
    """

    per_s: tuple[float, ...]
    each_s: float = 1.0

    def due(self, t: float) -> float:
        """Return how many events are due by a moment."""
        whole = min(int(t / self.each_s), len(self.per_s) - 1)
        before = sum(self.per_s[:whole]) * self.each_s
        return before + self.per_s[whole] * (t - whole * self.each_s)
