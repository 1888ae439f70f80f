"""A checkpoint for another number of tasks: its newest record is dealt out, and committed."""

from pathlib import Path

import msgspec

from floodway.core.errors import CorruptError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.checkpoint.rescale import Dealt, needs_rescaling, rescaled
from floodway.engine.checkpoint.upgrading import check_compatible
from floodway.engine.checkpoint.vault import FolderVault
from floodway.plan.stages import Plan


class StageTasks(msgspec.Struct, frozen=True):
    """A stage, how many tasks it had (None if there was no such stage) and how many it has."""

    stage: str
    before: int | None
    after: int


class Rescaled(msgspec.Struct, frozen=True):
    """What was done.

    Attributes
    ----------
    flow, epoch
        The flow, and the epoch that it goes on from.
    changed
        Whether its tasks were others before.
    stages
        How many each stage had, and has.
    """

    flow: str
    epoch: int
    changed: bool
    stages: list[StageTasks]


def deal_out(folder: Path, plan: Plan, *, progress: Dealt | None = None) -> Rescaled:
    """Deal out what a checkpoint has, unless its tasks are those of the plan already."""
    check_compatible(folder, plan)
    with Commits(FolderVault(folder)) as commits:
        former = _newest(commits, folder)
        changed = needs_rescaling(former, plan)
        record = rescaled(former, plan, commits, progress=progress) if changed else former
    before = {stage.name: stage.dop for stage in former.shape.stages}
    stages = [StageTasks(s.name, before.get(s.name), s.dop) for s in plan.stages]
    return Rescaled(plan.flow, record.epoch, changed, stages)


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
