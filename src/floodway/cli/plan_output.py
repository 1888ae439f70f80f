"""How ``floodway plan`` shows what it has found: as tables, and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.numbers import show_time
from floodway.provisioning.calibration.describing import Calibrated
from floodway.provisioning.calibration.fitting import Estimate
from floodway.provisioning.cost import Bottleneck, Figure, Settings
from floodway.provisioning.planning.answers import Answer, Comparison, Step
from floodway.provisioning.planning.wording import (
    NOTHING,
    coming_through,
    headline,
    overload,
    show_part,
    show_rate,
    size,
)

Part = RenderableType


def describe_answer(found: Answer) -> Iterator[Part]:
    """Return a plan, or a configuration that was checked, for people to read."""
    yield Text(headline(found), style="bold")
    yield Text("")
    yield _operators(found)
    yield Text("")
    yield Text(size(found))
    waiting = sum(found.outcome.waits_s.values())
    if waiting:
        yield Text(
            f"waiting for batches to fill: {show_time(waiting * 1e6)} on average, "
            "all operators together"
        )
    for bottleneck in found.diagnosis.bottlenecks:
        yield from _bottleneck(bottleneck, found.wishes.headroom)
    yield from map(Text, coming_through(found))


def _operators(found: Answer) -> Grid:
    held = bool(found.outcome.prediction.held_back_by)
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("operator", overflow="fold")
    for name in ("dop", "b_out", "rate in", "rate out", "used"):
        grid.add_column(name, justify="right")
    grid.add_column("limit")
    if held:
        grid.add_column("gets through", justify="right")
    limited = {bottleneck.operator for bottleneck in found.diagnosis.bottlenecks}
    for name, stage in found.stages.items():
        cells = [
            name,
            f"{stage.dop:,}",
            NOTHING if stage.b_out is None else f"{stage.b_out:,}",
            show_rate(stage.rate_in),
            show_rate(stage.rate_out),
            show_part(stage.utilisation),
            stage.binding or NOTHING,
        ]
        if held:
            cells.append(show_rate(stage.rate_through))
        style = "bold red" if name in limited else ""
        grid.add_row(*(Text(cell) for cell in cells), style=style)
    return grid


def _bottleneck(found: Bottleneck, headroom: float) -> Iterator[Part]:
    yield Text.assemble(
        ("bottleneck: ", "bold red"), (found.operator, "bold"), f" {overload(found, headroom)}"
    )
    yield Padding(Text.assemble(("remedy  ", "cyan"), found.remedy), (0, 0, 0, 2), expand=False)


def describe_range(steps: Sequence[Step]) -> Iterator[Part]:
    """Return one line for each rate: how many tasks, and which operators get more of them."""
    planned = any(step.answer and step.answer.minimum for step in steps)
    checked = any(step.answer and not step.answer.minimum for step in steps)
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    sized = any(step.answer and step.answer.servers for step in steps)
    names = (
        ["rate", "throughput"] if checked else ["rate", "tasks", *(["servers"] if sized else [])]
    )
    for name in names:
        grid.add_column(name, justify="right")
    grid.add_column("dop" if planned else "bottlenecks", overflow="fold")
    before: Settings | None = None
    for step in steps:
        cells = [show_rate(step.rate)]
        if step.answer is None:
            cells += [NOTHING] * (len(names) - 1) + [step.problem or ""]
        elif checked:
            through = sum(step.answer.outcome.prediction.throughput.values())
            limits = (f"{b.operator} ({b.kinds[0]})" for b in step.answer.diagnosis.bottlenecks)
            cells += [show_rate(through), ", ".join(limits) or NOTHING]
        else:
            cells += [f"{step.answer.tasks:,}"]
            cells += [f"{step.answer.servers:,}"] if sized else []
            cells += [_changes(before, step.answer.settings)]
            before = step.answer.settings
        grid.add_row(*(Text(cell) for cell in cells))
    yield grid


def _changes(before: Settings | None, after: Settings) -> str:
    if before is None:
        return ", ".join(f"{name} {setting.dop}" for name, setting in after.items())
    changed = [
        f"{name} {before[name].dop} to {setting.dop}"
        for name, setting in after.items()
        if before[name].dop != setting.dop
    ]
    return ", ".join(changed) or "the same"


def describe_comparison(found: Comparison) -> Iterator[Part]:
    """Return what differs, figure by figure; what looks the same is left out."""
    if found.problem is not None:
        yield Text(f"{found.before}: {found.problem}")
        return
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("difference", overflow="fold")
    grid.add_column(found.before, justify="right")
    grid.add_column(found.after, justify="right")
    for one in found.differences:
        before, after = (_figure(one.figure, value) for value in (one.before, one.after))
        if before != after:
            grid.add_row(Text("waiting" if one.figure == "wait_s" else one.figure), before, after)
    yield grid if grid.rows else Text(f"{found.before} and {found.after} are the same")


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return NOTHING
    if name == "wait_s":
        return show_time(value * 1e6)
    return show_part(value) if name.endswith(".utilisation") else show_rate(value)


def describe_figures(operator: str, figures: Sequence[Figure]) -> Iterator[Part]:
    """Return every number of an operator with its equation and inputs."""
    yield Text.assemble("where the numbers of ", (operator, "bold"), " come from")
    for figure in figures:
        said, _, given = str(figure).partition(" with ")
        yield Padding(Text(said), (0, 0, 0, 2), expand=False)
        if given:
            yield Padding(Text(f"with {given}", style="dim"), (0, 0, 0, 6), expand=False)


def answer_document(found: Answer) -> dict[str, Any]:
    """Return a plan, or a configuration that was checked, for machines to read."""
    prediction, wishes = found.outcome.prediction, found.wishes
    return {
        "planned": found.minimum is not None,
        "rate": found.rate,
        "workload": found.paper.workload,
        "tasks": found.tasks,
        "servers": found.servers,
        "cores": found.paper.cores,
        "headroom": wishes.headroom,
        "max_b_out": found.minimum.max_b_out if found.minimum else None,
        "throughput": prediction.throughput,
        "held_back_by": prediction.held_back_by,
        "wait_s": sum(found.outcome.waits_s.values()),
        "operators": found.stages,
        "bottlenecks": found.diagnosis.bottlenecks,
    }


def range_document(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the answers for a range of rates, or why there is none, for machines to read."""
    return {
        "steps": [
            {"rate": step.rate, "problem": step.problem}
            if step.answer is None
            else answer_document(step.answer) | {"problem": None}
            for step in steps
        ]
    }


def describe_costs(found: Calibrated) -> Iterator[Part]:
    """Return what was measured, with the bounds within which it lies."""
    yield Text(f"costs in nanoseconds, measured {found.date} on {found.machine}", style="bold")
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("stage")
    for title in ("a record", "a batch in", "a batch out", "selectivity", "bytes", "fits to"):
        grid.add_column(title, justify="right")
    for name, costs in found.costs.items():
        grid.add_row(
            name,
            _bounds(costs.c_cpu_ns),
            _bounds(costs.c_fetch_ns),
            _bounds(costs.c_emit_ns),
            f"{costs.selectivity.value:.3g}",
            f"{costs.record_bytes:.0f}",
            f"{100 * costs.error:.0f} %",
        )
    yield grid
    yield Text("")


def _bounds(of: Estimate) -> str:
    return f"{of.value:,.0f} ({of.low:,.0f} to {of.high:,.0f})" if of.value else NOTHING
