"""The ad workload: events as JSON lines, campaigns as a table, views counted in windows.

An event is about 240 bytes and says that somebody saw, clicked or bought through an ad. A third of
the events are views; a thousand ads belong to a hundred campaigns.
"""

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

import floodway as fw
from floodway.connectors.base import SinkConnector, SourceConnector
from floodway.connectors.discard import DiscardSink
from floodway.connectors.tcp import TcpSource
from floodway.demo.sending.lines import HOLE, PREPARED, Lines
from floodway.demo.sending.sent import Sent
from floodway.testing import At, ListSink, ListSource

KINDS = ("view", "click", "purchase")
ADS, CAMPAIGNS = 1000, 100
WINDOW_MS = 10_000
START_MS = 1_700_000_000_000

_MARK = 9_999_999_999_999  # stands where the time belongs


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


def lines(numbers: Sequence[int] | None = None, *, seed: int = 1, end: bytes = b"}") -> list[bytes]:
    """Return the lines of events without their times, which are sent again and again.

    Parameters
    ----------
    numbers
        Which ad each is about; by default all ads come as often.
    seed
        Of everything that is left to chance.
    end
        How each line ends.
    """
    encode = msgspec.json.Encoder().encode
    found = []
    for place, event in enumerate(make_events(PREPARED, seed=seed)):
        ad = event.ad_id if numbers is None else ad_name(numbers[place] % ADS)
        marked = msgspec.structs.replace(event, ad_id=ad, event_time=_MARK)
        found.append(encode(marked).replace(b"%d" % _MARK, HOLE)[:-1] + end)
    return found


def supply() -> Lines:
    """Return events without end; called in the process of a data engine."""
    return Lines(lines())


def views_per_campaign(flow: fw.Flow, events: fw.Stream) -> fw.Table:
    """Filter, look up the campaign, count views per window."""
    table = flow.table(
        "campaigns",
        ListSource([At(0, campaign, ad) for ad, campaign in campaigns().items()]),
        schema=str,
        key=str,
        preload=True,
    )
    return (
        events.filter("event_type = 'view'", name="views")
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


def build(
    events: SourceConnector, sink: SinkConnector, *, dashboard: SinkConnector | None = None
) -> fw.Flow:
    """Return the flow: decode, filter, look up the campaign, count views per window.

    The sink gets what has changed once a second, a dashboard each update at once, or the latest of
    those that are made together.
    """
    flow = fw.Flow("ads")
    seen = flow.source("events", events, schema=AdSeen, timestamp="event_time", on_error="skip")
    views = views_per_campaign(flow, seen)
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


def plain_limit(rounds: int = 3) -> int:
    """Return how many events a second a plain loop can do on this machine, in round numbers.

    Record by record, the flow comes to about half of it; see `docs/performance.md`.
    """
    known, text = campaigns(), to_lines(make_events(PREPARED))
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(5):
            plain_count(text, known)
        times.append(time.perf_counter() - began)
    return int(float(f"{5 * PREPARED / min(times):.2g}"))


def expected(sent: Sent) -> Counter[tuple[str, int]]:
    """Return what the flow has to find in all that was sent, by a loop over the lines."""
    decode = msgspec.json.Decoder(AdSeen).decode
    known = campaigns()
    events = [decode(line.replace(HOLE, b"0")) for line in sent.lines]
    keys = [known.get(e.ad_id) if e.event_type == "view" else None for e in events]
    sums = sent.per_window(keys, [1] * len(keys), WINDOW_MS)
    return Counter(
        {(key, window): n for window, counts in sums.items() for key, n in counts.items()}
    )


def final_counts(records: Iterable[Any]) -> Counter[tuple[str, int]]:
    """Return the last count of every campaign and window that a sink was sent."""
    counts: Counter[tuple[str, int]] = Counter()
    for record in records:
        change = record.value
        counts[change.key, change.window.start] = change.value or 0
    return counts
