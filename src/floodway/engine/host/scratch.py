"""Temporary folders: where sockets and Spark's files are while a flow runs.

Only this user may enter such a folder. Its owner, a process, keeps a lock on a file in it for as
long as it lives, so whoever gets the lock knows that the folder is a dead one's, whatever process
numbers mean by now and in whichever container. Dead ones of this user are swept away whenever a new
folder is made.
"""

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from floodway.core.errors import EngineError

log = logging.getLogger(__name__)

PATIENCE_S = 5.0
PREFIX = "floodway-"
OWNER = "owner"
"""The file that the owner of a folder keeps locked; it says who that is, for people who look."""

_owned: dict[Path, int] = {}


def make_scratch() -> Path:
    """Return a new folder that only this user may enter, and remove those of the dead."""
    try:
        sweep(Path(tempfile.gettempdir()))
        while True:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX))  # 0700
            owner = os.open(folder / OWNER, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            if _lock(owner):
                break
            os.close(owner)  # somebody swept it before it was ours
    except OSError as error:
        raise EngineError(
            f"no temporary folder can be made: {error}",
            remedy="set TMPDIR to a folder that exists and that you may write to",
        ) from None
    os.write(owner, f"{os.getpid()} on {os.uname().nodename}\n".encode())
    _owned[folder] = owner
    return folder


def remove_scratch(folder: Path) -> None:
    """Remove a folder in which a Spark that has just been stopped may still be at work."""
    deadline = time.monotonic() + PATIENCE_S
    while folder.exists():
        with contextlib.suppress(OSError), _opened(folder) as inside:
            _clear(inside, folder)
        if time.monotonic() > deadline:
            log.warning("the temporary folder %s could not be removed", folder)
            break
        time.sleep(0.01)
    owner = _owned.pop(folder, None)
    if owner is not None:
        os.close(owner)


def sweep(place: Path) -> list[Path]:
    """Remove the folders of this user's dead processes, and return which they were.

    What has no owner's file is not touched: it may be something else, or about to be locked.
    """
    return [folder for folder in place.glob(f"{PREFIX}*") if _swept(folder)]


def _swept(folder: Path) -> bool:
    with contextlib.suppress(OSError), _opened(folder) as inside:
        if not _private(inside):
            return False
        owner = os.open(OWNER, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=inside)
        try:
            if _lock(owner):
                _clear(inside, folder)
                return not folder.exists()
        finally:
            os.close(owner)
    return False


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder itself, not one that a link of its name leads to."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _private(inside: int) -> bool:
    found = os.fstat(inside)
    return found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _clear(inside: int, folder: Path) -> None:
    """Remove what is in an open folder, the owner's file last, and then the folder itself.

    A folder without that file would never be swept.
    """
    for name in os.listdir(inside):
        if stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=inside)
        elif name != OWNER:
            os.unlink(name, dir_fd=inside)
    if os.listdir(inside) == [OWNER]:
        os.unlink(OWNER, dir_fd=inside)
    folder.rmdir()
