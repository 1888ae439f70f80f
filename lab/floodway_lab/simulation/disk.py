"""The disk: the vault's files in memory, with all that can happen to files.

A write takes a while, and may find no room. Whoever is killed in the middle leaves an unfinished
file. When the power fails, a file whose writing had not returned may be gone, torn or there, and a
file that was deleted, and not durably so, may be back. Processes do at once what takes them long;
what they would have done after the power failed has not happened.

A sector may go bad long after it was written: then a file that was durable cannot be read any more,
or reads as something else. Somebody may put it back from a copy.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from floodway.core.errors import DiskFullError, EngineError
from floodway.engine.checkpoint.vault import (
    HEADER_BYTES,
    FileRef,
    Vault,
    damaged,
    epoch_of,
    header_of,
    verified_digest,
)
from floodway.engine.host.failpoints import reach
from floodway_lab.simulation.timeline import Timeline

RECORDS = "commits/"
FORGOTTEN_US = 5_000_000
"""After so long a deletion is durable whoever asked for it."""


class User(Protocol):
    """A process that uses the disk."""

    name: str
    run: int
    alive: bool

    @property
    def time(self) -> int:
        """What time it is for the process, which may be in the middle of something."""

    def spend(self, microseconds: int) -> None:
        """Let time pass for the process."""


class File:
    """A file: all its bytes, who wrote it when, and whether that has returned."""

    def __init__(self, data: bytes, writer: User, at: int, former: "File | None") -> None:
        self.bytes = header_of(data) + data
        self.writer, self.run, self.at = writer.name, writer.run, at
        self.former = former
        self.begun_at = at
        self.durable_at: int | None = None
        self.unreadable = False
        self.copy: bytes | None = None


class Deleted(NamedTuple):
    """A file that was deleted, when, and whether that was durable then."""

    file: File
    at: int
    durable: bool


class Disk:
    """All files, shared by all processes.

    Attributes
    ----------
    files
        What is there, by name.
    unfinished
        Files under their temporary names, and when they were written.
    full, slow
        Whether there is no room now; by how much everything takes longer.
    problem
        The first thing that should never have happened.
    tears_records
        Whether a commit record may be torn: only sinks that can take back what they have shown
        survive that.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.files: dict[str, File] = {}
        self.unfinished: dict[str, int] = {}
        self.full = False
        self.slow = 1.0
        self.tears_records = False
        self._deleted: dict[str, Deleted] = {}
        self.holder: User | None = None
        self.locked_at = 0
        self._numbers = 0
        self.operations = 0
        self.problem: str | None = None

    def vault(self, user: User) -> "SimulatedVault":
        """Return the disk as a process sees it."""
        return SimulatedVault(self, self._timeline, user)

    def temporary(self, name: str) -> str:
        """Return a name for a file that is not finished."""
        self._numbers += 1
        return f"{name}.tmp-{self._numbers}"

    def put(self, name: str, data: bytes, writer: User, begun_at: int = 0) -> File:
        """Give a finished file its name."""
        there = self.files.get(name)
        if there is not None and there.writer != writer.name and epoch_of(name) is not None:
            problem = f"{writer.name} replaces {name}, which {there.writer} wrote"
            self.problem = self.problem or problem
        file = self.files[name] = File(data, writer, self._timeline.now, self.files.get(name))
        file.begun_at = begun_at
        return file

    def settle(self, name: str, at: int) -> None:
        """Synchronise a file's folder: the file is durable, and so is what was deleted there."""
        self.files[name].durable_at = at
        folder = name.rpartition("/")[0]
        for gone in [n for n in self._deleted if n.rpartition("/")[0] == folder]:
            del self._deleted[gone]

    def delete(self, name: str, at: int, *, durable: bool) -> None:
        """Delete a file."""
        file = self.files.pop(name, None)
        if file is not None:
            self._deleted[name] = Deleted(file, at, durable)

    def fail_power(self) -> None:
        """Lose what is not durable, or only part of it, or nothing: as it comes."""
        now = self._timeline.now
        for name in sorted(self._deleted):
            self._see_if_back(name, self._deleted[name])
        self._deleted.clear()
        for name in sorted(self.files):
            file = self.files[name]
            if file.durable_at is None or file.durable_at > now:
                self._decide(name, file)
        self.holder = None

    def _see_if_back(self, name: str, deleted: "Deleted") -> None:
        """Let a file be there again that was deleted lately, or only would have been."""
        age = self._timeline.now - deleted.at
        if name in self.files or age > FORGOTTEN_US or (deleted.durable and age >= 0):
            return
        if age < 0 or self._timeline.chance(0.5):
            self.files[name] = deleted.file
            self._timeline.say(f"{name} is back")

    def _decide(self, name: str, file: File) -> None:
        fates = ["gone"]
        if file.begun_at <= self._timeline.now:
            fates.append("there")
            if epoch_of(name) is not None or self._tears(name):
                fates.append("torn")
        fate = self._timeline.random.choice(fates)
        self._timeline.say(f"the write of {name} had not returned: it is {fate}")
        if fate == "gone":
            del self.files[name]
            if file.former is not None:
                self.files[name] = file.former
            return
        file.durable_at = self._timeline.now
        if fate == "torn":
            file.bytes = file.bytes[: self._timeline.random.randrange(len(file.bytes))]

    def _tears(self, name: str) -> bool:
        """Return whether a commit record may be torn: without one before it nobody could go on."""
        others = (each for each in self.files if each.startswith(RECORDS) and each != name)
        return self.tears_records and name.startswith(RECORDS) and any(others)

    # ------------------------------------------------------------------ sectors

    def damage(self, name: str) -> None:
        """Let a sector of a file that is durable go bad."""
        file, random = self.files[name], self._timeline.random
        file.copy = file.bytes if file.copy is None else file.copy
        if file.bytes and random.random() < 0.5:
            bit = random.randrange(len(file.bytes) * 8)
            spoilt = bytearray(file.bytes)
            spoilt[bit // 8] ^= 1 << bit % 8
            file.bytes = bytes(spoilt)
        else:
            file.unreadable = True

    @property
    def damaged(self) -> list[str]:
        """The files that somebody would have to put back from a copy."""
        return sorted(name for name, file in self.files.items() if file.copy is not None)

    def put_back(self) -> None:
        """Put back from a copy whatever went bad."""
        for name in self.damaged:
            file = self.files[name]
            assert file.copy is not None
            file.bytes, file.copy, file.unreadable = file.copy, None, False

    @property
    def newest_record(self) -> int:
        """The epoch of the newest commit record, 0 if there is none."""
        found = [name for name, file in self.files.items() if name.startswith(RECORDS)]
        return max((int(name.removeprefix(RECORDS)) for name in found), default=0)


class SimulatedVault(Vault):
    """The disk as one process sees it."""

    def __init__(self, disk: Disk, timeline: Timeline, user: User) -> None:
        self._disk, self._timeline, self._user = disk, timeline, user

    def _work(self, least: int, most: int) -> None:
        self._disk.operations += 1
        self._user.spend(int(self._timeline.between(least, most) * self._disk.slow))

    def write(self, name: str, data: bytes) -> FileRef:
        """Make a file durable under its name, or leave no trace of it."""
        disk, begun_at = self._disk, self._user.time
        self._work(200, 20_000)
        if disk.full:
            raise DiskFullError(
                f"{name} cannot be written: No space left on device",
                remedy="make room on that disk; then start again from the checkpoint",
            )
        temporary = disk.temporary(name)
        disk.unfinished[temporary] = self._timeline.now
        reach("vault.before_rename")
        del disk.unfinished[temporary]
        file = disk.put(name, data, self._user, begun_at)
        reach("vault.after_rename")
        disk.settle(name, self._user.time)
        self._timeline.note("wrote", self._user.name, name, len(data))
        digest = verified_digest(name, file.bytes[:HEADER_BYTES], data)
        return FileRef(name, len(data), digest)

    def load(self, name: str) -> tuple[bytes, bytes]:
        """Return a file's content and its digest, which has been verified."""
        self._work(50, 2_000)
        file = self._disk.files.get(name)
        if file is None:
            raise damaged(name, "No such file or directory")
        if file.unreadable:
            raise damaged(name, "Input/output error")
        # Judged by the engine itself: what it takes for sound has to be.
        header, data = file.bytes[:HEADER_BYTES], file.bytes[HEADER_BYTES:]
        return data, verified_digest(name, header, data)

    def size(self, name: str) -> int | None:
        """Return how long a file's content is."""
        file = self._disk.files.get(name)
        return None if file is None else len(file.bytes) - HEADER_BYTES

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        return sorted(name for name in self._disk.files if name.startswith(prefix))

    def delete(self, name: str, *, durable: bool = False) -> None:
        """Delete a file."""
        self._disk.delete(name, self._user.time, durable=durable)

    def lock(self) -> Callable[[], None]:
        """Keep everybody else from locking this vault."""
        disk = self._disk
        if disk.holder is not None and disk.holder.alive:
            raise EngineError(
                f"the checkpoint is in use by another driver: process {disk.holder.name}",
                remedy="stop that one first, or give this flow a folder of its own",
            )
        disk.holder, disk.locked_at = self._user, self._timeline.now

        def unlock() -> None:
            disk.holder = None

        return unlock

    def sweep(self) -> list[str]:
        """Delete unfinished files from before the lock was taken."""
        disk = self._disk
        old = [name for name, at in disk.unfinished.items() if at < disk.locked_at]
        for name in old:
            del disk.unfinished[name]
        return old
