"""What a workload is, and how its answers are checked."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from floodway.bench.data.keys import Keys
from floodway.bench.data.lines import Disorder, Lines, Stretch

PREPARED = 20_000
"""So many events are made beforehand, and sent again and again."""

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


class Case(ABC):
    """A workload.

    Attributes
    ----------
    name, title
        What it is called, and what it does.
    keys
        How keys are distributed if nobody says anything.
    window_ms
        The grain of its windows: events that lie in the same one differ in nothing else.
    """

    name: str
    title: str
    keys: Keys
    window_ms: int

    @abstractmethod
    def lines(self, shape: Shape) -> list[bytes]:
        """Return the lines to be sent, with holes for the time; the same for the same shape."""

    @abstractmethod
    def expected(self, lines: Sequence[bytes], sent: "Sent") -> dict[tuple[Any, int], Any]:
        """Return what there is to find in what was sent."""

    def hints(self) -> dict[str, Any]:
        """Return what a system that is not Floodway has to know, as JSON."""
        return {"window_ms": self.window_ms}

    def supply(self, shape: Shape) -> Lines:
        """Return the events."""
        return Lines(self.lines(shape), disorder=shape.disorder, seed=shape.seed)


class Sent:
    """How often each line was sent in each window; a window is a multiple of some milliseconds."""

    def __init__(self, stretches: Iterable[Stretch], lines: int, window_ms: int) -> None:
        changes: dict[int, list[int]] = {}
        for first, count, time_ms in ((s.first, s.count, s.time_ms) for s in stretches):
            row = changes.setdefault(time_ms - time_ms % window_ms, [0] * (lines + 1))
            row[first] += 1
            row[first + count] -= 1
        self.times = {window: list(accumulate(row[:-1])) for window, row in sorted(changes.items())}

    def per_window(self, keys: Sequence[Any], weights: Sequence[int]) -> dict[int, Counter[Any]]:
        """Return sums of weights per window and key; lines whose key is None do not count."""
        found: dict[int, Counter[Any]] = {}
        for window, times in self.times.items():
            sums: Counter[Any] = Counter()
            for key, weight, often in zip(keys, weights, times, strict=True):
                if often and key is not None:
                    sums[key] += weight * often
            found[window] = sums
        return found


def differences(expected: Found, found: Found) -> list[str]:
    """Return what is wrong with results, in words; nothing if they are right.

    >>> for line in differences({("a", 0): 2, ("b", 0): 1}, {("a", 0): 3, ("c", 0): 1}):
    ...     print(line)
    a in window 0: 3 instead of 2
    b in window 0: missing
    c in window 0: 1 instead of nothing
    """
    wrong = []
    for key in sorted({*expected, *found}, key=str):
        right, got = expected.get(key), found.get(key)
        if right == got or _close(right, got):
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
