"""Emit strategies: which of a table's updates a subscriber wants to see (thesis, section 5.3.2).

The strategy belongs to the subscriber, not to the table: the table is computed once, and a
dashboard may take every update while a report takes final results only. All strategies agree on
the last value they send of each row.
"""

import msgspec

from floodway.core.duration import Duration, show_ms, to_ms
from floodway.core.errors import locating


class EveryUpdate(msgspec.Struct, frozen=True):
    """Each update, at once."""

    def __str__(self) -> str:
        return "every update"


class Latest(msgspec.Struct, frozen=True):
    """Each update at once; of several that are made together, a row's latest only."""

    def __str__(self) -> str:
        return "latest"


class AtMostEvery(msgspec.Struct, frozen=True):
    """The latest value of each row that changed, at most once per interval of the clock."""

    interval_ms: int

    def __str__(self) -> str:
        return f"at most every {show_ms(self.interval_ms)}"


class AfterWindowEnd(msgspec.Struct, frozen=True):
    """A first result when stream time passes the window's end, then each update at once."""

    def __str__(self) -> str:
        return "after window end"


class Final(msgspec.Struct, frozen=True):
    """One result per row, when its window is closed: after its end and the retention."""

    def __str__(self) -> str:
        return "final"


Emit = EveryUpdate | Latest | AtMostEvery | AfterWindowEnd | Final


def every_update() -> EveryUpdate:
    """Return the strategy that sends each update at once; the default.

    >>> print(every_update())
    every update
    """
    return EveryUpdate()


def latest() -> Latest:
    """Return the strategy that is as quick as `every_update` and says less under load.

    Of several updates of a row that are made together, which happens when much comes at a time, it
    sends one. So a flooded aggregate can be computed in parts, and a hot row costs no more than
    any other.

    >>> print(latest())
    latest
    """
    return Latest()


def at_most_every(interval: Duration) -> AtMostEvery:
    """Return the strategy that sends what changed, at most once per `interval`.

    >>> print(at_most_every("1s"))
    at most every 1s
    """
    with locating("at_most_every"):
        return AtMostEvery(to_ms(interval, what="interval"))


def after_window_end() -> AfterWindowEnd:
    """Return the strategy that is silent while a window is open.

    >>> print(after_window_end())
    after window end
    """
    return AfterWindowEnd()


def final() -> Final:
    """Return the strategy that sends each window once, when nothing can change it any more.

    >>> print(final())
    final
    """
    return Final()
