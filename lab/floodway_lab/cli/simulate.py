"""``floodway simulate``: a whole cluster in one process, where everything fails, seed by seed."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway_lab.simulation import Outcome, Summary
from floodway_lab.simulation import simulate as simulate_one

FIRST_SEED = 1


class Failure(msgspec.Struct, frozen=True):
    """A seed that failed, what was wrong, and how to see it again."""

    seed: int
    problem: str
    command: str


class Simulated(msgspec.Struct, frozen=True):
    """What came of it, as ``--json`` writes it.

    Attributes
    ----------
    took_s
        Real seconds; those of the summary are simulated.
    unhit
        The fail points at which nobody died.
    """

    first: int
    took_s: float
    failures: list[Failure]
    unhit: list[str]
    summary: Summary


def simulate(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 200,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = FIRST_SEED,
    trace: Annotated[
        bool, typer.Option("--trace", help="Say everything that happens, on standard error.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Simulate flows on a cluster where processes, disks and messages fail, and check results.

    A seed gives the same simulation every time. The exit code is 1 if a seed fails.
    """
    console = Console(stderr=True, highlight=False)
    began = time.monotonic()
    summary = perform(range(first, first + seeds), console, trace=trace)
    failures = [Failure(seed, problem, repeating(seed)) for seed, problem in summary.failures]
    took = round(time.monotonic() - began, 1)
    conclude(Simulated(first, took, failures, summary.unhit, summary), json)


def conclude(result: Simulated, json: str | None) -> None:
    """Hand out the result; leave with 1 if a seed has failed."""
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show(result, Console(highlight=False))
    if result.failures:
        raise typer.Exit(1)


def perform(
    seeds: range,
    console: Console,
    *,
    trace: bool,
    one: Callable[..., Outcome] = simulate_one,
) -> Summary:
    """Simulate seed after seed, each with `one`; a failure is told at once."""
    summary = Summary()

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    with quiet(), Gauge(console, "simulating") as gauge:
        for done, seed in enumerate(seeds):
            gauge.update(done, len(seeds), f"seed {seed}, {len(summary.failures)} failed")
            outcome = one(seed, tell=say if trace else None)
            summary.add(outcome)
            if outcome.problem is not None:
                console.print(told(outcome), soft_wrap=True)
    return summary


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the engine from warning of what is done to it on purpose."""
    logger = logging.getLogger("floodway")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def repeating(seed: int) -> str:
    """Return the command that repeats a seed.

    >>> repeating(17)
    'floodway simulate --first 17 --seeds 1 --trace'
    """
    return f"floodway simulate --first {seed} --seeds 1 --trace"


def told(outcome: Outcome) -> Text:
    """Return what was wrong with a seed."""
    head = f"seed {outcome.seed} ({outcome.scenario}) failed: "
    return Text.assemble((head, "bold red"), outcome.problem or "")


def show(result: Simulated, console: Console) -> None:
    """Print the sums, and what failed."""
    summary = result.summary
    last = result.first + summary.seeds - 1
    console.print(
        f"seeds {result.first} to {last} in {result.took_s:.0f} s: {summary.epochs:,} epochs, "
        f"{summary.steps:,} steps, {summary.seconds:,.0f} simulated seconds"
    )
    console.print(
        f"{summary.kills:,} tasks and {summary.driver_kills:,} drivers killed, "
        f"{summary.pauses:,} pauses, {summary.power_losses:,} power losses, "
        f"{summary.full_disks:,} full disks, {summary.rescales:,} times another number of tasks"
    )
    console.print(
        f"{summary.resets:,} connections broken, {summary.cuts:,} blocked, {summary.unreached:,} "
        f"tasks out of reach, {summary.daemons:,} "
        f"daemons and {summary.hosts:,} hosts lost, {summary.clock_jumps:,} clocks set, "
        f"{summary.bad_sectors:,} bad sectors, {summary.restored:,} checkpoints put back"
    )
    console.print(
        f"{summary.broker_kills:,} brokers and {summary.redis_kills:,} Redis killed, "
        f"{summary.lost_answers:,} answers lost"
    )
    console.print(
        f"died at {len(summary.fail_points)} of {len(summary.fail_points) + len(result.unhit)} "
        f"fail points{_listed(result.unhit)}"
    )
    console.print(f"trace {summary.trace_hash}")
    for failure in result.failures:
        console.print(f"[bold red]seed {failure.seed} failed[/], again: {failure.command}")
    if not result.failures:
        console.print("[bold green]every seed is right[/]")


def _listed(unhit: Iterable[str]) -> str:
    names = ", ".join(unhit)
    return f"; not at: {names}" if names else ""
