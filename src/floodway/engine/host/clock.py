"""The clock that a process goes by.

The wall clock jumps: somebody sets it, a machine wakes up, a time server corrects it. Whoever waits
until it shows some time then waits for ever, or not at all. So a process reads it once, when it
begins, and counts on from there with the clock that never jumps.
"""

import time
from collections.abc import Callable


class SteadyClock:
    """Microseconds since 1970, as the wall clock showed them once, counted on steadily.

    Parameters
    ----------
    wall, steady
        Return the nanoseconds of the wall clock, and those of a clock that never jumps.

    Examples
    --------
    >>> wall, steady = iter([5_000_000]), iter([1_000, 2_001_000])
    >>> clock = SteadyClock(lambda: next(wall), lambda: next(steady))
    >>> clock.now()
    7000
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._steady = steady
        self._began = wall() - steady()

    def now(self) -> int:
        """Return the time in microseconds since 1970."""
        return (self._began + self._steady()) // 1000
