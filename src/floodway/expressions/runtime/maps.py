"""Map helpers."""

from collections.abc import Iterable
from typing import Any

from floodway.expressions.runtime.failures import fail


def make_map(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a map; keys must be there and must differ."""
    result: dict[Any, Any] = {}
    for key, value in pairs:
        if key is None:
            fail("a map cannot have NULL as a key", "use coalesce(key, ...)")
        if key in result:
            fail(f"the key {key!r} occurs twice in a map", "remove one of them before")
        result[key] = value
    return result


def from_arrays(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    """Return a map of keys and values side by side."""
    if len(keys) != len(values):
        fail(f"there are {len(keys)} keys and {len(values)} values", "give one value for each key")
    return make_map(zip(keys, values, strict=True))


def merge(*maps: dict[Any, Any]) -> dict[Any, Any]:
    """Return the entries of all maps."""
    return make_map(pair for each in maps for pair in each.items())


def entries(source: dict[Any, Any], row: Any) -> list[Any]:
    """Return the entries as structs."""
    return [row(key, value) for key, value in source.items()]
