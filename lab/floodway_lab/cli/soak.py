"""``floodway bench soak``: whether a flow at a steady load needs more and more."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway_lab.figures.soak import LEAST, MOST, Soak, picture, soak


def soak_command(
    *,
    minutes: Annotated[float, typer.Option(min=0.01, help="How long to run.")] = 30.0,
    settle: Annotated[
        float, typer.Option(min=0.0, metavar="MINUTES", help="How long it has to settle.")
    ] = 5.0,
    rate: Annotated[float, typer.Option(min=1.0, help="Records a second.")] = 3000.0,
    retention: Annotated[str, typer.Option(help="How long what may still change is kept.")] = "1m",
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curves into this file.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Run windows, sessions and a join at a steady load; fail if what they need grows.

    The exit code is 1 as well if fewer records came in than were due, and 2 if nothing can be said.
    """
    with Gauge(Console(stderr=True, highlight=False), "soak") as gauge:
        found = soak(
            gauge.update, minutes=minutes, settle_minutes=settle, rate=rate, retention=retention
        )
    if json is not None:
        write_json(found, json)
    if svg is not None:
        svg.write_text(picture(found))
    if json != STDOUT:
        show_soak(found, Console(highlight=False))
    raise typer.Exit(code_of(found))


def code_of(found: Soak) -> int:
    """Return the exit code: 2 if it cannot be said whether anything grew."""
    if not found.growths:
        return 2
    return 0 if found.steady and found.kept_up else 1


def show_soak(found: Soak, console: Console) -> None:
    """Print what was needed, then and later."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("what")
    for title in (f"at {found.settled_s / 60:g} min", "most since", "times"):
        grid.add_column(title, justify="right")
    for growth in found.growths:
        grid.add_row(
            growth.what, f"{growth.then:,.1f}", f"{growth.most:,.1f}", f"{growth.ratio:.3f}"
        )
    console.print(grid)
    verdict = "nothing grew" if found.steady else f"something grew by more than {MOST - 1:.0%}"
    if not found.growths:
        verdict = "too short to say"
    share = found.records / found.due if found.due else 1.0
    enough = "" if found.kept_up else f", less than {LEAST:.0%}: the flow did not keep up"
    typer.echo(f"{found.records:,} records, {share:.0%} of what was due{enough}; {verdict}")
