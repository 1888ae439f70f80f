"""``floodway check-upgrade``: what a changed flow may keep of a checkpoint."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.flows import (
    ConfigurationOption,
    DopOption,
    FlowArgument,
    configuration_of,
)
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.engine.checkpoint.upgrade import Verdict
from floodway.engine.checkpoint.upgrading import Upgrade, compared
from floodway.model.loading import load_flow
from floodway.plan import Plan

_STYLES: dict[Verdict, str] = {
    "kept": "green",
    "new": "cyan",
    "dropped": "yellow",
    "incompatible": "bold red",
}


def check_upgrade(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The folder of the checkpoint.")
    ],
    flow: FlowArgument,
    *,
    dop: DopOption = None,
    configuration: ConfigurationOption = None,
    json: JsonOption = None,
) -> None:
    """Show what a flow would keep of a checkpoint, what it would drop, and what is in the way.

    Nothing is changed, and the flow that writes the checkpoint may run. The exit code is 1 if the
    flow could not go on from there.
    """
    plan = Plan.of(load_flow(flow), configuration_of(configuration, dop, None, None))
    result = compared(checkpoint, plan)
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show(result, Console(highlight=False))
    if not result.compatible:
        raise typer.Exit(1)


def show(result: Upgrade, console: Console) -> None:
    """Print what was found."""
    console.print(f"{result.flow}, checkpoint at epoch {result.epoch}\n")
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("operator", "verdict", "why"):
        grid.add_column(title, overflow="fold")
    for finding in result.findings:
        verdict = Text(finding.verdict, style=_STYLES[finding.verdict])
        grid.add_row(Text(finding.operator), verdict, Text(finding.why))
    console.print(grid)
    if result.compatible:
        console.print("\nthe flow can go on from this checkpoint")
    else:
        console.print(
            "\n[bold red]the flow cannot go on from this checkpoint[/]: undo the change, give "
            "changed operators another name, or start with an empty folder"
        )
