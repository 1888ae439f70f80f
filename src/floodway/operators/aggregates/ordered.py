"""Values in order, any of which can be taken out again, in place: a bag for one version of a table.

The values lie in chunks of some hundreds, and only the chunks' last values are searched for the
right chunk. So adding and removing one among a million touches a few hundred at most.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from floodway.operators.aggregates.bag import BagItem as Triple

CHUNK = 256

Member = tuple[Any, str, Any, int, Any]
"""What a value is sorted by, its text, where it is from, a number of its own, and the value."""


class Ordered:
    """A bag of values, of each of which is known where it is from.

    It is read as a bag is: it has a length, a first and a last, and goes through its values in
    order.

    Examples
    --------
    >>> ordered = Ordered()
    >>> for number, value in enumerate([3, 1, 2]):
    ...     ordered.add((value, repr(value), None, number, value))
    >>> ordered[-2:]
    [(2, '2', 2), (3, '3', 3)]
    >>> ordered.remove(ordered.find(3, "3", None))
    >>> ordered[0], ordered[-1], len(ordered)
    ((1, '1', 1), (2, '2', 2), 2)
    """

    __slots__ = ("_chunks", "_lasts", "_size")

    def __init__(self) -> None:
        self._chunks: list[list[Member]] = []
        self._lasts: list[Member] = []
        self._size = 0

    def extend(self, members: Iterable[Member]) -> None:
        """Add many values, in any order."""
        known = sorted([*chain.from_iterable(self._chunks), *members])
        self._chunks = [known[start : start + CHUNK] for start in range(0, len(known), CHUNK)]
        self._lasts = [chunk[-1] for chunk in self._chunks]
        self._size = len(known)

    def add(self, member: Member) -> None:
        """Add a value; if it cannot be compared with the others, nothing has changed."""
        place = bisect_left(self._lasts, member)
        if place == len(self._lasts):
            if not place:
                self._chunks.append([])
                self._lasts.append(member)
                place = 1
            place -= 1
        chunk = self._chunks[place]
        insort(chunk, member)
        self._lasts[place] = chunk[-1]
        self._size += 1
        if len(chunk) > 2 * CHUNK:
            self._chunks[place : place + 1] = [chunk[:CHUNK], chunk[CHUNK:]]
            self._lasts[place : place + 1] = [chunk[CHUNK - 1], chunk[-1]]

    def find(self, order: Any, text: str, origin: Any) -> Member | None:
        """Return a value by what it is sorted by, or None if there is none."""
        wanted = (order, text, origin)
        place = bisect_left(self._lasts, wanted)
        if place == len(self._lasts):
            return None
        chunk = self._chunks[place]
        found = chunk[bisect_left(chunk, wanted)]
        return found if found[:3] == wanted else None

    def remove(self, member: Member) -> None:
        """Take out a value that is there."""
        wanted = member[:4]  # values themselves may not be comparable
        place = bisect_left(self._lasts, wanted)
        chunk = self._chunks[place]
        del chunk[bisect_left(chunk, wanted)]
        self._size -= 1
        if chunk:
            self._lasts[place] = chunk[-1]
        else:
            del self._chunks[place], self._lasts[place]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Triple]:
        return (_triple(member) for chunk in self._chunks for member in chunk)

    def __getitem__(self, which: Any) -> Any:
        """Return the first (0), the last (-1), or the first or last so many (a slice)."""
        if not isinstance(which, slice):
            return _triple(self._chunks[which][which])
        found: list[Member] = []
        if which.start is None:
            for chunk in self._chunks:
                if len(found) >= which.stop:
                    break
                found += chunk[: which.stop - len(found)]
        else:
            for chunk in reversed(self._chunks):
                if len(found) >= -which.start:
                    break
                found = chunk[which.start + len(found) :] + found
        return [_triple(member) for member in found]


def _triple(member: Member) -> Triple:
    return member[0], member[1], member[4]
