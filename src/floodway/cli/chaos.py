"""``floodway chaos``: kill processes of a flow, and see that its results are right all the same."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway.cli.sizes import MemoryOption, memory_of
from floodway.core.duration import to_ms
from floodway.testing.chaos import Order, Result, Times
from floodway.testing.chaos import run as perform


def chaos(
    *,
    kills: Annotated[int, typer.Option(min=0, help="How many tasks to kill.")] = 30,
    records: Annotated[int, typer.Option(min=1, help="How many records go in.")] = 500_000,
    driver_kills: Annotated[
        int, typer.Option(min=0, help="How many times to kill the driver with its Spark.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Decides what is killed, and when.")] = 1,
    dop: Annotated[int, typer.Option(min=1, help="Tasks per stage.")] = 2,
    epoch: Annotated[str, typer.Option(help="How often an epoch is committed.")] = "200ms",
    state_memory: MemoryOption = None,
    switches: Annotated[
        bool, typer.Option("--switches", help="Let a stage change its paradigm with every kill.")
    ] = False,
    folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where to keep results, checkpoint and log; empty."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Kill task processes of a flow on Spark at random moments, and check all its results.

    The exit code is 1 if anything was lost, doubled or wrong, or if the flow did not survive.
    """
    order = Order(
        kills,
        records,
        driver_kills,
        seed,
        dop,
        to_ms(epoch, what="epoch"),
        memory_of(state_memory),
        folder,
        switches,
    )
    with Gauge(Console(stderr=True, highlight=False), "chaos") as gauge:
        result = perform(order, gauge.update)
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show(result, Console(highlight=False))
    if not result.sound:
        raise typer.Exit(1)


def show(result: Result, console: Console) -> None:
    """Print what came of it."""
    stages = ", ".join(f"{stage} {count}" for stage, count in sorted(result.killed.items()))
    console.print(
        f"{result.kills} tasks killed ({stages or 'none'}) and {result.driver_kills} drivers, "
        f"{result.while_recovering} of them during a recovery; {result.epochs} epochs committed "
        f"in {result.seconds:.0f} s"
    )
    if result.order.switches:
        console.print(f"{result.switches} times a stage has changed its paradigm")
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("results", "lines", "lost", "doubled", "wrong"):
        grid.add_column(title, justify="left" if title == "results" else "right")
    for name, branch in result.branches.items():
        figures = (branch.lines, branch.lost, branch.duplicated, branch.wrong)
        grid.add_row(name, *(f"{figure:,}" for figure in figures))
    console.print(grid)
    _show_times("all tasks run again", result.recovery_ms, console)
    _show_times("an epoch is committed again", result.committed_ms, console)
    _show_times("a new driver runs", result.driver_recovery_ms, console)
    for branch in result.branches.values():
        for example in branch.examples:
            console.print(f"[red]wrong:[/] {example}")
    _show_verdict(result, console)


def _show_times(what: str, times: Times, console: Console) -> None:
    if times.p50 is not None and times.p99 is not None:
        console.print(
            f"until {what}: p50 {times.p50 / 1000:.2f} s, p99 {times.p99 / 1000:.2f} s, "
            f"{len(times.all)} times"
        )


def _show_verdict(result: Result, console: Console) -> None:
    if result.failure is not None:
        console.print(f"[bold red]the flow did not survive:[/] {result.failure}")
    if result.left:
        console.print(f"[bold red]{result.left} processes were left by dead drivers[/]")
    if result.sound:
        console.print("[bold green]every result is there once, and right[/]")
    if result.folder is not None:
        console.print(f"results, checkpoint and log: {result.folder}", soft_wrap=True)
