"""Damage is always noticed: the commit falls back to sound content, or nothing is read at all."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodway.core.errors import CorruptError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord, SinkRecord, encode
from floodway.engine.checkpoint.vault import FileRef, FolderVault
from tests.engine.checkpoint.making import make_record, make_task, store

FLIPS = 250
CUTS = 120


class Checkpoint:
    """Two commits: both name the base, each has a delta and a log of its own."""

    def __init__(self, folder: Path) -> None:
        self.vault = FolderVault(folder)
        contents = random.Random(7)
        base = store(self.vault, 10, "base", contents.randbytes(3_000))
        first = store(self.vault, 11, "delta", contents.randbytes(500))
        second = store(self.vault, 12, "delta", contents.randbytes(700))
        log = store(self.vault, 12, "log", contents.randbytes(300))
        self.older = make_record(11, [make_task([base, first])])
        sink = {"report": SinkRecord({"offset": 40}, [(12, log)])}
        self.newer = make_record(12, [make_task([base, first, second], sinks=sink)])
        commits = Commits(self.vault)
        commits.write(self.older)
        commits.write(self.newer)
        self.files: dict[str, FileRef] = {"base": base, "delta": second, "log": log}

    def path(self, kind: str) -> Path:
        name = "commits/000000000012" if kind == "record" else self.files[kind].name
        return self.vault.path / name

    def latest(self) -> CommitRecord | None:
        return Commits(self.vault).latest(verify=True)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path)


def flipped(sound: bytes) -> Iterator[bytes]:
    bits = random.Random(42).sample(range(len(sound) * 8), FLIPS)
    for bit in bits:
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


def cut(sound: bytes) -> Iterator[bytes]:
    for length in random.Random(43).sample(range(len(sound)), CUTS):
        yield sound[:length]


def longer(sound: bytes) -> Iterator[bytes]:
    seeded = random.Random(44)
    for _ in range(20):
        yield sound + seeded.randbytes(seeded.randint(1, 100))


DAMAGE = {"flipped bits": flipped, "truncation": cut, "extension": longer}


@pytest.mark.parametrize("kind", ["record", "base", "delta", "log"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed(damage: str, kind: str, checkpoint: Checkpoint) -> None:
    path = checkpoint.path(kind)
    sound = path.read_bytes()
    count = 0
    for damaged in DAMAGE[damage](sound):
        path.write_bytes(damaged)
        expect_noticed(checkpoint, kind)
        count += 1
    assert count >= {"flipped bits": 200, "truncation": 100}.get(damage, 1)
    path.write_bytes(sound)
    latest = checkpoint.latest()
    assert latest is not None
    assert encode(latest) == encode(checkpoint.newer)


def expect_noticed(checkpoint: Checkpoint, kind: str) -> None:
    if kind != "record":
        with pytest.raises(CorruptError, match=checkpoint.files[kind].name):
            checkpoint.vault.fetch(checkpoint.files[kind])
        with pytest.raises(CorruptError):
            Commits(checkpoint.vault).verified(checkpoint.newer)
    if kind == "base":  # both commits need it
        with pytest.raises(CorruptError, match="no commit record can be used"):
            checkpoint.latest()
        return
    commits = Commits(checkpoint.vault)
    latest = commits.latest(verify=True)
    assert latest is not None
    assert encode(latest) == encode(checkpoint.older)
    commits.verified(latest)
    ((name, reason),) = commits.skipped
    assert name == "commits/000000000012"
    assert "is lost or damaged" in reason


@pytest.mark.parametrize("kind", ["base", "delta", "log"])
def test_missing_file_is_noticed_without_reading_any(kind: str, checkpoint: Checkpoint) -> None:
    checkpoint.path(kind).unlink()
    if kind == "base":
        with pytest.raises(CorruptError, match=r"10-0\.base"):
            Commits(checkpoint.vault).latest()
    else:
        assert Commits(checkpoint.vault).latest() == checkpoint.older


def test_record_under_another_name_is_noticed(checkpoint: Checkpoint) -> None:
    older = checkpoint.vault.path / "commits/000000000011"
    checkpoint.path("record").write_bytes(older.read_bytes())
    commits = Commits(checkpoint.vault)
    assert commits.latest() == checkpoint.older
    assert "it is the record of epoch 11" in commits.skipped[0][1]


def test_sound_file_of_another_time_is_noticed(checkpoint: Checkpoint) -> None:
    ref = checkpoint.files["delta"]
    checkpoint.vault.write(ref.name, bytes(ref.size))
    assert checkpoint.latest() == checkpoint.older
