"""Commit records: what goes in comes out, or is refused."""

import datetime as dt
import decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import CorruptError, EngineError
from floodway.engine.checkpoint.records import (
    VERSION,
    CommitRecord,
    FlowShape,
    OperatorShape,
    SinkRecord,
    StageShape,
    TaskRecord,
    decode,
    encode,
)
from floodway.engine.checkpoint.vault import FileRef
from tests.engine.checkpoint.making import make_record, make_task

integers = st.integers(-(2**63), 2**64 - 1)
scalars = st.none() | st.booleans() | integers | st.floats(allow_nan=False) | st.text()
keys = st.text() | integers | st.binary()
plain = st.recursive(
    scalars | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
names = st.text("abcdefgh_0123456789", min_size=1, max_size=8)
refs = st.builds(FileRef, names, st.integers(0, 2**40), st.binary(min_size=16, max_size=16))
epochs = st.integers(0, 10**12)
sinks = st.builds(SinkRecord, token=plain, logs=st.lists(st.tuples(epochs, refs), max_size=3))
tasks = st.builds(
    TaskRecord,
    stage=names,
    index=st.integers(0, 200),
    files=st.lists(refs, max_size=4),
    positions=st.dictionaries(names, plain, max_size=3),
    sinks=st.dictionaries(names, sinks, max_size=2),
    progress=plain,
    ended=st.booleans(),
)
shapes = st.builds(
    FlowShape,
    stages=st.lists(st.builds(StageShape, names, st.integers(1, 9), st.lists(names, max_size=3))),
    operators=st.lists(
        st.builds(
            OperatorShape,
            name=names,
            label=names,
            role=st.sampled_from(["source", "sink", "operator"]),
            numbered=st.booleans(),
            state=st.none() | st.dictionaries(names, names, max_size=3),
            retention=st.none() | names,
            connector=st.none() | names,
            delivery=st.none() | names,
        ),
        max_size=4,
    ),
    key_groups=st.integers(1, 32_768),
)
records = st.builds(
    CommitRecord,
    version=st.just(VERSION),
    flow=names,
    shape=shapes,
    epoch=epochs,
    attempt=st.integers(0, 1000),
    stream_time=st.none() | st.integers(-(2**62), 2**62),
    clock_ms=epochs,
    finished=st.booleans(),
    tasks=st.lists(tasks, max_size=4),
)


@given(record=records)
def test_record_comes_back_as_it_was_written(record: CommitRecord) -> None:
    data = encode(record)
    again = decode(data)
    assert again == record
    assert encode(again) == data


def test_integer_keys_stay_integers_and_tuples_become_lists() -> None:
    record = make_record(1, [make_task([])])
    record.tasks[0].positions["kafka"] = {0: 17, 1: (3, b"x"), ("a", 0): None}
    position = decode(encode(record)).tasks[0].positions["kafka"]
    assert position == {0: 17, 1: [3, b"x"], ("a", 0): None}


def test_record_names_the_files_of_state_and_of_sinks() -> None:
    one, two, three = (FileRef(name, 1, b"") for name in ("one", "two", "three"))
    sink = SinkRecord(None, [(3, two), (4, three)])
    record = make_record(4, [make_task([one], sinks={"report": sink}), make_task([])])
    assert list(record.files) == [one, two, three]


class Own(msgspec.Struct):
    value: int


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 1, 1),
        decimal.Decimal(1),
        {1, 2},
        2**64,
        -(2**63) - 1,
        Own(1),
        bytearray(b"x"),
        [{"deep": {"down": (1, dt.date(2026, 1, 1))}}],
        {(1, dt.date(2026, 1, 1)): 1},
    ],
)
@pytest.mark.parametrize("where", ["position", "token", "progress"])
def test_what_would_come_back_as_something_else_is_refused(where: str, value: Any) -> None:
    task = make_task([], sinks={"report": SinkRecord(None, [])})
    match where:
        case "position":
            task.positions["events"] = value
        case "token":
            task.sinks["report"].token = value
        case _:
            task.progress = value
    with pytest.raises(EngineError, match=f"the {where} of .* cannot be kept") as caught:
        encode(make_record(1, [task]))
    assert "task 0 of the stage counts" in caught.value.problem
    assert "bytes, list and dict" in caught.value.remedy


def test_text_that_is_no_text_is_refused() -> None:
    task = make_task([])
    task.positions["files"] = {"caf\udce9.csv": 3}
    with pytest.raises(EngineError, match="not valid text"):
        encode(make_record(1, [task]))


def test_record_of_a_newer_version_is_refused_and_not_called_damaged() -> None:
    newer = msgspec.msgpack.encode({"version": VERSION + 1, "all": "different"})
    with pytest.raises(EngineError, match=f"record 7 is .* version {VERSION + 1}") as caught:
        decode(newer, name="record 7")
    assert not isinstance(caught.value, CorruptError)
    assert "newer" in caught.value.remedy


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([1, 2]),
        msgspec.msgpack.encode({"version": "1"}),
        msgspec.msgpack.encode({"version": VERSION}),
        msgspec.msgpack.encode({**msgspec.to_builtins(make_record(1)), "epoch": "1"}),
    ],
)
def test_what_is_no_record_is_called_damaged(data: bytes) -> None:
    with pytest.raises(CorruptError, match="record 7"):
        decode(data, name="record 7")
