"""``floodway bench``: how fast it is here, beside what limits it."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway_lab.cli import comparing, costs, measuring, planned, soak
from floodway_lab.cli.comparison import chosen_runs, show_comparison
from floodway_lab.figures import epochs as epochs_figures
from floodway_lab.figures import micro as figures
from floodway_lab.figures.machine import Machine
from floodway_lab.paradigms import paradigms as paradigm_figures

app = typer.Typer(help="Measure Floodway on this machine.", no_args_is_help=True)
"""The benchmark commands."""

app.command("run")(measuring.run)
app.command("sustain")(measuring.sustain_command)
app.command("install")(measuring.install_command)
app.command("compare")(comparing.compare_command)
app.command("table")(comparing.table_command)
app.command("list")(comparing.list_command)
app.command("costs")(costs.costs_command)
app.command("planned")(planned.planned_command)
app.command("soak")(soak.soak_command)


@app.callback()
def main() -> None:
    """Measure Floodway on this machine."""


@app.command()
def micro(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the work: to see that it runs.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Measure a hop, the ad pipeline, the latency of three stages, the cost of metrics."""
    console = Console(stderr=True, highlight=False)
    began = time.monotonic()
    expected = 40 if quick else 270

    def progress(what: str) -> None:
        passed = time.monotonic() - began
        console.print(f"{passed:4.0f} s of about {expected}: {what}")

    result = figures.micro(progress, scale=0.1 if quick else 1.0, rounds=1 if quick else 3)
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show_micro(result, Console(highlight=False))


def show_micro(result: figures.Micro, console: Console) -> None:
    """Print the figures."""
    console.print(_shown(result.machine))
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("what", "floodway", "by hand", "ratio"):
        grid.add_column(title, justify="left" if title == "what" else "right")
    for hop in result.hops:
        by_hand = f"{hop.plain_socket_records_per_second:,.0f} records/s"
        rate = f"{hop.records_per_second:,.0f} records/s"
        grid.add_row(f"one hop, b_out {hop.b_out}", rate, by_hand, f"{hop.ratio:.2f}")
    ads = result.ads
    grid.add_row(
        "ad pipeline, socket to sink" + ("" if ads.correct else " (WRONG RESULT)"),
        f"{ads.events_per_second:,.0f} events/s",
        f"{ads.plain_loop_events_per_second:,.0f} events/s",
        f"{ads.ratio:.2f}",
    )
    console.print(grid)
    late = result.latency
    console.print(
        f"\nthree stages at {late.per_second:,.0f} events/s: p50 {late.p50_ms:.2f} ms, "
        f"p90 {late.p90_ms:.2f} ms, p99 {late.p99_ms:.2f} ms, max {late.max_ms:.1f} ms"
    )
    for cost in result.metrics:
        console.print(
            f"metrics at b_out {cost.b_out}: {cost.overhead:+.1%} per record "
            f"({cost.without_sampling_ns:,.0f} to {cost.with_sampling_ns:,.0f} ns, and "
            f"{cost.report_us:,.0f} us for a report, twenty a second)"
        )
    console.print("by hand: a plain socket between two processes, a plain Python loop, same run")


@app.command()
def count(
    *,
    records: Annotated[int, typer.Option(min=1, help="How many records.")] = 10_000_000,
    dop: Annotated[int, typer.Option(min=1, help="How many tasks count.")] = 3,
    json: JsonOption = None,
) -> None:
    """Count records per key in several tasks, and compare with plain arithmetic."""
    result = figures.measure_count(records, dop=dop)
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        verdict = "exact" if result.exact else "WRONG"
        typer.echo(
            f"{result.records:,} records, {result.keys} keys, dop {result.dop}: {verdict}, "
            f"{result.records_per_second:,.0f} records/s"
        )
    if not result.exact:
        raise typer.Exit(1)


@app.command()
def memory(
    *,
    seconds: Annotated[float, typer.Option(min=5, help="How long.")] = 60,
    json: JsonOption = None,
) -> None:
    """Let a sink be ten times slower than the source, and watch the memory."""
    result = figures.measure_memory(seconds)
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        for task, series in result.rss_mib.items():
            shown = series[:: max(len(series) // 12, 1)]
            typer.echo(f"{task:12} MiB  {'  '.join(f'{value:.0f}' for value in shown)}")
        typer.echo(
            f"cache {result.input_cache_bytes / 2**20:.0f} MiB, queue at most "
            f"{result.queue_bytes_most / 2**20:.1f} MiB; grew {result.growth_mib_after_full} MiB "
            f"once full; read {result.read:,}, delivered {result.delivered:,}, lost {result.lost}"
        )
    if result.lost:
        raise typer.Exit(1)


@app.command()
def epochs(
    *,
    rounds: Annotated[int, typer.Option(min=1, help="How often each figure is taken.")] = 5,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the work: to see that it runs.")
    ] = False,
    recovery: Annotated[
        bool,
        typer.Option("--recovery", help="Of the recovery every flow has, not of a checkpoint."),
    ] = False,
    json: JsonOption = None,
) -> None:
    """Measure what a checkpoint costs: throughput and latency with epochs on against off."""
    scale = 0.1 if quick else 1.0
    console = Console(stderr=True, highlight=False)
    with Gauge(console, "epochs") as gauge:
        steps = 0

        def progress(what: str) -> None:
            nonlocal steps
            gauge.update(steps, 3 * rounds, what)
            steps += 1

        result = epochs_figures.epochs(
            progress, scale=scale, rounds=rounds, kept="recovery" if recovery else "checkpoint"
        )
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show_epochs(result, Console(highlight=False))


def show_epochs(result: epochs_figures.EpochsFigure, console: Console) -> None:
    """Print the comparisons."""
    console.print(_shown(result.machine))
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("what", "off", "on", "ratio", "aim", "rounds"):
        grid.add_column(title, justify="left" if title in ("what", "rounds") else "right")
    for each in result.comparisons:
        grid.add_row(
            f"{each.what}, {each.unit}",
            f"{each.off:,.{_digits(each)}f}",
            f"{each.on:,.{_digits(each)}f}",
            f"{each.ratio:.2f}",
            f"{'>=' if each.better == 'more' else '<='} {each.aim:g}",
            " ".join(f"{one.ratio:.2f}" for one in each.rounds),
        )
    console.print(grid)
    with_what = "the recovery every flow has" if result.kept == "recovery" else "with a checkpoint"
    console.print(f"\noff: --no-recovery; on: {with_what}, an epoch a second, in the same rounds")


@app.command()
def paradigms(
    *,
    workload: Annotated[
        list[str] | None,
        typer.Option(metavar="ads|words|grep|all", help="With which flow; may be repeated."),
    ] = None,
    what: Annotated[
        list[str] | None,
        typer.Option(
            metavar="low|flood|step|hot|components|sine|noise|all",
            help="What to compare; may be repeated.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1, help="How long each load is measured.")
    ] = paradigm_figures.SECONDS,
    rounds: Annotated[int, typer.Option(min=1, help="How often each figure is taken.")] = 1,
    dop: Annotated[int, typer.Option(min=1, help="How many tasks a stage has.")] = 1,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Where the stories go.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Compare both paradigms, each by itself, with the two together.

    All of it takes about 25 minutes. The exit code is 1 if a run failed or had wrong answers.
    """
    whats, workloads = chosen_runs(what, workload)
    console = Console(stderr=True, highlight=False)
    planned = paradigm_figures.plan(whats, workloads, rounds)
    minutes = sum(paradigm_figures.lasts(run, seconds) for run in planned) / 60
    console.print(f"{len(planned)} runs, about {max(minutes, 1):.0f} min", soft_wrap=True)
    with Gauge(console, "paradigms") as gauge:
        result = paradigm_figures.compare(
            whats,
            workloads,
            gauge.update,
            seconds=seconds,
            rounds=rounds,
            dop=dop,
            folder=folder,
        )
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        shown = Console(highlight=False)
        shown.print(_shown(result.machine))
        show_comparison(result, shown)
    if any(outcome.error for outcome in result.outcomes):
        raise typer.Exit(1)


def _digits(comparison: epochs_figures.Comparison) -> int:
    return 2 if comparison.unit == "ms" else 0


def _shown(machine: Machine) -> str:
    return (
        f"{machine.processor}, {machine.cores} cores, Python {machine.python}, {machine.date}, "
        f"load {machine.load_before} before\n"
    )
