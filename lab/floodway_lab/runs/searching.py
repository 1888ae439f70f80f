"""The highest rate that a system sustains: which one to try next, and when it is known.

A state machine: it is told how a trial went, and says what to try. A trial that was not sustained
tells more than that: how much was taken while more was there. So a few trials do.
"""

import math

import msgspec

from floodway.core.errors import OptionError

FASTER = 1.6
"""By so much the rate grows as long as everything is sustained."""

SLOWER = 10
"""By no more than that it falls at once: what is taken at first may be next to nothing."""

BELOW = 0.97
"""What is taken when there is too much can nearly be sustained."""


class Trial(msgspec.Struct, frozen=True):
    """How a trial went: at which rate, whether that was sustained, and what was taken a second."""

    rate: float
    sustained: bool
    per_s: float


class Search:
    """Looks for the highest sustained rate.

    Parameters
    ----------
    first
        The rate of the first trial.
    precision
        The search is over when no rate is left to try between one that was sustained and one that
        was not, and the second is at most so much higher, as a share.
    most
        After so many trials it is over in any case.

    Attributes
    ----------
    trials
        What was tried.

    Examples
    --------
    A system that takes 100,000 a second:

    >>> search = Search(250_000)
    >>> while (rate := search.next_rate()) is not None:
    ...     search.note(Trial(rate, rate <= 100_000, min(rate, 100_000)))
    >>> search.sustained, [round(trial.rate) for trial in search.trials]
    (97000.0, [250000, 97000, 101850])
    """

    def __init__(self, first: float, *, precision: float = 0.05, most: int = 14) -> None:
        if not first > 0 or not precision > 0:
            raise OptionError(
                f"a search cannot begin at {first} with a precision of {precision}",
                remedy="use a rate and a share above 0",
            )
        self._first, self._precision, self._most = first, precision, most
        self.trials: list[Trial] = []

    def note(self, trial: Trial) -> None:
        """Take note of how a trial went."""
        self.trials.append(trial)

    @property
    def sustained(self) -> float | None:
        """The highest rate that was sustained; None if none was."""
        return max((trial.rate for trial in self.trials if trial.sustained), default=None)

    @property
    def failed(self) -> float | None:
        """The lowest rate that was not, of those above the highest that was."""
        floor = self.sustained or 0.0
        above = [t.rate for t in self.trials if not t.sustained and t.rate > floor]
        return min(above, default=None)

    def next_rate(self) -> float | None:
        """Return what to try next; None if it is known, or has taken too many trials."""
        if not self.trials:
            return self._first
        low, high = self.sustained, self.failed
        if len(self.trials) >= self._most or (low and high and high <= low * self._step):
            return None
        if high is None:
            assert low is not None
            return low * FASTER
        if low is None:
            return self._below(high)
        hint = self._hint(low, high)
        return hint if hint is not None else math.sqrt(low * high)

    @property
    def _step(self) -> float:
        return 1 + self._precision + 1e-9

    def _below(self, high: float) -> float:
        """Return a rate for a system that has sustained nothing yet."""
        taken = min(trial.per_s for trial in self.trials if trial.rate == high)
        return min(max(taken * BELOW, high / SLOWER), high / self._step)

    def _hint(self, low: float, high: float) -> float | None:
        """Return a rate between two that the trials themselves speak for."""
        just_above = low * self._step
        taken = [t.per_s for t in self.trials if t.rate == high]
        # One that took (nearly) all of it and still did not keep up says nothing about how much
        # less it would have to be.
        if taken and low * 1.02 < BELOW * taken[-1] < high / self._step:
            return BELOW * taken[-1]
        return just_above if just_above < high / 1.02 and len(self.trials) <= 3 else None
