"""When time has passed, kernels have forgotten what nothing can reach any more.

These tests look into kernels, which engines share, and not at an engine.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.operators.history import EvolvingTable
from floodway.testing.strategies import cuts, interleavings, skewed, streams
from tests.behaviour.kernels import OF_CHANGES, OF_RECORDS, Item, kernel_of, weight

ITEMS = streams(st.tuples(skewed("abc"), st.integers(0, 5)), max_time=40, max_size=10)


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
