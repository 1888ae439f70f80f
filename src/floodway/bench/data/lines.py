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
        Without the end of a line; each has a `HOLE`.
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
    """

    def __init__(
        self, lines: Sequence[bytes], *, disorder: Disorder | None = None, seed: int = 1
    ) -> None:
        cut = [line.split(HOLE) for line in lines]
        self._heads = [head for head, _ in cut]
        self._tails = [tail + b"\n" for _, tail in cut]
        # What lies between two times, so that a stretch is one call of join.
        self._between = [
            tail + head for tail, head in zip(self._tails, self._heads[1:], strict=False)
        ]
        self._disorder, self._rng = disorder or Disorder(), random.Random(seed)
        self._next = 0
        self.sent: list[Stretch] = []

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
            stop = min(first + count, len(self._heads))
            pieces = [self._heads[first], *self._between[first : stop - 1], self._tails[stop - 1]]
            blocks.append(stamp.join(pieces))
            self.sent.append(Stretch(first, stop - first, time_ms))
            self._next = stop % len(self._heads)
            count -= stop - first
        return b"".join(blocks)
