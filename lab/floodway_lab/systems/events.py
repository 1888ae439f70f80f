"""What is needed of the events of each workload, for whoever decodes them with msgspec.

Systems run in environments of their own: nothing of Floodway is used here. What it is asked for by
itself is in `floodway_lab.systems.flows`, as users write it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec


class AdSeen(msgspec.Struct, gc=False):
    """An ad event."""

    ad_id: str
    event_type: str
    time: int = msgspec.field(name="event_time")


class SessionSeen(msgspec.Struct, gc=False):
    """Somebody in a place has played for so many seconds."""

    time: int
    geo: int
    seconds: int


class Text(msgspec.Struct, gc=False):
    """A line of text, and its number."""

    time: int
    id: int
    text: str


class Trade(msgspec.Struct, gc=False):
    """An offer or a sale."""

    time: int
    kind: str
    item: int
    price: int


class Click(msgspec.Struct, gc=False):
    """A click of somebody."""

    time: int
    user: int


class Report(msgspec.Struct, gc=False):
    """The part of a position report that matters; a negative speed is not valid."""

    time: int
    segment: int
    speed: int


EVENTS: dict[str, type[msgspec.Struct]] = {
    "ads": AdSeen,
    "mean": SessionSeen,
    "join": Trade,
    "words": Text,
    "windowed-words": Text,
    "grep": Text,
    "sessions": Click,
    "road": Report,
}
"""The events by workload."""


@cache
def decoder(case: str) -> Callable[[bytes], list[Any]]:
    """Return what decodes the lines of a workload."""
    return msgspec.json.Decoder(EVENTS[case]).decode_lines


def fields(case: str) -> dict[str, type]:
    """Return the fields of a workload's events as they are in the lines.

    >>> fields("ads")
    {'ad_id': <class 'str'>, 'event_type': <class 'str'>, 'event_time': <class 'int'>}
    """
    return {field.encode_name: field.type for field in msgspec.structs.fields(EVENTS[case])}
