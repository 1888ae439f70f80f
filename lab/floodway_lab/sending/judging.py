"""Whether a system sustains a rate: Algorithm 1 of the benchmark paper, as it is printed there.

The queue is looked at once per `acceptable` events. Up to there it may be as long as it likes to
be. Between that and `tolerated` the system may be holding back for a moment, and has so many looks
to recover as the one limit goes into the other. Above, it cannot keep up.
"""

from floodway.core.errors import OptionError


class Sustaining:
    """Judges one data engine; whoever generates events tells it how many, and how many wait.

    Parameters
    ----------
    acceptable, tolerated
        The limits of the queue, in events: the paper's c_a and c_b.

    Attributes
    ----------
    sustained
        False from the moment at which it is clear that the system cannot keep up.
    why
        What made it clear.

    Examples
    --------
    >>> judge = Sustaining(10, 30)
    >>> [judge.look(generated, queued) for generated, queued in ((10, 9), (20, 12), (30, 8))]
    [True, True, True]
    >>> [judge.look(generated, 12) for generated in (40, 50, 60)]
    [True, True, False]
    >>> judge.why
    '10 events or more have waited for 3 looks in a row'
    """

    def __init__(self, acceptable: int, tolerated: int) -> None:
        if not 0 < acceptable <= tolerated:
            raise OptionError(
                f"the limits of the queue are {acceptable} and {tolerated} events",
                remedy="the acceptable length is at least 1, the tolerated one is not less",
            )
        self.acceptable, self.tolerated = acceptable, tolerated
        self.sustained, self.why = True, ""
        self._index = self._next = 0

    def look(self, generated: int, queued: int) -> bool:
        """Look at the queue if it is time; return whether the system keeps up so far.

        Events come in blocks. A block in which several looks are due is looked at once: between
        them nobody could have taken anything.
        """
        if self.sustained and generated >= self._next:
            self._next = (generated // self.acceptable + 1) * self.acceptable
            self._judge(queued)
        return self.sustained

    def _judge(self, queued: int) -> None:
        if queued > self.tolerated:
            self._end(f"{queued} events wait, more than {self.tolerated}")
        elif queued < self.acceptable:
            self._index = 0
        else:
            self._index += 1
            looks = self.tolerated // self.acceptable
            if self._index == looks:
                waited = f"{self.acceptable} events or more have waited"
                self._end(f"{waited} for {looks} looks in a row")

    def _end(self, why: str) -> None:
        self.sustained, self.why = False, why
