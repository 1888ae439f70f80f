"""Integers of 64 bits, wherever a schema has them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, NewType, Optional, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway import Record
from floodway.connectors.base import Values
from floodway.connectors.formats import Json, Msgpack
from floodway.core.bounds import checked
from floodway.core.schema import Schema

UserId = NewType("UserId", int)


class Inner(msgspec.Struct, frozen=True):
    n: int


class Tree(msgspec.Struct):
    n: int = 0
    leaves: "list[Tree]" = []


class Wordy(msgspec.Struct):
    text: str
    more: list[str]


class Pair(NamedTuple):
    text: str
    n: int


class Entry(TypedDict):
    n: int


@dataclasses.dataclass
class Point:
    n: int


class Late(Record):
    """Cannot be bounded when it is defined: it names what comes later."""

    n: int
    after: "Later | None" = None


class Later(Record):
    n: int


INTEGERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "annotated": (Annotated[int, msgspec.Meta(description="any")], lambda n: n),
    "at least": (Annotated[int, msgspec.Meta(ge=-(2**63))], lambda n: n),
    "below": (Annotated[int, msgspec.Meta(lt=2**63 - 1)], lambda n: n),
    "a list with a length": (Annotated[list[int], msgspec.Meta(max_length=3)], lambda n: [n]),
    "a tuple": (tuple[int, ...], lambda n: [n]),
    "a tuple of two": (tuple[str, int], lambda n: ["a", n]),
    "a set": (set[int], lambda n: [n]),
    "a frozenset": (frozenset[int], lambda n: [n]),
    "a sequence": (Sequence[int], lambda n: [n]),
    "a list of nulls": (Optional[list[Optional[int]]], lambda n: [None, n]),  # noqa: UP045
    "a dict": (dict[str, dict[str, int]], lambda n: {"a": {"b": n}}),
    "a new type": (UserId, lambda n: n),
    "a struct": (Inner, lambda n: {"n": n}),
    "structs in a dict": (dict[str, list[Inner]], lambda n: {"a": [{"n": n}]}),
    "a struct or nothing": (Inner | None, lambda n: {"n": n}),
    "a tree": (tuple[Tree, ...], lambda n: [{"leaves": [{"leaves": [{"n": n}]}]}]),
    "a named tuple": (Pair, lambda n: ["a", n]),
    "a typed dict": (Entry, lambda n: {"n": n}),
    "a data class": (Point, lambda n: {"n": n}),
    "a record that names one to come": (Late, lambda n: {"n": n, "after": {"n": 1}}),
}
WIDE = st.integers(min_value=2**63) | st.integers(max_value=-(2**63) - 1)


def rows(annotation: Any) -> Schema:
    return Schema.of(msgspec.defstruct("Row", [("of", annotation)], bases=(Record,), frozen=True))


@pytest.mark.parametrize(("annotation", "plain"), INTEGERS.values(), ids=INTEGERS)
@given(st.integers(-(2**63), 2**63 - 2))
def test_integers_of_64_bits_are_taken(
    annotation: Any, plain: Callable[[Any], Any], number: int
) -> None:
    item, schema = {"of": plain(number)}, rows(annotation)
    text = msgspec.json.encode(item)
    expected = msgspec.json.decode(text, type=schema.python)
    assert Json().decoder(schema)(text) == expected
    assert Json().block_decoder(schema)(text + b"\n" + text) == [expected] * 2
    assert Msgpack().decoder(schema)(msgspec.msgpack.encode(item)) == expected
    assert Values().decoder(schema)(item) == expected


@pytest.mark.parametrize(("annotation", "plain"), INTEGERS.values(), ids=INTEGERS)
@given(WIDE | st.just(2**70))
def test_wider_integers_are_refused_as_one_record(
    annotation: Any, plain: Callable[[Any], Any], number: int
) -> None:
    schema, text = rows(annotation), b'{"of": %s}' % _json(plain(number))
    with pytest.raises(msgspec.ValidationError):
        Json().decoder(schema)(text)
    with pytest.raises(msgspec.ValidationError):
        Json().block_decoder(schema)(text)
    with pytest.raises(msgspec.ValidationError):
        Values().decoder(schema)({"of": plain(number)})


def _json(item: Any) -> bytes:
    return repr(item).replace("'", '"').replace("None", "null").encode()


@pytest.mark.parametrize("annotation", [str, list[str], Wordy, Any, Annotated[int, "n"], set[int]])
def test_schemas_that_need_no_look_at_records_get_none(annotation: Any) -> None:
    def decode(raw: bytes) -> bytes:
        return raw

    assert checked(decode, Schema.of(annotation).python) is decode
