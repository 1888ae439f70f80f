"""How ``floodway top`` finds running flows: each leaves a small file in a private folder.

The folder is ``$XDG_RUNTIME_DIR/floodway``, or ``floodway-<uid>`` in the temporary folder. Only its
owner can read it (0700, files 0600). A file whose process is gone is removed when somebody looks.
"""

import os
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

import msgspec
import psutil

from floodway.core.errors import EngineError

_START_SLACK_S = 60.0  # start times are counted from boot, and the clock may have been set since


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """A running flow and where to ask about it.

    Attributes
    ----------
    url
        Where its endpoint is.
    pid
        The driver's process.
    flow
        The flow's name.
    started
        When the endpoint was opened, in seconds since 1970.
    """

    url: str
    pid: int
    flow: str
    started: float


def folder() -> Path:
    """Return the folder of the announcements; it need not exist."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime, "floodway")
    return Path(tempfile.gettempdir(), f"floodway-{os.getuid()}")


def announce(announcement: Announcement) -> Path:
    """Write an announcement and return its file.

    The folder's name is known, so on a shared temporary folder somebody else may have made it.
    Whoever asks decides what that means: for a flow it is no reason not to run.

    Raises
    ------
    EngineError
        If the folder is not private or cannot be written.
    """
    home = folder()
    name = f"{quote(announcement.flow, safe='')}-{announcement.pid}.json"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(home)
        # Renamed when complete, so that nobody reads half of it.
        handle, unfinished = tempfile.mkstemp(dir=home, suffix=".tmp")  # 0600
        with open(handle, "wb") as file:
            file.write(msgspec.json.encode(announcement))
        return Path(unfinished).rename(home / name)
    except OSError as error:
        raise EngineError(
            f"cannot announce the flow in {str(home)!r}: {error.strerror or error}",
            remedy="let XDG_RUNTIME_DIR or TMPDIR name a folder you may write to",
        ) from error


def withdraw(file: Path, announcement: Announcement) -> None:
    """Remove an announcement, unless a later one has taken its place."""
    if _read(file) == announcement:
        file.unlink(missing_ok=True)


def running() -> list[Announcement]:
    """Return the announcements of running flows, the newest first, and remove stale ones.

    Raises
    ------
    EngineError
        If the folder is not private.
    """
    home = folder()
    if not home.is_dir():
        return []
    _check_private(home)
    found = []
    for file in home.glob("*.json"):
        announcement = _read(file)
        if announcement is None:
            continue
        if _alive(announcement):
            found.append(announcement)
        else:
            file.unlink(missing_ok=True)
    return sorted(found, key=lambda each: each.started, reverse=True)


def _check_private(home: Path) -> None:
    """Refuse a folder somebody else could have made, in which addresses could be false."""
    found = home.lstat()
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != os.getuid()
        or stat.S_IMODE(found.st_mode) & 0o077
    ):
        raise EngineError(
            f"the folder {str(home)!r} is not private",
            remedy=f"remove it, or make it yours alone: chmod 700 {home}",
        )


def _read(file: Path) -> Announcement | None:
    """Return what a file announces; None if it has just gone or is something else."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Announcement)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _alive(announcement: Announcement) -> bool:
    """Return whether the process is still the one that made the announcement."""
    try:
        born = psutil.Process(announcement.pid).create_time()
    except psutil.Error:
        return False
    return born <= announcement.started + _START_SLACK_S
