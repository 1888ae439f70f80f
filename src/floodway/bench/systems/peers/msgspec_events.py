"""What is needed of the events of each workload, for peers that decode with msgspec."""

import msgspec


class AdSeen(msgspec.Struct):
    """An ad event."""

    ad_id: str
    event_type: str
    time: int = msgspec.field(name="event_time")


class SessionSeen(msgspec.Struct):
    """An event of windowed aggregation."""

    time: int
    geo: int
    seconds: int


class Text(msgspec.Struct):
    """A line of text, and its number."""

    time: int
    id: int
    text: str


class Trade(msgspec.Struct):
    """An offer or a sale."""

    time: int
    kind: str
    item: int
    price: int


class Click(msgspec.Struct):
    """A click of somebody."""

    time: int
    user: int


class Report(msgspec.Struct):
    """The part of a position report that matters; a negative speed is not valid."""

    time: int
    segment: int
    speed: int
