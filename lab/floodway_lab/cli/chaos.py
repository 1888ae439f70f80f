"""``floodway chaos``: let things go wrong with a flow; its results are right all the same."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway.cli.sizes import MemoryOption, memory_of
from floodway.core.duration import to_ms
from floodway_lab.chaos import KINDS, Kind, Order, Result, Times
from floodway_lab.chaos import run as perform

KILLS = 30
"""So many tasks are killed if nothing else is asked for."""


def chaos(
    *,
    faults: Annotated[int, typer.Option(min=0, help="How many faults of all kinds, mixed.")] = 0,
    kills: Annotated[
        int | None,
        typer.Option(min=0, help=f"How many tasks to kill; {KILLS} if nothing else is to be done."),
    ] = None,
    driver_kills: Annotated[
        int, typer.Option(min=0, help="How many times to kill the driver with its Spark.")
    ] = 0,
    daemon_kills: Annotated[
        int, typer.Option(min=0, help="How many times to kill the process that forks tasks.")
    ] = 0,
    executor_kills: Annotated[
        int,
        typer.Option(min=0, help="How many executors to kill, on a cluster that is started here."),
    ] = 0,
    broker_kills: Annotated[
        int, typer.Option(min=0, help="How many times to kill a Kafka broker that is started here.")
    ] = 0,
    redis_kills: Annotated[
        int, typer.Option(min=0, help="How many times to kill a Redis that is started here.")
    ] = 0,
    resets: Annotated[
        int, typer.Option(min=0, help="How many times to reset all connections of the flow.")
    ] = 0,
    stops: Annotated[
        int,
        typer.Option(min=0, help="How many processes to stop for longer than they may be silent."),
    ] = 0,
    clock_jumps: Annotated[
        int, typer.Option(min=0, help="How many times to set a clock an hour forward or back.")
    ] = 0,
    records: Annotated[int, typer.Option(min=1, help="How many records go in.")] = 500_000,
    seed: Annotated[int, typer.Option(help="Decides what goes wrong, and when.")] = 1,
    dop: Annotated[int, typer.Option(min=1, help="Tasks per stage.")] = 2,
    epoch: Annotated[str, typer.Option(help="How often an epoch is committed.")] = "200ms",
    state_memory: MemoryOption = None,
    switches: Annotated[
        bool, typer.Option("--switches", help="Let a stage change its paradigm after every loss.")
    ] = False,
    folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where to keep results, checkpoint and log; empty."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Let things go wrong with a flow on Spark at random moments, and check all its results.

    The exit code is 1 if anything was lost, doubled or wrong, or if the flow did not survive.
    """
    asked: dict[Kind, int] = {
        "driver": driver_kills,
        "daemon": daemon_kills,
        "executor": executor_kills,
        "broker": broker_kills,
        "redis": redis_kills,
        "reset": resets,
        "stop": stops,
        "clock": clock_jumps,
    }
    nothing_else = not faults and not any(asked.values())
    asked["task"] = (KILLS if nothing_else else 0) if kills is None else kills
    order = Order(
        asked,
        records,
        seed,
        dop,
        to_ms(epoch, what="epoch"),
        memory_of(state_memory),
        folder,
        switches,
        faults,
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
    _show_faults(result, console)
    if result.order.switches:
        console.print(f"{result.switches} times a stage has changed its paradigm")
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("results", "lines", "lost", "doubled", "wrong"):
        grid.add_column(title, justify="left" if title == "results" else "right")
    for name, branch in result.branches.items():
        figures = (branch.lines, branch.lost, branch.duplicated, branch.wrong)
        grid.add_row(name, *(f"{figure:,}" for figure in figures))
    console.print(grid)
    for branch in result.branches.values():
        for example in branch.examples:
            console.print(f"[red]wrong:[/] {example}")
    _show_verdict(result, console)


def _show_faults(result: Result, console: Console) -> None:
    count = sum(suffered.count for suffered in result.faults.values())
    console.print(
        f"{count} faults, {result.while_recovering} of them during a recovery; "
        f"{result.recoveries} recoveries, {result.epochs} epochs in {result.seconds:.0f} s"
    )
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("fault", "count", "all tasks run again", "an epoch is committed", "whom"):
        grid.add_column(title, justify="right" if title == "count" else "left")
    for kind, suffered in result.faults.items():
        whom = ", ".join(f"{name} {times}" for name, times in sorted(suffered.whom.items()))
        running, committed = _times(suffered.running_ms), _times(suffered.committed_ms)
        grid.add_row(KINDS[kind].called, str(suffered.count), running, committed, whom)
    running, committed = _times(result.running_ms), _times(result.committed_ms)
    grid.add_row("all", str(count), running, committed, "")
    console.print(grid)
    if result.unmade:
        console.print(
            f"[bold red]{result.unmade} faults were left out:[/] all records had come in, and they "
            "would have hit an idle flow; ask for more --records"
        )
    for kind, reason in result.without.items():
        console.print(f"without {KINDS[kind].called}: {reason}", markup=False)


def _times(times: Times) -> str:
    if times.p50 is None or times.worst is None:
        return ""
    return f"{times.p50 / 1000:.2f} s, worst {times.worst / 1000:.2f}"


def _show_verdict(result: Result, console: Console) -> None:
    if result.failure is not None:
        console.print(f"[bold red]the flow did not survive:[/] {result.failure}")
    if result.left:
        console.print(f"[bold red]{result.left} processes were left by dead drivers[/]")
    if result.sound:
        console.print("[bold green]every result is there once, and right[/]")
    if result.folder is not None:
        console.print(f"results, checkpoint and log: {result.folder}", soft_wrap=True)
