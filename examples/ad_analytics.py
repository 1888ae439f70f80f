"""Ad analytics: events of ads, joined with their campaigns, counted per campaign and window.

The pipeline of the Yahoo streaming benchmark. Shows: a stream joined with a table, an aggregate in
tumbling windows over the result, a result for each window at its end, and a campaign that moves an
ad late: the counts that are wrong by then are corrected.

Run it: ``python examples/ad_analytics.py``
"""

import floodway as fw
from floodway.testing import Driver


class AdEvent(fw.Record):
    user: str
    ad: str
    kind: str
    at: int


class Ad(fw.Record):
    ad: str
    campaign: str


def build() -> fw.Flow:
    flow = fw.Flow("ad_analytics", retention="1m")
    ads = flow.table("ads", schema=Ad, key="ad")
    events = flow.source("events", schema=AdEvent, timestamp="at")
    views = events.filter("kind = 'view'", name="views").join(
        ads, on="ad", select=["campaign", "at"], name="with_campaign"
    )
    counts = views.group_by("campaign").window(fw.tumbling("10s")).count(name="per_campaign")
    counts.changes(emit=fw.emit.after_window_end(), name="results").to("report")
    return flow


def show(driver: Driver) -> None:
    for record in driver.read("report"):
        change = record.value
        start, end = change.window.start // 1000, change.window.end // 1000
        was = "" if change.previous is None else f" (was {change.previous})"
        print(f"  {start:>3}-{end}s  {change.key:<7} {change.value or 0}{was}")


def main() -> None:
    with Driver(build()) as driver:
        driver.push("ads", Ad("shoes", "spring"), Ad("hats", "spring"), Ad("skis", "winter"), at=0)
        # The table rests from here on. Without this it would hold back the end of every window.
        driver.advance("30s")
        driver.push(
            "events",
            AdEvent("ann", "shoes", "view", 1_000),
            AdEvent("bob", "hats", "view", 2_000),
            AdEvent("bob", "hats", "click", 3_000),
            AdEvent("cy", "skis", "view", 8_000),
            AdEvent("ann", "skis", "view", 12_000),
        )
        print("the first window has ended:")
        show(driver)
        driver.push("ads", Ad("hats", "winter"), at=1_500)
        print("hats belonged to winter since second 1.5:")
        show(driver)
    print("the end:")
    show(driver)


if __name__ == "__main__":
    main()
