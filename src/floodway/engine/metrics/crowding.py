"""How much of a thread's time at work it really had a core, as far as the system tells."""

import os
from collections.abc import Callable
from contextlib import suppress

_PATH = "/proc/thread-self/schedstat"


class Crowding:
    """Tells work from waiting for a core that others have.

    What a record costs is what it takes on a core of its own. On a crowded machine the clock shows
    more than that. Linux counts for each thread how long it has run, and how long it was ready to
    and did not; on other systems all time at work counts as such. One instance is for the thread
    that has made it.

    Examples
    --------
    >>> crowding = Crowding(times=iter([(0.0, 0.0), (0.5, 0.4), (0.6, 0.4)]).__next__)
    >>> crowding.worked(1.0), crowding.worked(2.0)  # it waited for 0.4 s; then for something else
    (0.6, 1.6)
    """

    def __init__(self, times: Callable[[], tuple[float, float]] | None = None) -> None:
        self._times = times or Times()
        self._ran, self._waited = self._times()
        self._busy = self._worked = 0.0

    def worked(self, busy_s: float) -> float:
        """Return for how long the thread has worked, given how long it was at work by the clock."""
        ran, waited = self._times()
        busy, self._busy = busy_s - self._busy, busy_s
        # What was waited for while there was nothing to do is in the second figure, too; what has
        # run is work in any case.
        self._worked += max(min(busy, max(ran - self._ran, busy - (waited - self._waited))), 0.0)
        self._ran, self._waited = ran, waited
        return self._worked


class Times:
    """How long the present thread has run, and has waited for a core, in seconds; 0 if unknown."""

    def __init__(self) -> None:
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(_PATH, os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self) -> tuple[float, float]:
        """Return both."""
        if self._file is None:
            return 0.0, 0.0
        try:
            ran, waited, _ = os.pread(self._file, 128, 0).split()
        except (OSError, ValueError):
            return 0.0, 0.0
        return int(ran) / 1e9, int(waited) / 1e9

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)
