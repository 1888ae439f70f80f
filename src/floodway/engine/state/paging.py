"""Which rows stay in memory: those that are used most.

A key's use count is the number of epochs in which its row was changed or fetched, halved now and
then so that the past is forgotten ("frequency-based paging", as in Incremental Hadoop). Counts are
only kept under pressure: as long as the state fits into its budget, nothing is counted at all.

Rows are put aside between two epochs, when nothing is dirty, and many at a time. So within an epoch
memory grows by what the epoch touches.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import ceil
from typing import Any, NamedTuple

from floodway.engine.state.cold import ColdRows, ColdStore
from floodway.engine.state.delta import StoredRows
from floodway.engine.state.exact import has_nan
from floodway.engine.state.holding import AnySpace, Holding

ROOM = 0.1
"""Under pressure, this share of the budget is made free."""

HALVE_EVERY = 8
"""After so many rounds under pressure use counts are halved."""


class Victims(NamedTuple):
    """Rows that are to be put aside, and where they are now."""

    holding: Holding
    namespace: Any
    space: AnySpace
    rows: StoredRows


class Paging:
    """Keeps the rows of several holdings within a budget."""

    def __init__(self, holdings: list[Holding], store: ColdStore, budget: int | None) -> None:
        self._holdings = holdings
        self._store = store
        self._budget = budget
        self._recent: dict[Holding, dict[Any, StoredRows]] = {}
        self._pressed = False
        self._rounds = 0
        self._loaded_bytes = 0.0

    @property
    def hot_bytes(self) -> int:
        """About how many bytes the rows in memory need, and counting their use."""
        return int(sum(holding.hot_bytes for holding in self._holdings))

    def changed(self, holding: Holding, changed: dict[Any, StoredRows]) -> None:
        """Take note of what has changed in an epoch."""
        for rows in changed.values():
            holding.scale.show(rows)
        if self._budget is not None:
            self._recent[holding] = changed

    def load(self, holding: Holding, namespace: Any, rows: StoredRows) -> None:
        """Put rows that were stored into memory or, if that is full, aside."""
        space = holding.space(namespace)
        holding.scale.show(rows)
        if self._budget is None:
            space.hot.update(rows)
            return
        room = self._budget * (1 - ROOM) - self._loaded_bytes
        left = iter(rows.items())
        space.hot.update(islice(left, max(int(room / holding.scale.row_bytes), 0)))
        aside: StoredRows = {}
        for key, row in left:
            (space.hot if has_nan(key) else aside)[key] = row
        self._loaded_bytes += (len(rows) - len(aside)) * holding.scale.row_bytes
        self._put_aside([Victims(holding, namespace, space, aside)])

    # ------------------------------------------------------------------ between epochs

    def relieve(self) -> None:
        """Put rows aside if those in memory are too many."""
        if self._budget is None:
            return
        self._pressed = self._pressed or self.hot_bytes > self._budget
        if self._pressed:
            self._count_uses()
        self._recent.clear()
        excess = self.hot_bytes - self._budget
        if excess > 0:
            self._put_aside(self._choose(excess + self._budget * ROOM))
        elif self._store.pending:
            self._store.write(())
        else:
            self._store.clear_up()
        if not self._store.rows and excess < -self._budget // 2:
            self._calm_down()

    def _calm_down(self) -> None:
        self._pressed, self._rounds = False, 0
        for holding in self._holdings:
            holding.uses.clear()

    def _count_uses(self) -> None:
        self._rounds += 1
        for holding in self._holdings:
            holding.forget_uses()
            if self._rounds % HALVE_EVERY == 0:
                holding.halve_uses()
            for namespace, space in holding.spaces():
                rows = self._recent.get(holding, {}).get(namespace, {})
                if isinstance(space.cold, ColdRows) and space.cold.used:
                    self._fetched(holding.uses_of(namespace), space.cold, rows)
                holding.changed(namespace, rows)

    def _fetched(self, uses: Counter[Any], cold: ColdRows, changed: StoredRows) -> None:
        """Go on counting for rows that were fetched; one that was changed, too, is counted there.

        What was used often before it was put aside is not as good as new when it comes back.
        """
        for key, (count, age) in cold.used:
            uses[key] += (count >> (self._age - age)) + (key not in changed)
        cold.used.clear()

    @property
    def _age(self) -> int:
        """How often counts have been halved."""
        return self._rounds // HALVE_EVERY

    def _choose(self, wanted: float) -> list[Victims]:
        """Return the rows that are used least and weigh `wanted` bytes together."""
        weights: Counter[int] = Counter()
        for holding in self._holdings:
            for namespace, space in holding.spaces():
                for count, rows in Counter(map(holding.uses_of(namespace).get, space.hot)).items():
                    weights[count or 0] += int(rows * holding.row_bytes(count))
        level, share = _cut(weights, wanted)
        return [
            Victims(holding, namespace, space, _least_used(holding, namespace, space, level, share))
            for holding in self._holdings
            for namespace, space in holding.spaces()
        ]

    def _put_aside(self, chosen: list[Victims]) -> None:
        """Write rows to the store, and forget them when that has worked."""
        chosen = [victims for victims in chosen if victims.rows]
        if not chosen:
            return
        self._pressed = True
        colds = [
            v.space.cold if isinstance(v.space.cold, ColdRows) else ColdRows(self._store)
            for v in chosen
        ]
        self._store.write(self._packed(chosen, colds))
        for victims, cold in zip(chosen, colds, strict=True):
            victims.space.cold = cold
            cold.added(len(victims.rows))
            _remove(victims.space.hot, victims.rows)
            _remove(victims.holding.uses_of(victims.namespace), victims.rows)

    def _packed(
        self, chosen: list[Victims], colds: list[ColdRows]
    ) -> Iterator[tuple[bytes, bytes]]:
        age = self._age
        for victims, cold in zip(chosen, colds, strict=True):
            get = victims.holding.uses_of(victims.namespace).get
            with victims.holding.naming():
                yield from cold.packed(
                    (key, row, (get(key) or 0, age)) for key, row in victims.rows.items()
                )


def _cut(weights: Counter[int], wanted: float) -> tuple[int, float]:
    """Return up to which use count rows must go, and which share of those that have this count."""
    level = 0
    for level in sorted(weights):
        if weights[level] >= wanted:
            return level, wanted / weights[level]
        wanted -= weights[level]
    return level, 1.0


def _least_used(
    holding: Holding, namespace: Any, space: AnySpace, level: int, share: float
) -> StoredRows:
    """Return rows used less than `level`, and a share of those used so often, the oldest first."""
    hot, dirty, get = space.hot, space.dirty, holding.uses_of(namespace).get
    below = [key for key in hot if (get(key) or 0) < level]
    at = [key for key in hot if (get(key) or 0) == level]
    chosen = below + at[: ceil(len(at) * share)]
    # A key that is not equal to itself would not be found again; a dirty row is not stored yet.
    return {key: hot[key] for key in chosen if key not in dirty and not has_nan(key)}


def _remove(entries: dict[Any, Any], keys: StoredRows) -> None:
    for key in keys:
        entries.pop(key, None)
    if len(keys) > len(entries):
        # A dictionary keeps the room that it has once needed, until it is filled again.
        rest = dict(entries)
        entries.clear()
        entries.update(rest)
