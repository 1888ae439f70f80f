"""Who may read and write a checkpoint."""

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec


class Modes(msgspec.Struct, frozen=True):
    """The modes of folders and files: their owner's alone, whatever the umask.

    In a folder that a group may write to they are the group's, too: somebody has made such a folder
    on purpose, for tasks that run as another user than the driver. A folder that others can merely
    read is what ``mkdir`` makes, and says nothing.
    """

    folder: int = 0o700
    file: int = 0o600

    @classmethod
    def of(cls, folder: Path) -> "Modes":
        """Return the modes of what is in a folder.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     os.chmod(folder, 0o2775)
        ...     [oct(mode) for mode in msgspec.structs.astuple(Modes.of(Path(folder)))]
        ['0o2770', '0o660']
        """
        mode = folder.stat().st_mode
        if not mode & stat.S_IWGRP:
            return cls()
        return cls(0o770 | mode & stat.S_ISGID, 0o660)

    def make(self, folder: Path) -> None:
        """Make a folder, unless it is there."""
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=self.folder & 0o700)
            folder.chmod(self.folder)

    def create(self, path: str | Path, flags: int) -> int:
        """Open a file, which is made if it is not there, and return its descriptor."""
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, self.file & 0o600)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, self.file)
        return descriptor

    def close(self, paths: Iterable[Path]) -> None:
        """Give what is there the right mode; former versions left that to the umask.

        What is in a folder is closed with it.
        """
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                found = path.lstat()
                wanted = self.folder if stat.S_ISDIR(found.st_mode) else self.file
                own = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
                if own and stat.S_IMODE(found.st_mode) != wanted:
                    path.chmod(wanted)
