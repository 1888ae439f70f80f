"""A clock that moves only when told to."""

from floodway.core.duration import Duration, to_ms


class VirtualClock:
    """Shows milliseconds; never goes back.

    >>> clock = VirtualClock()
    >>> clock.advance("2s")
    >>> clock.now
    2000
    """

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def advance(self, by: Duration) -> None:
        """Let time pass."""
        self.now += to_ms(by, what="by", zero=True)
