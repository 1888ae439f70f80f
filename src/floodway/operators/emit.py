"""Emit strategies: which of a table's updates a subscriber wants to see (thesis, section 5.3.2).

The strategy belongs to the subscriber, not to the table: the table is computed once, and a
dashboard may take every update while a report takes final results only. All strategies agree on the
last value they send for each row.
"""

import msgspec

from floodway.core.duration import Duration, show_ms, to_ms
from floodway.core.errors import locating


class EveryUpdate(msgspec.Struct, frozen=True):
    """Each update, at once."""

    def __str__(self) -> str:
        return "every update"


class Latest(msgspec.Struct, frozen=True):
    """Each update at once; of several updates of a row that are made together, only the last."""

    def __str__(self) -> str:
        return "latest"


class AtMostEvery(msgspec.Struct, frozen=True):
    """The latest value of each row that changed, at most once per interval of the clock."""

    interval_ms: int

    def __str__(self) -> str:
        return f"at most every {show_ms(self.interval_ms)}"


class Consistent(msgspec.Struct, frozen=True):
    """The latest value of each row that changed, at every mark."""

    def __str__(self) -> str:
        return "consistent"


class AfterWindowEnd(msgspec.Struct, frozen=True):
    """A first result when stream time passes the window's end, then corrections.

    Corrections come at once or, of each row the latest, once per interval of the clock.
    """

    corrections_ms: int | None = None

    def __str__(self) -> str:
        if self.corrections_ms is None:
            return "after window end"
        return f"after window end, corrections at most every {show_ms(self.corrections_ms)}"


class Final(msgspec.Struct, frozen=True):
    """One result per row, when its window is closed: after its end and the retention."""

    def __str__(self) -> str:
        return "final"


Emit = EveryUpdate | Latest | AtMostEvery | Consistent | AfterWindowEnd | Final


def every_update() -> EveryUpdate:
    """Return the strategy that sends each update at once; the default.

    >>> print(every_update())
    every update
    """
    return EveryUpdate()


def latest() -> Latest:
    """Return the strategy that is as quick as `every_update` and sends less under load.

    Of several updates of a row that are made together, as happens when many records come at once,
    it sends only the last. So a flooded aggregate can be computed in parts, and a hot row costs no
    more than any other.

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


def consistent() -> Consistent:
    """Return the strategy whose results fit together, ten times a second.

    The engine makes ten marks a second. At each of them, this strategy sends the latest value of
    each row that has changed. All rows of all tables then reflect the same records: those that were
    read before the mark. So what is sent up to a mark adds up, even over joins and aggregates of
    aggregates, where an update in between may reflect only one half of a record. Every epoch ends
    with a mark, so what a transactional sink commits is always such a state.

    >>> print(consistent())
    consistent
    """
    return Consistent()


def after_window_end(*, corrections: Duration | None = None) -> AfterWindowEnd:
    """Return the strategy that is silent while a window is open.

    A record that comes after the end of its window, and within the retention, corrects what was
    sent. Each such correction is sent at once; with `corrections`, only the latest of each row is
    sent, at most once per interval of the clock. The last one is always sent, even when the flow
    ends or is drained.

    >>> print(after_window_end())
    after window end
    >>> print(after_window_end(corrections="1s"))
    after window end, corrections at most every 1s
    """
    if corrections is None:
        return AfterWindowEnd()
    with locating("after_window_end"):
        return AfterWindowEnd(to_ms(corrections, what="corrections"))


def final() -> Final:
    """Return the strategy that sends each window once, when nothing can change it any more.

    >>> print(final())
    final
    """
    return Final()
