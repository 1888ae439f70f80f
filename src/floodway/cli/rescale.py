"""``floodway rescale``: deal the state of a checkpoint out to another number of tasks."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table as Grid

from floodway.cli.check_upgrade import compared
from floodway.cli.flows import (
    ConfigurationOption,
    DopOption,
    FlowArgument,
    configuration_of,
    load_flow,
)
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.cli.progress import Gauge
from floodway.core.errors import CorruptError, EngineError
from floodway.engine.rescale import needs_rescaling, rescaled
from floodway.engine.rud.commits import Commits
from floodway.engine.rud.records import CommitRecord
from floodway.engine.rud.vault import FolderVault
from floodway.plan import Plan


class StageTasks(msgspec.Struct, frozen=True):
    """A stage, how many tasks it had (None if there was no such stage) and how many it has."""

    stage: str
    before: int | None
    after: int


class Rescaled(msgspec.Struct, frozen=True):
    """What was done, as ``--json`` writes it."""

    flow: str
    epoch: int
    changed: bool
    stages: list[StageTasks]


def rescale(
    flow: FlowArgument,
    *,
    checkpoint: Annotated[
        Path, typer.Option("--checkpoint", metavar="DIR", help="The folder of the checkpoint.")
    ],
    dop: DopOption = None,
    configuration: ConfigurationOption = None,
    json: JsonOption = None,
) -> None:
    """Deal the state of a stopped flow out to another number of tasks; no key is lost.

    Run the flow afterwards with the same --dop. If this is interrupted, the checkpoint is what it
    was before.
    """
    plan = Plan.of(load_flow(flow), configuration_of(configuration, dop, None, None))
    result = deal_out(checkpoint, plan, Console(stderr=True, highlight=False))
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show(result, Console(highlight=False))


def deal_out(folder: Path, plan: Plan, console: Console) -> Rescaled:
    """Deal out what a checkpoint has, unless its tasks are those of the plan already."""
    check(folder, plan)
    with Commits(FolderVault(folder)) as commits:
        former = _newest(commits, folder)
        changed = needs_rescaling(former, plan)
        record = _dealt(former, plan, commits, console) if changed else former
    before = {stage.name: stage.dop for stage in former.shape.stages}
    stages = [StageTasks(s.name, before.get(s.name), s.dop) for s in plan.stages]
    return Rescaled(plan.flow, record.epoch, changed, stages)


def check(folder: Path, plan: Plan) -> None:
    """Refuse a checkpoint that is missing, or that the flow cannot go on from."""
    findings = [f for f in compared(folder, plan).findings if f.verdict == "incompatible"]
    if findings:
        raise EngineError(
            f"the flow cannot go on from {folder}: {'; '.join(map(str, findings))}",
            remedy="`floodway check-upgrade` shows what is kept; undo the change, or start with an "
            "empty checkpoint",
        )


def _newest(commits: Commits, folder: Path) -> CommitRecord:
    """Return the newest record; an older one is not a place to go on from without a thought."""
    record = commits.latest(verify=True)
    assert record is not None  # there was one a moment ago, and nobody else may write now
    if commits.skipped:
        name, reason = commits.skipped[0]
        raise CorruptError(
            f"{folder}/{name} is damaged ({reason})",
            remedy="let the flow run on with as many tasks as it had, which goes back by an epoch "
            "where that is possible; then try again",
        )
    return record


def _dealt(former: CommitRecord, plan: Plan, commits: Commits, console: Console) -> CommitRecord:
    done = 0
    with Gauge(console, "rescaling") as gauge:

        def progress(stage: str, index: int, of: int) -> None:
            nonlocal done
            done += 1
            gauge.update(done, plan.tasks, f"{stage}: {index} of {of} tasks")

        return rescaled(former, plan, commits, progress=progress)


def show(result: Rescaled, console: Console) -> None:
    """Print the stages."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("stage", "tasks before", "tasks now"):
        grid.add_column(title, justify="left" if title == "stage" else "right")
    for stage in result.stages:
        grid.add_row(
            stage.stage, "-" if stage.before is None else str(stage.before), str(stage.after)
        )
    console.print(grid)
    if result.changed:
        console.print(f"\n{result.flow} goes on from epoch {result.epoch} with these tasks")
    else:
        console.print(f"\nnothing to do: {result.flow} has these tasks already")
