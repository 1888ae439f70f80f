"""The cadence of epochs: when the next one is to end, and whether the last takes too long.

An epoch ends with a mark, so one that is due waits for the next pulse. Whoever waits for a commit
may have it hastened. How far an epoch is on its way, the controller knows.
"""

SLOW_MS = 60_000
"""An epoch that takes longer is worth a warning."""


class Cadence:
    """Says when an epoch is due.

    Parameters
    ----------
    every_ms
        How often that is.
    """

    def __init__(self, every_ms: int) -> None:
        self._every_ms = every_ms
        self._next = 0
        self._since: int | None = None

    def start(self, now_ms: int) -> None:
        """Let the first epoch be due one interval from now."""
        self._next = now_ms + self._every_ms

    def hasten(self) -> None:
        """Let the next epoch be due at once."""
        self._next = 0

    def end(self, now_ms: int) -> bool:
        """Return whether an epoch is to end now; if so, it is on its way from now on."""
        if now_ms < self._next:
            return False
        self._next = now_ms + self._every_ms
        self._since = now_ms
        return True

    def slow(self, now_ms: int) -> bool:
        """Return, once for each epoch, whether the one on its way takes very long."""
        if self._since is None or now_ms - self._since < SLOW_MS:
            return False
        self._since = None
        return True
