"""The tables of ``floodway bench paradigms``."""

from collections.abc import Iterable, Sequence
from typing import cast

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.numbers import show_count, show_time
from floodway_lab.paradigms.judging import Aim, middle
from floodway_lab.paradigms.measures import PARTS, Outcome
from floodway_lab.paradigms.paradigms import MODES, WHATS, WORKLOADS, Comparison, What


def chosen_runs(
    what: Sequence[str] | None, workload: Sequence[str] | None
) -> tuple[list[What], list[str]]:
    """Return what was asked for, where nothing and ``all`` are everything.

    >>> chosen_runs(["low", "sine"], None)
    (['low', 'sine'], ['ads', 'words', 'grep'])
    """
    whats = _chosen("--what", what, WHATS)
    return cast("list[What]", whats), _chosen("--workload", workload, WORKLOADS)


def _chosen(option: str, wanted: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    if not wanted or "all" in wanted:
        return list(known)
    for name in wanted:
        if name not in known:
            shown = ", ".join(known)
            raise typer.BadParameter(f"{name!r} is not one of: {shown}, all", param_hint=option)
    return [name for name in known if name in wanted]


def show_comparison(result: Comparison, console: Console) -> None:
    """Print all tables."""
    done = dict.fromkeys(outcome.what for outcome in result.outcomes)
    for what in done:
        outcomes = [outcome for outcome in result.outcomes if outcome.what == what]
        console.print(Text(_TITLES[what].format(result=result), "bold"))
        for part in _TABLES[what](outcomes):
            console.print(part)
        aims = [aim for aim in result.aims if aim.what == what]
        if aims:
            console.print(_aims(aims))
        console.print()
    for outcome in result.outcomes:
        if outcome.error is not None:
            name = f"{outcome.what}, {outcome.workload}, {outcome.mode}, round {outcome.round + 1}"
            console.print(Text.assemble(("void: ", "bold red"), f"{name}: {outcome.error}"))
    if result.limits:
        console.print("The floods of step, components, sine and noise, by what was measured first:")
        for name, limits in result.limits.items():
            console.print(
                f"  {name}: {limits.flood:,} events/s "
                f"(data {limits.data:,.0f}, dual {limits.dual:,.0f})"
            )
    console.print(Text.assemble(("stories  ", "bold"), result.folder), soft_wrap=True)


_TITLES = {
    "low": "Low rate: latency from when an event was due to its result, 1,000 events/s",
    "flood": "Flood: events per second whose results come out, with more offered than is taken",
    "step": "Step: a calm, five times as much, a calm",
    "hot": "Hot key: half of all records have one key; events per second",
    "components": "Where the time goes, half of the probes",
    "sine": "Sine: a load between a twentieth of the flood and all of it, every 20 s",
    "noise": "Noise: another load every half second, by chance",
}


def _grid(*titles: str, left: int = 2) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for number, title in enumerate(titles):
        grid.add_column(title, justify="left" if number < left else "right")
    return grid


def _runs(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, str]]:
    modes = {outcome.mode for outcome in outcomes}
    for workload in dict.fromkeys(outcome.workload for outcome in outcomes):
        for mode in MODES:
            if mode in modes:
                yield workload, mode


def _ms(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else show_time(1000 * value)


def _low(outcomes: Sequence[Outcome]) -> list[Grid]:
    grid = _grid("flow", "mode", "p50", "p90", "p99", "max", "probes")
    for workload, mode in _runs(outcomes):
        values = [
            middle(outcomes, "low", workload, mode, name) for name in ("p50", "p90", "p99", "max")
        ]
        count = middle(outcomes, "low", workload, mode, "probes")
        grid.add_row(workload, mode, *map(_ms, values), "-" if count is None else f"{count:.0f}")
    return [grid]


def _rates(outcomes: Sequence[Outcome]) -> list[Grid]:
    what = outcomes[0].what
    grid = _grid("flow", "mode", "events/s", "of data", "whole run", "rounds")
    for workload, mode in _runs(outcomes):
        rate = middle(outcomes, what, workload, mode, "per_s")
        data = middle(outcomes, what, workload, "data", "per_s")
        whole = middle(outcomes, what, workload, mode, "whole_per_s")
        rounds = [
            show_count(outcome.figures["per_s"]) if outcome.error is None else "void"
            for outcome in outcomes
            if (outcome.workload, outcome.mode) == (workload, mode)
        ]
        grid.add_row(
            workload,
            mode,
            "-" if rate is None else f"{rate:,.0f}",
            f"{rate / data:.2f}" if rate is not None and data else "-",
            "-" if whole is None else f"{whole:,.0f}",
            " ".join(rounds),
        )
    return [grid]


def _step(outcomes: Sequence[Outcome]) -> list[Grid]:
    grid = _grid("flow", "mode", "calm p50", "p99", "flood p50", "p99", "after p99", "area s²")
    names = ("calm_p50", "calm_p99", "flood_p50", "flood_p99", "after_p99")
    for workload, mode in _runs(outcomes):
        values = [middle(outcomes, "step", workload, mode, name) for name in names]
        area = middle(outcomes, "step", workload, mode, "area")
        grid.add_row(workload, mode, *map(_ms, values), "-" if area is None else f"{area:.2f}")
    acts = _grid("flow", "first act", "told to switch", "pause p99", left=1)
    for workload in dict.fromkeys(outcome.workload for outcome in outcomes):
        values = [
            middle(outcomes, "step", workload, "dual", name)
            for name in ("detection_ms", "switch_ms", "pause_ms")
        ]
        acts.add_row(workload, *map(_ms, values))
    return [grid, acts]


def _components(outcomes: Sequence[Outcome]) -> list[Grid]:
    grid = _grid("load", "mode", *PARTS, "all")
    stages = _grid("load", "mode", "stage", "wait", "schedule", "process", "p50", "p99", left=3)
    for load in ("low", "high"):
        for workload, mode in _runs(outcomes):
            values = [
                middle(outcomes, "components", workload, mode, name, load)
                for name in (*PARTS, "p50")
            ]
            grid.add_row(load, mode, *map(_ms, values))
            _add_stages(stages, [o for o in outcomes if (o.load, o.mode) == (load, mode)])
    return [grid, stages]


def _add_stages(grid: Grid, outcomes: Sequence[Outcome]) -> None:
    for name, stage in outcomes[-1].stages.items() if outcomes else ():
        shown = [_ms(stage[part]) for part in ("wait", "schedule", "process", "p50", "p99")]
        grid.add_row(outcomes[-1].load, outcomes[-1].mode, name, *shown)


def _varying(outcomes: Sequence[Outcome]) -> list[Grid]:
    grid = _grid("flow", "stage", "switches", "shortest", "p50", "p99")
    for outcome in outcomes:
        latency = [_ms(outcome.figures.get(q)) for q in ("p50", "p99")]
        grid.add_row(
            outcome.workload, "all", f"{outcome.figures.get('switches', 0):.0f}", "-", *latency
        )
        for name, stage in outcome.stages.items():
            apart = f"{stage['shortest_s']:.1f}s" if "shortest_s" in stage else "-"
            grid.add_row("", name, f"{stage['switches']:.0f}", apart)
    return [grid]


_TABLES = {
    "low": _low,
    "flood": _rates,
    "hot": _rates,
    "step": _step,
    "components": _components,
    "sine": _varying,
    "noise": _varying,
}


def _aims(aims: Sequence[Aim]) -> Grid:
    grid = _grid("flow", "to be shown", "is", "aim", "")
    verdicts = {True: ("met", "green"), False: ("not met", "red"), None: ("not measured", "dim")}
    for aim in aims:
        sign = ">=" if aim.better == "more" else "<="
        grid.add_row(
            aim.workload,
            aim.aim,
            "-" if aim.value is None else f"{aim.value:,.2f}",
            f"{sign} {aim.bound:g}",
            Text(*verdicts[aim.met]),
        )
    return grid
