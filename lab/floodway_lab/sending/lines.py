"""Lines of workloads: events can be late, and keys new each time that all lines were sent."""

import random
from collections.abc import Iterator, Sequence

import msgspec

from floodway.core.errors import OptionError
from floodway.demo.sending.lines import Lines

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


class CaseLines(Lines):
    r"""Lines with holes for the time, and perhaps for the number of the lap.

    Parameters
    ----------
    lines
        Without the end of a line; each has a `HOLE`, and may have a `LAP`.
    disorder
        Which are late.
    seed
        Of everything that is left to chance.

    Examples
    --------
    >>> CaseLines([b"a-\x01,\x00", b"b-\x01,\x00"], seed=2).take(3, 7)
    b'a-200001,7\nb-200001,7\na-200002,7\n'
    """

    def __init__(
        self, lines: Sequence[bytes], *, disorder: Disorder | None = None, seed: int = 1
    ) -> None:
        self._disorder, self._rng = disorder or Disorder(), random.Random(seed)
        self._lap = first_lap(seed)
        super().__init__(lines)

    def _text(self) -> bytes:
        return self._whole.replace(LAP, b"%d" % self._lap)

    def take(self, count: int, time_ms: int) -> bytes:
        """Return the next lines, due at a moment; some of them may be late."""
        if not self._disorder.share:
            return super().take(count, time_ms)
        spread = self._disorder.spread(count, time_ms, self._rng)
        return b"".join(super(CaseLines, self).take(some, at_ms) for some, at_ms in spread)

    def _begin_anew(self) -> None:
        self._lap += 1
        if LAP in self._whole:
            self._pieces = self._cut()
