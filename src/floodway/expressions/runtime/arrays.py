"""Array helpers. Elements are equal and ordered as Spark has it: see `.collections`."""

from typing import Any

from floodway.expressions.runtime.collections import hash_key, order_key
from floodway.expressions.runtime.failures import LONGEST_ARRAY, fail, fitting, out_of_bounds
from floodway.expressions.runtime.strings import joined


def array_item(array: list[Any], index: int, text: str) -> Any:
    """Return the element at an index from 0."""
    if 0 <= index < len(array):
        return array[index]
    out_of_bounds(index, len(array), text)


def item_or_null(array: list[Any], index: int) -> Any:
    """Return the element at an index from 0, or None."""
    return array[index] if 0 <= index < len(array) else None


def element_at(array: list[Any], position: int, text: str) -> Any:
    """Return the element at a position from 1, or from the end."""
    if position == 0:
        fail(f"position 0 in {text} does not exist", "count positions from 1, or -1 from the end")
    index = position - 1 if position > 0 else len(array) + position
    if 0 <= index < len(array):
        return array[index]
    out_of_bounds(position, len(array), text)


def element_or_null(array: list[Any], position: int) -> Any:
    """Return the element at a position from 1, or from the end, or None."""
    if position == 0:
        fail("position 0 does not exist", "count positions from 1, or -1 from the end")
    index = position - 1 if position > 0 else len(array) + position
    return array[index] if 0 <= index < len(array) else None


def contains(array: list[Any], value: Any) -> bool | None:
    """Whether a value is an element; unknown if a null might be it."""
    wanted = hash_key(value)
    unknown = False
    for item in array:
        if item is None:
            unknown = True
        elif hash_key(item) == wanted:
            return True
    return None if unknown else False


def position_of(array: list[Any], value: Any) -> int:
    """Return the first position of a value, or 0."""
    wanted = hash_key(value)
    for i, item in enumerate(array, 1):
        if item is not None and hash_key(item) == wanted:
            return i
    return 0


def without(array: list[Any], value: Any) -> list[Any]:
    """Return the other elements."""
    wanted = hash_key(value)
    return [item for item in array if item is None or hash_key(item) != wanted]


def distinct(array: list[Any]) -> list[Any]:
    """Return each element once, the first time it occurs."""
    seen: dict[Any, Any] = {}
    for item in array:
        # As in Spark, a negative zero comes out as zero.
        seen.setdefault(hash_key(item), item + 0.0 if isinstance(item, float) else item)
    return list(seen.values())


def union(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the elements of both, each once."""
    return distinct([*left, *right])


def intersection(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the elements that are in both, each once."""
    others = {hash_key(item) for item in right}
    return [item for item in distinct(left) if hash_key(item) in others]


def difference(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the elements of the first only, each once."""
    others = {hash_key(item) for item in right}
    return [item for item in distinct(left) if hash_key(item) not in others]


def overlap(left: list[Any], right: list[Any]) -> bool | None:
    """Whether an element is shared; unknown if a null might be one."""
    one = {hash_key(item) for item in left if item is not None}
    if any(item is not None and hash_key(item) in one for item in right):
        return True
    # A null can only be a shared element if the other side has one at all.
    unknown = left and right and (None in left or None in right)
    return None if unknown else False


def join(array: list[str | None], separator: str, null: str | None = None) -> str:
    """Return the elements as one text."""
    if null is None:
        return joined([item for item in array if item is not None], separator, "array_join")
    return joined([null if item is None else item for item in array], separator, "array_join")


def largest(array: list[Any]) -> Any:
    """Return the greatest element that is not None."""
    return max((item for item in array if item is not None), key=order_key, default=None)


def smallest(array: list[Any]) -> Any:
    """Return the least element that is not None."""
    return min((item for item in array if item is not None), key=order_key, default=None)


def sort_nulls_small(array: list[Any], ascending: bool = True) -> list[Any]:  # noqa: FBT001, FBT002
    """Return the array in order, with nulls as the least."""
    return sorted(array, key=order_key, reverse=not ascending)


def sort_nulls_last(array: list[Any]) -> list[Any]:
    """Return the array in ascending order, with nulls at the end."""
    present = sorted((item for item in array if item is not None), key=order_key)
    return present + [None] * (len(array) - len(present))


def part(array: list[Any], start: int, length: int) -> list[Any]:
    """Return a part of an array."""
    if start == 0 or length < 0:
        fail(
            f"slice cannot start at {start} with length {length}",
            "count positions from 1, or from -1 at the end, and use a length of 0 or more",
        )
    index = start - 1 if start > 0 else len(array) + start
    return array[index : index + length] if index >= 0 else []


def flatten(array: list[list[Any] | None]) -> list[Any] | None:
    """Return the elements of the elements; None if one of those is missing."""
    result: list[Any] = []
    for inner in array:
        if inner is None:
            return None
        fitting(len(result) + len(inner), LONGEST_ARRAY, "flatten")
        result += inner
    return result


def repeated(times: int) -> int:
    """Return how often an element is to be repeated, if that is not too often."""
    return fitting(times, LONGEST_ARRAY, "array_repeat")


def sequence(start: int, stop: int, step: int | None = None) -> list[int]:
    """Return the integers from start to stop."""
    if step is None:
        step = 1 if stop >= start else -1
    if (step == 0 and start != stop) or (stop > start and step < 0) or (stop < start and step > 0):
        fail(f"sequence cannot go from {start} to {stop} in steps of {step}", "turn the step round")
    if step == 0:
        return [start]
    fitting(abs((stop - start) // step) + 1, LONGEST_ARRAY, f"sequence from {start} to {stop}")
    return list(range(start, stop + (1 if step > 0 else -1), step))
