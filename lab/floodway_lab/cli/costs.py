"""``floodway bench costs``: what the cost model predicts, beside what the engine does."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway.core.errors import OptionError
from floodway_lab.figures.costs import FLOWS, CostFigures, compare_costs


def costs_command(
    *,
    flow: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Only this flow, of: {', '.join(FLOWS)}."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 4,
    json: JsonOption = None,
) -> None:
    """Predict what three flows take with batches of 1 to 1,000 records, and measure it."""
    for name in flow or ():
        if name not in FLOWS:
            raise OptionError(
                f"there is no flow {name!r} to compare", remedy=f"use one of {', '.join(FLOWS)}"
            )
    with Gauge(Console(stderr=True, highlight=False), "costs") as gauge:
        found = compare_costs(gauge.update, flows=flow or tuple(FLOWS), rounds=rounds)
    if json is not None:
        write_json(found, json)
    if json != STDOUT:
        show_costs(found, Console(highlight=False))


def show_costs(found: CostFigures, console: Console) -> None:
    """Print predictions beside what was measured."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("flow")
    for title in ("b_out", "predicted", "measured", "error"):
        grid.add_column(title, justify="right")
    grid.add_column("bottleneck")
    for row in found.rows:
        grid.add_row(
            row.flow,
            f"{row.b_out:,}",
            f"{row.predicted:,.0f}",
            f"{row.measured:,.0f}",
            f"{row.error:+.1%}",
            row.bottleneck,
        )
    on = found.machine
    console.print(f"records per second; {on.date}, {on.processor}, {on.cores} cores", style="bold")
    console.print(grid)
    typer.echo(f"mean error {found.mean_error:.1%}")
