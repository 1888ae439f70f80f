"""Events as lines that are made beforehand, and a note of which of them were sent when.

Making events takes longer than a system takes to process them. So lines are made beforehand, cut
where the time belongs, and joined with the time when they are due. What was sent is written down as
stretches of lines with one time each; so whoever checks the results can tell every single event,
though there are millions.
"""

import random
from collections.abc import Iterator, Sequence

import msgspec

from floodway.core.errors import OptionError

HOLE = b"\x00"
"""Stands in a line where its time belongs."""

LAP = b"\x01"
"""Stands in a line where the number of the lap belongs: how often all lines were sent before. So
keys can be new all the time, though lines are sent again and again."""

LAPS = 100_000
"""Laps are counted from a multiple of this, another one for every seed: no two data engines have a
lap in common."""


def first_lap(seed: int) -> int:
    """Return the number of the first lap.

    >>> first_lap(3)
    300001
    """
    return seed * LAPS + 1


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """Lines that were sent one after the other with the same time: which, how many, and when."""

    first: int
    count: int
    time_ms: int


class Disorder(msgspec.Struct, frozen=True):
    """How many events are late, and by how much at most.

    Examples
    --------
    >>> rng = random.Random(1)
    >>> list(Disorder(0.1, 1_000).spread(100, 50_000, rng))
    [(10, 49132), (90, 50000)]
    >>> list(Disorder().spread(100, 50_000, rng))
    [(100, 50000)]
    """

    share: float = 0.0
    most_ms: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.most_ms < 0:
            raise OptionError(
                f"a share of {self.share} of the events cannot be {self.most_ms} ms late",
                remedy="use a share between 0 and 1, and a time of 0 or more",
            )

    def spread(self, count: int, time_ms: int, rng: random.Random) -> Iterator[tuple[int, int]]:
        """Return how many of some events have which time; those of one moment are late together."""
        late = int(count * self.share + rng.random()) if self.share and self.most_ms else 0
        if late:
            yield late, time_ms - rng.randint(1, self.most_ms)
        if count > late:
            yield count - late, time_ms


class Lines:
    r"""Lines with a hole for the time, sent again and again in the same order.

    Parameters
    ----------
    lines
        Without the end of a line; each has a `HOLE`, and may have a `LAP`.
    disorder
        Which are late.
    seed
        Of everything that is left to chance.

    Attributes
    ----------
    sent
        What was sent so far.

    Examples
    --------
    >>> lines = Lines([b"a,\x00", b"b,\x00!"])
    >>> lines.take(3, 7), lines.take(1, 8)
    (b'a,7\nb,7!\na,7\n', b'b,8!\n')
    >>> lines.sent
    [Stretch(first=0, count=2, time_ms=7), Stretch(first=0, count=1, time_ms=7),
     Stretch(first=1, count=1, time_ms=8)]
    >>> Lines([b"a-\x01,\x00", b"b-\x01,\x00"], seed=2).take(3, 7)
    b'a-200001,7\nb-200001,7\na-200002,7\n'
    """

    def __init__(
        self, lines: Sequence[bytes], *, disorder: Disorder | None = None, seed: int = 1
    ) -> None:
        self._whole, self._count = b"\n".join(lines) + b"\n", len(lines)
        self._disorder, self._rng = disorder or Disorder(), random.Random(seed)
        self._lap, self._next = first_lap(seed), 0
        self._pieces = self._cut()
        self.sent: list[Stretch] = []

    def _cut(self) -> list[bytes]:
        """Return what lies between two times, so that a stretch is one call of join."""
        return self._whole.replace(LAP, b"%d" % self._lap).split(HOLE)

    def take(self, count: int, time_ms: int) -> bytes:
        """Return the next lines, due at a moment."""
        if not self._disorder.share:
            return self._stamped(count, time_ms)
        spread = self._disorder.spread(count, time_ms, self._rng)
        return b"".join(self._stamped(some, at_ms) for some, at_ms in spread)

    def _stamped(self, count: int, time_ms: int) -> bytes:
        stamp, blocks = b"%d" % time_ms, []
        while count > 0:
            first = self._next
            stop = min(first + count, self._count)
            head = self._pieces[first].rpartition(b"\n")[2]
            tail = self._pieces[stop].partition(b"\n")[0] + b"\n"
            blocks.append(stamp.join([head, *self._pieces[first + 1 : stop], tail]))
            self.sent.append(Stretch(first, stop - first, time_ms))
            self._next = stop % self._count
            if not self._next:
                self._begin_lap()
            count -= stop - first
        return b"".join(blocks)

    def _begin_lap(self) -> None:
        self._lap += 1
        if LAP in self._whole:
            self._pieces = self._cut()
