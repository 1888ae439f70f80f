"""What goes into a list source besides values, and what comes out of a list sink."""

from typing import Any

import msgspec

from floodway.core.duration import Duration


class At(msgspec.Struct, frozen=True):
    """A value that comes in at a given time."""

    timestamp: int
    value: Any
    key: Any = None


class Delete(msgspec.Struct, frozen=True):
    """The deletion of a table's row from a time on."""

    key: Any
    timestamp: int


class End(msgspec.Struct, frozen=True):
    """The source ends here, whatever follows in the list."""


class Abort(msgspec.Struct, frozen=True):
    """The flow dies here, but only once: when it is run again, it goes on from the last mark."""


class Pause(msgspec.Struct, frozen=True):
    """Nothing comes from the source for a while; the clock moves on."""

    duration: Duration


class Emitted(msgspec.Struct, frozen=True):
    """A record that left the flow.

    In a stream with updates, `id` names the record that this one replaces; a value of None takes
    it back.
    """

    timestamp: int
    key: Any
    value: Any
    id: Any = None
