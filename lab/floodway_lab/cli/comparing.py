"""``floodway bench compare``, ``table`` and ``list``: systems side by side."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway.core.errors import OptionError
from floodway_lab.cases.base import Shape
from floodway_lab.cases.registry import CASES, case_named
from floodway_lab.cli.measuring import (
    CaseArgument,
    DopOption,
    EnginesOption,
    ForeignOption,
    LinkOption,
    SeedOption,
    StoreOption,
)
from floodway_lab.cli.versus import show_comparison
from floodway_lab.reports.page import comparison_page
from floodway_lab.reports.tables import markdown_table
from floodway_lab.runs.around import Around
from floodway_lab.runs.comparing import Comparison, compare
from floodway_lab.runs.experiment import Experiment
from floodway_lab.runs.running import run_once
from floodway_lab.runs.steady import steady
from floodway_lab.systems.registry import SYSTEMS, system_named, with_tasks

INSTALLED = "installed"
"""Stands for all systems that can be started here and are written for the workload."""


def compare_command(
    workload: CaseArgument,
    *,
    suts: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME@TASKS,...",
            help="Which systems, and with how many tasks if not --dop; by default, all installed.",
        ),
    ] = INSTALLED,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page of HTML to FILE.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each figure is taken.")] = 3,
    seconds: Annotated[float, typer.Option(min=2, help="How long each trial lasts.")] = 12,
    warm: Annotated[float, typer.Option(min=0, help="How much of it does not count yet.")] = 4,
    precision: Annotated[
        float, typer.Option(min=0.01, max=0.5, help="How exactly rates are found, as a share.")
    ] = 0.05,
    link: LinkOption = None,
    store: StoreOption = "discard",
    engines: EnginesOption = 1,
    dop: DopOption = 1,
    seed: SeedOption = 1,
    most_load: ForeignOption = 0.15,
    json: JsonOption = None,
    go_on: Annotated[
        bool,
        typer.Option("--go-on", help="Measure only what the file of --json does not have yet."),
    ] = False,
) -> None:
    """Compare systems: sustainable rates, latency at parts of them, ratios with intervals.

    Systems take turns. What was found is written after every step, and marked as partial until all
    is done. With --link, systems that cannot read it use their own. The exit code is 1 if nothing
    was sustained or an answer was wrong.
    """
    case_named(workload)
    names = chosen(suts, workload)
    experiment = Experiment(
        case=workload,
        system=with_tasks(names[0])[0],
        rate=1.0,
        link=link,
        store=store,
        seconds=seconds,
        warm_s=min(warm, seconds / 2),
        engines=engines,
        dop=dop,
        shape=Shape(seed=seed),
        most_foreign=most_load,
    )

    so_far = _before(json) if go_on else None

    def keep(found: Comparison) -> None:
        if json is not None and json != STDOUT:
            write_json(found, json)
        if out is not None:
            out.write_text(comparison_page(found))

    console = Console(stderr=True, highlight=False)
    with Around() as around, Gauge(console, workload) as gauge:
        found = compare(
            names,
            experiment,
            rounds=rounds,
            precision=precision,
            command=shlex.join(["floodway", *sys.argv[1:]]),
            run=steady(lambda given: run_once(given, around)),
            progress=gauge.update,
            keep=keep,
            so_far=so_far,
        )
    if json == STDOUT:
        write_json(found, json)
    else:
        show_comparison(found, Console(highlight=False))
    if not all(each.correct and each.rates for each in found.systems):
        raise typer.Exit(1)


def chosen(suts: str, workload: str) -> list[str]:
    """Return which systems are to be compared.

    >>> chosen("loop, loops, loops@2", "ads")
    ['loop', 'loops', 'loops@2']
    """
    if suts == INSTALLED:
        return [name for name, each in SYSTEMS.items() if workload in each.cases and each.ready]
    names = [name.strip() for name in suts.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise OptionError(f"{suts!r} names no system, or one twice", remedy="e.g. loop,bytewax")
    for name in names:
        system_named(with_tasks(name)[0], workload)
    return names


def table_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What compare has found.")],
) -> None:
    """Print comparisons as tables in Markdown."""
    typer.echo(markdown_table([_read(file) for file in files]))


def _before(json: str | None) -> Comparison | None:
    """Return what a comparison found before it was stopped, if there was one."""
    if json is None or json == STDOUT:
        raise OptionError("there is no file to go on with", remedy="add --json FILE")
    return _read(Path(json)) if Path(json).exists() else None


def _read(file: Path) -> Comparison:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Comparison)
    except (OSError, msgspec.DecodeError) as error:
        raise OptionError(
            f"{file} is no comparison: {error}",
            remedy="use what `bench compare --json` has written",
        ) from error


def list_command(*, json: JsonOption = None) -> None:
    """List workloads and systems, and which systems are installed."""
    if json is not None:
        cases = {name: case.title for name, case in CASES.items()}
        systems = {
            name: {"title": each.title, "cases": sorted(each.cases), "installed": each.ready}
            for name, each in SYSTEMS.items()
        }
        write_json({"workloads": cases, "systems": systems}, json)
        return
    console = Console(highlight=False)
    for title, rows in (
        ("workload", [(name, case.title) for name, case in CASES.items()]),
        (
            "system",
            [
                (name, each.title if each.ready else f"{each.title}; not installed")
                for name, each in SYSTEMS.items()
            ],
        ),
    ):
        grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
        grid.add_column(title)
        grid.add_column("what it is")
        for row in rows:
            grid.add_row(*row)
        console.print(grid)
        console.print()
