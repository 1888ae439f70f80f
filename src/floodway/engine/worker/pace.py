"""How much a task takes on at a time, by how long its records take.

A record may take a microsecond or, where a model or a service is asked, many milliseconds. A task
that took on thousands of the latter would neither stop nor switch when told to, nor say how much
waits for it, for minutes. So a turn has about as many records as can be worked on in `TURN_US`.
"""

TURN_US = 20_000
"""So long a turn should be at most. What is done once in a turn does not matter then, and others
wait no longer than they have to."""

SHORT_US = 1_000
"""In a shorter turn most of the time may have been spent on what is done once in a turn."""

PLENTY = 1_000_000


class Pace:
    """Learns from every turn how much to take on in the next.

    Attributes
    ----------
    records
        About so many records the next turn should work on.

    Examples
    --------
    >>> pace = Pace()
    >>> for now, done in [(0, 0), (1_000_000, 1000), (1_020_000, 1020)]:
    ...     pace.turn(now, done)
    >>> pace.records
    20
    """

    __slots__ = ("_began", "_done", "_record_us", "records")

    def __init__(self) -> None:
        self.records = PLENTY
        self._record_us: float | None = None
        self._began: int | None = None
        self._done = 0

    def turn(self, now: int, done: int) -> None:
        """Begin a turn, and end the one before; `done` is all that the task has worked on."""
        if self._began is not None and done > self._done:
            self._ended(now - self._began, done - self._done)
        self._began, self._done = now, done

    def rest(self) -> None:
        """Take note that nothing is done until the next turn begins."""
        self._began = None

    def _ended(self, took_us: int, count: int) -> None:
        """Learn from a turn; but only half, as something else may have held it up."""
        known = self._record_us
        if took_us >= SHORT_US:
            record_us = took_us / count
            self._record_us = record_us if known is None else (known + record_us) / 2
        elif known is not None and count >= self.records:
            self._record_us = known / 2  # short with all that was allowed: it could have been more
        if self._record_us is not None:
            self.records = max(1, min(int(TURN_US / self._record_us), PLENTY))
