"""Records and files to try things with."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import (
    VERSION,
    CommitRecord,
    FlowShape,
    SinkRecord,
    TaskRecord,
)
from floodway.engine.checkpoint.vault import FileRef, FolderVault, Vault, epoch_name

SHAPE = FlowShape([], [], 128)


def make_task(
    files: list[FileRef], *, index: int = 0, sinks: dict[str, SinkRecord] | None = None
) -> TaskRecord:
    return TaskRecord(
        stage="counts",
        index=index,
        files=files,
        positions={"events": {"offset": 7}},
        sinks=sinks or {},
        progress=[1, 2],
        ended=False,
    )


def make_record(
    epoch: int, tasks: list[TaskRecord] | None = None, *, attempt: int = 0
) -> CommitRecord:
    return CommitRecord(
        version=VERSION,
        flow="ads",
        shape=SHAPE,
        epoch=epoch,
        attempt=attempt,
        stream_time=epoch * 1000,
        clock_ms=epoch * 10,
        finished=False,
        tasks=tasks or [],
    )


def store(vault: Vault, epoch: int, kind: str, data: bytes, *, attempt: int = 0) -> FileRef:
    """Write a file as a task does."""
    folder = "sinks/report-0" if kind == "log" else "state/counts-0"
    return vault.write(epoch_name(folder, epoch, attempt, kind), data)


def commit(commits: Commits, epoch: int, *, attempt: int = 0) -> CommitRecord:
    """Commit an epoch whose state is one file."""
    ref = store(commits.vault, epoch, "delta", f"{epoch}/{attempt}".encode(), attempt=attempt)
    record = make_record(epoch, [make_task([ref])], attempt=attempt)
    commits.write(record)
    return record


def spoil(vault: FolderVault, name: str) -> None:
    path = vault.path / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def record_name(epoch: int) -> str:
    return f"commits/{epoch:012d}"


def delta_name(epoch: int, attempt: int = 0) -> str:
    return epoch_name("state/counts-0", epoch, attempt, "delta")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where this user may make one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"this user cannot mount a file system: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    """Let nobody write to a small disk any more."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
