"""``floodway rescale``: deal the state of a checkpoint out to another number of tasks."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.flows import (
    ConfigurationOption,
    DopOption,
    FlowArgument,
    configuration_of,
)
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway.engine.checkpoint.dealing_out import Rescaled, deal_out
from floodway.model.loading import load_flow
from floodway.plan import Plan


def rescale(
    flow: FlowArgument,
    *,
    checkpoint: Annotated[
        Path, typer.Option("--checkpoint", metavar="DIR", help="The folder of the checkpoint.")
    ],
    dop: DopOption = None,
    configuration: ConfigurationOption = None,
    json: JsonOption = None,
) -> None:
    """Deal the state of a stopped flow out to another number of tasks; no key is lost.

    Run the flow afterwards with the same --dop. If this is interrupted, the checkpoint is what it
    was before.
    """
    plan = Plan.of(load_flow(flow), configuration_of(configuration, dop, None, None))
    result = _shown(checkpoint, plan, Console(stderr=True, highlight=False))
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show(result, Console(highlight=False))


def _shown(checkpoint: Path, plan: Plan, console: Console) -> Rescaled:
    """Deal out what a checkpoint has, and show how far it is."""
    done = 0

    def progress(stage: str, index: int, of: int) -> None:
        nonlocal done
        done += 1
        gauge.update(done, plan.tasks, f"{stage}: {index} of {of} tasks")

    with Gauge(console, "rescaling") as gauge:
        return deal_out(checkpoint, plan, progress=progress)


def show(result: Rescaled, console: Console) -> None:
    """Print the stages."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("stage", "tasks before", "tasks now"):
        grid.add_column(title, justify="left" if title == "stage" else "right")
    for stage in result.stages:
        grid.add_row(
            stage.stage, "-" if stage.before is None else str(stage.before), str(stage.after)
        )
    console.print(grid)
    if result.changed:
        console.print(f"\n{result.flow} goes on from epoch {result.epoch} with these tasks")
    else:
        console.print(f"\nnothing to do: {result.flow} has these tasks already")
