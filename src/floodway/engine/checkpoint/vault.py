"""The vault: named files that are there whole or not at all, and that notice any damage.

Everything a flow needs to go on after a crash is in such files. A file is written once, under a
temporary name, and gets its own when it is on the disk; after `Vault.write` has returned, it
survives the loss of power. Each file has a header with its length and a digest over header and
content, so that a flipped bit, a missing end or a foreign file is an error and never wrong state.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO

import msgspec

from floodway.core.errors import CorruptError, DiskFullError, EngineError
from floodway.core.folders import sync_folder
from floodway.engine.checkpoint.holders import holder_of
from floodway.engine.checkpoint.modes import Modes
from floodway.engine.host.failpoints import reach

MAGIC = b"FWVT"
VERSION = 1
LOCK = "lock"
ALL = (LOCK, "attempts", "begun", "commits", "nonce", "sinks", "state")
"""What is in a checkpoint."""

_HEAD = struct.Struct("<4sHQ")
_DIGEST_BYTES = 16
HEADER_BYTES = _HEAD.size + _DIGEST_BYTES

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TEMPORARY = re.compile(r"\.tmp-[0-9]+-[0-9]+$")
_OF_EPOCH = re.compile(r".+/([0-9]{12,})-([0-9]+)\.[a-z]+")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_LOST = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO})
_numbers = count()


class FileRef(msgspec.Struct, frozen=True):
    """A file of the vault as a record names it.

    Attributes
    ----------
    name
        Its name in the vault.
    size
        The length of its content in bytes.
    digest
        The digest it had when it was written.
    """

    name: str
    size: int
    digest: bytes


class Vault(ABC):
    """Named files, written once and read with suspicion.

    Names are relative, with slashes: ``state/counts-0/000000000012-3.delta``.

    Attributes
    ----------
    place
        What to call it in errors.
    """

    place: str = "the checkpoint"

    @abstractmethod
    def write(self, name: str, data: bytes) -> FileRef:
        """Make a file durable under its name, or leave no trace of it; replaces one of that name.

        Raises `DiskFullError` if there is no room, and `EngineError` if the place cannot be
        written to.
        """

    @abstractmethod
    def load(self, name: str) -> tuple[bytes, bytes]:
        """Return a file's content and its digest, which has been verified.

        Raises `CorruptError` if the file is missing or is not exactly what was written.
        """

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Return how long a file's content should be by its length on the disk; None if missing."""

    @abstractmethod
    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted; not those of unfinished files."""

    @abstractmethod
    def delete(self, name: str, *, durable: bool = False) -> None:
        """Delete a file; one that is not there is gone already.

        Only a `durable` deletion is sure to survive the loss of power.
        """

    @abstractmethod
    def lock(self) -> Callable[[], None]:
        """Keep everybody else from locking this vault, and return the function that unlocks it.

        The lock ends with the process at the latest. Raises `EngineError` if somebody has it.
        """

    @abstractmethod
    def sweep(self) -> list[str]:
        """Delete unfinished files from before the lock was taken, and return their names."""

    def read(self, name: str) -> bytes:
        """Return a file's content; raise `CorruptError` if it is not exactly what was written."""
        return self.load(name)[0]

    def fetch(self, ref: FileRef) -> bytes:
        """Return the content of the very file that a record names.

        A sound file that another attempt has written under the same name is not that file.
        """
        data, digest = self.load(ref.name)
        if len(data) != ref.size or digest != ref.digest:
            raise damaged(ref.name, "it is not the file that the record names")
        return data


class FolderVault(Vault):
    """A vault in a folder, which may be shared by hosts.

    A folder that the vault makes is its owner's alone; see `Modes` for one that is there already.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     vault = FolderVault(folder)
    ...     ref = vault.write("state/counts-0/000000000001-0.delta", b"rows")
    ...     vault.names("state/"), vault.fetch(ref)
    (['state/counts-0/000000000001-0.delta'], b'rows')

    With `durable` false, files are whole or not there as long as the machine runs, and nobody waits
    for the disk: enough for what need not outlive it.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        self.path = Path(path).absolute()
        self.place = f"the checkpoint in {self.path}"
        self._durable = durable
        self._modes = Modes()
        self._synced: set[str] = set()

    def write(self, name: str, data: bytes) -> FileRef:
        """Make a file durable under its name, or leave no trace of it."""
        target = self._path(name)
        header = header_of(data)
        with self._guarded(name, "written"):
            self._make_folder(os.path.dirname(target))
            self._put(target, (header, data))
        return FileRef(name, len(data), header[_HEAD.size :])

    def _put(self, target: str, parts: tuple[bytes, ...]) -> None:
        temporary = f"{target}.tmp-{os.getpid()}-{next(_numbers)}"
        try:
            with open(self._modes.create(temporary, os.O_WRONLY | os.O_EXCL), "wb") as file:
                file.writelines(parts)
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
            reach("vault.before_rename")
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        reach("vault.after_rename")
        self._sync(os.path.dirname(target))

    def _make_folder(self, name: str) -> None:
        """Make a folder, and its entry in the folders above it durable, once per process."""
        if name in self._synced:
            return
        folder = Path(name)
        above = (folder, *folder.parents)
        missing = [path for path in above if not path.exists()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        Modes().make(self.path)
        self._modes = Modes.of(self.path)
        for path in reversed([path for path in missing if self.path in path.parents]):
            self._modes.make(path)
        # Others may have made a folder in here and have died before it was durable.
        inside = [path for path in above if self.path in path.parents]
        for path in {*missing, *inside}:
            self._sync(str(path.parent))
        self._synced.add(name)

    def _sync(self, folder: str) -> None:
        if self._durable:
            sync_folder(folder)

    def load(self, name: str) -> tuple[bytes, bytes]:
        """Return a file's content and its digest, which has been verified."""
        path = self._path(name)
        with self._guarded(name, "read"), open(path, "rb") as file:
            header, data = file.read(HEADER_BYTES), file.read()
        return data, verified_digest(path, header, data)

    def size(self, name: str) -> int | None:
        """Return the length of a file's content by its length on the disk; None if missing."""
        try:
            with self._guarded(name, "read"):
                return os.stat(self._path(name)).st_size - HEADER_BYTES
        except CorruptError:
            return None

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted; not those of unfinished files."""
        return [n for n in self._walk() if n.startswith(prefix) and not _TEMPORARY.search(n)]

    def _walk(self) -> list[str]:
        begin = len(f"{self.path}/")
        with self._guarded("", "listed"):
            files = [
                f"{folder}/{file}"[begin:]
                for folder, _, files in os.walk(self.path, onerror=_unless_gone)
                for file in files
            ]
        return sorted(name for name in files if name != LOCK)

    def delete(self, name: str, *, durable: bool = False) -> None:
        """Delete a file; one that is not there is gone already."""
        path = self._path(name)
        with self._guarded(name, "deleted"), contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            if durable:
                self._sync(os.path.dirname(path))

    def lock(self) -> Callable[[], None]:
        """Keep everybody else from locking this vault, and return the function that unlocks it."""
        with self._guarded(LOCK, "written"):
            self._make_folder(str(self.path))
            self._modes.close(self.path / name for name in ALL)
            handle = self._modes.create(self.path / LOCK, os.O_RDWR | os.O_APPEND)
            file = open(handle, "a+b", buffering=0)  # noqa: SIM115 - open is locked
            try:
                self._take(file)
            except BaseException:
                file.close()
                raise
        return file.close

    def _take(self, file: IO[bytes]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            said = file.read().decode(errors="replace").strip()
            raise self._taken(holder_of(os.fstat(file.fileno()), said)) from None
        file.truncate(0)
        file.write(f"{os.getpid()} on {os.uname().nodename}\n".encode())
        os.fsync(file.fileno())

    def _taken(self, holder: str) -> EngineError:
        return EngineError(
            f"the checkpoint in {self.path} is in use by {holder}",
            remedy="stop that one first, or give this flow a folder of its own",
        )

    def sweep(self) -> list[str]:
        """Delete unfinished files from before the lock was taken, and return their names.

        Whoever wrote them has been killed, or belongs to a driver that has. The times of both are
        the file system's, so that clocks of several hosts need not agree.
        """
        with self._guarded(LOCK, "read"):
            taken = (self.path / LOCK).stat().st_mtime_ns
        unfinished = filter(_TEMPORARY.search, self._walk())
        old = [name for name in unfinished if self._written_at(name) < taken]
        for name in old:
            with self._guarded(name, "deleted"):
                (self.path / name).unlink(missing_ok=True)
        return old

    def _written_at(self, name: str) -> float:
        try:
            return (self.path / name).stat().st_mtime_ns
        except FileNotFoundError:  # its writer lives, and has just given it its name
            return float("inf")

    def _path(self, name: str) -> str:
        """Return the path of a file; a `Path` would enter each new name into Python's own table."""
        if _TEMPORARY.search(name) or not all(map(_PART.fullmatch, name.split("/"))):
            raise EngineError(
                f"{name!r} cannot be the name of a file in {self.path}",
                remedy="use a relative path of letters, digits, dots, dashes and underscores",
            )
        return f"{self.path}/{name}"

    @contextmanager
    def _guarded(self, name: str, done: str) -> Iterator[None]:
        """Say what an error of the disk means."""
        try:
            yield
        except OSError as error:
            raise self._meaning(self.path / name, done, error) from error

    def _meaning(self, path: Path, done: str, error: OSError) -> EngineError:
        problem = f"{path} cannot be {done}: {error.strerror}"
        if error.errno in _FULL:
            return DiskFullError(
                problem, remedy="make room on that disk; then start again from the checkpoint"
            )
        if error.errno in _REFUSED:
            return EngineError(
                problem,
                remedy=f"let this user write to {self.path}, or keep the checkpoint elsewhere",
            )
        if done == "read" and error.errno in _LOST:
            return damaged(str(path), error.strerror or "it cannot be read")
        return EngineError(
            problem, remedy=f"check that {self.path} is on a disk that is there and works"
        )


def epoch_name(folder: str, epoch: int, attempt: int, kind: str) -> str:
    """Return the name of a task's file of an epoch; names of one folder sort by epoch.

    >>> epoch_name("state/counts-0", 12, 3, "delta")
    'state/counts-0/000000000012-3.delta'
    """
    return f"{folder}/{epoch:012d}-{attempt}.{kind}"


def epoch_of(name: str) -> int | None:
    """Return the epoch that a task's file belongs to; None if the name is another's.

    >>> epoch_of("state/counts-0/000000000012-3.delta"), epoch_of("notes.txt")
    (12, None)
    """
    found = _OF_EPOCH.fullmatch(name)
    return None if found is None else int(found[1])


def attempt_of(name: str) -> int | None:
    """Return the attempt in which a task wrote a file; None if the name is another's.

    >>> attempt_of("state/counts-0/000000000012-3.delta"), attempt_of("notes.txt")
    (3, None)
    """
    found = _OF_EPOCH.fullmatch(name)
    return None if found is None else int(found[2])


def damaged(name: str, reason: str) -> CorruptError:
    """Return the error for a file that is missing or not what was written."""
    return CorruptError(
        f"{name} is lost or damaged: {reason}",
        remedy="put it back from a copy of the checkpoint, or start with an empty folder",
    )


def header_of(data: bytes) -> bytes:
    """Return what is written before a file's content; its digest comes last."""
    head = _HEAD.pack(MAGIC, VERSION, len(data))
    return head + _digest(head, data)


def _digest(head: bytes, data: bytes) -> bytes:
    # Over the header as well: a damaged version must not pass for a newer one.
    digest = hashlib.blake2b(head, digest_size=_DIGEST_BYTES)
    digest.update(data)
    return digest.digest()


def verified_digest(name: str, header: bytes, data: bytes) -> bytes:
    """Return the digest in a file's header; raise `CorruptError` if it is not what was written."""
    if len(header) < HEADER_BYTES:
        raise damaged(name, f"it has only {len(header)} bytes")
    head, digest = header[: _HEAD.size], header[_HEAD.size :]
    magic, version, length = _HEAD.unpack(head)
    if magic != MAGIC:
        raise damaged(name, "it does not begin like a file of Floodway")
    if length != len(data):
        raise damaged(name, f"it has {len(data)} bytes, and {length} were written")
    if _digest(head, data) != digest:
        raise damaged(name, "its digest does not match")
    if version != VERSION:
        raise EngineError(
            f"{name} is a file of version {version}, and this is version {VERSION}",
            remedy="run the version of Floodway that wrote it, or a newer one",
        )
    return digest


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
