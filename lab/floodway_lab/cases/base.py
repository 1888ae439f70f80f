"""What a workload is, and how its answers are checked."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from floodway_lab.cases.keys import Keys
from floodway_lab.sending.lines import CaseLines, Disorder
from floodway_lab.sending.sent import CaseSent

TALLY_MS = 1_000
"""Results of which there are too many to tell one by one are counted, and added up, for each
second of event time."""

Found = Mapping[tuple[Any, int], Any]
"""Results by key and window."""


class Shape(msgspec.Struct, frozen=True):
    """What the events of a run are like; None is what the workload has by itself.

    Attributes
    ----------
    keys
        How keys are distributed.
    payload
        So many bytes are added to every event.
    disorder
        Which events are late.
    seed
        Of everything that is left to chance.
    """

    keys: Keys | None = None
    payload: int = 0
    disorder: Disorder = Disorder()
    seed: int = 1

    def end(self) -> bytes:
        r"""Return how an event ends: with its payload, if it has one.

        >>> Shape(payload=3).end()
        b',"payload":"xxx"}'
        """
        return b',"payload":"%s"}' % (b"x" * self.payload) if self.payload else b"}"


class Case(ABC):
    """A workload.

    Attributes
    ----------
    name, title
        What it is called, and what it does.
    keys
        How keys are distributed if nobody says anything.
    open_ms
        Results that come at the end of something may be missing if that is not longer ago than this
        when the events end: not every system is told that there will be no more. 0 if results come
        with every event.
    """

    name: str
    title: str
    keys: Keys
    open_ms: int = 0

    @abstractmethod
    def lines(self, shape: Shape) -> list[bytes]:
        """Return the lines to be sent, with holes for the time; the same for the same shape."""

    @abstractmethod
    def expected(self, sent: CaseSent) -> dict[tuple[Any, int], Any]:
        """Return what there is to find in what was sent."""

    @abstractmethod
    def hints(self) -> dict[str, Any]:
        """Return what a system that is not Floodway has to know, as JSON."""

    def supply(self, shape: Shape) -> CaseLines:
        """Return the events."""
        return CaseLines(self.lines(shape), disorder=shape.disorder, seed=shape.seed)


class Tally:
    """Counts results and adds them up, for each second.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.add(5, 1_500)
    >>> tally.add(7, 1_900)
    >>> tally.found()
    {('count', 1000): 2, ('sum', 1000): 12}
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._sums: Counter[int] = Counter()

    def add(self, amount: int, time_ms: int, times: int = 1) -> None:
        """Take a result that came so many times."""
        second = time_ms - time_ms % TALLY_MS
        self._counts[second] += times
        self._sums[second] += times * amount

    def found(self) -> dict[tuple[Any, int], Any]:
        """Return both by second."""
        counts = {("count", second): count for second, count in self._counts.items()}
        return {**counts, **{("sum", second): whole for second, whole in self._sums.items()}}


def differences(expected: Found, found: Found, *, until_ms: int | None = None) -> list[str]:
    """Return what is wrong with results, in words; nothing if they are right.

    Those of windows that begin at `until_ms` or later are not looked at.

    >>> for line in differences({("a", 0): 2, ("b", 0): 1}, {("a", 0): 3, ("c", 0): 1}):
    ...     print(line)
    a in window 0: 3 instead of 2
    b in window 0: missing
    c in window 0: 1 instead of nothing
    """
    wrong = []
    for key in sorted({*expected, *found}, key=str):
        right, got = expected.get(key), found.get(key)
        if right == got or _close(right, got) or (until_ms is not None and key[1] >= until_ms):
            continue
        name = f"{key[0]} in window {key[1]}"
        if got is None:
            wrong.append(f"{name}: missing")
        else:
            wrong.append(f"{name}: {got} instead of {'nothing' if right is None else right}")
    return wrong


def _close(right: Any, got: Any) -> bool:
    """Return whether two numbers differ by no more than the order of additions can make them."""
    if not isinstance(right, float) or not isinstance(got, int | float):
        return False
    return abs(got - right) <= 1e-9 * max(abs(right), 1.0)
