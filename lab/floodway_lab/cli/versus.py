"""The table of ``floodway bench compare``."""

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from floodway_lab.reports.facts import (
    LATE,
    OWN,
    RATE,
    answers,
    best_peers,
    caveats,
    late_at,
    ordered,
    partial,
    rate_interval,
    ratio,
    show_late,
    show_rate,
    show_rates,
    show_ratio,
    voids,
    why_not,
)
from floodway_lab.runs.comparing import LOADS, Compared, Comparison


def show_comparison(found: Comparison, console: Console) -> None:
    """Print what a comparison has found, and before that what to keep in mind."""
    if missing := partial(found):
        console.print(Text(missing, "bold red"))
    for caveat in caveats(found):
        console.print(Text(f"- {caveat}", "dim"))
    on, how = found.machine, found.experiment
    console.print(
        Text(
            f"\n{found.title}: {on.date}, {on.processor}, {on.cores} cores, load "
            f"{on.load_before:g} before; {how.engines} data engines, "
            f"degree of parallelism {how.dop}",
            "bold",
        )
    )
    console.print(_systems(found))
    if found.ratios:
        console.print(Text(f"\n{OWN} against each of them", "bold"))
        console.print(_ratios(found))
    for told in best_peers(found):
        console.print(Text(told))
    _show_missing(found, console)


def _grid(*titles: str, left: int = 1) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for number, title in enumerate(titles):
        grid.add_column(title, justify="left" if number < left else "right")
    return grid


def _systems(found: Comparison) -> Grid:
    loads = (f"{100 * load:.0f} %: p50 / p99 ms" for load in LOADS)
    grid = _grid("system", "events/s", "95 of 100", *loads, "link", "answers")
    for of in ordered(found):
        if not why_not(of):
            grid.add_row(
                of.system,
                show_rate(of.sustainable_rate or 0.0),
                show_rates(rate_interval(of)) or "-",
                *(show_late(late_at(of, load)) for load in LOADS),
                of.link,
                _answers(of),
            )
    return grid


def _answers(of: Compared) -> Text:
    styles = {"right": "green", "WRONG": "bold red"}
    return Text(answers(of), styles.get(answers(of), "dim"))


def _ratios(found: Comparison) -> Grid:
    grid = _grid("against", RATE, LATE)
    for of in ordered(found):
        shown = [
            "-" if each is None else show_ratio(each.value, each.interval)
            for each in (ratio(found, what, of.system) for what in (RATE, LATE))
        ]
        if shown != ["-", "-"]:
            grid.add_row(of.system, *shown)
    return grid


def _show_missing(found: Comparison, console: Console) -> None:
    for of in ordered(found):
        if why := why_not(of):
            console.print(Text.assemble(("left out: ", "bold red"), f"{of.title}: {why}"))
    for void in voids(found):
        name = f"{void.title}, round {void.number}, {100 * void.load:.0f} % load"
        console.print(Text.assemble(("void: ", "bold red"), f"{name}: {void.why}"))
