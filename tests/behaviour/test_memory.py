"""When time has passed, kernels have forgotten what nothing can reach any more.

These tests look into kernels, which engines share, and not at an engine.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floodway as fw
from floodway import Flow, Table
from floodway.operators.base import Edge, Kernel
from floodway.operators.history import EvolvingTable
from floodway.operators.materialize import Materialize
from floodway.testing.strategies import cuts, interleavings, skewed, streams

RETENTION = 5
Item = tuple[str, int]
ITEMS = streams(st.tuples(skewed("abc"), st.integers(0, 5)), max_time=40, max_size=10)


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


def windowed_log(flow: Flow) -> Any:
    counts = grouped(flow).window(fw.tumbling(5)).count(versions=True, name="counts")
    return counts.changes(name="op")


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


@pytest.mark.parametrize("case", OF_RECORDS)
@settings(max_examples=100)
@given(data=st.data(), stream=ITEMS)
def test_records(case: str, data: st.DataObject, stream: list[tuple[int, Item]]) -> None:
    kernel, inputs = kernel_of(OF_RECORDS[case], versioned=case == "versions")
    empty = weight(kernel.snapshot())
    ports = 1 if case == "lookup" else inputs
    time = 0
    for push in data.draw(cuts(stream)):
        rows = [(t, item[0], item) for t, item in push]
        kernel.process(data.draw(st.integers(0, ports - 1)), rows)
        time = max([time, *(t for t, _ in push)])
        kernel.advance(time)
    kernel.advance(1000)
    assert weight(kernel.snapshot()) == empty


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("case", OF_CHANGES)
@settings(max_examples=100)
@given(data=st.data(), stream=ITEMS)
def test_deleted_rows(
    case: str, versioned: bool, data: st.DataObject, stream: list[tuple[int, Item]]
) -> None:
    kernel, inputs = kernel_of(OF_CHANGES[case], versioned=versioned)
    empty = weight(kernel.snapshot())
    ports = [1] if case == "lookup" else list(range(inputs))
    sources = {port: EvolvingTable(versioned=versioned) for port in ports}
    updates = [(t, item[0], item) for t, item in stream]
    deletes = [(50, name, None) for name in "abc"]
    turns = data.draw(interleavings(*[updates for _ in ports]))
    turns += [(index, delete) for index in range(len(ports)) for delete in deletes]
    for index, update in turns:
        change = sources[ports[index]].update(*update)
        if change is not None:
            kernel.process(ports[index], [change])
    assert len(stream) == 0 or weight(kernel.snapshot()) > empty or not kernel.remembers
    for time in (*range(60), 1000):  # in small steps: nothing may hide behind a later deletion
        kernel.advance(time)
    for table in sources.values():
        table.forget(1000)
        assert table.size() == 0
    assert weight(kernel.snapshot()) == empty


def test_the_end_of_a_change_is_forgotten_too() -> None:
    table = EvolvingTable(versioned=True)
    table.assign((3, "a", 1, None, 5))  # a row from 3 to 5, and none after
    table.forget(4)
    table.forget(10)
    assert table.size() == 0
