"""Codecs: rows come back equal; what cannot travel, or is not as promised, names its operator."""

import datetime as dt
import threading
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodway import Flow, Record
from floodway.core.errors import OperatorError
from floodway.core.schema import Schema
from floodway.core.types import STRING, Field
from floodway.engine.transport.codec import Codec
from floodway.engine.transport.plain import Plain
from floodway.operators.base import Edge, Key, Kind, Operator, Output
from floodway.operators.windows import Window


class Sale(Record):
    shop: str
    pieces: int
    price: Decimal | None = None
    tags: list[str] | None = None
    day: dt.date | None = None
    at: dt.datetime | None = None
    more: dict[str, float] | None = None


class Odd(Record):
    what: Any


PLAIN = Plain([Sale, Odd, Window])
KEY = Key((Field("shop", STRING),))
KEYS = Key((Field("shop", STRING), Field("city", STRING, nullable=True)))
PLACE = Flow("places").source("here", schema=int).edge.operator.place


def edge(schema: Any, kind: Kind = "records", key: Key | None = None) -> Edge:
    output = Output(kind, Schema.of(schema), key)
    return Edge(Operator(name="sales", place=PLACE, inputs=(), outputs={"main": output}))


def codec(schema: Any, kind: Kind = "records", key: Key | None = None, **more: Any) -> Codec:
    return Codec(edge(schema, kind, key), PLAIN, **{"windowed": False} | more)


TIMES = st.integers(-(2**63), 2**63 - 1)
MINUTES = st.integers(-1439, 1439).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
SALES = st.builds(
    Sale,
    st.text(max_size=5),
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.decimals(allow_nan=False),
    st.none() | st.lists(st.text(max_size=3), max_size=3),
    st.none() | st.dates(),
    st.none() | st.datetimes() | st.datetimes(timezones=MINUTES),
    st.none() | st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False), max_size=3),
)
OPAQUE = st.one_of(
    st.builds(Odd, st.tuples(st.integers(), st.text(max_size=3))),
    st.tuples(st.integers(-(2**70), 2**70), st.none()),
    st.sets(st.integers(), max_size=3),
    st.dictionaries(st.integers(), st.text(max_size=3), max_size=3),
    SALES,
)
SHOPS = st.none() | st.text(max_size=4)
CASES = {
    "typed": (Sale, SALES, None, st.none()),
    "typed with a key": (Sale, SALES, KEY, SHOPS),
    "typed with two keys": (Sale, SALES, KEYS, st.none() | st.tuples(SHOPS, SHOPS)),
    "scalar": (int, st.integers(-(2**63), 2**63 - 1), KEY, SHOPS),
    "opaque": (Any, OPAQUE, None, st.none()),
    "opaque field": (Odd, st.builds(Odd, OPAQUE), KEY, SHOPS),
}
IDS = st.recursive(st.integers(0, 2**40), lambda i: st.tuples(i, i), max_leaves=4)


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_facts_come_back(case: Any, data: st.DataObject) -> None:
    schema, values, key, keys = case
    rows = data.draw(st.lists(st.tuples(TIMES, keys, values), max_size=4))
    one = codec(schema, key=key)
    assert one.decode(one.encode(rows)) == rows


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_revisions_come_back(case: Any, data: st.DataObject) -> None:
    schema, values, key, keys = case
    facts = st.none() | st.tuples(TIMES, keys, values)
    rows = data.draw(st.lists(st.tuples(IDS, facts, facts), max_size=4))
    one = codec(schema, "revisions", key)
    assert one.decode(one.encode(rows)) == rows


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("windowed", [False, True], ids=["plain", "windowed"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_changes_come_back(case: Any, windowed: bool, data: st.DataObject) -> None:
    schema, values, key, keys = case
    rowed = st.tuples(keys, TIMES, TIMES) if windowed else keys
    either = st.none() | values
    rows = data.draw(
        st.lists(st.tuples(TIMES, rowed, either, either, st.none() | TIMES), max_size=4)
    )
    one = codec(schema, "changes", key, windowed=windowed)
    assert one.decode(one.encode(rows)) == rows


def test_known_types_need_no_packing() -> None:
    assert [codec(schema).typed for schema in (Sale, int, list[str], Any, Odd)] == [
        True, True, True, False, False,
    ]  # fmt: skip


def nested(wrap: Callable[[Any], Any]) -> Any:
    """Return a value that is wrapped 5000 times."""
    value: Any = wrap(None)
    for _ in range(5000):
        value = wrap(value)
    return value


UNFIT = {
    "number beyond 64 bits": (int, 2**64),
    "text that is no text": (str, "\ud800"),
    "an object": (int, object()),
    "a lock": (Any, threading.Lock()),
    "a lock inside": (Any, {"a": [threading.Lock()]}),
    "a record nobody knows": (Any, type("Stranger", (Record,), {})()),
    "text that is no text, inside": (Any, ("\ud800",)),
    "deep nesting": (Any, nested(lambda inner: (inner,))),
    "deep lists": (list[str], nested(lambda inner: [inner])),
}


@pytest.mark.parametrize(("schema", "value"), UNFIT.values(), ids=UNFIT)
def test_value_that_cannot_travel_names_the_operator(schema: Any, value: Any) -> None:
    fine = 1 if schema is int else [] if schema == list[str] else "x"
    with pytest.raises(OperatorError, match="cannot be sent to another task") as caught:
        codec(schema).encode([(1, None, fine), (2, None, value)])
    assert (caught.value.operator, caught.value.place) == ("sales", PLACE)


def test_culprit_is_the_record_that_does_not_fit() -> None:
    with pytest.raises(OperatorError, match=rf"the record \(2, None, {2**64}\) cannot"):
        codec(int).encode([(1, None, 5), (2, None, 2**64), (3, None, 6)])


WRONG = {
    "text for a number": (int, "five"),
    "a number for text": (str, 5),
    "another record": (Sale, Odd("x")),
    "a wrong field": (Sale, Sale(shop=1, pieces="x")),  # type: ignore[arg-type]
    "a list for a record": (Sale, [1, 2]),
}


@pytest.mark.parametrize(("schema", "value"), WRONG.values(), ids=WRONG)
def test_value_of_a_wrong_type_names_the_operator(schema: Any, value: Any) -> None:
    one = codec(schema)
    payload = one.encode([(1, None, value)])
    with pytest.raises(OperatorError, match="not what its schema says") as caught:
        one.decode(payload)
    assert (caught.value.operator, caught.value.place) == ("sales", PLACE)


@settings(max_examples=200)
@given(st.binary(max_size=40), st.sampled_from([Sale, int, Any]))
def test_any_payload_is_rows_or_an_operator_error(payload: bytes, schema: Any) -> None:
    with suppress(OperatorError):
        assert isinstance(codec(schema).decode(payload), list)
