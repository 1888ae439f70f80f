"""The commit records of a flow: the newest sound one, the one before, and nothing else.

The last two records and all files they name are kept, so that damage to the newest costs an epoch
and not everything. Going back to an older record leaves a line of history: its records must never
be found again, or state of the one line would meet state of the other. So they are deleted, by
`Commits.go_on_from` or at the latest before the next record is written.

That there were records is noted outside their folder: one without records and with that note has
lost them, and is no beginning. Older versions did not note it, nor did they claim a folder before
they wrote to it: files in one that nobody has claimed are theirs.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from floodway.core.errors import CorruptError, EngineError
from floodway.engine.checkpoint.nonce import NONCE, read_nonce, write_nonce
from floodway.engine.checkpoint.records import CommitRecord, decode, encode
from floodway.engine.checkpoint.vault import Vault, attempt_of, damaged, epoch_of
from floodway.engine.host.failpoints import reach

log = logging.getLogger(__name__)

FOLDER = "commits/"
ATTEMPTS = "attempts"
"""The file that says which numbers of attempts have been given away."""

BEGUN = "begun"
"""The file that says that there has been a commit record."""

AT_A_TIME = 1000
"""So many numbers of attempts are given away at a time."""

LEFT_BEHIND = "the checkpoint is not tidied up for now: %s"
_NAME = re.compile(rf"{FOLDER}[0-9]{{12,}}")


class Commits:
    """Reads and writes the commit records in a vault.

    Used as a context manager it holds the vault's lock.

    Attributes
    ----------
    skipped
        The records that `latest` has passed over: name and reason.
    """

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.skipped: list[tuple[str, str]] = []
        self._last: CommitRecord | None = None
        self._unlock: Callable[[], None] | None = None
        self._nonce: str | None = None
        self._noted = False

    # ------------------------------------------------------------------ one driver at a time

    def lock(self) -> None:
        """Keep other drivers out until `close`, and clear away what dead ones left unfinished."""
        if self._unlock is None:
            self._unlock = self.vault.lock()
            for name in self.vault.sweep():
                log.info("removed %s, which was never finished", name)

    def close(self) -> None:
        """Let other drivers in."""
        if self._unlock is not None:
            self._unlock()
            self._unlock = None

    def __enter__(self) -> Self:
        self.lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def claim(self) -> str:
        """Write a nonce, by which tasks know the folder, and other drivers that it is taken."""
        self._nonce = write_nonce(self.vault)
        return self._nonce

    def _still_mine(self) -> None:
        """Refuse to write to a folder that was removed, or that another driver has claimed.

        A lock that was removed does not keep anybody out, and some file systems have none.
        """
        if self._nonce is None or (found := read_nonce(self.vault)) == self._nonce:
            return
        if found is None and self.vault.size(NONCE) is not None:
            self.vault.write(NONCE, self._nonce.encode())  # damaged, and nobody else's
            return
        what = "was removed" if found is None else "was claimed by another driver"
        raise EngineError(
            f"{self.vault.place} {what} while the flow ran",
            remedy="leave the folder of a checkpoint alone while its flow runs, and run a flow "
            "once at a time",
        )

    def new_attempts(self) -> int:
        """Return a number of attempts that, with those that follow it, nobody has ever had.

        Files of tasks are named by attempt. Tasks of a driver that was killed may linger and still
        write, so their numbers must not be used again even if nothing of theirs was committed.
        """
        given = -1
        if self.vault.names(ATTEMPTS):
            with contextlib.suppress(CorruptError, ValueError):
                given = int(self.vault.read(ATTEMPTS))
        used = [attempt_of(name) or 0 for name in self.vault.names()]
        if self._last is not None:
            used.append(self._last.attempt)
        first = (max([given, *used]) // AT_A_TIME + 1) * AT_A_TIME
        self.vault.write(ATTEMPTS, str(first).encode())
        return first

    # ------------------------------------------------------------------ reading

    def latest(self, *, verify: bool = False) -> CommitRecord | None:
        """Return the newest sound record, or None if there has never been one.

        A record is sound if it can be read and all its files are there and as long as they should
        be; with `verify`, if they can be read as well. Raises `CorruptError` if there are records
        and none is sound, or if there were some and they are gone.
        """
        self.skipped = []
        self._last = None
        for name in reversed(self._names()):
            try:
                self._last = self._sound(name, verify=verify)
            except CorruptError as error:
                log.warning("going back behind %s: %s", name, error.problem)
                self.skipped.append((name, error.problem))
            else:
                return self._last
        if self.skipped:
            reasons = "; ".join(reason for _, reason in self.skipped)
            raise CorruptError(
                f"no commit record can be used: {reasons}",
                remedy="put back a copy of the checkpoint, or start with an empty folder",
            )
        if self._lost():
            raise CorruptError(
                f"{self.vault.place} has lost its commit records ({FOLDER}): epochs were "
                "committed, and it is no longer known which",
                remedy="put back a copy of the checkpoint; to begin anew, remove the whole folder "
                "and what the sinks have written",
            )
        return None

    def _lost(self) -> bool:
        """Return whether a folder without records must have had some."""
        if self.vault.size(BEGUN) is not None:
            return True
        claimed = self.vault.size(NONCE) is not None
        return not claimed and any(epoch_of(name) is not None for name in self.vault.names())

    def before(self, epoch: int) -> CommitRecord | None:
        """Return the newest sound record of an epoch before `epoch`, or None if there is none."""
        for name in reversed(self._names()):
            if _epoch(name) < epoch:
                try:
                    return self._sound(name, verify=False)
                except CorruptError as error:
                    log.warning("passing over %s: %s", name, error.problem)
        return None

    def go_on_from(self, record: CommitRecord | None) -> None:
        """Say from which record the flow goes on: later ones are deleted; with None, all are.

        So are files that no record needs: no task is at work, and who lingers wrote in vain.
        """
        if record is None:
            self.vault.delete(BEGUN, durable=True)
        self._leave_behind(-1 if record is None else record.epoch)
        self._last = record
        former = None if record is None else self.before(record.epoch)
        try:
            if record is not None:
                self._note_begun(record)
            self._clear([each for each in (record, former) if each is not None])
        except EngineError as error:
            log.warning(LEFT_BEHIND, error.problem)

    def verified(self, record: CommitRecord) -> None:
        """Read all files that a record names; raise `CorruptError` if one is not as it was."""
        for ref in {ref.name: ref for ref in record.files}.values():
            self.vault.fetch(ref)

    def _sound(self, name: str, *, verify: bool) -> CommitRecord:
        record = decode(self.vault.read(name), name=name)
        if _name(record.epoch) != name:
            raise damaged(name, f"it is the record of epoch {record.epoch}")
        for ref in record.files:
            size = self.vault.size(ref.name)
            if size != ref.size:
                found = "missing" if size is None else f"{size} bytes long"
                raise damaged(ref.name, f"it should be {ref.size} bytes long, and is {found}")
        if verify:
            self.verified(record)
        return record

    # ------------------------------------------------------------------ writing

    def write(self, record: CommitRecord) -> None:
        """Commit an epoch: when this returns, the record is durable. Then delete what is over.

        What cannot be deleted now is tried again with the next record.
        """
        reach("commit.before_record")
        self._still_mine()
        data = encode(record)
        before = record if self._last is None else self._last
        self._leave_behind(min(before.epoch, record.epoch), _name(record.epoch))
        self.vault.write(_name(record.epoch), data)
        reach("commit.after_record")
        try:
            self._note_begun(record)
            self.prune(record)
        except EngineError as error:
            log.warning(LEFT_BEHIND, error.problem)
        self._last = record

    def _note_begun(self, record: CommitRecord) -> None:
        """Note that there is a record; not before it is there, or it might seem to be lost."""
        if not self._noted and self.vault.size(BEGUN) is None:
            self.vault.write(BEGUN, f"{record.flow} at epoch {record.epoch}".encode())
        self._noted = True

    def _leave_behind(self, epoch: int, replaced: str | None = None) -> None:
        """Delete the records after an epoch, but for one that is about to be replaced."""
        for name in self._names():
            if _epoch(name) > epoch and name != replaced:
                self.vault.delete(name, durable=True)

    def prune(self, record: CommitRecord) -> None:
        """Delete what neither the newest record nor the one before it needs.

        Files of later epochs stay: tasks are ahead of the commit, unless all have ended.
        """
        reach("prune.before")
        former = self._last
        if former is None or former.epoch >= record.epoch:
            former = self.before(record.epoch)
        up_to = None if record.finished else record.epoch
        self._clear([record] if former is None else [record, former], up_to=up_to)

    def _clear(self, kept: Sequence[CommitRecord], *, up_to: int | None = None) -> None:
        """Delete all records but some, and the files up to an epoch that those do not need."""
        for name in sorted({*self._names()} - {_name(each.epoch) for each in kept}):
            self.vault.delete(name)
        reach("prune.middle")
        needed = {ref.name for each in kept for ref in each.files}
        for name in self.vault.names():
            epoch = epoch_of(name)
            if epoch is None or name in needed or (up_to is not None and epoch > up_to):
                continue
            self.vault.delete(name)

    def _names(self) -> list[str]:
        return [name for name in self.vault.names(FOLDER) if _NAME.fullmatch(name)]


def newest_epoch(vault: Vault) -> int:
    """Return the epoch of the newest commit record, sound or not; 0 if there is none."""
    return max((_epoch(name) for name in vault.names(FOLDER) if _NAME.fullmatch(name)), default=0)


def _name(epoch: int) -> str:
    return f"{FOLDER}{epoch:012d}"


def _epoch(name: str) -> int:
    return int(name.removeprefix(FOLDER))
