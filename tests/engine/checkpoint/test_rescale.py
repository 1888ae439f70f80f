"""A record is dealt out anew with no more kernels than the new tasks have."""

from pathlib import Path

from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import standing_of
from floodway.engine.checkpoint.rescale import rescaled
from floodway.engine.checkpoint.vault import FolderVault
from floodway.engine.program.program import Program
from floodway.engine.program.standing import channels_of
from tests.engine.checkpoint.checkpoints import counting, write_checkpoint
from tests.engine.program.compiling import compiled


def test_only_what_deals_rows_out_is_compiled(tmp_path: Path) -> None:
    """How far the new tasks are is known without another kernel, codec or router."""
    write_checkpoint(tmp_path)
    plan = counting(dop=3)
    with compiled() as needed:
        for stage in plan.stages:
            for index in range(stage.dop):
                Program(plan, stage, index)
    with Commits(FolderVault(tmp_path)) as commits:
        record = commits.latest()
        assert record is not None
        with compiled() as found:
            made = rescaled(record, plan, commits)
    assert found == needed
    for task in made.tasks:
        standing = standing_of(task)
        assert set(standing.channels) == channels_of(plan, plan.stage(task.stage), task.index)
        assert standing.epoch == record.epoch + 1
