"""Windows: which stretches of event time a record belongs to (thesis, section 5.2.2).

Tumbling and hopping windows are aligned to the epoch, start inclusive, end exclusive; the window's
id is its start. A session is as long as its records are close to each other: it ends `gap` after
its last record, and two records share a session if at most `gap` lies between neighbours.
"""

from typing import Any

import msgspec

from floodway.core.duration import Duration, show_ms, to_ms
from floodway.core.errors import DurationError, locating


class Window(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A stretch of event time in milliseconds, start inclusive, end exclusive.

    >>> Window(0, 10_000)
    Window(start=0, end=10000)
    """

    start: int
    end: int


class Tumbling(msgspec.Struct, frozen=True):
    """Windows of one size, side by side."""

    size_ms: int

    def starts(self, timestamp: int) -> range:
        """Return the start of the window that holds `timestamp`.

        >>> list(Tumbling(10).starts(27))
        [20]
        """
        start = timestamp - timestamp % self.size_ms
        return range(start, start + 1)

    def __str__(self) -> str:
        return f"tumbling({show_ms(self.size_ms)})"


class Hopping(msgspec.Struct, frozen=True):
    """Windows of one size, one every `advance_ms`; they overlap if the advance is smaller."""

    size_ms: int
    advance_ms: int

    def starts(self, timestamp: int) -> range:
        """Return the starts of all windows that hold `timestamp`, earliest first.

        Not every record is in the same number of windows (thesis, example 16).

        >>> list(Hopping(10, 3).starts(9)), list(Hopping(10, 3).starts(10))
        ([0, 3, 6, 9], [3, 6, 9])
        """
        advance = self.advance_ms
        first = (timestamp - self.size_ms) // advance * advance + advance
        return range(first, timestamp // advance * advance + 1, advance)

    def __str__(self) -> str:
        return f"hopping({show_ms(self.size_ms)}, advance={show_ms(self.advance_ms)})"


class Session(msgspec.Struct, frozen=True):
    """Windows that grow with their records and end `gap_ms` after the last."""

    gap_ms: int

    @property
    def reach_ms(self) -> int:
        """How long after its last record a session is over; at its very end it still goes on."""
        return self.gap_ms + 1

    def __str__(self) -> str:
        return f"session({show_ms(self.gap_ms)})"


FixedWindows = Tumbling | Hopping
Windows = Tumbling | Hopping | Session


def over_ms(windows: Windows | None) -> int:
    """Return how long after the end of a window its rows may still change without being late.

    >>> over_ms(Tumbling(10)), over_ms(Session(3))
    (0, 1)
    """
    return windows.reach_ms - windows.gap_ms if isinstance(windows, Session) else 0


class WindowInKey(msgspec.Struct, frozen=True):
    """Where the key of a table has the window of a row, as one of its columns.

    Attributes
    ----------
    windows
        Which windows.
    column
        Which column of the key; None if it has no other.
    is_end
        Whether that column is the window's end, and not its start.

    Examples
    --------
    >>> (
    ...     WindowInKey(Tumbling(10), None).end(20),
    ...     WindowInKey(Session(3), 1, is_end=True).end(("a", 7)),
    ...     WindowInKey.of(Tumbling(10)).end(("a", 20, 30)),
    ... )
    (30, 8, 30)
    """

    windows: Windows
    column: int | None
    is_end: bool = False

    @classmethod
    def of(cls, windows: Windows) -> "WindowInKey":
        """Return where the rows of a windowed table have it: they have key, start and end."""
        return cls(windows, 2, is_end=True)

    def end(self, key: Any) -> int:
        """Return when the window of a row is over; a session may go on at its very end."""
        bound: int = key if self.column is None else key[self.column]
        if self.is_end:
            return bound + over_ms(self.windows)
        assert not isinstance(self.windows, Session)
        return bound + self.windows.size_ms


def tumbling(size: Duration) -> Tumbling:
    """Return windows of `size`, side by side.

    >>> print(tumbling("10s"))
    tumbling(10s)
    """
    with locating("tumbling"):
        return Tumbling(to_ms(size, what="size"))


def hopping(size: Duration, *, advance: Duration) -> Hopping:
    """Return windows of `size`, a new one every `advance`.

    >>> print(hopping("1m", advance="10s"))
    hopping(1m, advance=10s)
    """
    with locating("hopping"):
        windows = Hopping(to_ms(size, what="size"), to_ms(advance, what="advance"))
        if windows.advance_ms > windows.size_ms:
            raise DurationError(
                f"advance {advance!r} is longer than size {size!r}: records between would be lost",
                remedy="make the advance at most the size",
            )
        return windows


def session(gap: Duration) -> Session:
    """Return windows that end when no record has come for longer than `gap`.

    >>> print(session("30m"))
    session(30m)
    """
    with locating("session"):
        return Session(to_ms(gap, what="gap"))
