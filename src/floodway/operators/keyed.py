"""Keyed state that knows what has changed, so that an epoch's changes can be stored.

A `Space` is a kernel's state per key. Rows that are used live in memory; whoever keeps the state
may have put others away (`Cold`), and they come back when they are asked for. What was set, deleted
or touched since it was last taken is noted. A `Windowed` has a space for each window, so that a
window is forgotten, and its forgetting noted, at once.

Reading and writing through a space's methods is always right. Code that runs for every record may
use the dictionaries themselves, once per call of ``process``::

    hot, dirty = space.hot, space.dirty
    row = hot.get(key)
    if row is None:
        row = space.fetch(key)
    ...
    hot[key] = dirty[key] = row
"""

import copy
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, Generic, Protocol, Self, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
N = TypeVar("N", bound=Hashable)
D = TypeVar("D")


class Gone:
    """What a deleted row has changed to; there is one, also after it was copied or stored."""

    _only: "Gone | None" = None

    def __new__(cls) -> "Gone":
        """Return the only one."""
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "GONE"


class Everywhere:
    """Stands for the key of rows that every task has."""

    def __repr__(self) -> str:
        return "EVERYWHERE"


GONE: Final = Gone()
EVERYWHERE: Final = Everywhere()


class Cold(Protocol):
    """Rows of a space that are not in memory."""

    def fetch(self, key: Any) -> Any:
        """Return the row of `key` and forget it here; None if there is none."""

    def has(self, key: Any) -> bool:
        """Return whether there is a row of `key`."""

    def remove(self, key: Any) -> bool:
        """Forget the row of `key`; return whether there was one."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Go through keys and rows; nothing else is done meanwhile."""

    def __len__(self) -> int: ...

    def clear(self) -> None:
        """Forget all rows."""


class Space(Generic[K, V]):
    """State per key. A row is anything but None; one that is changed in place must be touched.

    Attributes
    ----------
    hot
        The rows in memory; always the same dictionary.
    cold
        The other rows, if any.
    dirty
        What has changed since it was last taken, each row as it is now or `GONE`.

    Examples
    --------
    >>> space = Space[str, list[int]]()
    >>> space["a"], space["b"] = [1], [2]
    >>> space.take()
    {'a': [1], 'b': [2]}
    >>> space["a"].append(3)
    >>> space.touch("a")
    >>> del space["b"]
    >>> space.take()
    {'a': [1, 3], 'b': GONE}
    """

    __slots__ = ("cold", "dirty", "hot")

    def __init__(self) -> None:
        self.hot: dict[K, V] = {}
        self.dirty: dict[K, V | Gone] = {}
        self.cold: Cold | None = None

    # ------------------------------------------------------------------ reading

    def fetch(self, key: K) -> V | None:
        """Return a row that is not in memory, and have it in memory from now on."""
        if self.cold is None:
            return None
        row: V | None = self.cold.fetch(key)
        if row is not None:
            self.hot[key] = row
        return row

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """Return the row of `key`, or `default`."""
        row = self.hot.get(key)
        if row is None and self.cold is not None:
            row = self.fetch(key)
        return default if row is None else row

    def __getitem__(self, key: K) -> V:
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def __contains__(self, key: K) -> bool:
        return key in self.hot or (self.cold is not None and self.cold.has(key))

    def __len__(self) -> int:
        return len(self.hot) + (0 if self.cold is None else len(self.cold))

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.everything())

    def everything(self) -> Iterator[tuple[K, V]]:
        """Go through all keys and rows; nothing comes into memory for good."""
        yield from self.hot.items()
        if self.cold is not None:
            yield from self.cold.items()

    # ------------------------------------------------------------------ writing

    def __setitem__(self, key: K, row: V) -> None:
        if self.cold is not None and key not in self.hot:
            self.cold.remove(key)
        self.hot[key] = self.dirty[key] = row

    def touch(self, key: K) -> None:
        """Note that a row in memory was changed in place."""
        self.dirty[key] = self.hot[key]

    def setdefault(self, key: K, row: V) -> V:
        """Return the row of `key`, or set it first."""
        found = self.get(key)
        if found is None:
            found = self.hot[key] = self.dirty[key] = row
        return found

    def __delitem__(self, key: K) -> None:
        if self.hot.pop(key, None) is None and (self.cold is None or not self.cold.remove(key)):
            raise KeyError(key)
        self.dirty[key] = GONE

    @overload
    def pop(self, key: K) -> V: ...
    @overload
    def pop(self, key: K, default: D) -> V | D: ...
    def pop(self, key: K, default: Any = GONE) -> Any:
        """Delete and return the row of `key`; if there is none return `default`, if given."""
        row = self.get(key)
        if row is not None:
            del self[key]
            return row
        if default is GONE:
            raise KeyError(key)
        return default

    def clear(self) -> None:
        """Delete all rows."""
        self.dirty.update(dict.fromkeys(self, GONE))
        self.hot.clear()
        if self.cold is not None:
            self.cold.clear()

    # ------------------------------------------------------------------ storing

    def take(self) -> dict[K, V | Gone]:
        """Return what has changed since the last time."""
        taken, self.dirty = self.dirty, {}
        return taken

    def load(self, key: K, row: V) -> None:
        """Put a row that was stored back into memory; nothing has changed by that."""
        if self.cold is not None:
            self.cold.remove(key)
        self.hot[key] = row

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy with all rows in memory, in which nothing has changed yet."""
        other = type(self)()
        for key, row in self.everything():
            other.load(copy.deepcopy(key, memo), copy.deepcopy(row, memo))
        return other

    def __repr__(self) -> str:
        return f"Space({dict(self.everything())!r})"


class Windowed(dict[N, Space[K, V]]):
    """A space for each namespace: the start of a window, or None where there are no windows.

    Attributes
    ----------
    dropped
        The namespaces that were deleted since changes were last taken.
    make_cold
        If set, gives a new space the rows it has outside of memory.

    Examples
    --------
    >>> windows = Windowed[int, str, int]()
    >>> windows.space(0)["a"] = 1
    >>> windows.space(10)["a"] = 2
    >>> del windows[0]
    >>> windows.take()
    ({10: {'a': 2}}, {0})
    """

    __slots__ = ("dropped", "make_cold")

    def __init__(self) -> None:
        super().__init__()
        self.dropped: set[N] = set()
        self.make_cold: Callable[[N], Cold] | None = None

    def space(self, namespace: N) -> Space[K, V]:
        """Return the space of a namespace; make it if there is none."""
        space = self.get(namespace)
        if space is None:
            space = self[namespace] = Space()
            if self.make_cold is not None:
                space.cold = self.make_cold(namespace)
        return space

    def __delitem__(self, namespace: N) -> None:
        space = self[namespace]
        super().__delitem__(namespace)
        self.dropped.add(namespace)
        if space.cold is not None:
            space.cold.clear()

    def pop(self, namespace: N, *default: Any) -> Any:
        """Delete and return a space, with all its rows in memory."""
        space = self.get(namespace)
        if space is None:
            return super().pop(namespace, *default)
        rows = list(space.everything())
        del self[namespace]
        for key, row in rows:
            space.load(key, row)
        return space

    def clear(self) -> None:
        """Delete all namespaces."""
        for namespace in list(self):
            del self[namespace]

    def take(self) -> tuple[dict[N, dict[K, V | Gone]], set[N]]:
        """Return what has changed since the last time, and what was dropped before that.

        A namespace that was dropped and made anew is in both.
        """
        dropped, self.dropped = self.dropped, set()
        changes = {namespace: space.take() for namespace, space in self.items()}
        return {namespace: rows for namespace, rows in changes.items() if rows}, dropped

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy with all rows in memory, in which nothing has changed yet."""
        other = type(self)()
        other.update((namespace, copy.deepcopy(s, memo)) for namespace, s in self.items())
        return other
