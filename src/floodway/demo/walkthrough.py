"""A small flow on the reference driver, event by event.

Ad events are filtered, joined with the campaign of their ad and counted per campaign in windows
of ten seconds. Two subscribers follow the counts: a dashboard takes every update, a report takes
each window once it has ended. One event comes out of order and corrects a count, one update of
the campaigns comes late and moves events from one campaign to another, one event comes too late.
"""

from typing import Any

import msgspec

import floodway as fw
from floodway.testing import Driver, Emitted


class AdEvent(fw.Record, frozen=True):
    """Somebody saw or clicked an ad."""

    ad: str
    kind: str
    second: float


class Step(msgspec.Struct, frozen=True):
    """One thing that happens: an event, an update of the campaigns, or a pause."""

    title: str
    event: AdEvent | None = None
    update: tuple[str, str, int] | None = None
    pause: str | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What a step brought about: stream time, and what each subscriber saw."""

    step: str
    stream_time_ms: int | None
    updates: list[str]
    report: list[str]
    late: int


class Walkthrough(msgspec.Struct, frozen=True):
    """The whole walkthrough, as ``--json`` writes it."""

    flow: str
    outcomes: list[Outcome]
    table: list[dict[str, Any]]


STEPS = (
    Step("shoes: campaign spring", update=("shoes", "spring", 0)),
    Step("boots: campaign spring", update=("boots", "spring", 0)),
    Step("31 s without updates: idle", pause="31s"),
    Step("shoes viewed at 1 s", AdEvent("shoes", "view", 1)),
    Step("shoes clicked at 2 s", AdEvent("shoes", "click", 2)),
    Step("boots viewed at 4 s", AdEvent("boots", "view", 4)),
    Step("shoes viewed at 12 s", AdEvent("shoes", "view", 12)),
    Step("boots viewed at 6 s, unordered", AdEvent("boots", "view", 6)),
    Step("boots: winter from 5 s, late", update=("boots", "winter", 5_000)),
    Step("31 s without updates: idle", pause="31s"),
    Step("shoes viewed at 45 s", AdEvent("shoes", "view", 45)),
    Step("shoes viewed at 3 s, too late", AdEvent("shoes", "view", 3)),
)


def build() -> fw.Flow:
    """Return the walkthrough's flow."""
    flow = fw.Flow("ads", retention="30s")
    campaigns = flow.table("campaigns", schema=str, key=str, retention="1h")
    events = flow.source("events", schema=AdEvent, timestamp="CAST(second * 1000 AS BIGINT)")
    views = (
        events.filter("kind = 'view'")
        .join(campaigns, on="ad", select=["left.ad", "right AS campaign"], name="with_campaign")
        .group_by("campaign")
        .window(fw.tumbling("10s"))
        .count(name="views")
    )
    views.changes().to("dashboard")
    views.changes(emit=fw.emit.after_window_end()).to("report")
    return flow


def perform() -> Walkthrough:
    """Run the steps and collect what they bring about."""
    flow = build()
    driver = Driver(flow)
    outcomes = [_take(driver, step) for step in STEPS]
    rows = driver.table("views").rows()
    table = [
        {"campaign": campaign, "window": _seconds(window), "views": views, "as_of_ms": time}
        for (campaign, window), (time, views) in sorted(rows.items(), key=str)
    ]
    return Walkthrough(flow.name, outcomes, table)


def _take(driver: Driver, step: Step) -> Outcome:
    late = driver.stats("with_campaign").late + driver.stats("views").late
    if step.update is not None:
        ad, campaign, since = step.update
        driver.update("campaigns", ad, campaign, at=since)
    if step.pause is not None:
        driver.advance(step.pause)
    if step.event is not None:
        driver.push("events", step.event)
    return Outcome(
        step.title,
        driver.stream_time,
        [_show(record) for record in driver.read("dashboard")],
        [_show(record) for record in driver.read("report")],
        driver.stats("with_campaign").late + driver.stats("views").late - late,
    )


def _show(record: Emitted) -> str:
    change = record.value
    was = "-" if change.previous is None else change.previous
    now = "-" if change.value is None else change.value
    return f"{change.key} {_seconds(change.window)} {was} → {now}"


def _seconds(window: fw.Window) -> str:
    return f"{window.start // 1000}-{window.end // 1000}s"
