"""What data engines have sent: every single event can be told, though there are millions."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from floodway.demo.sending.lines import Stretch


class Part(msgspec.Struct, frozen=True):
    """What one data engine has sent: its lines, and which of them when."""

    lines: Sequence[bytes]
    stretches: Sequence[Stretch]


def read_stretches(log: str | Path) -> list[Stretch]:
    """Return what a data engine has written down; see `Orders.log`."""
    return msgspec.msgpack.decode(Path(log).read_bytes(), type=list[Stretch])


class Sent:
    """What all data engines have sent.

    Examples
    --------
    >>> sent = Sent([Part([b"a", b"b"], [Stretch(0, 2, 7), Stretch(0, 1, 12)])])
    >>> sent.per_window(["a", "b"], [1, 1], 10)
    {0: Counter({'a': 1, 'b': 1}), 10: Counter({'a': 1})}
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts

    @property
    def lines(self) -> list[bytes]:
        """The lines of all data engines."""
        return [line for part in self.parts for line in part.lines]

    def times(self, window_ms: int) -> dict[int, list[int]]:
        """Return how often each line was sent in each window."""
        whole, offset = sum(len(part.lines) for part in self.parts), 0
        changes: dict[int, list[int]] = {}
        for part in self.parts:
            for stretch in part.stretches:
                window = stretch.time_ms - stretch.time_ms % window_ms
                row = changes.setdefault(window, [0] * (whole + 1))
                row[offset + stretch.first] += 1
                row[offset + stretch.first + stretch.count] -= 1
            offset += len(part.lines)
        return {window: list(accumulate(row[:-1])) for window, row in sorted(changes.items())}

    def per_window(
        self, keys: Sequence[Any], weights: Sequence[int], window_ms: int
    ) -> dict[int, Counter[Any]]:
        """Return sums of weights per window and key; lines whose key is None do not count."""
        found: dict[int, Counter[Any]] = {}
        for window, times in self.times(window_ms).items():
            sums: Counter[Any] = Counter()
            for key, weight, often in zip(keys, weights, times, strict=True):
                if often and key is not None:
                    sums[key] += weight * often
            found[window] = sums
        return found
