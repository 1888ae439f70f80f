"""What a changed flow may keep of a checkpoint, and that it is dealt out only if it can go on."""

from pathlib import Path

import pytest

from floodway.core.errors import CorruptError, EngineError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.dealing_out import StageTasks, deal_out
from floodway.engine.checkpoint.upgrading import check_compatible, compared, read_record
from floodway.engine.checkpoint.vault import FolderVault
from tests.engine.checkpoint.checkpoints import counting, write_checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint of a flow that counts words, where its input is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('"a"\n')
    write_checkpoint(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def test_unchanged_flow_keeps_everything(checkpoint: Path) -> None:
    found = compared(checkpoint, counting())
    assert (found.flow, found.epoch, found.compatible) == ("words", 12, True)
    assert {finding.verdict for finding in found.findings} == {"kept"}
    check_compatible(checkpoint, counting())


def test_renamed_operator_begins_anew(checkpoint: Path) -> None:
    found = compared(checkpoint, counting(counts="totals"))
    verdicts = {finding.operator: finding.verdict for finding in found.findings}
    assert (verdicts["totals"], verdicts["counts"]) == ("new", "dropped")
    assert found.compatible


def test_checkpoint_of_another_flow_is_in_the_way(checkpoint: Path) -> None:
    found = compared(checkpoint, counting(flow="letters"))
    assert not found.compatible
    assert str(found.findings[0]).startswith("letters: incompatible: the checkpoint is of the flow")


def test_checkpoint_in_use_can_be_looked_at(checkpoint: Path) -> None:
    with Commits(FolderVault(checkpoint)):
        assert read_record(checkpoint).epoch == 12


def test_damaged_checkpoint_is_an_error_and_the_file_is_named(checkpoint: Path) -> None:
    (record,) = (checkpoint / "commits").iterdir()
    record.write_bytes(record.read_bytes()[:-1])
    with pytest.raises(CorruptError, match=record.name):
        compared(checkpoint, counting())


def test_folder_without_a_checkpoint_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="there is no checkpoint in") as error:
        read_record(tmp_path / "checkpoint")
    assert "floodway run --checkpoint" in error.value.remedy
    assert not (tmp_path / "checkpoint").exists()


def test_state_that_cannot_be_kept_is_not_dealt_out(checkpoint: Path) -> None:
    with pytest.raises(EngineError, match="cannot go on from") as error:
        deal_out(checkpoint, counting(by="length(value) AS word", dop=2))
    assert "check-upgrade" in error.value.remedy
    assert read_record(checkpoint).epoch == 12


def test_checkpoint_with_these_tasks_stays_as_it_is(checkpoint: Path) -> None:
    found = deal_out(checkpoint, counting())
    assert (found.flow, found.epoch, found.changed) == ("words", 12, False)
    assert StageTasks("counts", 1, 1) in found.stages
