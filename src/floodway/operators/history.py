"""Evolving tables: versions by timestamp (thesis, definitions 56 to 58).

A table with a version per timestamp sounds large, but a version differs from the one before it
only in the keys that were modified at its timestamp. So a table is kept as one short history per
key: the timestamps at which the key was modified and the value from then on, None for deleted.
The value of a key in version ``t`` is the one of its last entry at or before ``t``, and the
modified key set of version ``t`` is the set of keys with an entry at exactly ``t``.

A table that nobody asks for versions keeps one entry per key.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from floodway.operators.base import RowChange, View
from floodway.operators.keyed import Space

History = tuple[list[int], list[Any]]
"""The timestamps at which a key was modified, in order, and the values from then on."""


class Expiry:
    """Things to look at again when time has passed a point, earliest first.

    Many have the same time, so only times are kept in order, and not everything that has one.

    Examples
    --------
    >>> expiry = Expiry()
    >>> for timestamp, item in [(7, "a"), (3, "b"), (7, "c"), (9, "d")]:
    ...     expiry.add(timestamp, item)
    >>> expiry.due(7), expiry.due(8)
    ([(3, 'b'), (7, 'a'), (7, 'c')], [])
    """

    def __init__(self) -> None:
        self._times: list[int] = []
        self._items: dict[int, list[Any]] = {}

    def add(self, timestamp: int, item: Any) -> None:
        """Remember `item` for when the horizon passes `timestamp`."""
        self.at(timestamp).append(item)

    def at(self, timestamp: int) -> list[Any]:
        """Return the list of what is remembered for a time, to add to: for code that adds many."""
        items = self._items.get(timestamp)
        if items is None:
            items = self._items[timestamp] = []
            heapq.heappush(self._times, timestamp)
        return items

    def due(self, horizon: int) -> list[tuple[int, Any]]:
        """Return and forget what lies at or before `horizon`."""
        return [(timestamp, item) for timestamp, items in self.lists(horizon) for item in items]

    def lists(self, horizon: int) -> Iterator[tuple[int, list[Any]]]:
        """Go through the same, the list of one time after the other."""
        while self._times and self._times[0] <= horizon:
            timestamp = heapq.heappop(self._times)
            yield timestamp, self._items.pop(timestamp)


class EvolvingTable(View):
    """A table with its versions, or with the latest only.

    Attributes
    ----------
    histories
        For each key the timestamps at which it was modified, in order, and the values from then
        on.

    Examples
    --------
    >>> table = EvolvingTable(versioned=True)
    >>> table.update(1, "A", 7.2)
    (1, 'A', 7.2, None, None)
    >>> table.update(3, "A", 8.9)
    (3, 'A', 8.9, 7.2, None)
    >>> table.update(2, "A", 8.0)  # out of order: holds up to version 3
    (2, 'A', 8.0, 7.2, 3)
    >>> table.lookup("A"), table.lookup("A", at=1), table.lookup("A", at=0)
    (8.9, 7.2, None)
    """

    def __init__(self, *, versioned: bool) -> None:
        self.versioned = versioned
        self.histories: Space[Any, History] = Space()
        self._expiry = Expiry()

    def update(self, timestamp: int, key: Any, value: Any) -> RowChange | None:
        """Insert, replace or (None) delete, and return what changed.

        An update that comes out of order touches the versions from its timestamp up to the next
        modification of the key, no others. In a table without versions it has no effect.
        """
        space = self.histories
        history = space.hot.get(key) or space.fetch(key)
        if history is None:
            history = space[key] = ([], [])
        times, values = history
        if not self.versioned and times:
            return self._replace(timestamp, key, value, history)
        index = bisect_right(times, timestamp)
        old = values[index - 1] if index else None
        until = times[index] if index < len(times) else None
        if index and times[index - 1] == timestamp:
            index -= 1
            values[index] = value
        else:
            times.insert(index, timestamp)
            values.insert(index, value)
        self._changed(key, history, index)
        return (timestamp, key, value, old, until)

    def _replace(self, timestamp: int, key: Any, value: Any, history: History) -> RowChange | None:
        times, values = history
        if timestamp < times[0]:
            return None
        old = values[0]
        times[0], values[0] = timestamp, value
        self.histories.dirty[key] = history
        if value is None:
            self._expiry.add(timestamp, key)
        return (timestamp, key, value, old, None)

    def _changed(self, key: Any, history: History, start: int = 0, count: int = 1) -> None:
        """Note that a history has `count` other entries from number `start` on."""
        self.histories.dirty[key] = history
        times, values = history
        # What there is to forget are entries with another after them, and rows that are deleted.
        if len(times) > 1 or values[0] is None:
            for timestamp in times[start : start + count + 1]:
                self._expiry.add(timestamp, key)

    def loaded(self, key: Any, history: History) -> None:
        """See that the history of `key` is back from where it was stored."""
        times, values = history
        for timestamp in times if values[0] is None else times[1:]:
            self._expiry.add(timestamp, key)

    def assign(self, change: RowChange) -> None:
        """Take over a change of another table: one value over all versions of its interval."""
        timestamp, key, value, _, until = change
        history = self.histories.setdefault(key, ([], []))
        times, values = history
        if not self.versioned:
            times[:], values[:] = [timestamp], [value]
            self._changed(key, history)
            return
        start = bisect_left(times, timestamp)
        stop = len(times) if until is None else bisect_left(times, until)
        inserted_times, inserted_values = [timestamp], [value]
        if until is not None and (stop == len(times) or times[stop] != until):
            # From `until` on everything is as before.
            inserted_times.append(until)
            inserted_values.append(values[stop - 1] if stop else None)
        times[start:stop], values[start:stop] = inserted_times, inserted_values
        self._changed(key, history, start, len(inserted_times))

    def segments(self, key: Any, start: int, end: int | None) -> list[tuple[int, int | None, Any]]:
        """Return the key's values over the versions ``[start, end)`` as ``(from, to, value)``.

        Without versions there is one segment: the latest value, from when both sides hold.
        """
        times, values = self.histories.get(key, ([], []))
        if not self.versioned:
            return [(max(start, *times), None, values[0])] if times else [(start, None, None)]
        index = bisect_right(times, start)
        stop = len(times) if end is None else bisect_left(times, end)
        cuts = [start, *times[index:stop]]
        held = [values[index - 1] if index else None, *values[index:stop]]
        return list(zip(cuts, [*cuts[1:], end], held, strict=True))

    def modified_at(self, key: Any, timestamp: int) -> bool:
        """Return whether the key is in the modified key set of version `timestamp`."""
        times, _ = self.histories.get(key, ([], []))
        index = bisect_left(times, timestamp)
        return index < len(times) and times[index] == timestamp

    def forget(self, horizon: int) -> list[Any]:
        """Drop what no version from `horizon` on needs, and return the keys that are gone."""
        gone = []
        for _, key in self._expiry.due(horizon):
            history = self.histories.get(key)
            if history is None:
                continue
            times, values = history
            settled = bisect_right(times, horizon) - 1
            if settled > 0:
                del times[:settled], values[:settled]
                self.histories.touch(key)
            if times[0] <= horizon and len(times) == 1 and values[0] is None:
                del self.histories[key]
                gone.append(key)
        return gone

    def drop(self, key: Any) -> None:
        """Forget a key altogether, without a trace in the versions."""
        self.histories.pop(key, None)

    def entry(self, key: Any, at: int | None = None) -> tuple[int, Any] | None:
        """Return the row's timestamp and value in version `at`, or the latest."""
        history = self.histories.get(key)
        return None if history is None else _entry(history, at)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all rows of version `at`, or of the latest."""
        entries = ((key, _entry(history, at)) for key, history in self.histories.everything())
        return {key: entry for key, entry in entries if entry is not None}

    def modified(self) -> dict[int, set[Any]]:
        """Return the modified key set of each version that has one."""
        sets: dict[int, set[Any]] = {}
        for key, (times, _) in self.histories.everything():
            for timestamp in times:
                sets.setdefault(timestamp, set()).add(key)
        return dict(sorted(sets.items()))

    def size(self) -> int:
        """Return how many entries are kept, over all keys."""
        return sum(len(times) for _, (times, _) in self.histories.everything())


def _entry(history: History, at: int | None) -> tuple[int, Any] | None:
    times, values = history
    index = (len(times) if at is None else bisect_right(times, at)) - 1
    if index < 0 or values[index] is None:
        return None
    return times[index], values[index]
