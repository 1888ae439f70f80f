"""Formats: what is read is what was written, and bad input says what and where."""

import datetime as dt
import decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway import Record
from floodway.connectors.formats import Bytes, Json, Msgpack, Text
from floodway.core.errors import OptionError, SchemaError
from floodway.core.schema import Schema


class Inner(Record):
    names: list[str]
    sizes: dict[str, float]


class Wide(Record):
    text: str
    number: int
    share: float
    flag: bool
    raw: bytes
    price: decimal.Decimal
    day: dt.date
    at: dt.datetime
    inner: Inner
    maybe: int | None = None


FINITE = st.floats(allow_nan=False, allow_infinity=False)
WIDE = st.builds(
    Wide,
    text=st.text(),
    number=st.integers(-(2**63), 2**63 - 1),
    share=FINITE,
    flag=st.booleans(),
    raw=st.binary(),
    price=st.decimals(allow_nan=False, allow_infinity=False, places=3),
    day=st.dates(),
    at=st.datetimes(timezones=st.just(dt.UTC)),
    inner=st.builds(Inner, st.lists(st.text()), st.dictionaries(st.text(), FINITE)),
    maybe=st.none() | st.integers(0, 9),
)
SCHEMA = Schema.of(Wide)


@given(st.lists(WIDE, min_size=1, max_size=3), st.sampled_from([Json(), Msgpack()]))
def test_records_come_back(records: list[Wide], form: Json | Msgpack) -> None:
    encode, decode = form.encoder(SCHEMA), form.decoder(SCHEMA)
    assert [decode(encode(record)) for record in records] == records


@given(st.lists(WIDE, min_size=1, max_size=3))
def test_lines_of_json_come_back(records: list[Wide]) -> None:
    lines = [Json().encoder(SCHEMA)(record) for record in records]
    assert all(b"\n" not in line for line in lines)
    assert Json().block_decoder(SCHEMA)(b"\n".join(lines) + b"\n") == records


def test_values_without_schema_are_plain_data() -> None:
    opaque = Schema.of(object)
    assert Json().decoder(opaque)(b'{"a": [1, null]}') == {"a": [1, None]}
    assert Msgpack().decoder(opaque)(msgspec.msgpack.encode({"a": 1})) == {"a": 1}
    assert Json().encoder(opaque)({"a": (1, 2)}) == b'{"a":[1,2]}'
    assert Text().decoder(opaque)(b"a") == "a"
    assert Bytes().decoder(opaque)(b"a") == b"a"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (b"{", "truncated"),
        (b"not json", r"malformed: invalid character \(byte"),
        (b'{"names": [1], "sizes": {}}', r"Expected `str`, got `int` - at `\$\.names\[0\]`"),
        (b'{"names": []}', "missing required field `sizes`"),
        (b"\xff\xfe", r"byte 0"),
    ],
)
def test_bad_json_says_what_and_where(item: bytes, message: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=message):
        Json().decoder(Schema.of(Inner))(item)


def test_bad_line_fails_its_block() -> None:
    with pytest.raises(msgspec.DecodeError):
        Json().block_decoder(Schema.of(int))(b"1\nx\n3\n")


def test_bad_text_says_where() -> None:
    with pytest.raises(UnicodeDecodeError, match="position 3"):
        Text().decoder(Schema.of(str))(b"caf\xe9")
    assert Text("latin-1").decoder(Schema.of(str))(b"caf\xe9") == "café"


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))))
def test_lines_of_text_come_back(texts: list[str]) -> None:
    block = b"".join(Text().encoder(Schema.of(str))(text) + b"\n" for text in texts)
    assert Text().block_decoder(Schema.of(str))(block) == texts


@pytest.mark.parametrize(
    ("form", "schema"), [(Text(), int), (Text(), Inner), (Bytes(), str), (Bytes(), Inner)]
)
def test_schema_that_does_not_go_with_format(form: Any, schema: Any) -> None:
    for make in (form.decoder, form.encoder):
        with pytest.raises(SchemaError, match=type(form).__name__):
            make(Schema.of(schema))


@pytest.mark.parametrize("form", [Msgpack(), Text("utf-16")])
def test_formats_without_lines(form: Any) -> None:
    with pytest.raises(OptionError, match="cannot be split into lines"):
        form.block_decoder(Schema.of(str))


def test_unknown_encoding() -> None:
    with pytest.raises(OptionError, match="'klingon' is not known"):
        Text("klingon")
