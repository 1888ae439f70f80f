"""``floodway bench run`` and ``sustain``: one system under test, at a rate or at its limit."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway.core.errors import OptionError
from floodway_lab.cases.base import Shape
from floodway_lab.cases.keys import Keys
from floodway_lab.cases.registry import CASES, case_named
from floodway_lab.runs.around import Around
from floodway_lab.runs.experiment import Experiment, Latency, Run, Store
from floodway_lab.runs.running import run_once
from floodway_lab.runs.steady import steady
from floodway_lab.runs.sustaining import AtLoad, Sustained, sustain
from floodway_lab.sending.lines import Disorder
from floodway_lab.sending.schedules import SHAPES
from floodway_lab.systems.installing import install
from floodway_lab.systems.registry import SYSTEMS, link_of, needs, system_named
from floodway_lab.systems.system import Link

CaseArgument = Annotated[str, typer.Argument(metavar="WORKLOAD", help=", ".join(CASES))]
SystemOption = Annotated[str, typer.Option("--sut", metavar="NAME", help=", ".join(SYSTEMS))]
SecondsOption = Annotated[float, typer.Option(min=1, help="For how long events are due.")]
WarmOption = Annotated[float, typer.Option(min=0, help="How much of it does not count yet.")]
EnginesOption = Annotated[int, typer.Option(min=1, help="How many data engines.")]
LinkOption = Annotated[
    Link | None, typer.Option(help="How events come to the system; by default its best way.")
]
StoreOption = Annotated[Store, typer.Option(help="What becomes of results.")]
ForeignOption = Annotated[
    float,
    typer.Option(
        "--most-load", min=0, max=1, help="A run is void if others had more of the cores than this."
    ),
]
DopOption = Annotated[int, typer.Option(min=1, help="How many tasks the system should use.")]
SeedOption = Annotated[int, typer.Option(help="Of all that is left to chance.")]


def run(
    workload: CaseArgument,
    *,
    sut: SystemOption,
    rate: Annotated[float, typer.Option(min=1, help="Events per second, all engines together.")],
    seconds: SecondsOption = 20,
    warm: WarmOption = 5,
    schedule: Annotated[
        str, typer.Option(metavar="SHAPE", help=f"{', '.join(SHAPES)}, or a file of rates.")
    ] = "constant",
    link: LinkOption = None,
    store: StoreOption = "discard",
    engines: EnginesOption = 1,
    dop: DopOption = 1,
    keys: Annotated[int | None, typer.Option(min=1, help="How many keys.")] = None,
    zipf: Annotated[float, typer.Option(min=0, help="How uneven keys are.")] = 0,
    hot: Annotated[float, typer.Option(min=0, max=1, help="The share of events with one key.")] = 0,
    payload: Annotated[int, typer.Option(min=0, help="Bytes added to every event.")] = 0,
    late: Annotated[
        float, typer.Option(min=0, max=1, help="The share of events that are late.")
    ] = 0,
    late_ms: Annotated[int, typer.Option(min=0, help="By how much at most.")] = 1_000,
    seed: SeedOption = 1,
    most_load: ForeignOption = 0.15,
    json: JsonOption = None,
) -> None:
    """Run a system at a rate, and say how long it took and whether it was right.

    The exit code is 1 if the run is void.
    """
    case_named(workload)
    system = system_named(sut, workload)
    link_of(system, link)  # what cannot be is refused before anybody waits for a quiet machine
    shape = Shape(
        keys=_keys(workload, keys, zipf, hot),
        payload=payload,
        disorder=Disorder(late, late_ms) if late else Disorder(),
        seed=seed,
    )
    experiment = Experiment(
        case=workload,
        system=sut,
        rate=rate,
        seconds=seconds,
        warm_s=min(warm, seconds / 2),
        schedule=schedule,
        link=link,
        store=store,
        engines=engines,
        dop=dop,
        shape=shape,
        most_foreign=most_load,
    )
    console = Console(stderr=True, highlight=False)
    console.print(f"{system.title}: about {seconds + 15:.0f} s")
    with Around() as around:
        done = steady(lambda given: run_once(given, around))(experiment)
    if json is not None:
        write_json(done, json)
    if json != STDOUT:
        show_run(done, Console(highlight=False))
    if done.void:
        raise typer.Exit(1)


def _keys(workload: str, count: int | None, zipf: float, hot: float) -> Keys | None:
    if count is None and not zipf and not hot:
        return None
    return Keys(count or case_named(workload).keys.count, hot=hot, zipf=zipf)


def sustain_command(
    workload: CaseArgument,
    *,
    sut: SystemOption,
    first: Annotated[
        float, typer.Option(min=1, help="The rate that is tried first, events per second.")
    ] = 500_000,
    seconds: SecondsOption = 15,
    warm: WarmOption = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How many searches.")] = 3,
    link: LinkOption = None,
    store: StoreOption = "discard",
    engines: EnginesOption = 1,
    dop: DopOption = 1,
    seed: SeedOption = 1,
    most_load: ForeignOption = 0.15,
    json: JsonOption = None,
) -> None:
    """Search the highest rate that a system sustains, and its latency at parts of it.

    What was found is written after every step, and marked as not complete until all is done. The
    exit code is 1 if nothing was sustained or an answer was wrong.
    """
    case_named(workload)
    system = system_named(sut, workload)
    link_of(system, link)  # what cannot be is refused before anybody waits for a quiet machine
    slow_s = system.starts_s
    experiment = Experiment(
        case=workload,
        system=sut,
        rate=first,
        seconds=seconds + slow_s,
        warm_s=min(warm, seconds / 2) + slow_s,
        link=link,
        store=store,
        engines=engines,
        dop=dop,
        shape=Shape(seed=seed),
        most_foreign=most_load,
    )
    console = Console(stderr=True, highlight=False)
    kept = json if json != STDOUT else None
    with Around() as around, Gauge(console, sut) as gauge:
        found = sustain(
            experiment,
            repeats=repeats,
            progress=gauge.update,
            keep=lambda so_far: write_json(so_far, kept) if kept is not None else None,
            run=steady(lambda given: run_once(given, around)),
        )
    if json is not None:
        write_json(found, json)
    if json != STDOUT:
        show_sustained(found, Console(highlight=False))
    if found.void or not found.correct:
        raise typer.Exit(1)


def install_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=", ".join(n for n in SYSTEMS if needs(n)))
    ],
) -> None:
    """Set a system up that others have made, in an environment of its own."""
    system = SYSTEMS.get(name)
    if system is None:
        raise OptionError(
            f"there is no system {name!r}",
            remedy=f"use one of {', '.join(n for n in SYSTEMS if needs(n))}",
        )
    if not system.requirements:
        typer.echo(f"{name} needs nothing that is not there")
        return
    wanted = (*system.requirements, *system.jars)
    typer.echo(f"installing {', '.join(wanted)}; this may take minutes", err=True)
    place = install(system.place, system.requirements, system.jars)
    typer.echo(f"{system.title} is in {place}")


def show_run(done: Run, console: Console) -> None:
    """Print what a run has shown."""
    if done.void:
        console.print(Text.assemble(("void: ", "bold red"), done.why))
    offered = done.experiment.rate
    console.print(
        f"{done.taken:,} of {done.generated:,} events taken, {done.per_s:,.0f} a second of "
        f"{offered:,.0f} offered; answers {_answers(done)}"
    )
    if done.latency_ms is not None:
        console.print(_latency(done.latency_ms))
    console.print(
        f"events were generated {done.jitter_ms.p50:.2f} ms after their time (99 of 100 within "
        f"{done.jitter_ms.p99:.2f} ms, all within {done.jitter_ms.most:.1f} ms)"
    )


def show_sustained(found: Sustained, console: Console) -> None:
    """Print what a search has found."""
    title = SYSTEMS[found.system].title
    if found.sustainable_rate is None:
        console.print(Text.assemble(("void: ", "bold red"), f"{title} has sustained nothing"))
        return
    console.print(
        f"{title}, {CASES[found.case].title}:\n{found.sustainable_rate:,.0f} events/s sustained"
        + (f", {found.interval[0]:,.0f} to {found.interval[1]:,.0f}" if found.interval else "")
    )
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("load", "events/s", "p50 ms", "p99 ms", "answers"):
        grid.add_column(name, justify="right")
    for part in found.latency_ms:
        late = part.latency_ms
        grid.add_row(
            f"{part.load:.0%}",
            f"{part.rate:,.0f}",
            "" if late is None else f"{late.p50:,.1f}",
            "" if late is None else f"{late.p99:,.1f}",
            f"void: {part.why}" if part.void else _answers(part),
        )
    console.print(grid)


def _answers(of: Run | AtLoad) -> str:
    return {True: "right", False: "WRONG", None: "not known"}[of.correct]


def _latency(late: Latency) -> str:
    return (
        f"latency of {late.results:,} results: p50 {late.p50:,.2f} ms, p90 {late.p90:,.2f} ms, "
        f"p99 {late.p99:,.2f} ms, p99.9 {late.p999:,.2f} ms, max {late.max:,.1f} ms"
    )
