"""What a changed flow may keep of a checkpoint: its newest record, compared with a plan."""

from pathlib import Path

import msgspec

from floodway.core.errors import CorruptError, EngineError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.checkpoint.shape import FlowShape
from floodway.engine.checkpoint.upgrade import Fate, compare
from floodway.engine.checkpoint.vault import FolderVault
from floodway.plan.stages import Plan

LOOKS = 5
"""So often a checkpoint is looked at anew whose flow runs, and replaces files under our eyes."""


class Upgrade(msgspec.Struct, frozen=True):
    """What becomes of a checkpoint.

    Attributes
    ----------
    flow
        The flow that is to go on from it.
    checkpoint, epoch
        The folder, and the epoch that it has come to.
    compatible
        Whether the flow can go on from there.
    findings
        What becomes of each operator's state.
    """

    flow: str
    checkpoint: str
    epoch: int
    compatible: bool
    findings: list[Fate]


def compared(folder: Path, plan: Plan) -> Upgrade:
    """Compare a plan with the one that a checkpoint is of; nothing is changed."""
    record = read_record(folder)
    findings = compare(record.shape, FlowShape.of(plan))
    if record.flow != plan.flow:
        why = f"the checkpoint is of the flow {record.flow}, and this is {plan.flow}"
        findings.insert(0, Fate(plan.flow, "incompatible", why))
    compatible = all(finding.verdict != "incompatible" for finding in findings)
    return Upgrade(plan.flow, str(folder), record.epoch, compatible, findings)


def check_compatible(folder: Path, plan: Plan) -> None:
    """Refuse a checkpoint that is missing, or that the flow cannot go on from."""
    findings = [f for f in compared(folder, plan).findings if f.verdict == "incompatible"]
    if findings:
        raise EngineError(
            f"the flow cannot go on from {folder}: {'; '.join(map(str, findings))}",
            remedy="`floodway check-upgrade` shows what is kept; undo the change, or start with an "
            "empty checkpoint",
        )


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
