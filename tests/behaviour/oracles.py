"""Plain, slow, obviously right: what the operators are compared with.

Nothing here shares code with the operators, and nothing is incremental: every answer is computed
from all records at once, as the thesis defines it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from floodway.testing import Emitted, latest

Row = tuple[int, Any]
Table = dict[Any, Row]
History = list[tuple[int, Any, Any]]
"""Updates of a table: timestamp, key, value; None deletes; of equal ones the last holds."""

LAST = 60
"""The last version that evolving tables are compared at; no test goes beyond it."""


class NaiveTable:
    """Definitions 56 to 58, literally: one dictionary and one modified key set per version."""

    def __init__(self, updates: Iterable[tuple[int, Any, Any]] = ()) -> None:
        self.versions: list[Table] = [{} for _ in range(LAST + 1)]
        self.modified_keys: list[set[Any]] = [set() for _ in range(LAST + 1)]
        for timestamp, key, value in updates:
            self.update(timestamp, key, value)

    def update(self, timestamp: int, key: Any, value: Any) -> None:
        for version in range(timestamp, LAST + 1):
            if version > timestamp and key in self.modified_keys[version]:
                break
            if value is None:
                self.versions[version].pop(key, None)
            else:
                self.versions[version][key] = (timestamp, value)
        self.modified_keys[timestamp].add(key)

    def modified(self) -> dict[int, set[Any]]:
        return {time: keys for time, keys in enumerate(self.modified_keys) if keys}

    def values(self, at: int = LAST) -> dict[Any, Any]:
        return {key: value for key, (_, value) in self.versions[at].items()}

    @property
    def latest(self) -> Table:
        return self.versions[LAST]


def aggregated(
    facts: Iterable[tuple[int, Any, Any]],
    groups: Callable[[int, Any, Any], Iterable[Any]],
    function: Callable[[list[tuple[int, Any]]], Any],
    *,
    at: int = LAST,
) -> Table:
    """Definition 64 for facts ``(timestamp, key, value)``; a null aggregate has no row."""
    members: dict[Any, list[tuple[int, Any]]] = {}
    for timestamp, key, value in facts:
        if timestamp <= at:
            for group in groups(timestamp, key, value):
                members.setdefault(group, []).append((timestamp, value))
    table = {g: (max(t for t, _ in rows), function(rows)) for g, rows in members.items()}
    return {group: row for group, row in table.items() if row[1] is not None}


def sessions(facts: Sequence[tuple[int, Any, Any]], gap: int) -> dict[Any, list[list[Any]]]:
    """Return the records of each group's sessions: sorted, and split where the gap is too long."""
    found: dict[Any, list[list[Any]]] = {}
    for timestamp, group, value in sorted(facts, key=lambda fact: fact[0]):
        of_group = found.setdefault(group, [])
        if not of_group or timestamp - of_group[-1][-1][0] > gap:
            of_group.append([])
        of_group[-1].append((timestamp, value))
    return found


def joined_facts(
    left: Sequence[tuple[int, Any, Any]],
    right: Sequence[tuple[int, Any, Any]],
    within: int,
    how: str,
    joiner: Callable[[Any, Any], Any],
) -> list[tuple[int, Any, Any]]:
    """Definition 67 and its outer results, as a nested loop over facts."""
    results: list[tuple[int, Any, Any]] = []
    matched: tuple[set[int], set[int]] = (set(), set())
    for i, (t, k, v) in enumerate(left):
        for j, (u, m, w) in enumerate(right):
            if k is not None and k == m and abs(t - u) <= within:
                results.append((max(t, u), k, joiner(v, w)))
                matched[0].add(i)
                matched[1].add(j)
    if how in ("left", "full"):
        alone = [fact for i, fact in enumerate(left) if i not in matched[0]]
        results += [(t, k, joiner(v, None)) for t, k, v in alone]
    if how in ("right", "full"):
        alone = [fact for j, fact in enumerate(right) if j not in matched[1]]
        results += [(t, k, joiner(None, w)) for t, k, w in alone]
    return results


def bag(facts: Iterable[tuple[int, Any, Any]]) -> Counter[tuple[int, Any, str]]:
    """Return facts ``(timestamp, key, value)`` as a multi-set."""
    return Counter((t, k, repr(v)) for t, k, v in facts)


def final(records: Iterable[Emitted]) -> Counter[tuple[int, Any, str]]:
    """Return what a stream, with or without updates, says in the end (definition 70)."""
    return bag((r.timestamp, r.key, r.value) for r in latest(records))


def by_definition_58(changes: Iterable[Emitted]) -> NaiveTable:
    """Apply a changelog, update by update."""
    table = NaiveTable()
    for record in changes:
        change = record.value
        key = change.key if change.window is None else (change.key, change.window)
        table.update(record.timestamp, key, change.value)
    return table


class StreamTime:
    """How far time has come: at a mark, the smallest of what each source has brought."""

    def __init__(self, *sources: str) -> None:
        self._latest: dict[str, int | None] = dict.fromkeys(sources)
        self.now: int | None = None

    def saw(self, source: str, timestamp: int) -> None:
        known = self._latest[source]
        self._latest[source] = timestamp if known is None else max(known, timestamp)

    def mark(self) -> None:
        times = [time for time in self._latest.values() if time is not None]
        if len(times) == len(self._latest):
            self.now = min(times) if self.now is None else max(self.now, min(times))

    def passed(self, end: int, retention: int) -> bool:
        """Return whether `end` lies at or before stream time minus the retention."""
        return self.now is not None and end <= self.now - retention


def per_key(rows: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """Return rows by key, in their order: tasks promise no order between keys."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
