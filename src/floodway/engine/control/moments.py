"""Moments of a running sequence of numbers, without keeping the numbers.

Welford's update, carried up to the third order; two sequences merge as if they had been one.
"""

from floodway.engine.control.report import Moments


class RunningMoments:
    """Count, mean, variance and third central moment of the numbers added so far.

    Examples
    --------
    >>> moments = RunningMoments()
    >>> for x in (1, 2, 6):
    ...     moments.add(x)
    >>> moments.report()
    Moments(count=3, mean=3.0, variance=4.66..., third=6.0)
    """

    __slots__ = ("_cubes", "_squares", "count", "mean")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        # Sums, not means, of the squared and cubed differences from the mean.
        self._squares = 0.0
        self._cubes = 0.0

    def add(self, x: float) -> None:
        """Add a number."""
        before = self.count
        self.count = count = before + 1
        delta = x - self.mean
        step = delta / count
        spread = delta * step * before
        self.mean += step
        # The cubes need the squares as they were before this number.
        self._cubes += spread * step * (count - 2) - 3.0 * step * self._squares
        self._squares += spread

    def merge(self, other: Moments) -> None:
        """Add all the numbers of another sequence, of which only the moments are known."""
        if not other.count:
            return
        mine, theirs = self.count, other.count
        count = mine + theirs
        delta = other.mean - self.mean
        squares, cubes = other.variance * theirs, other.third * theirs
        self._cubes += (
            cubes
            + delta**3 * mine * theirs * (mine - theirs) / count**2
            + 3.0 * delta * (mine * squares - theirs * self._squares) / count
        )
        self._squares += squares + delta**2 * mine * theirs / count
        self.mean += delta * theirs / count
        self.count = count

    def report(self) -> Moments:
        """Return the moments so far."""
        if not self.count:
            return Moments()
        return Moments(self.count, self.mean, self._squares / self.count, self._cubes / self.count)
