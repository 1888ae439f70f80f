"""The base class of what flows: typed, immutable, cheap to make and to encode."""

from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True):
    """The base of the user's record types.

    A record type is a class with annotated fields. Its instances are immutable, compare by value
    and are encoded without reflection (they are ``msgspec`` structs).

    Examples
    --------
    >>> class Click(Record):
    ...     page: str
    ...     at: int = 0
    >>> Click("home").replace(at=5)
    Click(page='home', at=5)
    """

    def replace(self, **fields: Any) -> "Record":
        """Return a copy with some fields changed."""
        return msgspec.structs.replace(self, **fields)
