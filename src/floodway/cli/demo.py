"""``floodway demo``: the ad pipeline on Spark, through a calm, a flood and a calm again.

While it is calm events are processed record by record, while they flood in micro-batches; the
scheduler says when, and why. A table shows it as it happens, a summary at the end.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.numbers import show_count, show_time
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.telling import brief, in_full, paradigm_text
from floodway.demo.demonstration import (
    CALM,
    FLOOD_SHARE,
    HIDDEN,
    SECONDS,
    Demonstration,
    Watch,
    flood_here,
    length_of,
    perform,
    phases_of,
)
from floodway.demo.series import Phase, percentile
from floodway.engine.metrics.status import StageStatus, Status

TOLD = 6
"""So many of the scheduler's last decisions are shown below the table."""


def demo(
    *,
    dop: Annotated[int, typer.Option(min=1, help="How many tasks count.")] = 2,
    seconds: Annotated[
        float, typer.Option(min=1, help="How long events come; a third of it is the flood.")
    ] = SECONDS,
    flood: Annotated[
        int | None,
        typer.Option(
            min=CALM,
            help=f"How many events a second the flood brings; by default {FLOOD_SHARE} of what a "
            "plain loop can do on this machine.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="Where the picture and the story go."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Run the ad pipeline through a calm, a flood and a calm, and draw a picture of it.

    It takes about two minutes. The exit code is 1 if a count is wrong.
    """
    console = Console(highlight=False, stderr=json == STDOUT)
    phases = phases_of(seconds, flood_here() if flood is None else flood)
    begin(console, phases)
    with Live(console=console, refresh_per_second=4, transient=True) as screen:
        result = perform(
            dop=dop,
            phases=phases,
            folder=folder,
            show=lambda watch, status: screen.update(picture(watch, status)),
        )
    if json is not None:
        write_json(result, json)
    show(result, console)
    if not result.correct:
        raise typer.Exit(1)


def begin(console: Console, phases: tuple[Phase, ...]) -> None:
    """Print what is about to happen, and how long that takes."""
    console.print(
        "[bold]Views per campaign in windows of 10 s[/], from a socket, on Spark in this process.\n"
        f"Starting takes some seconds, the events {length_of(phases):.0f} s."
    )


def picture(watch: Watch, status: Status) -> RenderableType:
    """Return what there is to see of a flow while it runs."""
    sample = watch.samples[-1]
    head = Text.assemble(
        (phase_at(watch.phases, sample.t), "bold"),
        f"   {sample.t:.0f} s   {sample.due:,} events so far",
        f", {show_count(max(sample.due - sample.processed, 0))} of them wait",
    )
    parts: list[RenderableType] = [head, table(status), _latency(watch.recent_ms), Text("")]
    parts += brief(watch.story, since_ms=watch.began_ms, count=TOLD)
    return Group(*parts)


def _latency(took_ms: list[float]) -> Text:
    if not took_ms:
        return Text("latency  -")
    return Text.assemble(
        ("latency", "bold"),
        f"  from due to dashboard: p50 {show_time(percentile(took_ms, 0.5) * 1000)}",
        f"  p99 {show_time(percentile(took_ms, 0.99) * 1000)}",
    )


def phase_at(phases: tuple[Phase, ...], seconds: float) -> str:
    """Return what is going on after so many seconds, in words."""
    for phase in phases:
        if seconds < phase.seconds:
            return f"{phase.name}: {phase.per_second:,} events/s"
        seconds -= phase.seconds
    return "working off what is left"


def table(status: Status) -> Grid:
    """Return the table of operators: how each works, how fast, and what waits before its stage."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("operator", no_wrap=True, width=20, overflow="ellipsis")
    grid.add_column("paradigm", no_wrap=True, width=9)
    for title, width in (("records/s", 9), ("queue", 6), ("p50", 6), ("p99", 6)):
        grid.add_column(title, no_wrap=True, width=width, justify="right")
    for stage in status.stages:
        if stage.name not in HIDDEN:
            _add_rows(grid, stage)
    return grid


def _add_rows(grid: Grid, stage: StageStatus) -> None:
    """Add the operators of a stage; queue and times are those of the stage, and said once."""
    passage = stage.passage
    of_stage = [
        show_count(stage.queue_records),
        show_time(passage.p50) if passage else "-",
        show_time(passage.p99) if passage else "-",
    ]
    for number, operator in enumerate(stage.operators):
        grid.add_row(
            operator.counts.name,
            paradigm_text(operator.paradigm),
            show_count(operator.rate_in),
            *(of_stage if number == 0 else ("", "", "")),
        )


def show(result: Demonstration, console: Console) -> None:
    """Print the summary."""
    console.print()
    console.print(_phases(result))
    verdict = "the same as" if result.correct else "[bold red]NOT[/] the same as"
    console.print(
        f"\n{result.events:,} events, {result.views:,} views in {result.windows:,} windows of "
        f"campaigns: {verdict} a plain loop over the same lines.\n"
        "Latency: from when an event was due to its result on the dashboard.\n"
    )
    switches = [entry for entry in result.story if entry.what in ("switch", "switched", "failed")]
    if switches:
        console.print("[bold]What the scheduler did[/], in seconds since the first event")
        for part in in_full(switches, since_ms=result.began_ms):
            console.print(part)
    else:
        console.print("The scheduler switched nothing.")
    console.print()
    for label, name in (("picture", "png"), ("page", "html"), ("story", "story")):
        if name in result.files:
            path = Text.assemble((f"{label:<9}", "bold"), result.files[name])
            console.print(path, soft_wrap=True)
    if "png" not in result.files:
        console.print(
            "no picture without matplotlib: pip install 'floodway[pictures]'", markup=False
        )
    console.print(
        "\nHow it runs: [bold]floodway explain floodway.demo.ads:demo_flow[/]\n"
        "Event by event, on the reference driver: [bold]floodway walkthrough[/]"
    )


def _phases(result: Demonstration) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("phase", "due/s", "done/s", "latency p50", "p99", "waiting", "in batches"):
        grid.add_column(title, justify="left" if title == "phase" else "right")
    for phase in result.phases:
        shares = [each.get("operation", 0.0) for each in phase.paradigms.values()]
        grid.add_row(
            phase.name,
            f"{phase.per_second:,}",
            f"{phase.processed_per_s:,.0f}",
            *(
                show_time(phase.latency_ms[q] * 1000) if q in phase.latency_ms else "-"
                for q in ("p50", "p99")
            ),
            show_count(phase.waiting),
            f"{max(shares, default=0.0):.0%}",
        )
    return grid
