"""The commit records of a flow: the newest sound one, the one before, and nothing else."""

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodway.core.errors import CorruptError, DiskFullError, EngineError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.nonce import sees_nonce
from floodway.engine.checkpoint.records import SinkRecord
from floodway.engine.checkpoint.vault import FolderVault
from tests.engine.checkpoint.making import (
    commit,
    delta_name,
    make_read_only,
    make_record,
    make_task,
    record_name,
    small_disk,
    spoil,
    store,
)


@pytest.fixture
def vault(tmp_path: Path) -> FolderVault:
    return FolderVault(tmp_path / "checkpoint")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


# ---------------------------------------------------------------------- reading


def test_without_records_there_is_no_latest(vault: FolderVault) -> None:
    commits = Commits(vault)
    assert commits.latest() is None
    assert commits.before(5) is None
    assert commits.skipped == []


def test_latest_and_the_one_before_are_kept(vault: FolderVault) -> None:
    commits = Commits(vault)
    records = [commit(commits, epoch) for epoch in (1, 2, 5)]
    assert Commits(vault).latest(verify=True) == records[2]
    assert Commits(vault).before(5) == records[1]
    assert Commits(vault).before(2) is None
    assert vault.names("commits/") == [record_name(2), record_name(5)]
    assert vault.names("state/") == [delta_name(2), delta_name(5)]


def test_damaged_record_is_passed_over_with_a_warning(
    vault: FolderVault, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Commits(vault)
    older = commit(writer, 1)
    commit(writer, 2)
    spoil(vault, record_name(2))
    commits = Commits(vault)
    with caplog.at_level(logging.WARNING):
        assert commits.latest() == older
    assert commits.skipped[0][0] == record_name(2)
    assert record_name(2) in caplog.text
    assert "digest" in caplog.text


def test_record_whose_state_is_damaged_is_passed_over_if_asked_to_look(vault: FolderVault) -> None:
    writer = Commits(vault)
    older, newer = commit(writer, 1), commit(writer, 2)
    spoil(vault, delta_name(2))
    assert Commits(vault).latest() == newer
    assert Commits(vault).latest(verify=True) == older
    Commits(vault).verified(older)
    with pytest.raises(CorruptError, match=delta_name(2)):
        Commits(vault).verified(newer)


def test_if_no_record_is_sound_nothing_is_made_up(vault: FolderVault) -> None:
    writer = Commits(vault)
    commit(writer, 1)
    commit(writer, 2)
    spoil(vault, record_name(1))
    spoil(vault, delta_name(2))
    with pytest.raises(CorruptError, match="no commit record can be used") as caught:
        Commits(vault).latest(verify=True)
    assert record_name(1) in caught.value.problem
    assert delta_name(2) in caught.value.problem


def test_record_of_a_newer_version_is_no_reason_to_fall_back(vault: FolderVault) -> None:
    writer = Commits(vault)
    commit(writer, 1)
    newer = make_record(2)
    newer.version = 99
    writer.write(newer)
    with pytest.raises(EngineError, match="version 99") as caught:
        Commits(vault).latest()
    assert not isinstance(caught.value, CorruptError)


def test_other_files_in_the_folder_of_records_do_not_matter(vault: FolderVault) -> None:
    record = commit(Commits(vault), 1)
    vault.write("commits/readme", b"hands off")
    assert Commits(vault).latest() == record
    commit(Commits(vault), 2)
    assert vault.read("commits/readme") == b"hands off"


# ---------------------------------------------------------------------- lines of history


def test_records_of_a_line_that_was_left_are_never_found_again(vault: FolderVault) -> None:
    writer = Commits(vault)
    commit(writer, 1)
    commit(writer, 2)
    path = vault.path / delta_name(2)
    sound = path.read_bytes()
    spoil(vault, delta_name(2))
    commits = Commits(vault)
    commits.latest(verify=True)
    newest = commit(commits, 3, attempt=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sound)  # somebody puts the file back, too late
    assert Commits(vault).latest(verify=True) == newest
    before = Commits(vault).before(3)
    assert before is not None
    assert before.epoch == 1


def test_record_before_the_damaged_one_is_kept_when_the_next_is_written(
    vault: FolderVault,
) -> None:
    writer = Commits(vault)
    older = commit(writer, 1)
    commit(writer, 2)
    spoil(vault, record_name(2))
    commits = Commits(vault)
    assert commits.latest() == older
    commit(commits, 3, attempt=1)
    spoil(vault, record_name(3))
    assert Commits(vault).latest(verify=True) == older


def test_going_on_from_a_record_deletes_those_after_it(vault: FolderVault) -> None:
    writer = Commits(vault)
    older = commit(writer, 1)
    commit(writer, 2)
    commits = Commits(vault)
    commits.go_on_from(commits.before(2))
    assert vault.names("commits/") == [record_name(1)]
    again = commit(commits, 2, attempt=1)
    assert Commits(vault).latest(verify=True) == again
    assert Commits(vault).before(2) == older


def test_going_on_from_nothing_deletes_all_records(vault: FolderVault) -> None:
    commit(Commits(vault), 1)
    commits = Commits(vault)
    commits.go_on_from(None)
    assert commits.latest() is None


def test_epoch_may_be_committed_again_by_another_attempt(vault: FolderVault) -> None:
    commits = Commits(vault)
    commit(commits, 1)
    commit(commits, 2)
    again = commit(commits, 2, attempt=1)
    assert Commits(vault).latest(verify=True) == again
    assert vault.names("commits/") == [record_name(1), record_name(2)]
    assert vault.names("state/") == [delta_name(1), delta_name(2, 1)]


# ---------------------------------------------------------------------- pruning


def test_files_of_later_epochs_and_of_others_stay(vault: FolderVault) -> None:
    commits = Commits(vault)
    ahead = store(vault, 4, "delta", b"of a task that is ahead")
    stale = store(vault, 3, "delta", b"of an attempt that was given up", attempt=7)
    vault.write("notes.txt", b"of the user")
    for epoch in (1, 2, 3):
        commit(commits, epoch)
    assert ahead.name in vault.names()
    assert stale.name not in vault.names()
    assert "notes.txt" in vault.names()


def test_sink_logs_stay_while_a_record_names_them(vault: FolderVault) -> None:
    commits = Commits(vault)
    log = store(vault, 1, "log", b"rows that nobody has seen")
    waiting = make_task([], sinks={"report": SinkRecord(None, [(1, log)])})
    for epoch in (1, 2, 3):
        commits.write(make_record(epoch, [waiting]))
    assert vault.fetch(log) == b"rows that nobody has seen"
    commits.write(make_record(4))
    assert log.name in vault.names()
    commits.write(make_record(5))
    assert log.name not in vault.names()


def test_what_cannot_be_deleted_is_said_and_the_commit_stands(
    vault: FolderVault, caplog: pytest.LogCaptureFixture
) -> None:
    class Stubborn(FolderVault):
        def delete(self, name: str, *, durable: bool = False) -> None:
            raise EngineError(f"{name} cannot be deleted", remedy="wait")

    stubborn = Stubborn(vault.path)
    commits = Commits(stubborn)
    with caplog.at_level(logging.WARNING):
        records = [commit(commits, epoch) for epoch in (1, 2, 3)]
    assert "cannot be deleted" in caplog.text
    assert Commits(vault).latest(verify=True) == records[-1]
    assert len(vault.names("commits/")) == 3
    commit(Commits(vault), 4)
    assert len(vault.names("commits/")) == 2


# ---------------------------------------------------------------------- crashes

DIES = """
import os, sys
from floodway.engine.host.failpoints import VARIABLE
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.vault import FolderVault
from tests.engine.checkpoint.making import commit

commits = Commits(FolderVault(sys.argv[1]))
commits.lock()
for epoch in (1, 2, 3):
    commit(commits, epoch)
os.environ[VARIABLE] = sys.argv[2]
commit(commits, 4)
"""

NEWEST = {
    "vault.before_rename": 3,
    "vault.after_rename": 3,  # of the state file, which comes first
    "commit.before_record": 3,
    "commit.after_record": 4,
    "prune.before": 4,
    "prune.middle": 4,
}


@pytest.mark.parametrize("point", NEWEST)
def test_killed_driver_leaves_one_of_two_commits_and_the_next_goes_on(
    point: str, vault: FolderVault, tmp_path: Path
) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", DIES, str(vault.path), f"{point}={tmp_path / 'marker'}"],
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Commits(vault) as commits:
        latest = commits.latest(verify=True)
        assert latest is not None
        assert (latest.epoch, commits.skipped) == (NEWEST[point], [])
        older = commits.before(latest.epoch)
        assert older is not None
        commits.verified(older)
        final = commit(commits, latest.epoch + 1, attempt=1)
    assert Commits(vault).latest(verify=True) == final
    files = {str(path.relative_to(vault.path)) for path in vault.path.rglob("*") if path.is_file()}
    needed = {
        record_name(latest.epoch),
        delta_name(latest.epoch),
        record_name(final.epoch),
        delta_name(final.epoch, 1),
    }
    if point in {"vault.before_rename", "vault.after_rename"}:
        unfinished = {name for name in files if ".tmp-" in name}
        # A file of the very moment in which the lock was taken may be a living writer's.
        files -= unfinished
    assert files == needed | {"lock", "begun"}


# ---------------------------------------------------------------------- the lock, the disk


def test_second_driver_is_refused_until_the_first_is_closed(vault: FolderVault) -> None:
    with Commits(vault) as first:
        first.lock()  # it has it already
        with pytest.raises(EngineError, match=f"process {os.getpid()} "):
            Commits(FolderVault(vault.path)).lock()
    with Commits(FolderVault(vault.path)):
        pass


def test_lock_clears_away_what_the_dead_left_unfinished(vault: FolderVault) -> None:
    commit(Commits(vault), 1)
    left = vault.path / "commits/000000000002.tmp-4711-0"
    left.write_bytes(b"half a rec")
    os.utime(left, ns=(0, 0))
    Commits(vault).latest()
    assert left.exists()
    with Commits(vault):
        assert not left.exists()


def test_full_disk_leaves_the_former_commit_as_it_was(disk: Path) -> None:
    commits = Commits(FolderVault(disk))
    former = commit(commits, 1)
    large = make_record(2, [make_task([])])
    large.tasks[0].progress = random.Random(1).randbytes(100_000)
    with pytest.raises(DiskFullError):
        commits.write(large)
    assert Commits(FolderVault(disk)).latest(verify=True) == former
    after = commit(commits, 2)
    assert Commits(FolderVault(disk)).latest(verify=True) == after


def test_checkpoint_on_a_read_only_disk_can_be_read_and_not_written(disk: Path) -> None:
    record = commit(Commits(FolderVault(disk)), 1)
    make_read_only(disk)
    commits = Commits(FolderVault(disk))
    assert commits.latest(verify=True) == record
    for use in (commits.lock, lambda: commits.write(make_record(2))):
        with pytest.raises(EngineError, match="Read-only file system"):
            use()


# ---------------------------------------------------------------------- what somebody has removed


def test_checkpoint_without_its_records_is_no_beginning(vault: FolderVault) -> None:
    with Commits(vault) as commits:
        commit(commits, 1)
        commit(commits, 2)
    shutil.rmtree(vault.path / "commits")
    with pytest.raises(CorruptError, match="has lost its commit records") as caught:
        Commits(vault).latest()
    assert str(vault.path) in caught.value.problem
    assert "remove the whole folder" in caught.value.remedy


def test_checkpoint_of_an_older_version_is_no_beginning_either_once_it_was_used(
    vault: FolderVault,
) -> None:
    commit(Commits(vault), 1)
    vault.delete("begun")  # older versions did not write it
    with Commits(vault) as commits:
        commits.go_on_from(commits.latest())
    shutil.rmtree(vault.path / "commits")
    with pytest.raises(CorruptError, match="has lost its commit records"):
        Commits(vault).latest()


def test_checkpoint_of_an_older_version_that_lost_its_records_is_no_beginning(
    vault: FolderVault,
) -> None:
    commit(Commits(vault), 1)
    state = vault.names("state/")
    vault.delete("begun")  # older versions did not write it, nor did they claim a folder
    shutil.rmtree(vault.path / "commits")
    with pytest.raises(CorruptError, match="has lost its commit records"):
        Commits(vault).latest()
    assert vault.names("state/") == state


def test_flow_that_died_before_its_first_record_begins_anew(vault: FolderVault) -> None:
    commits = Commits(vault)
    commits.claim()
    commits.new_attempts()
    vault.write(delta_name(1), b"changes")
    assert Commits(vault).latest() is None


def test_attempts_are_not_given_away_twice_even_if_their_file_is_removed(
    vault: FolderVault,
) -> None:
    record = commit(Commits(vault), 1, attempt=1003)
    for name in (*vault.names("state/"), *vault.names("attempts")):
        vault.delete(name)
    commits = Commits(vault)
    commits.go_on_from(record)
    assert commits.new_attempts() > 1999


def test_driver_notices_that_another_has_claimed_its_checkpoint(vault: FolderVault) -> None:
    with Commits(vault) as commits:
        commits.claim()
        commit(commits, 1)
        (vault.path / "lock").unlink()  # now nobody keeps the other one out
        with Commits(vault) as other:
            other.claim()
            with pytest.raises(EngineError, match="was claimed by another driver"):
                commit(commits, 2)
            commit(other, 2, attempt=1)


def test_driver_notices_that_its_checkpoint_was_removed(vault: FolderVault) -> None:
    commits = Commits(vault)
    commits.claim()
    commit(commits, 1)
    shutil.rmtree(vault.path)
    with pytest.raises(EngineError, match="was removed while the flow ran"):
        commits.write(make_record(2))


def test_damaged_nonce_is_written_anew(vault: FolderVault) -> None:
    commits = Commits(vault)
    nonce = commits.claim()
    (vault.path / "nonce").write_bytes(b"...")
    commit(commits, 1)
    assert sees_nonce(vault, nonce)


def test_task_knows_whether_it_sees_the_drivers_folder(vault: FolderVault, tmp_path: Path) -> None:
    nonce = Commits(vault).claim()
    assert sees_nonce(FolderVault(vault.path), nonce)
    assert not sees_nonce(FolderVault(tmp_path / "of another host"), nonce)
