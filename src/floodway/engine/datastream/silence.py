"""When a source is silent: if it is asked, and has nothing to give.

A task may not ask its source for a while: it is in a call that takes long, it was stopped, it waits
for a switch or for whoever receives its records. That says nothing about the source. So what counts
is not how long nothing has come, but the time between two questions to which the answer was
nothing, and only if the second came when it should.
"""

SHORT_US = 250_000
"""A question that comes so much later than it was due was held up: that time does not count."""

LONG_US = 2_000_000
"""After a longer break much may have changed, and the count begins anew."""


class Silence:
    """Counts for how long a source has had nothing to give.

    Attributes
    ----------
    us
        So many microseconds.

    Examples
    --------
    >>> silence = Silence()
    >>> for now in (0, 50_000, 100_000):
    ...     silence.nothing(now, 1_000)
    >>> silence.us
    100000
    >>> silence.nothing(1_100_000, 1_000)  # somebody was busy with something else
    >>> silence.us
    100000
    >>> silence.nothing(9_100_000, 1_000)  # or was stopped
    >>> silence.us
    0
    """

    __slots__ = ("_asked_us", "us")

    def __init__(self) -> None:
        self.us = 0
        self._asked_us: int | None = None

    def nothing(self, now: int, every_us: int) -> None:
        """Take note that the source had nothing, and need not be asked again for `every_us`."""
        if self._asked_us is not None:
            passed = now - self._asked_us
            held_up = passed - every_us
            if held_up <= SHORT_US:
                self.us += passed
            elif held_up > LONG_US:
                self.us = 0
        self._asked_us = now

    def end(self) -> None:
        """Take note that something came, or that nobody knows whether there is something."""
        self.us = 0
        self._asked_us = None
