"""How ``floodway plan`` shows what it has found: as tables, and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.numbers import show_time
from floodway.cli.planning import Answer, Comparison, Step
from floodway.provisioning.cost import Bottleneck, Figure, Settings

NOTHING = "-"

Part = RenderableType


def describe_answer(found: Answer) -> Iterator[Part]:
    """Return a plan, or a configuration that was checked, for people to read."""
    prediction = found.outcome.prediction
    yield Text(_headline(found), style="bold")
    yield Text("")
    yield _operators(found)
    yield Text("")
    yield Text(_size(found))
    waiting = sum(found.outcome.waits_s.values())
    if waiting:
        yield Text(
            f"waiting for batches to fill: {show_time(waiting * 1e6)} on average, "
            "all operators together"
        )
    for bottleneck in found.diagnosis.bottlenecks:
        yield from _bottleneck(bottleneck, found.wishes.headroom)
    through = sum(prediction.throughput.values())
    if not prediction.held_back_by:
        none = "" if found.diagnosis.bottlenecks else "no bottleneck: "
        yield Text(f"{none}all {show_rate(found.rate)} records/s come through")
        return
    yield Text(
        f"back-pressure: {show_rate(through)} of {show_rate(found.rate)} records/s come through "
        f"({show_part(through / found.rate)})"
    )
    if len(prediction.throughput) > 1:
        for source, rate in prediction.throughput.items():
            held = prediction.held_back_by.get(source)
            why = f", held back by {held}" if held else ""
            offered = show_rate(found.paper.workload[source])
            yield Text(f"  {source}: {show_rate(rate)} of {offered}{why}")


def _headline(found: Answer) -> str:
    if found.minimum is None:
        return f"the configuration at {show_rate(found.rate)} records/s"
    wishes = found.wishes
    if wishes.largest:
        return f"the largest rate with {wishes.max_tasks} tasks: {show_rate(found.rate)} records/s"
    return f"the fewest tasks for {show_rate(found.rate)} records/s"


def _size(found: Answer) -> str:
    said = _counted(found.tasks, "task")
    if found.servers is None or found.paper.cores is None:
        return said
    return f"{said} on {_counted(found.servers, 'server')} of {_counted(found.paper.cores, 'core')}"


def _operators(found: Answer) -> Grid:
    held = bool(found.outcome.prediction.held_back_by)
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    grid.add_column("operator", overflow="fold")
    for name in ("dop", "b_out", "rate in", "rate out", "used"):
        grid.add_column(name, justify="right")
    grid.add_column("limit")
    if held:
        grid.add_column("gets through", justify="right")
    through = found.rates_through
    limited = {bottleneck.operator for bottleneck in found.diagnosis.bottlenecks}
    for name, load in found.diagnosis.loads.items():
        b_out = load.setting.b_out
        cells = [
            name,
            f"{load.setting.dop:,}",
            NOTHING if b_out is None else f"{b_out:,}",
            show_rate(load.rate_in),
            show_rate(load.rate_out),
            show_part(load.utilisation),
            load.binding if load.capacity != float("inf") else NOTHING,
        ]
        if held:
            cells.append(show_rate(through[name]))
        style = "bold red" if name in limited else ""
        grid.add_row(*(Text(cell) for cell in cells), style=style)
    return grid


def _bottleneck(found: Bottleneck, headroom: float) -> Iterator[Part]:
    kept = f" less {show_part(headroom)} headroom" if headroom else ""
    yield Text.assemble(
        ("bottleneck: ", "bold red"),
        (found.operator, "bold"),
        f" ({', '.join(found.kinds)}); {show_rate(found.rate_in)} records/s arrive, it can take "
        f"{show_rate(found.capacity)}{kept}",
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


def show_rate(rate: float) -> str:
    """Return records per second: whole, unless they are few.

    Examples
    --------
    >>> [show_rate(rate) for rate in (0, 0.297, 148.5, 500_000)]
    ['0', '0.297', '148', '500,000']
    """
    return f"{rate:,.0f}" if rate >= 100 or rate == round(rate) else f"{rate:.3g}"


def show_part(part: float) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> [show_part(part) for part in (0, 0.0003, 0.586, 1.25)]
    ['0 %', '<1 %', '59 %', '125 %']
    """
    return "<1 %" if 0 < part < 0.005 else f"{part * 100:,.0f} %"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
        "operators": _operator_documents(found),
        "bottlenecks": found.diagnosis.bottlenecks,
    }


def _operator_documents(found: Answer) -> dict[str, Any]:
    through = found.rates_through
    return {
        name: {
            "dop": load.setting.dop,
            "b_out": load.setting.b_out,
            "b_in": load.b_in,
            "rate_in": load.rate_in,
            "rate_out": load.rate_out,
            "rate_through": through[name],
            "cost_ns": load.cost_ns,
            "capacity": load.capacity,
            "utilisation": load.utilisation,
            "binding": load.binding if load.capacity != float("inf") else None,
            "wait_s": found.outcome.waits_s[name],
        }
        for name, load in found.diagnosis.loads.items()
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
