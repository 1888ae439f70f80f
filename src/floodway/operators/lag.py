"""Lag: how far in the past an operator lives because of those before it (docs: time).

Some operators hold results back on purpose, until a window has ended, say. What they send then is
old, and must not be late for whoever reads it. So those who follow live in the past: their time is
the oldest timestamp that may still come. After windows that is the start of the first one that has
not ended, so when windows end together, one after the other, all of them end at once.
"""

import msgspec

from floodway.operators.windows import FixedWindows


class Held(msgspec.Struct, frozen=True):
    """How long an operator holds results back: until their window has ended, and `delay_ms` more.

    Examples
    --------
    >>> from floodway.operators.windows import Hopping, Tumbling
    >>> Held(5).oldest(27), Held(0, Tumbling(10)).oldest(27), Held(5, Hopping(10, 3)).oldest(27)
    (22, 20, 15)
    """

    delay_ms: int
    windows: FixedWindows | None = None

    def oldest(self, time: int) -> int:
        """Return what no timestamp is below of all that is still to be sent at `time`."""
        time -= self.delay_ms
        return time if self.windows is None else self.windows.starts(time)[0]

    @property
    def most_ms(self) -> int:
        """How old a result may be at most when it is sent."""
        return self.delay_ms + (0 if self.windows is None else self.windows.size_ms)


class Lag(msgspec.Struct, frozen=True):
    """What is held back on each way from a source to an operator.

    Examples
    --------
    >>> from floodway.operators.windows import Tumbling
    >>> slow = Lag().behind(Held(0, Tumbling(10))).behind(Held(3))
    >>> Lag().time(27), slow.time(27), slow.most_ms
    (27, 17, 13)
    >>> Lag.of([slow, Lag()]).time(27)
    17
    """

    ways: frozenset[tuple[Held, ...]] = frozenset({()})

    @classmethod
    def of(cls, inputs: "list[Lag]") -> "Lag":
        """Return the lag of an operator that reads from all of `inputs`."""
        return cls(frozenset().union(*(lag.ways for lag in inputs)) if inputs else Lag().ways)

    def behind(self, held: Held | None) -> "Lag":
        """Return the lag of what is after an operator that holds results back, or does not."""
        if held is None:
            return self
        return Lag(frozenset((*way, held) for way in self.ways))

    def time(self, stream_time: int) -> int:
        """Return what time it is for the operator."""
        return min(_along(way, stream_time) for way in self.ways)

    @property
    def most_ms(self) -> int:
        """How far behind stream time the operator is at most."""
        return max(sum(held.most_ms for held in way) for way in self.ways)


def _along(way: tuple[Held, ...], time: int) -> int:
    for held in way:
        time = held.oldest(time)
    return time
