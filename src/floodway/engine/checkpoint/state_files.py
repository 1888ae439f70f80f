"""The files of a task's state: a base, and what has changed since, epoch by epoch.

Each epoch writes one file: what has changed in it or, now and then, that and former files as one.
Small files are merged with others of their size, so that there are never many; when what has
changed outweighs the base, all of it becomes the next base. So a state of any size is written about
twice for each time that it changes as a whole.

A file is never changed. Those that the commit record names are the state, and all others are
nothing: a process may die at any time here.
"""

from collections.abc import Container, Iterable, Sequence
from typing import overload

from floodway.engine.checkpoint.vault import FileRef, Vault, epoch_name
from floodway.engine.host.failpoints import reach
from floodway.engine.state.delta import Parts, merged
from floodway.engine.state.pickling import Pickling

MOST_FILES = 32
"""With so many files, some are merged."""

SMALL_BYTES = 256 * 1024
"""Changes of less than this do not outweigh any base."""


class StoredParts(Parts):
    """The parts of a state, in the vault."""

    def __init__(self, vault: Vault, refs: Sequence[FileRef]) -> None:
        self._vault = vault
        self._refs = list(refs)
        self.total = sum(ref.size for ref in refs)

    def __len__(self) -> int:
        return len(self._refs)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> "StoredParts": ...
    def __getitem__(self, index: int | slice) -> "bytes | StoredParts":
        """Read a part; raise CorruptError if it is not what was written."""
        if isinstance(index, slice):
            return StoredParts(self._vault, self._refs[index])
        return self._vault.fetch(self._refs[index])


class StateFiles:
    """Keeps the state of one task in a vault; used by one thread at a time.

    Parameters
    ----------
    vault
        Where files are.
    prefix
        The folder of this task's files, in the vault.
    pickling
        How rows are read when files are merged.
    refs
        The files that the state consists of so far, the oldest first.
    operators
        The operators of the task. State of others is left out when files are merged: their records
        may be of classes that the flow does not have any more. None for all there are.
    most, small
        With how many files some are merged, and how many bytes of changes outweigh no base.
    """

    def __init__(
        self,
        vault: Vault,
        prefix: str,
        pickling: Pickling,
        refs: Iterable[FileRef] = (),
        *,
        operators: Container[str] | None = None,
        most: int = MOST_FILES,
        small: int = SMALL_BYTES,
    ) -> None:
        self._vault = vault
        self._prefix = prefix
        self._pickling = pickling
        self._refs = list(refs)
        self._operators = operators
        self._most, self._small = most, small

    @property
    def refs(self) -> list[FileRef]:
        """The files that the state consists of, the oldest first."""
        return list(self._refs)

    def parts(self) -> StoredParts:
        """Return the state as parts that are read when they are needed."""
        return StoredParts(self._vault, self._refs)

    def read(self, ref: FileRef) -> bytes:
        """Return the content of a file; raise CorruptError if it is not what was written."""
        return self._vault.fetch(ref)

    def store(self, epoch: int, attempt: int, delta: bytes) -> list[FileRef]:
        """Make what has changed in an epoch durable; return the files of the state at its end.

        If it fails nothing has happened, and it may be tried again.
        """
        sizes = [ref.size for ref in self._refs] + [len(delta)]
        count = to_merge(sizes, most=self._most, small=self._small)
        kept, old = self._refs[: len(sizes) - count], self._refs[len(sizes) - count :]
        if not old:
            ref = self._write(epoch, attempt, "delta", delta)
        elif kept:
            ref = self._write(epoch, attempt, "delta", self._merged(old, delta, base=False))
        else:
            base = self._merged(old, delta, base=True)
            reach("compact.before_base")
            ref = self._write(epoch, attempt, "base", base)
            reach("compact.after_base")
        self._refs = [*kept, ref]
        return self.refs

    def _merged(self, old: Sequence[FileRef], delta: bytes, *, base: bool) -> bytes:
        older = StoredParts(self._vault, old)
        return merged(older, delta, self._pickling, base=base, operators=self._operators)

    def _write(self, epoch: int, attempt: int, kind: str, data: bytes) -> FileRef:
        return self._vault.write(epoch_name(self._prefix, epoch, attempt, kind), data)


def to_merge(sizes: Sequence[int], *, most: int = MOST_FILES, small: int = SMALL_BYTES) -> int:
    """Return how many files to merge, of the newest ones; the last size is that of a new one.

    >>> to_merge([1_000_000, 10, 10, 10])  # a base, and little that has changed
    1
    >>> to_merge([1_000_000, 600_000, 600_000])  # changes that outweigh their base
    3
    >>> to_merge([10**9] + [10**6] * 15 + [10] * 17)  # many: those of about one size
    17
    """
    base, *changed = sizes
    if sum(changed) > max(base, small):
        return len(sizes)
    if len(sizes) <= most:
        return 1
    together, count = 0, 0
    for size in reversed(changed):
        if count >= max(most // 2, 2) and size > together:
            break
        together, count = together + size, count + 1
    return count
