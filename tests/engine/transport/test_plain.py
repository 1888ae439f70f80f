"""Plain data: values of which no type is known come back as they were, and nothing else does."""

import decimal
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway.engine.transport.plain import Plain
from tests.engine.transport.values import VALUES, Named, Point, Stranger, same

PLAIN = Plain([Point, Named])


def there_and_back(value: Any) -> Any:
    return PLAIN.unpack(msgspec.msgpack.encode(PLAIN.pack(value)))


@settings(max_examples=200)
@given(VALUES)
def test_value_comes_back_as_it_was(value: Any) -> None:
    assert same(there_and_back(value), value)


def test_not_a_number_comes_back() -> None:
    assert there_and_back(float("nan")) != there_and_back(float("nan"))
    assert there_and_back(decimal.Decimal("NaN")).is_nan()


def test_record_with_keyword_only_fields_comes_back() -> None:
    assert there_and_back(Named(first=(1,), second={2})) == Named(first=(1,), second={2})


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        PLAIN.unpack(data)


@settings(max_examples=300)
@given(st.integers(-128, 127), VALUES.map(PLAIN.pack), st.data())
def test_any_extension_is_a_value_or_a_value_error(
    code: int, content: Any, data: st.DataObject
) -> None:
    raw = data.draw(st.one_of(st.binary(max_size=12), st.just(msgspec.msgpack.encode(content))))
    with suppress(ValueError):
        PLAIN.unpack(msgspec.msgpack.encode([msgspec.msgpack.Ext(code, raw)]))


@settings(max_examples=200)
@given(VALUES, st.data())
def test_flipped_bits_are_a_value_or_a_value_error(value: Any, data: st.DataObject) -> None:
    raw = bytearray(msgspec.msgpack.encode(PLAIN.pack(value)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with suppress(ValueError):
        PLAIN.unpack(bytes(raw))


@pytest.mark.parametrize("value", [Stranger(1), [Stranger(1)], object(), {1: print}, 1j])
def test_type_that_nobody_knows_is_not_packed(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot travel"):
        PLAIN.pack(value)


@pytest.mark.parametrize("content", [[], [2, 1], [-1, 1], [True, 1, 2], ["Point", 1, 2], [0, 1], 5])
def test_record_of_an_unknown_class_or_shape_is_not_unpacked(content: Any) -> None:
    extension = msgspec.msgpack.Ext(4, msgspec.msgpack.encode(content))
    with pytest.raises(ValueError, match=r"record|fields|sequence"):
        PLAIN.unpack(msgspec.msgpack.encode(extension))


@pytest.mark.parametrize("deep", [b"\x91" * 200_000 + b"\x01", b"\x81\x01" * 100_000 + b"\x01"])
def test_bytes_that_nest_deeply_do_no_harm(deep: bytes) -> None:
    with pytest.raises(ValueError, match="not plain data"):
        PLAIN.unpack(deep)


def test_extensions_that_nest_deeply_do_no_harm() -> None:
    deep = b"\x90"
    for _ in range(3000):
        deep = msgspec.msgpack.encode([msgspec.msgpack.Ext(1, deep)])
    with pytest.raises(ValueError, match="not plain data"):
        PLAIN.unpack(deep)


MODULUS = 2**61 - 1
ALIKE = [number * MODULUS for number in range(20_000)]


@pytest.mark.parametrize("values", [ALIKE, [decimal.Decimal(value) for value in ALIKE]])
@pytest.mark.parametrize("code", [2, 3, 10])
def test_values_chosen_to_have_one_hash_are_refused_unread(values: list[Any], code: int) -> None:
    packed = [PLAIN.pack(value) for value in values]
    content = [[item, None] for item in packed] if code == 10 else packed
    data = msgspec.msgpack.encode(msgspec.msgpack.Ext(code, msgspec.msgpack.encode(content)))
    with pytest.raises(ValueError, match="the same hash"):
        PLAIN.unpack(data)


@pytest.mark.parametrize("make", [set, frozenset, dict.fromkeys])
def test_values_that_have_one_hash_do_not_set_out(make: Any) -> None:
    with pytest.raises(TypeError, match="the same hash"):
        PLAIN.pack(make(ALIKE[:3000]))


@pytest.mark.parametrize("make", [set, frozenset, dict.fromkeys])
def test_many_other_values_travel(make: Any) -> None:
    for values in (range(50_000), [number << 45 for number in range(50_000)], ALIKE[:500]):
        whole = make(values)
        assert PLAIN.unpack(msgspec.msgpack.encode(PLAIN.pack(whole))) == whole
