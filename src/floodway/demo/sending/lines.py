"""Events as lines that are made beforehand, and a note of which of them were sent when.

Making events takes longer than a system takes to process them. So lines are made beforehand, cut
where the time belongs, and joined with the time when they are due. What was sent is written down as
stretches of lines with one time each; so whoever checks the results can tell every single event,
though there are millions.
"""

from collections.abc import Sequence

import msgspec

PREPARED = 20_000
"""So many events are made beforehand, and sent again and again."""

HOLE = b"\x00"
"""Stands in a line where its time belongs."""


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """Lines that were sent one after the other with the same time: which, how many, and when."""

    first: int
    count: int
    time_ms: int


class Lines:
    r"""Lines with a hole for the time, sent again and again in the same order.

    Parameters
    ----------
    lines
        Without the end of a line; each has a `HOLE`.

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

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._whole, self._count = b"\n".join(lines) + b"\n", len(lines)
        self._next, self._pieces = 0, self._cut()
        self.sent: list[Stretch] = []

    def _cut(self) -> list[bytes]:
        """Return what lies between two times, so that a stretch is one call of join."""
        return self._text().split(HOLE)

    def _text(self) -> bytes:
        """Return the lines as they are sent this time, but for their times."""
        return self._whole

    def take(self, count: int, time_ms: int) -> bytes:
        """Return the next lines, due at a moment."""
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
                self._begin_anew()
            count -= stop - first
        return b"".join(blocks)

    def _begin_anew(self) -> None:
        """Note that the last line was sent, and that the first comes next."""
