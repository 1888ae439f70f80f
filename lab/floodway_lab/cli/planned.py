"""``floodway bench planned``: a flow run as it was planned, and with one task less."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway_lab.figures.planned import PlannedFigures, PlannedRun, run_planned


def planned_command(
    *,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Records per second; by default a quarter more than one task of its dearest stage "
            "can take.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long each run counts.")] = 10,
    json: JsonOption = None,
) -> None:
    """Plan Linear Road for a rate, run it as planned, and with one task less.

    The exit code is 1 if a bottleneck is not where the plan says it is.
    """
    with Gauge(Console(stderr=True, highlight=False), "planned") as gauge:
        found = run_planned(gauge.update, rate=rate, seconds=seconds)
    if json is not None:
        write_json(found, json)
    if json != STDOUT:
        show_planned(found, Console(highlight=False))
    if not found.as_predicted:
        raise typer.Exit(1)


def show_planned(found: PlannedFigures, console: Console) -> None:
    """Print what became of the rate."""
    on = found.machine
    console.print(
        f"Linear Road, planned for {found.rate:,.0f} records/s; {on.date}, {on.processor}, "
        f"{on.cores} cores",
        style="bold",
    )
    for run in found.runs:
        console.print(f"\n{run.title}", style="bold")
        grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        grid.add_column("stage")
        for title in ("dop", "b_out", "planned use", "measured"):
            grid.add_column(title, justify="right")
        for name, stage in run.stages.items():
            grid.add_row(
                name,
                str(stage.dop),
                "-" if stage.b_out is None else f"{stage.b_out:,}",
                f"{stage.planned:.0%}",
                f"{stage.used:.0%}",
            )
        console.print(grid)
        console.print(_told(run))


def _told(run: PlannedRun) -> str:
    def named(bottleneck: str | None) -> str:
        return "no bottleneck" if bottleneck is None else f"bottleneck {bottleneck}"

    return (
        f"predicted {run.predicted:,.0f} records/s, {named(run.expected)}; "
        f"measured {run.measured:,.0f}, {named(run.bottleneck)}"
    )
