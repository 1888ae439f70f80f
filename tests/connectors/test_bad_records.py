"""Whatever a record is, the source's ``on_error`` decides what becomes of it, and counts add up."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from floodway import Flow, Record
from floodway.connectors.base import Reader, SourceConnector, Split, Unreadable
from floodway.connectors.csv import CsvSource
from floodway.connectors.formats import Bytes, Json, Text
from floodway.connectors.json_lines import JsonLinesSource
from floodway.connectors.keys import key_decoder
from floodway.connectors.parquet import ParquetSource
from floodway.connectors.stdio import DescriptorReader, StdinSource
from floodway.core.errors import OperatorError
from floodway.engine.program.intake import Intake
from floodway.operators.base import MAIN
from floodway.operators.source import Changelog
from tests.connectors.taking import Taken, taken


class Click(Record):
    page: str
    visitor: int


def csv_of(folder: Path, data: bytes, **options: Any) -> CsvSource:
    file = folder / "clicks.csv"
    file.write_bytes(data)
    return CsvSource(file, **options)


# --------------------------------------------------------------------------- one by one

GOOD = [Click("home", 1), Click("cart", 2)]
BAD_ROWS = {
    "a bad byte": b"ca\xfft,3",
    "a long field": b"x" * 140_000 + b",3",
    "a quote that is not closed": b'"cart,3',
    "a quote that is closed too soon": b'"ca"rt,3',
    "a lone carriage return": b"ca\rrt,3",
    "too few fields": b"cart",
    "text for a number": b"cart,three",
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS)
def test_row_of_csv_that_cannot_be_read_is_one_record(tmp_path: Path, bad: bytes) -> None:
    source = csv_of(tmp_path, b"page,visitor\nhome,1\n" + bad + b"\ncart,2\n")
    found = taken(source, Click)
    assert (found.values, len(found.letters), found.count) == (GOOD, 1, 3)
    assert "line 3" in found.letters[0].error
    skipped = taken(source, Click, policy="skip")
    assert (skipped.values, skipped.skipped, skipped.count) == (GOOD, 1, 3)
    with pytest.raises(OperatorError, match="line 3") as caught:
        taken(source, Click, policy="fail")
    assert "on_error='skip'" in caught.value.remedy


def test_record_of_several_lines_with_a_bad_byte_is_one_record(tmp_path: Path) -> None:
    found = taken(csv_of(tmp_path, b'page,visitor\nhome,1\n"ca\nr\xff\nt",3\ncart,2\n'), Click)
    assert (found.values, [letter.value for letter in found.letters]) == (
        GOOD,
        [b'"ca\nr\xff\nt",3\n'],
    )


def test_rows_of_a_file_whose_header_cannot_be_read_are_counted(tmp_path: Path) -> None:
    found = taken(csv_of(tmp_path, b"page,vis\xffitor\nhome,1\ncart,2\n"), Click)
    assert (found.values, len(found.letters)) == ([], 3)
    assert all("header" in letter.error for letter in found.letters[1:])


BAD_LINES = {
    "a bad byte": b'{"page": "\xff", "visitor": 3}',
    "half a character": b'{"page": "\\ud800", "visitor": 3}',
    "too deep": b"[" * 100_000,
    "a number that is too large": b'{"page": "cart", "visitor": 1e400}',
    "a number with too many digits": b'{"page": "cart", "visitor": ' + b"9" * 5000 + b"}",
    "a number that does not fit": b'{"page": "cart", "visitor": 9223372036854775808}',
    "text for a number": b'{"page": "cart", "visitor": "three"}',
    "a zero byte": b"\0",
    "a line that is too long": b'{"page": "' + b"x" * 200_000 + b'", "visitor": 3}',
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
@pytest.mark.parametrize("form", ["file", "pipe"])
def test_line_that_cannot_be_read_is_one_record(tmp_path: Path, bad: bytes, form: str) -> None:
    first, second = map(msgspec.json.encode, GOOD)
    file = tmp_path / "clicks.jsonl"
    # What is between values, and where lines end, is the same with a bad neighbour as without.
    file.write_bytes(first.replace(b",", b",\r") + b"\r\n\n" + bad + b"\n  \n" + second)
    if form == "file":
        found = taken(JsonLinesSource(file, max_bytes=150_000), Click)
    else:
        with file.open("rb") as pipe:
            reader = DescriptorReader(pipe.fileno(), 150_000, "a pipe")
            found = Taken(reader, StdinSource(), Click, "dead_letter")
    assert (found.values, len(found.letters), found.count) == (GOOD, 1, 3)


def test_lines_of_text_are_the_same_beside_a_bad_one(tmp_path: Path) -> None:
    lines = b"one\n\n  \ntwo\rthree\r\n"
    for more, letters in ((b"", 0), (b"\xff\n", 1)):
        with tempfile.TemporaryFile() as file:
            file.write(lines + more)
            file.seek(0)
            reader = DescriptorReader(file.fileno(), 100, "a file", form=Text())
            found = Taken(reader, StdinSource(Text()), str, "dead_letter")
        assert found.values == ["one", "", "  ", "two", "three"]
        assert len(found.letters) == letters


def test_row_of_parquet_that_has_no_python_form_is_one_record(tmp_path: Path) -> None:
    file = tmp_path / "clicks.parquet"
    pages = pa.array([b"home", b"\xff", b"cart"]).view(pa.string())
    pq.write_table(pa.table({"page": pages, "visitor": [1, 3, 2]}), file)
    for schema, good in ((Click, GOOD), (object, [msgspec.to_builtins(click) for click in GOOD])):
        found = taken(ParquetSource(file), schema)
        assert (found.values, found.count) == (good, 3)
        (letter,) = found.letters
        assert letter.value == {"file": str(file), "row": 1}
        assert "row 1 of" in letter.error


@pytest.mark.parametrize("key", [b'{"a":1}', b'[1,{"a":1}]', b'[["a",[{}]]]', b"{}", b"[[}"])
def test_key_of_json_that_cannot_be_a_key_cannot_be_read(key: bytes) -> None:
    with pytest.raises((TypeError, msgspec.DecodeError)):
        key_decoder(Json())(key)


class KeyedReader(Reader):
    """Brings keys in JSON along, and what is not one as Kafka's reader does."""

    keyed = True

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = list(keys)
        self._decode = key_decoder(Json())

    def poll(self, limit: int) -> Any:
        return [self._row(self._keys.pop(0))] if self._keys else None

    def _row(self, raw: bytes) -> Any:
        try:
            return 1, self._decode(raw), b"1"
        except Exception as cause:
            return 1, None, Unreadable(raw, f"the key is none: {cause}", "take another")


def test_object_as_key_of_a_table_is_a_bad_record() -> None:
    stream = Flow("bad").table("bad", schema=int, key=str, on_error="skip")
    changelog = stream.flow.operators[0]
    assert isinstance(changelog, Changelog)
    ports: dict[str, list[Any]] = {MAIN: []}
    intake = Intake([changelog], [ports])
    intake.use(Json())
    reader = KeyedReader([b'"a"', b'{"a":1}', b'["a",1]'])
    while (raw := reader.poll(1)) is not None:
        intake.take(raw, 1, keyed=True)
    assert [key for _, key, _ in ports[MAIN]] == ["a", ("a", 1)]
    assert intake.handlers[0].skipped == 1


# --------------------------------------------------------------------------- anything

PIECES = st.sampled_from(
    [
        *(
            b"\n",
            b"\r",
            b"\r\n",
            b'"',
            b'""',
            b",",
            b"\0",
            b"\xff",
            b"\xef\xbb\xbf",
            b"1",
            b"a",
            b" ",
        ),
        *(b"x" * 40, b"home,1\n", b'{"page":"home","visitor":1}\n', b"[[[", b"1e999"),
    ]
)
DATA = st.lists(PIECES | st.binary(max_size=5), max_size=30).map(b"".join)


def anything(data: bytes, make: Callable[[Path], SourceConnector], schema: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data"
        file.write_bytes(data)
        source = make(file)
        skipped, letters = taken(source, schema, "skip"), taken(source, schema, "dead_letter")
        whole = from_everywhere(source, schema)
    assert skipped.count == len(skipped.values) + skipped.skipped
    assert letters.values == skipped.values
    assert len(letters.letters) == skipped.skipped
    assert all(values == skipped.values for values in whole)


def from_everywhere(source: SourceConnector, schema: Any) -> list[Sequence[Any]]:
    """Return what comes of a source that goes on, once from each of its positions."""
    positions, found = [], []
    with closing(source.open(Split())) as reader:
        raw: Any = b""
        while raw is not None:
            positions.append(reader.position())
            raw = reader.poll(1)
    for position in positions:
        with closing(source.open(Split())) as head, closing(source.open(Split(), position)) as tail:
            before = Taken(_Until(head, position), source, schema, "skip")
            found.append([*before.values, *Taken(tail, source, schema, "skip").values])
    return found


class _Until(Reader):
    """Reads as far as a position."""

    def __init__(self, reader: Reader, position: Any) -> None:
        self._reader, self._position = reader, position

    def poll(self, limit: int) -> Any:
        return None if self._reader.position() == self._position else self._reader.poll(1)


@given(DATA, st.sampled_from([10, 60, 10_000]), st.booleans())
@example(b'"' + b"a\n" * 20 + b"b,1\n", 10, False)
@example(b"x" * 11 + b'"\n1,2\n', 10, False)
def test_csv_of_anything(data: bytes, most: int, header: bool) -> None:
    data = b"page,visitor\n" + data if header else data
    anything(data, lambda file: CsvSource(file, header=header, max_bytes=max(most, 13)), Click)
    anything(data, lambda file: CsvSource(file, header=header, max_bytes=most), object)


@given(DATA, st.sampled_from([10, 60, 10_000]))
def test_json_of_anything(data: bytes, most: int) -> None:
    for schema in (Click, object):
        anything(data, lambda file: JsonLinesSource(file, max_bytes=most), schema)


@given(DATA, st.sampled_from([10, 60, 10_000]), st.sampled_from([Json(), Text(), Bytes()]))
def test_standard_input_of_anything(data: bytes, most: int, form: Any) -> None:
    schema = {Json: object, Text: str, Bytes: bytes}[type(form)]
    counts = []
    for policy in ("skip", "dead_letter"):
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            reader = DescriptorReader(file.fileno(), most, "a file", form=form)
            found = Taken(reader, StdinSource(form), schema, policy)
        assert found.count == len(found.values) + found.skipped + len(found.letters)
        counts.append((found.values, found.skipped + len(found.letters)))
    assert counts[0] == counts[1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


@given(JSON)
def test_key_of_json_can_be_a_key_or_cannot_be_read(value: Any) -> None:
    try:
        key = key_decoder(Json())(msgspec.json.encode(value))
    except (TypeError, OverflowError, msgspec.MsgspecError):
        return
    hash(key)
