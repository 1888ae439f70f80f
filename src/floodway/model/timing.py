"""Where the time of what comes in is from: the value, the connector, the clock, or nowhere."""

from enum import Enum
from typing import Any, Final

from floodway.core.errors import OptionError


class IngestionTime(Enum):
    """The type of `ARRIVAL`."""

    ARRIVAL = "arrival"

    def __repr__(self) -> str:
        return "ARRIVAL"


ARRIVAL: Final = IngestionTime.ARRIVAL
"""As a source's `timestamp`: the time at which a record comes in, and nothing else is meant."""


def table_times(
    connector: Any, timestamp: Any, *, preload: bool | None, static: bool | None
) -> tuple[bool, bool]:
    """Return whether a table is read first, and whether it is static: its rows have no time.

    Examples
    --------
    >>> from floodway.connectors import JsonLinesSource
    >>> file, folder = JsonLinesSource("users.jsonl"), JsonLinesSource("users", watch=True)
    >>> table_times(file, None, preload=None, static=None)
    (True, True)
    >>> table_times(file, "at", preload=None, static=None)
    (False, False)
    >>> table_times(folder, None, preload=None, static=True)
    (False, True)
    """
    bounded = getattr(connector, "bounded", None)
    if static and timestamp is not None:
        raise OptionError(
            "a static table has no time, and this one has a timestamp",
            remedy="leave out static=True, and each row holds from its timestamp on; or leave out "
            "the timestamp",
        )
    if preload and bounded is False:
        raise OptionError(
            f"the other sources would wait for ever: {type(connector).__name__} has no end",
            remedy="leave out preload=True, or let the connector end, e.g. watch=False, "
            "end='current'",
        )
    if static is None:
        untimed = timestamp is None and not getattr(connector, "timed", False)
        static = untimed and bool(preload or bounded)
    return (static and bool(bounded)) if preload is None else preload, static
