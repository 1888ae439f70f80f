"""A bag: values in order, with duplicates, from which single values can be taken out again.

Bags are how min, max, top and collect keep up with values that are replaced later. A bag is a
sorted list of ``(order, tie, value)``, where the tie, a text or more, tells values of the same
order apart; it is never changed in place, because several versions of
a table may share it.
"""

from bisect import bisect_left
from decimal import Decimal
from heapq import merge
from typing import Any

from msgspec import Struct

from floodway.core.types import ArrayType, DataType
from floodway.expressions.runtime.collections import order_key
from floodway.operators.aggregates.identity import identity, is_looked_into

BagItem = tuple[Any, Any, Any]
Bag = list[BagItem]


def order(value: Any) -> Any:
    """Return what to sort a value by, as Spark has it.

    NaN comes after every number; records and arrays compare field by field, null before everything.

    >>> order(2) < order(2.5) < order(float("nan"))
    True
    >>> order([1, None]) < order([1, 2])
    True
    """
    if isinstance(value, int | float | Decimal):
        return (value != value, 0.0 if value != value else value)
    if isinstance(value, Struct | list):
        return order_key(value)
    return value


def layout(data_type: DataType) -> str:
    """Return what tells bags that are in another order than they once were from those."""
    return "arrays in order" if isinstance(data_type, ArrayType) else ""


def single(by: Any, value: Any) -> Bag:
    """Return a bag of one value sorted by `by`; equal ones are told apart by their text."""
    return [(order(by), repr(value), value)]


def single_looked_into(by: Any, value: Any) -> Bag:
    """Return the same of a value whose text need not be the same when it is taken out again.

    >>> single_looked_into(1, {"b": 1, "a": 2}) == single_looked_into(1, {"a": 2, "b": 1})
    True
    """
    return [(order(by), identity(value), value)]


def maker(data_type: DataType) -> str:
    """Return the name of the function that makes a bag of one value of a type."""
    return "single_looked_into" if is_looked_into(data_type) else "single"


def union(a: Bag, b: Bag) -> Bag:
    """Return a bag of all values of both.

    >>> [value for _, _, value in union(single(2, 2), single(1, 1))]
    [1, 2]
    """
    if len(b) == 1:
        index = bisect_left(a, b[0][:2], key=_place)
        return [*a[:index], b[0], *a[index:]]
    return list(merge(a, b, key=_place))


def difference(a: Bag, b: Bag) -> Bag:
    """Return `a` without the values of `b`, each taken out once."""
    rest = list(a)
    for entry in b:
        index = bisect_left(rest, entry[:2], key=_place)
        if index < len(rest) and rest[index][:2] == entry[:2]:
            del rest[index]
    return rest


def values(bag: Bag) -> list[Any]:
    """Return the values in order."""
    return [value for _, _, value in bag]


def _place(entry: BagItem) -> tuple[Any, Any]:
    return entry[:2]
