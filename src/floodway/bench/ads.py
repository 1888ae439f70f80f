"""The ad workload: events as JSON lines, campaigns as a table, views counted in windows.

An event is about 240 bytes and says that somebody saw, clicked or bought through an ad. A third of
the events are views; a thousand ads belong to a hundred campaigns.
"""

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

import floodway as fw
from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.connectors.discard import DiscardSink
from floodway.connectors.tcp import TcpSource
from floodway.testing import At, ListSink, ListSource

KINDS = ("view", "click", "purchase")
ADS, CAMPAIGNS = 1000, 100
WINDOW_MS = 10_000
START_MS = 1_700_000_000_000


class AdEvent(fw.Record, frozen=True):
    """Somebody did something with an ad."""

    user_id: str
    page_id: str
    ad_id: str
    ad_type: str
    event_type: str
    event_time: int
    ip_address: str


class AdSeen(fw.Record, frozen=True):
    """What the flow wants to know of an event; the other fields are read over, not decoded."""

    ad_id: str
    event_type: str
    event_time: int


def ad_name(number: int) -> str:
    """Return an ad's name."""
    return f"ad-{number:08x}-1a2b-4c3d-8e4f"


def campaign_of(number: int) -> str:
    """Return the campaign of an ad."""
    return f"campaign-{number % CAMPAIGNS:02}"


def campaigns() -> dict[str, str]:
    """Return the campaign of every ad, by name."""
    return {ad_name(number): campaign_of(number) for number in range(ADS)}


def make_events(
    count: int, *, seed: int = 1, start_ms: int = START_MS, span_ms: int = 60_000
) -> list[AdEvent]:
    """Return events of a span of time, in order of time."""
    rng = random.Random(seed)
    return [
        AdEvent(
            f"user-{rng.getrandbits(64):016x}-9f8e",
            f"page-{rng.getrandbits(32):08x}-77aa-4bcd",
            ad_name(rng.randrange(ADS)),
            rng.choice(("banner", "modal", "sponsored-search", "mail", "mobile")),
            rng.choice(KINDS),
            start_ms + number * span_ms // count,
            f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}",
        )
        for number in range(count)
    ]


def to_lines(events: list[AdEvent]) -> bytes:
    """Return events as JSON lines."""
    return msgspec.json.Encoder().encode_lines(events)


def build(
    events: SourceConnector,
    sink: SinkConnector,
    *,
    dashboard: SinkConnector | None = None,
    lookup: Mapping[str, str] | None = None,
) -> fw.Flow:
    """Return the flow: decode, filter, look up the campaign, count views per window.

    The sink gets what has changed once a second, a dashboard each update at once, or the latest of
    those that are made together. `lookup` has the campaign of every ad, as `campaigns` does.
    """
    flow = fw.Flow("ads")
    known = campaigns() if lookup is None else lookup
    table = flow.table(
        "campaigns",
        ListSource([At(0, campaign, ad) for ad, campaign in known.items()]),
        schema=str,
        key=str,
        preload=True,
    )
    views = (
        flow.source("events", events, schema=AdSeen, timestamp="event_time", on_error="skip")
        .filter("event_type = 'view'", name="views")
        .join(
            table,
            on="ad_id",
            select=["right AS campaign"],
            late_updates="ignore",
            broadcast=True,
            name="with_campaign",
        )
        .group_by("campaign")
        .window(fw.tumbling(WINDOW_MS))
        .count(name="views_per_campaign")
    )
    views.changes(emit=fw.emit.at_most_every("1s"), name="updates").to(sink, name="results")
    if dashboard is not None:
        views.changes(emit=fw.emit.latest(), name="latest").to(dashboard, name="dashboard")
    return flow


def demo_flow() -> fw.Flow:
    """Return the flow as `floodway demo` runs it, to be explained."""
    return build(TcpSource("127.0.0.1", 9999), ListSink(), dashboard=DiscardSink())


def plain_count(lines: bytes, lookup: dict[str, str]) -> Counter[tuple[str, int]]:
    """Return what the flow computes, by one loop without any engine: the limit."""
    decode = msgspec.json.Decoder(AdSeen).decode_lines
    counts: Counter[tuple[str, int]] = Counter()
    for event in decode(lines):
        if event.event_type == "view":
            campaign = lookup.get(event.ad_id)
            if campaign is not None:
                counts[campaign, event.event_time - event.event_time % WINDOW_MS] += 1
    return counts


def final_counts(records: list[Any]) -> Counter[tuple[str, int]]:
    """Return the last count of every campaign and window that a sink was sent."""
    counts: Counter[tuple[str, int]] = Counter()
    for record in records:
        change = record.value
        counts[change.key, change.window.start] = change.value or 0
    return counts
