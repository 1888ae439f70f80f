"""``floodway walkthrough``: a small flow on the reference driver, event by event."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.demo import walkthrough as flow
from floodway.demo.walkthrough import Walkthrough, build, perform


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


def render(result: Walkthrough, console: Console, explained: str | None) -> None:
    """Print the walkthrough."""
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
        f"\nThe flow: the module {flow.__name__};\n"
        "its operators: [bold]floodway walkthrough --explain[/].\n"
        "A flow of your own, step by step: the tutorial in the documentation."
    )


def _render_table(result: Walkthrough, console: Console) -> None:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("campaign", "window", "views"):
        grid.add_column(title)
    console.print("\nThe table at the end; windows that ended more than 30 s ago are forgotten:\n")
    for row in result.table:
        grid.add_row(row["campaign"], row["window"], str(row["views"]))
    console.print(grid)
