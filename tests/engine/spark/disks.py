"""Small disks of their own for tests: they can be filled, and made read-only."""

import errno
import io
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FILLING = "filling"


class Disk:
    """A small disk, mounted at a folder."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        folder.mkdir()
        mount("-t", "tmpfs", "-o", f"size={megabytes}m", "floodway-test", str(folder))

    def fill(self) -> None:
        """Leave no room, whatever others delete meanwhile: take again what becomes free."""
        with (self.folder / FILLING).open("ab", buffering=0) as file:
            while _room_for(file, bytes(4096)):
                pass

    def free(self) -> None:
        """Make room again."""
        (self.folder / FILLING).unlink()

    def write_protect(self) -> None:
        """Let nobody open a file for writing; who has one open already is not disturbed."""
        mount("--bind", str(self.folder), str(self.folder))
        mount("-o", "remount,bind,ro", str(self.folder))

    def unprotect(self) -> None:
        """Undo `write_protect`."""
        unmount(self.folder)


def _room_for(file: io.FileIO, page: bytes) -> bool:
    try:
        file.write(page)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return False
        raise
    return True


def mount(*arguments: str) -> None:
    """Mount something, or skip the test where nobody may."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


def unmount(folder: Path) -> None:
    """Unmount what was mounted last at a folder; who still uses it is not waited for."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short name: sockets may be in it."""
    folder = Path(tempfile.mkdtemp(prefix="fw-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def make_disk() -> Iterator[Callable[[Path, int], Disk]]:
    """Makes disks, which are gone after the test."""
    disks: list[Disk] = []

    def make(folder: Path, megabytes: int = 16) -> Disk:
        disk = Disk(folder, megabytes)
        disks.append(disk)
        return disk

    yield make
    for disk in reversed(disks):
        while disk.folder.is_mount():
            unmount(disk.folder)
