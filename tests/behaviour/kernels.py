"""Flows of one operator each, its kernel, and how much that holds."""

from collections.abc import Callable
from typing import Any

import floodway as fw
from floodway import Flow, Table
from floodway.operators.base import Edge, Kernel
from floodway.operators.materialize import Materialize

RETENTION = 5
Item = tuple[str, int]


def weight(thing: Any) -> int:
    """Return how many values something holds, all the way down."""
    if isinstance(thing, dict):
        return sum(weight(key) + weight(value) for key, value in thing.items())
    if isinstance(thing, list | tuple | set):
        return sum(map(weight, thing))
    slots = [getattr(thing, name) for name in getattr(type(thing), "__slots__", ())]
    own = list(getattr(thing, "__dict__", {}).values())
    return weight(slots + own) if slots or own else 1


def key(item: Item) -> str:
    return item[0]


def grouped(flow: Flow) -> Any:
    return flow.source("in", schema=tuple).group_by(key)


def deduplicated(flow: Flow, **options: Any) -> Any:
    return flow.source("in", schema=tuple).deduplicate(key, ttl=4, name="op", **options)


def joined(flow: Flow, **options: Any) -> Any:
    left, right = flow.source("in", schema=tuple), flow.source("other", schema=tuple)
    return left.key_by(key).join(
        right.key_by(key), within=3, joiner=lambda a, b: (a, b), schema=tuple, **options
    )


def tables(flow: Flow, versions: bool = True) -> Any:
    return [flow.table(n, schema=tuple, key=str, versions=versions) for n in ("left", "right")]


def looked_up(flow: Flow) -> Any:
    orders = flow.source("in", schema=tuple)
    return orders.join(tables(flow)[1], on=key, joiner=lambda a, b: b, name="op")


# Fed with records, or with changes of a table that ends with its rows deleted.
OF_RECORDS: dict[str, Callable[[Flow], Any]] = {
    "tumbling": lambda f: grouped(f).window(fw.tumbling(5)).count(name="op"),
    "versions": lambda f: grouped(f).window(fw.hopping(6, advance=4)).count(name="op"),
    "session": lambda f: grouped(f).window(fw.session(5)).count(name="op"),
    "window_process": lambda f: (
        grouped(f)
        .window(fw.tumbling(5))
        .process(
            init=lambda k, w: 0,
            update=lambda t, k, w, v, s: s + 1,
            finalize=lambda k, w, s: [],
            name="op",
        )
    ),
    "first": lambda f: deduplicated(f, keep="first"),
    "last": lambda f: deduplicated(f, keep="last"),
    "inner": lambda f: joined(f, name="op"),
    "lazy": lambda f: joined(f, how="full", emit="lazy", name="op"),
    "eager": lambda f: joined(f, how="full", emit="eager", name="op"),
    "lookup": looked_up,
}
OF_CHANGES: dict[str, Callable[[Flow], Any]] = {
    "lookup": looked_up,
    "by_key": lambda f: tables(f)[0].join(tables_of(f)[1], joiner=pair, name="op"),
    "foreign": lambda f: tables(f)[0].join(tables_of(f)[1], on=key, joiner=pair, name="op"),
    "group": lambda f: tables(f)[0].group_by(key).collect(lambda row: row[1], name="op"),
    "log": lambda f: tables(f)[0].changes(name="op"),
}


def pair(a: Any, b: Any) -> Any:
    return (a, b)


def tables_of(flow: Flow) -> Any:
    return [
        Table(flow, Edge(op), retention=op.retention_ms)
        for op in flow.operators
        if isinstance(op, Materialize)
    ]


def kernel_of(write: Callable[[Flow], Any], *, versioned: bool) -> tuple[Kernel, int]:
    flow = Flow("memory", retention=RETENTION)
    write(flow)
    operator = next(op for op in flow.operators if op.name == "op")
    outputs: dict[str, list[Any]] = {port: [] for port in operator.outputs}
    return operator.kernel(outputs, versioned=versioned), len(operator.inputs)
