"""Sessions: what visitors of a site did from their first click to their last.

Shows: session windows, several aggregates at once, a record out of order that joins two sessions,
and final results.

Run it: ``python examples/sessions.py``
"""

import floodway as fw
from floodway.testing import Driver

MINUTE = 60_000


class Click(fw.Record):
    visitor: str
    page: str
    minute: int


CLICKS = [
    Click("ann", "home", 0),
    Click("bob", "home", 3),
    Click("ann", "shoes", 10),
    Click("ann", "home", 55),
    Click("bob", "hats", 65),
    Click("ann", "basket", 33),  # out of order: closes the gap between 10 and 55
]


def build() -> fw.Flow:
    flow = fw.Flow("sessions", retention="2h")
    clicks = flow.source("clicks", schema=Click, timestamp=f"minute * {MINUTE}")
    sessions = (
        clicks.group_by("visitor")
        .window(fw.session("30m"))
        .agg(name="sessions", clicks=fw.count(), pages=fw.collect("page"))
    )
    sessions.changes(emit=fw.emit.final()).to("report")
    return flow


def show(visitor: str, window: fw.Window, clicks: int, pages: list[str]) -> None:
    last = (window.end - 30 * MINUTE) // MINUTE
    print(f"  {visitor}, minute {window.start // MINUTE} to {last}: {clicks}, {' > '.join(pages)}")


def main() -> None:
    with Driver(build()) as driver:
        for number, click in enumerate(CLICKS, start=1):
            driver.push("clicks", click)
            if number >= len(CLICKS) - 1:
                print(f"after {number} clicks:")
                for (visitor, window), row in sorted(driver.table("sessions").values().items()):
                    show(visitor, window, row.clicks, row.pages)
    print("final results:")
    for record in driver.read("report"):
        change = record.value
        show(change.key, change.window, change.value.clicks, change.value.pages)


if __name__ == "__main__":
    main()
