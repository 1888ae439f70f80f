"""Files to write: one per task in a folder, and nobody else's."""

import contextlib
import errno
import os
import re
import uuid
from collections.abc import Iterator

from floodway.connectors.base import Split
from floodway.core.errors import ConnectorError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the operating system says when a disk is full."""


RUN_CHARACTERS = 12


def new_run() -> str:
    """Return a name for the run that a new description of a sink belongs to."""
    return uuid.uuid4().hex[:RUN_CHARACTERS]


class PartFiles:
    """The files of a sink: ``part-0.jsonl``, ``part-1.jsonl`` and so on, or a single one.

    A hidden file beside each says which run wrote it. So a task that is started again knows its own
    file and goes on with it, while results of an earlier run are never mixed with new ones.

    Parameters
    ----------
    path
        The folder, or the file if there is only one.
    suffix
        How the files end.
    run
        The name of this run.
    overwrite
        Whether files of another run are replaced instead of refused.
    single
        Whether the path is that of the only file.
    """

    def __init__(
        self, path: str, suffix: str, run: str, *, overwrite: bool, single: bool = False
    ) -> None:
        self._single = path if single else None
        self.folder = (os.path.dirname(path) or ".") if single else path
        self._suffix = suffix
        self._run = run
        self._overwrite = overwrite

    def check(self) -> None:
        """Refuse a folder that cannot be one, and files of another run."""
        self.check_folder()
        if not self._overwrite:
            self._refuse(self._foreign(Split()))

    def check_folder(self) -> None:
        """Refuse a folder that cannot be one."""
        above = self.folder
        while not os.path.lexists(above):
            above = os.path.dirname(above) or "."
        if not os.path.isdir(above):
            raise _no_folder(self.folder, f"{above} is a file")
        if not os.access(above, os.W_OK | os.X_OK):
            raise _no_folder(self.folder, f"there is no right to write in {above}")

    def claim(self, split: Split, *, fresh: bool = False) -> str:
        """Return the file of a task, which is there and belongs to this run.

        With `fresh`, what this very run wrote before is in the way, too: nothing is gone on with.
        """
        self.prepare(split, fresh=fresh)
        return self._mine(split)

    def resume(self, split: Split, *, expected: bool) -> str:
        """Return the file of a task that goes on; refuse if it was `expected` to be there."""
        file = self.file(split)
        if expected and not os.path.exists(file):
            raise ConnectorError(
                f"{file} is not there, although the flow wrote to it before",
                remedy="put the file back, or start the flow anew with another checkpoint folder",
            )
        self.make_folder()
        return self._mine(split)

    def file(self, split: Split) -> str:
        """Return the file of a task."""
        return self._single or os.path.join(self.folder, f"part-{split.index}{self._suffix}")

    def make_folder(self) -> None:
        """Make the folder if it is missing."""
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise _no_folder(self.folder, str(error)) from error

    def _mine(self, split: Split) -> str:
        file = self.file(split)
        try:
            with open(_mark_of(file), "w", encoding="utf-8") as mark:
                mark.write(self._run)
            with open(file, "ab"):
                return file
        except OSError as error:
            raise _no_folder(self.folder, str(error)) from error

    def prepare(self, split: Split, *, fresh: bool = False) -> None:
        """Make the folder, and refuse or remove files of other runs that this task replaces."""
        self.make_folder()
        try:
            foreign = list(self._foreign(split, fresh=fresh))
            if not self._overwrite:
                self._refuse(iter(foreign))
            for file in foreign:
                _remove(file)
        except OSError as error:
            raise _no_folder(self.folder, str(error)) from error

    def owner(self, file: str) -> str | None:
        """Return the run that wrote a file, or None if that is not known."""
        try:
            with open(_mark_of(file), encoding="utf-8") as mark:
                return mark.read()
        except FileNotFoundError:
            return None

    def _foreign(self, split: Split, *, fresh: bool = False) -> Iterator[str]:
        """Give the files of other runs that stand where this task's would, empty ones excepted."""
        for file in self.there(split):
            if os.path.getsize(file) and (fresh or self.owner(file) != self._run):
                yield file

    def there(self, split: Split) -> list[str]:
        """Return the files that are there and are a task's business.

        A run with more tasks leaves more files; they are shared out like work.
        """
        if self._single is not None:
            return [self._single] if os.path.lexists(self._single) else []
        if not os.path.isdir(self.folder):
            return []
        parts = re.compile(rf"part-(\d+)\b.*{re.escape(self._suffix)}")
        found = ((parts.fullmatch(name), name) for name in sorted(os.listdir(self.folder)))
        return [
            os.path.join(self.folder, name)
            for match, name in found
            if match and int(match[1]) % split.of == split.index
        ]

    def _refuse(self, foreign: Iterator[str]) -> None:
        for file in foreign:
            raise ConnectorError(
                f"{file} is there already and was not written by this run",
                remedy="choose another path, remove it, or pass overwrite=True to replace it",
            )


def _remove(file: str) -> None:
    os.remove(file)
    with contextlib.suppress(FileNotFoundError):
        os.remove(_mark_of(file))


def _mark_of(file: str) -> str:
    folder, name = os.path.split(file)
    return os.path.join(folder, f".{name}.run")


def _no_folder(folder: str, reason: str) -> ConnectorError:
    return ConnectorError(
        f"{folder} cannot be written to: {reason}",
        remedy="choose another folder, or change its rights",
    )
