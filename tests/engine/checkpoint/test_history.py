"""Whatever happens to a checkpoint: the last two commits stay, and lines of history never mix."""

import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.core.errors import CorruptError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.checkpoint.vault import FileRef, FolderVault
from tests.engine.checkpoint.making import (
    delta_name,
    make_record,
    make_task,
    record_name,
    spoil,
    store,
)

deltas = st.lists(
    st.tuples(st.integers(1, 3), st.booleans(), st.integers(0, 2), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60)
@given(steps=deltas)
def test_pruning_never_deletes_what_the_last_two_records_name(
    steps: list[tuple[int, bool, int, bool]],
) -> None:
    """Epochs with gaps, compactions, garbage of dead attempts, and drivers that start anew."""
    with tempfile.TemporaryDirectory() as folder:
        vault = FolderVault(folder)
        commits = Commits(vault)
        epoch, files, history = 0, list[FileRef](), list[CommitRecord]()
        for gap, compacts, garbage, anew in steps:
            epoch += gap
            if anew:
                commits = Commits(vault)
                assert commits.latest(verify=True) == (history[-1] if history else None)
            delta = store(vault, epoch, "delta", b"%d" % epoch)
            files = [store(vault, epoch, "base", b"all")] if compacts else [*files, delta]
            for attempt in range(1, garbage + 1):
                store(vault, epoch, "delta", b"garbage", attempt=attempt)
            ahead = store(vault, epoch + 1, "log", b"ahead")
            record = make_record(epoch, [make_task(list(files))])
            commits.write(record)
            history.append(record)
            for kept in history[-2:]:
                commits.verified(kept)
            needed = {ref.name for kept in history[-2:] for ref in kept.files}
            assert {*vault.names("state/")} == needed
            assert vault.names("sinks/") == [ahead.name]
            assert len(vault.names("commits/")) == min(len(history), 2)


@settings(max_examples=60)
@given(steps=st.lists(st.sampled_from(["commit", "spoil record", "spoil state", "anew"])))
def test_history_never_mixes_lines(steps: list[str]) -> None:
    """Each record says which ones it follows; a model knows which can still be read."""
    with tempfile.TemporaryDirectory() as folder:
        vault = FolderVault(folder)
        commits, epoch, sound = Commits(vault), 0, list[list[int]]()
        trail: list[int] = []  # of the running flow
        for step in steps:
            if step == "commit":
                epoch += 1
                trail = [*trail, epoch]
                ref = store(vault, epoch, "delta", b"x", attempt=0)
                task = make_task([ref])
                task.progress = trail
                commits.write(make_record(epoch, [task]))
                sound = [*sound, trail][-2:]
            elif step.startswith("spoil") and sound:
                newest = sound.pop()[-1]
                spoil(vault, record_name(newest) if "record" in step else delta_name(newest))
            if step == "anew" or step.startswith("spoil"):  # only a new driver looks
                commits = Commits(vault)
                if not sound and vault.names("commits/"):
                    with pytest.raises(CorruptError):
                        commits.latest(verify=True)
                    return
                found = commits.latest(verify=True)
                trail = found.tasks[0].progress if found else []
                assert trail == (sound[-1] if sound else [])
