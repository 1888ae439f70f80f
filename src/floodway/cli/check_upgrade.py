"""``floodway check-upgrade``: what a changed flow may keep of a checkpoint."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from floodway.cli.flows import (
    ConfigurationOption,
    DopOption,
    FlowArgument,
    configuration_of,
    load_flow,
)
from floodway.cli.output import STDOUT, JsonOption, write_json
from floodway.core.errors import CorruptError, EngineError
from floodway.engine.rud.commits import Commits
from floodway.engine.rud.records import CommitRecord
from floodway.engine.rud.shape import FlowShape
from floodway.engine.rud.upgrade import Finding, Verdict, compare
from floodway.engine.rud.vault import FolderVault
from floodway.plan import Plan

LOOKS = 5
"""So often a checkpoint is looked at anew whose flow runs, and replaces files under our eyes."""

_STYLES: dict[Verdict, str] = {
    "kept": "green",
    "new": "cyan",
    "dropped": "yellow",
    "incompatible": "bold red",
}


class Upgrade(msgspec.Struct, frozen=True):
    """What becomes of a checkpoint, as ``--json`` writes it."""

    flow: str
    checkpoint: str
    epoch: int
    compatible: bool
    findings: list[Finding]


def check_upgrade(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The folder of the checkpoint.")
    ],
    flow: FlowArgument,
    *,
    dop: DopOption = None,
    configuration: ConfigurationOption = None,
    json: JsonOption = None,
) -> None:
    """Show what a flow would keep of a checkpoint, what it would drop, and what is in the way.

    Nothing is changed, and the flow that writes the checkpoint may run. The exit code is 1 if the
    flow could not go on from there.
    """
    plan = Plan.of(load_flow(flow), configuration_of(configuration, dop, None, None))
    result = compared(checkpoint, plan)
    if json is not None:
        write_json(result, json)
    if json != STDOUT:
        show(result, Console(highlight=False))
    if not result.compatible:
        raise typer.Exit(1)


def compared(folder: Path, plan: Plan) -> Upgrade:
    """Compare a plan with the one that a checkpoint is of."""
    record = read_record(folder)
    findings = compare(record.shape, FlowShape.of(plan))
    if record.flow != plan.flow:
        why = f"the checkpoint is of the flow {record.flow}, and this is {plan.flow}"
        findings.insert(0, Finding(plan.flow, "incompatible", why))
    compatible = all(finding.verdict != "incompatible" for finding in findings)
    return Upgrade(plan.flow, str(folder), record.epoch, compatible, findings)


def read_record(folder: Path) -> CommitRecord:
    """Return the newest record of a checkpoint, which may be in use."""
    commits = Commits(FolderVault(folder))
    record = None
    for look in range(LOOKS):
        try:
            record = commits.latest()
            break
        except CorruptError:
            if look == LOOKS - 1:
                raise
    if record is None:
        raise EngineError(
            f"there is no checkpoint in {folder}",
            remedy="name the folder that was given to `floodway run --checkpoint`",
        )
    return record


def show(result: Upgrade, console: Console) -> None:
    """Print what was found."""
    console.print(f"{result.flow}, checkpoint at epoch {result.epoch}\n")
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("operator", "verdict", "why"):
        grid.add_column(title, overflow="fold")
    for finding in result.findings:
        verdict = Text(finding.verdict, style=_STYLES[finding.verdict])
        grid.add_row(Text(finding.operator), verdict, Text(finding.why))
    console.print(grid)
    if result.compatible:
        console.print("\nthe flow can go on from this checkpoint")
    else:
        console.print(
            "\n[bold red]the flow cannot go on from this checkpoint[/]: undo the change, give "
            "changed operators another name, or start with an empty folder"
        )
