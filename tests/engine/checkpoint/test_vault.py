"""The vault: files that are there whole or not at all."""

import hashlib
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import CorruptError, DiskFullError, EngineError
from floodway.engine.checkpoint.holders import holder_of
from floodway.engine.checkpoint.vault import (
    HEADER_BYTES,
    FileRef,
    FolderVault,
    epoch_name,
    epoch_of,
)
from floodway.engine.host.failpoints import VARIABLE
from tests.engine.checkpoint.making import make_read_only, small_disk

NAME = "state/counts-0/000000000012-3.delta"


@pytest.fixture
def vault(tmp_path: Path) -> FolderVault:
    return FolderVault(tmp_path / "checkpoint")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def in_process(code: str, *arguments: str, armed: str = "") -> subprocess.CompletedProcess[str]:
    head = "import sys; from floodway.engine.checkpoint.vault import FolderVault; "
    return subprocess.run(
        [sys.executable, "-c", head + code, *arguments],
        env=os.environ | {VARIABLE: armed},
        capture_output=True,
        text=True,
        check=False,
    )


# ---------------------------------------------------------------------- writing and reading


@given(data=st.binary(max_size=5_000))
def test_what_was_written_is_read(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    vault = FolderVault(tmp_path_factory.mktemp("vault"))
    ref = vault.write(NAME, data)
    assert (ref.name, ref.size) == (NAME, len(data))
    assert vault.read(NAME) == data
    assert vault.fetch(ref) == data
    assert vault.size(NAME) == len(data)


def test_file_of_the_same_name_is_replaced(vault: FolderVault) -> None:
    before = vault.write(NAME, b"before")
    after = vault.write(NAME, b"after!")
    assert vault.fetch(after) == b"after!"
    with pytest.raises(CorruptError, match="not the file that the record names"):
        vault.fetch(before)


def test_file_that_is_not_there_is_an_error_with_its_name(vault: FolderVault) -> None:
    with pytest.raises(CorruptError, match=NAME):
        vault.read(NAME)
    with pytest.raises(CorruptError, match=NAME):
        vault.fetch(FileRef(NAME, 0, b""))
    assert vault.size(NAME) is None


def test_folder_in_place_of_a_file_is_an_error(vault: FolderVault) -> None:
    (vault.path / NAME).mkdir(parents=True)
    with pytest.raises(CorruptError, match=NAME):
        vault.read(NAME)


def test_names_are_listed_by_prefix_and_sorted(vault: FolderVault) -> None:
    assert vault.names() == []
    for name in ("state/b-0/2.delta", "commits/2", "state/a-0/1.delta", "commits/1"):
        vault.write(name, b"")
    assert vault.names("commits/") == ["commits/1", "commits/2"]
    assert vault.names("state/a") == ["state/a-0/1.delta"]
    assert len(vault.names()) == 4


def test_lock_and_unfinished_files_are_not_listed(vault: FolderVault) -> None:
    vault.write("commits/1", b"")
    (vault.path / "commits/2.tmp-4711-0").write_bytes(b"unfinished")
    unlock = vault.lock()
    assert vault.names() == ["commits/1"]
    unlock()


def test_deleted_file_is_gone_and_may_be_deleted_again(vault: FolderVault) -> None:
    vault.write(NAME, b"rows")
    vault.delete(NAME, durable=True)
    vault.delete(NAME, durable=True)
    vault.delete(NAME)
    assert vault.names() == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../out",
        "state/../../out",
        "state//x",
        "state/",
        ".hidden",
        "a/./b",
        "a\0",
    ],
)
def test_name_that_leads_elsewhere_is_refused(name: str, vault: FolderVault) -> None:
    for use in (
        lambda: vault.write(name, b""),
        lambda: vault.read(name),
        lambda: vault.delete(name),
    ):
        with pytest.raises(EngineError, match="cannot be the name"):
            use()


def test_name_of_an_unfinished_file_is_refused(vault: FolderVault) -> None:
    with pytest.raises(EngineError, match="cannot be the name"):
        vault.write("commits/1.tmp-1-1", b"")


def test_operator_may_be_named_like_a_temporary_file(vault: FolderVault) -> None:
    name = epoch_name("state/a.tmp-1-0", 3, 0, "delta")
    vault.write(name, b"rows")
    assert vault.names("state/") == [name]


def test_epoch_is_in_the_name() -> None:
    assert epoch_of(epoch_name("state/counts-0", 12, 3, "base")) == 12
    assert epoch_of(epoch_name("sinks/report-7", 10**13, 0, "log")) == 10**13
    for other in ("commits/000000000012", "notes.txt", "state/x/12-0.delta", "000000000012-1.log"):
        assert epoch_of(other) is None


def test_threads_may_write_side_by_side(vault: FolderVault) -> None:
    def write(number: int) -> None:
        for turn in range(20):
            vault.write(f"state/shared/{turn}", b"x" * 1000)
            vault.write(f"state/own-{number}/{turn}", bytes([number]) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {vault.size(name) for name in vault.names()} == {1000}
    assert len(everything(vault.path)) == 100


# ---------------------------------------------------------------------- what noticing damage means


def test_foreign_file_is_an_error(vault: FolderVault) -> None:
    vault.write(NAME, b"rows")
    (vault.path / NAME).write_bytes(b"somebody else's bytes, and quite a few of them")
    with pytest.raises(CorruptError, match="does not begin like a file of Floodway"):
        vault.read(NAME)


def test_file_of_a_newer_version_is_refused_and_not_called_damaged(vault: FolderVault) -> None:
    vault.write(NAME, b"rows")
    head = struct.pack("<4sHQ", b"FWVT", 9, 4)
    digest = hashlib.blake2b(head + b"rows", digest_size=16).digest()
    (vault.path / NAME).write_bytes(head + digest + b"rows")
    with pytest.raises(EngineError, match="version 9") as caught:
        vault.read(NAME)
    assert not isinstance(caught.value, CorruptError)


def test_every_bit_of_a_small_file_counts(vault: FolderVault) -> None:
    vault.write(NAME, b"four")
    path = vault.path / NAME
    sound = path.read_bytes()
    assert len(sound) == HEADER_BYTES + 4
    for bit in range(len(sound) * 8):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(CorruptError):
            vault.read(NAME)


def test_every_truncation_and_extension_of_a_small_file_is_noticed(vault: FolderVault) -> None:
    vault.write(NAME, b"four")
    path = vault.path / NAME
    sound = path.read_bytes()
    for other in [*(sound[:length] for length in range(len(sound))), sound + b"\0", sound * 2]:
        path.write_bytes(other)
        with pytest.raises(CorruptError):
            vault.read(NAME)


# ---------------------------------------------------------------------- crashes


@pytest.mark.parametrize(
    ("point", "content"), [("vault.before_rename", b"before"), ("vault.after_rename", b"after")]
)
def test_killed_writer_leaves_the_old_file_or_the_new(
    point: str, content: bytes, vault: FolderVault, tmp_path: Path
) -> None:
    vault.write(NAME, b"before")
    code = "FolderVault(sys.argv[1]).write(sys.argv[2], b'after')"
    armed = f"{point}={tmp_path / 'marker'}"
    assert in_process(code, str(vault.path), NAME, armed=armed).returncode == -signal.SIGKILL
    assert vault.read(NAME) == content
    assert vault.names() == [NAME]


def test_unfinished_files_of_the_dead_are_swept_and_those_of_the_living_are_not(
    vault: FolderVault, tmp_path: Path
) -> None:
    code = "FolderVault(sys.argv[1]).write(sys.argv[2], b'never')"
    armed = f"vault.before_rename={tmp_path / 'marker'}"
    in_process(code, str(vault.path), NAME, armed=armed)
    (unfinished,) = everything(vault.path)
    assert unfinished.startswith(NAME + ".tmp-")
    os.utime(vault.path / unfinished, ns=(0, 0))
    unlock = vault.lock()
    taken = (vault.path / "lock").stat().st_mtime_ns
    living = vault.path / f"{NAME}.tmp-1-1"
    living.write_bytes(b"being written")
    os.utime(living, ns=(taken, taken))
    assert vault.sweep() == [unfinished]
    assert everything(vault.path) == ["lock", f"{NAME}.tmp-1-1"]
    unlock()


# ---------------------------------------------------------------------- the lock


def test_second_driver_is_refused_and_told_who_has_the_lock(vault: FolderVault) -> None:
    unlock = vault.lock()
    code = "FolderVault(sys.argv[1]).lock()"
    refused = in_process(code, str(vault.path))
    assert refused.returncode == 1
    assert f"in use by another driver: process {os.getpid()} on " in refused.stderr
    with pytest.raises(EngineError, match=f"process {os.getpid()} "):
        FolderVault(vault.path).lock()
    unlock()
    assert in_process(code, str(vault.path)).returncode == 0


def test_lock_ends_with_its_process(vault: FolderVault) -> None:
    code = (
        "import os, signal; FolderVault(sys.argv[1]).lock(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert in_process(code, str(vault.path)).returncode == -signal.SIGKILL
    vault.lock()()


HOLD = (
    "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_SH); "
    "print('held', flush=True); sys.stdin.read()"
)


def test_refusal_names_who_holds_the_lock_and_not_who_held_it_last(vault: FolderVault) -> None:
    vault.lock()()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(vault.path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(EngineError, match=f"in use by process {other.pid} on ") as caught:
            vault.lock()
        assert "which is not its driver" in caught.value.problem
        assert str(os.getpid()) not in caught.value.problem
        other.communicate(b"")
    vault.lock()()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("17 on another-host", "another driver: process 17 on another-host"),
        ("", "a process that cannot be seen from "),
        (f"{2**22 + 1} on {os.uname().nodename}", "its last driver was process "),
        ("nonsense", "a process that cannot be seen from "),
    ],
)
def test_holder_that_the_kernel_does_not_tell(said: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert told in holder_of((tmp_path / "lock").stat(), said)


# ---------------------------------------------------------------------- who may read it


def modes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in (folder, *folder.rglob("*"))
    }


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


ALL = (".", "lock", "state", "state/counts-0", NAME)


@pytest.mark.usefixtures("umask")
def test_new_vault_is_its_owners_alone(vault: FolderVault) -> None:
    unlock = vault.lock()
    vault.write(NAME, b"rows")
    assert modes(vault.path) == dict(zip(ALL, (0o700, 0o600, 0o700, 0o700, 0o600), strict=True))
    unlock()


@pytest.mark.usefixtures("umask")
def test_vault_that_others_could_read_is_closed_to_them(vault: FolderVault) -> None:
    """As a former version has left it, or ``mkdir`` made it."""
    vault.write(NAME, b"rows")
    vault.write("attempts", b"1")
    (vault.path / "lock").touch()
    (vault.path / "notes.txt").touch()
    for path in (vault.path, *vault.path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    vault = FolderVault(vault.path)
    unlock = vault.lock()
    found = modes(vault.path)
    assert (found["."], found["notes.txt"]) == (0o755, 0o644)  # not ours to close
    assert (found["lock"], found["attempts"], found["state"]) == (0o600, 0o600, 0o700)
    assert vault.read(NAME) == b"rows"
    unlock()


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("mode", [0o770, 0o2770, 0o2775])
def test_vault_in_a_folder_for_a_group_is_the_groups(vault: FolderVault, mode: int) -> None:
    vault.path.mkdir()
    vault.path.chmod(mode)
    unlock = vault.lock()
    vault.write(NAME, b"rows")
    folder = 0o770 | mode & stat.S_ISGID
    assert modes(vault.path) == dict(zip(ALL, (mode, 0o660, folder, folder, 0o660), strict=True))
    unlock()


def test_lock_that_is_a_link_is_refused(vault: FolderVault, tmp_path: Path) -> None:
    vault.write(NAME, b"rows")
    (vault.path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(EngineError, match="lock cannot be written"):
        vault.lock()
    assert not (tmp_path / "precious").exists()


# ---------------------------------------------------------------------- the disk


def test_full_disk_says_so_and_leaves_no_trace(disk: Path) -> None:
    vault = FolderVault(disk)
    data = random.Random(1).randbytes(15_000)
    written: list[FileRef] = []

    def fill() -> None:
        for number in range(10):
            written.append(vault.write(f"state/{number}", data))

    with pytest.raises(DiskFullError) as caught:
        fill()
    assert "No space left" in caught.value.problem
    assert "make room" in caught.value.remedy
    assert len(written) >= 2
    assert everything(disk) == [ref.name for ref in written]
    assert all(vault.fetch(ref) == data for ref in written)
    vault.delete(written[0].name)
    vault.write(written[0].name, data)


def test_full_disk_keeps_the_file_that_was_to_be_replaced(disk: Path) -> None:
    vault = FolderVault(disk)
    ref = vault.write(NAME, b"before")
    with pytest.raises(DiskFullError):
        vault.write(NAME, random.Random(1).randbytes(200_000))
    assert vault.fetch(ref) == b"before"
    assert everything(disk) == [NAME]


def test_read_only_disk_can_be_read_and_refuses_the_rest_with_a_remedy(disk: Path) -> None:
    vault = FolderVault(disk / "checkpoint")
    ref = vault.write(NAME, b"rows")
    make_read_only(disk)
    vault = FolderVault(disk / "checkpoint")
    assert vault.fetch(ref) == b"rows"
    for use in (lambda: vault.write(NAME, b""), lambda: vault.delete(NAME), vault.lock):
        with pytest.raises(EngineError, match="Read-only file system") as caught:
            use()
        assert not isinstance(caught.value, CorruptError | DiskFullError)
        assert "let this user write" in caught.value.remedy


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("a file")
    with pytest.raises(EngineError) as caught:
        FolderVault(tmp_path / "checkpoint").write(NAME, b"")
    assert "checkpoint" in caught.value.remedy
