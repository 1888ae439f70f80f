"""The base class of what flows: typed, immutable, cheap to make and to encode."""

from typing import Any, Self, dataclass_transform

import msgspec


# msgspec tells type checkers that structs are dataclasses; this adds that records are frozen, so
# that users need not say so again.
@dataclass_transform(frozen_default=True)
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

    def replace(self, **fields: Any) -> Self:
        """Return a copy with some fields changed."""
        return msgspec.structs.replace(self, **fields)
