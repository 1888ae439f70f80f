"""``floodway walkthrough``: a small flow on the reference driver, event by event.

Ad events are filtered, joined with the campaign of their ad and counted per campaign in windows
of ten seconds. Two subscribers follow the counts: a dashboard takes every update, a report takes
each window once it has ended. One event comes out of order and corrects a count, one update of
the campaigns comes late and moves events from one campaign to another, one event comes too late.
"""

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

import floodway as fw
from floodway.cli.output import STDOUT, JsonOption, write_json
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


class Demonstration(msgspec.Struct, frozen=True):
    """The whole demonstration, as ``--json`` writes it."""

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
    """Return the demonstration's flow."""
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


def walkthrough(
    *,
    json: JsonOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show the flow's operators.")
    ] = False,
) -> None:
    """Run a small flow on the reference driver and show its changelog and its table."""
    result = perform()
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        render(result, Console(highlight=False), build().explain() if explain else None)


def perform() -> Demonstration:
    """Run the steps and collect what they bring about."""
    flow = build()
    driver = Driver(flow)
    outcomes = [_take(driver, step) for step in STEPS]
    rows = driver.table("views").rows()
    table = [
        {"campaign": campaign, "window": _seconds(window), "views": views, "as_of_ms": time}
        for (campaign, window), (time, views) in sorted(rows.items(), key=str)
    ]
    return Demonstration(flow.name, outcomes, table)


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


def render(result: Demonstration, console: Console, explained: str | None) -> None:
    """Print the demonstration."""
    console.print(
        "[bold]Views per campaign in windows of 10 s[/], on the reference driver, step by step.\n"
        "Two subscribers of one table: a dashboard takes every update, a report takes\n"
        "each window after its end, and corrections."
    )
    if explained is not None:
        console.print(Text("\n" + explained))
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("what happens", "time", "dashboard", "report"):
        grid.add_column(title)
    for outcome in result.outcomes:
        time = "" if outcome.stream_time_ms is None else f"{outcome.stream_time_ms / 1000:g}s"
        updates = Text("\n".join(outcome.updates), style="green")
        if outcome.late:
            updates = Text("dropped, counted", style="yellow")
        grid.add_row(outcome.step, time, updates, Text("\n".join(outcome.report), style="cyan"))
    console.print()
    console.print(grid)
    _render_table(result, console)
    console.print(
        "\nThe flow: src/floodway/cli/walkthrough.py; its operators: "
        "[bold]floodway walkthrough --explain[/].\n"
        "A flow of your own, step by step: docs/tutorial.md"
    )


def _render_table(result: Demonstration, console: Console) -> None:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("campaign", "window", "views"):
        grid.add_column(title)
    console.print("\nThe table at the end; windows that ended more than 30 s ago are forgotten:\n")
    for row in result.table:
        grid.add_row(row["campaign"], row["window"], str(row["views"]))
    console.print(grid)
