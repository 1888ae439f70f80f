"""State as bytes: comes back as it was, and bytes can do nothing else."""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import gc
import os
import pickle
import threading
import time
import zlib
from contextlib import suppress
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Record
from floodway.core.errors import CorruptError, OperatorError
from floodway.engine.state import pickling as module
from floodway.engine.state.pickling import Pickling
from floodway.operators.aggregate_session import Open
from floodway.operators.aggregate_versions import Entry
from floodway.operators.base import row_classes
from floodway.operators.keyed import GONE
from floodway.operators.stream_join import Waiting
from tests.engine.transport.values import VALUES, Named, Point, Stranger, same

PICKLING = Pickling([Point, Named])


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Boxed:
    value: int


def there_and_back(value: Any) -> Any:
    return PICKLING.loads(PICKLING.dumps(value))


def checked(data: bytes) -> bytes:
    """Return bytes with a check sum that matches, as somebody with bad intentions would."""
    return zlib.crc32(data).to_bytes(4, "little") + data


# ------------------------------------------------------------------ there and back


@settings(max_examples=200)
@given(VALUES)
def test_value_comes_back_as_it_was(value: Any) -> None:
    assert same(there_and_back(value), value)
    assert same(PICKLING.unpack(PICKLING.packer()(value)), value)


@settings(max_examples=50)
@given(st.lists(VALUES, max_size=5))
def test_one_packer_packs_many_values(values: list[Any]) -> None:
    pack = PICKLING.packer()
    packed = [pack(value) for value in values]
    assert all(same(PICKLING.unpack(data), v) for data, v in zip(packed, values, strict=True))


def test_large_values_are_packed_whole() -> None:
    pack = PICKLING.packer()
    value = [b"x" * 200_000, "y" * 200_000, list(range(100_000))]
    assert PICKLING.unpack(pack(value)) == value


def test_a_row_that_is_gone_stays_the_only_one() -> None:
    back = there_and_back({1: GONE, 2: GONE, 3: "here"})
    assert back[1] is GONE
    assert back[2] is GONE


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")),
        dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC),
        dt.time(12, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        bytearray(b"bytes"),
        decimal.Decimal("1E+1000"),
    ],
)
def test_dates_and_the_like_come_back(value: Any) -> None:
    assert same(there_and_back(value), value)


def test_the_kernels_own_classes_come_back() -> None:
    waiting = Waiting(3, (1, "k", Point(1)))
    waiting.matched, waiting.alone = True, (1, "k", None)
    for value in [Entry(1, 2, 3, [4], Point(5)), waiting, Open(1, 2, (3,), 4)]:
        back = there_and_back([value])[0]
        assert type(back) is type(value)
        for slot in value.__slots__:
            assert getattr(back, slot) == getattr(value, slot)


def test_what_was_read_goes_when_nobody_needs_it_any_more() -> None:
    waiting = Waiting(3, (1, "k", Point(1)))
    data = PICKLING.dumps([Point(1), waiting, GONE, ZoneInfo("Europe/Rome")])
    packed = PICKLING.packer()(waiting)
    gc.collect()
    gc.disable()
    try:
        PICKLING.loads(data)
        PICKLING.unpack(packed)
        assert gc.collect() == 0  # nothing was left for the collector
    finally:
        gc.enable()


def test_records_of_two_classes_with_one_name_are_told_apart() -> None:
    first = type("Aggregates", (Record,), {"__annotations__": {"a": int}})
    second = type("Aggregates", (Record,), {"__annotations__": {"b": int}})
    pickling = Pickling([first, second])
    back = pickling.loads(pickling.dumps([first(1), second(2)]))
    assert [type(record) for record in back] == [first, second]


def test_a_flow_with_more_record_classes_reads_what_it_wrote_before() -> None:
    data = Pickling([Point]).dumps([Point(1, 2)])
    assert Pickling([Stranger, Named, Point]).loads(data) == [Point(1, 2)]


def test_records_whose_fields_have_changed_are_refused() -> None:
    other = type("Point", (Record,), {"__annotations__": {"x": Any, "z": Any}})
    with pytest.raises(CorruptError, match="a Point has x, z there, and x, y here"):
        PICKLING.loads(Pickling([other]).dumps(other(1, 2)))


def test_many_rows_take_little_time() -> None:
    rows = {number: (number * 1000, number, number + 5) for number in range(100_000)}
    taken = []
    for _ in range(3):
        start = time.thread_time()
        PICKLING.dumps(rows)
        taken.append(time.thread_time() - start)
    assert min(taken) < 0.1  # about 0.013


# ------------------------------------------------------------------ what was stored before

STORED = bytes.fromhex(
    "d04a142280059501010000000000005d94288c1e666c6f6f647761792e656e67696e652e73746174652e7069"
    "636b6c696e67948c045f6f776e9493948c05456e74727994288c0468657265948c077061727469616c948c09"
    "74696d657374616d70948c05746f74616c948c0576616c756594749486945294284b014b074b034b024b0774"
    "94529468038c044f70656e94288c046c6173749468068c057374617274946809749486945294284b054b024b"
    "014b027494529468038c0757616974696e6794288c05616c6f6e65948c0466616374948c076d617463686564"
    "948c066f666673657494749486945294284e4b098c0161944b018794894b047494529468018c055f676f6e65"
    "949394295294652e"
)
"""Rows of every class that kernels have of their own, as they were first stored."""


def test_rows_that_were_stored_before_are_read() -> None:
    rows = [Entry(3, 1, 2, 7, 7), Open(1, 5, 2, 2), Waiting(4, (9, "a", 1)), GONE]
    assert Pickling([]).dumps(rows) == STORED
    assert Pickling([]).dumps(PICKLING.loads(STORED)) == STORED


def test_classes_of_rows_keep_their_names() -> None:
    """State has them. A name may be added; one that goes takes the state of somebody along."""
    assert row_classes() == {"Entry": Entry, "Open": Open, "Waiting": Waiting}


# ------------------------------------------------------------------ what is refused when written


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        Stranger(1),
        Colour.RED,
        Boxed(1),
        object(),
        print,
        lambda: 1,
        1j,
        range(3),
        dict,
        Point,
        os,
        collections.Counter("ab"),
        collections.OrderedDict(a=1),
        (item for item in ()),
    ],
)
def test_what_is_not_plain_data_is_refused(value: Any) -> None:
    for dump in (PICKLING.dumps, PICKLING.packer()):
        with pytest.raises(OperatorError, match="not plain data") as raised:
            dump({"key": [value]})
        assert "state must be plain data" in raised.value.remedy


def test_state_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(OperatorError, match="nested too deeply"):
        PICKLING.dumps(deep())


def test_a_packer_goes_on_after_it_has_refused_something() -> None:
    pack = PICKLING.packer()
    with pytest.raises(OperatorError):
        pack([1, 2, object()])
    assert PICKLING.unpack(pack((1, [2]))) == (1, [2])


# ------------------------------------------------------------------ what is refused when read


class Calling:
    """Pickled by pickle itself as a call of some function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (os.system, ("true",)),
        (eval, ("1 + 1",)),
        (exec, ("pass",)),
        (getattr, (1, "real")),
        (__import__, ("os",)),
        (open, ("/dev/null",)),
        (Boxed, (1,)),
        (Stranger, (1,)),
        (Point, (1, 2)),
        (collections.Counter, ("ab",)),
        (Entry, (1, 2, 3, 4, 5)),
        (pickle.loads, (b"N.",)),
        (bytearray, (1,)),
        (type, (1,)),
    ],
)
def test_bytes_that_name_something_else_are_refused(function: Any, arguments: Any) -> None:
    data = checked(pickle.dumps([Calling(function, *arguments)], 5))
    with pytest.raises(CorruptError, match="which is no part of any state"):
        PICKLING.loads(data)


@pytest.mark.parametrize("name", ["Pickling", "zlib", "__doc__", "GONE", "row_classes", "io.open"])
def test_bytes_reach_nothing_else_in_the_module(name: str) -> None:
    data = b"\x80\x04\x8c" + bytes([len(module.__name__)]) + module.__name__.encode()
    data += b"\x8c" + bytes([len(name)]) + name.encode() + b"\x93."
    with pytest.raises(CorruptError, match="which is no part of any state"):
        PICKLING.loads(checked(data))


def token(name: str, *arguments: Any) -> bytes:
    """Return the pickle of a call of one of the functions that bytes may name, without its end."""
    text = module.__name__
    data = b"\x80\x04\x8c" + bytes([len(text)]) + text.encode()
    data += b"\x8c" + bytes([len(name)]) + name.encode() + b"\x93"
    return data + pickle.dumps(arguments, 4)[2:-1] + b"R"


@pytest.mark.parametrize(
    "made", [token("_record", "Point", ("x", "y")), token("_own", "Entry", Entry.__slots__)]
)
def test_bytes_cannot_change_a_class(made: bytes) -> None:
    state = pickle.dumps((None, {"__eq__": 1, "value": 2}), 4)[2:-1]
    with pytest.raises(CorruptError, match=r"AttributeError|TypeError"):
        PICKLING.loads(checked(made + state + b"b."))
    assert Point(1) == Point(1)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (token("_record", "Stranger", ("x",)), "which the flow does not have"),
        (token("_record", "Point", ("x",)), "a Point has x there"),
        (token("_own", "Keeper", ()), "a Keeper, which is no part"),
        (token("_own", "Entry", ("value",)), "an? Entry has value there"),
        (token("_record", 1, 2), "which the flow does not have"),
        (token("_zone", "../../etc/passwd"), "ValueError"),
        (token("_zone", "Nowhere"), "ZoneInfoNotFoundError"),
        (token("_gone", 1), "TypeError"),
    ],
)
def test_bytes_that_ask_for_something_odd_are_refused(made: bytes, why: str) -> None:
    with pytest.raises(CorruptError, match=why):
        PICKLING.loads(checked(made + b"."))


@pytest.mark.parametrize("data", [b"P0\n.", b"(I1\n0Q.", b"\x80\x04\x82\x01.", b"", b"\x80\xff."])
def test_references_to_elsewhere_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptError):
        PICKLING.loads(checked(data))


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptError):
        PICKLING.loads(data)


@settings(max_examples=200)
@given(VALUES, st.data())
def test_bytes_that_end_too_early_are_refused(value: Any, data: st.DataObject) -> None:
    whole = PICKLING.dumps(value)
    with pytest.raises(CorruptError):
        PICKLING.loads(whole[: data.draw(st.integers(0, len(whole) - 1))])


@settings(max_examples=200)
@given(VALUES, st.data())
def test_flipped_bits_are_noticed(value: Any, data: st.DataObject) -> None:
    damaged = bytearray(PICKLING.dumps(value))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptError):
        PICKLING.loads(bytes(damaged))


@settings(max_examples=300)
@given(VALUES, st.data())
def test_flipped_bits_with_a_matching_check_sum_are_a_value_or_refused(
    value: Any, data: st.DataObject
) -> None:
    damaged = bytearray(PICKLING.dumps(value)[4:])
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    if b"r" in damaged or b"\x8e" in damaged or b"\x8b" in damaged:
        return  # lengths of four and eight bytes, for which pickle would ask for much memory
    with suppress(CorruptError):
        PICKLING.loads(checked(bytes(damaged)))


# --------------------------------------------------------------------- for this run alone


class Tally:
    """A class that nobody knows but the user's function."""

    def __init__(self, seen: dict[str, int]) -> None:
        self.seen = seen


ANYTHING = [
    Tally({"a": 1}),
    collections.deque([1, 2], maxlen=3),
    collections.Counter("abba"),
    enum.Enum("Colour", "RED GREEN").RED,  # type: ignore[attr-defined]
    lambda number: number + 1,
]


@pytest.mark.parametrize("value", ANYTHING, ids=lambda value: type(value).__name__)
def test_what_only_this_run_reads_may_be_anything(value: Any) -> None:
    trusting = Pickling([], trusted=True)
    (found, number) = trusting.loads(trusting.dumps((value, 7)))
    assert (type(found).__name__, number) == (type(value).__name__, 7)
    packed = trusting.unpack(trusting.packer()([value]))
    assert type(packed[0]).__name__ == type(value).__name__


@pytest.mark.parametrize("value", ANYTHING, ids=lambda value: type(value).__name__)
def test_checkpoint_calls_nothing_that_such_bytes_say(value: Any) -> None:
    with pytest.raises(CorruptError, match="nobody vouches for it"):
        Pickling([]).loads(Pickling([], trusted=True).dumps(value))


def test_what_cannot_be_pickled_at_all_has_a_way_out() -> None:
    with pytest.raises(OperatorError, match="cannot pickle") as caught:
        Pickling([], trusted=True).dumps(threading.Lock())
    assert "--no-recovery" in caught.value.remedy
