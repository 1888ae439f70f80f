"""CSV: columns by name, types by schema, errors with lines."""

import datetime as dt
import decimal
import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from floodway import Record
from floodway.connectors.base import Split, Unreadable
from floodway.connectors.csv import CsvSource
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_source


class Sale(Record):
    item: str
    price: decimal.Decimal
    number: int
    share: float
    paid: bool
    day: dt.date
    note: str | None = None
    rebate: int | None = None


HEADER = "item,price,number,share,paid,day,note,rebate"
LINES = [
    "shoe,12.50,3,0.5,true,2026-01-31,,",
    '"a ""big"" one\nin two lines",1,-4,1e3,0,2025-12-01,"x, y",7',
]
SALES = [
    Sale("shoe", decimal.Decimal("12.50"), 3, 0.5, True, dt.date(2026, 1, 31)),
    Sale(
        'a "big" one\nin two lines',
        decimal.Decimal(1),
        -4,
        1000.0,
        False,
        dt.date(2025, 12, 1),
        "x, y",
        7,
    ),
]


def write(folder: Path, *lines: str, name: str = "sales.csv") -> Path:
    file = folder / name
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def values(source: CsvSource, schema: Any) -> list[Any]:
    """Read to the end; what cannot be read is raised."""
    decode = source.format.decoder(Schema.of(schema))
    found = []
    for item in items_of(source):
        if isinstance(item, Unreadable):
            raise item.error()
        found.append(decode(item))
    return found


def items_of(source: CsvSource, position: Any = None) -> list[Any]:
    reader = source.open(Split(), position)
    try:
        return [item for items in iter(lambda: reader.poll(2), None) for item in items]
    finally:
        reader.close()


def test_promises(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, HEADER, *LINES * 10, "", name=f"{number}.csv")
    packed = gzip.compress(write(tmp_path, HEADER, *LINES * 10, name="last").read_bytes())
    (tmp_path / "3.csv.gz").write_bytes(packed)
    check_source(CsvSource(tmp_path, pattern="*.csv*"), SALES * 40, schema=Sale)


def test_columns_go_by_name_not_by_order(tmp_path: Path) -> None:
    class Pair(Record):
        b: int
        a: str = "default"

    assert values(CsvSource(write(tmp_path, "a,b", "x,1")), Pair) == [Pair(1, "x")]
    assert values(CsvSource(write(tmp_path, "b", "2")), Pair) == [Pair(2)]


def test_without_header_columns_go_by_order(tmp_path: Path) -> None:
    file = write(tmp_path, *LINES)
    assert values(CsvSource(file, header=False), Sale) == SALES
    check_source(CsvSource(file, header=False), SALES, schema=Sale)


def test_scalars_and_plain_data(tmp_path: Path) -> None:
    file = write(tmp_path, "value", "5", "6")
    assert values(CsvSource(file), int) == [5, 6]
    assert values(CsvSource(file), object) == [{"value": "5"}, {"value": "6"}]
    assert values(CsvSource(file, header=False), str) == ["value", "5", "6"]


def test_mark_at_the_beginning_is_no_part_of_the_name(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_bytes(b"\xef\xbb\xbfvalue\r\n5\r\n6\r\n")
    check_source(CsvSource(file), [5, 6], schema=int)


def test_missing_column(tmp_path: Path) -> None:
    file = write(tmp_path, "item,price", "shoe,1")
    message = "no column 'day', 'number', 'paid', 'share'; it has item, price"
    with pytest.raises(ConnectorError, match=message):
        values(CsvSource(file), Sale)


def test_unknown_column(tmp_path: Path) -> None:
    file = write(tmp_path, "value,surprise", "1,2")
    with pytest.raises(ConnectorError, match="the schema has no column 'surprise'") as caught:
        values(CsvSource(file), int)
    assert "extra='ignore'" in caught.value.remedy
    assert values(CsvSource(file, extra="ignore"), int) == [1]


def test_bad_field_names_column_and_line(tmp_path: Path) -> None:
    class Count(Record):
        city: str
        people: int

    file = write(tmp_path, "city,people", "Bern,1", "Rome,many")
    with pytest.raises(msgspec.ValidationError, match=r"`\$\.people`, line 3"):
        values(CsvSource(file), Count)


def test_wrong_number_of_fields_names_line(tmp_path: Path) -> None:
    file = write(tmp_path, "value", "1", "2,3")
    with pytest.raises(ValueError, match="line 3 has 2 fields instead of 1"):
        values(CsvSource(file), int)


def test_one_bad_record_leaves_the_others(tmp_path: Path) -> None:
    source = CsvSource(write(tmp_path, "value", "1", "x", "3"))
    decode = source.format.decoder(Schema.of(int))
    reader = source.open(Split())
    first, bad, last = reader.poll(10) or []
    reader.close()
    assert (decode(first), decode(last)) == (1, 3)
    with pytest.raises(msgspec.ValidationError):
        decode(bad)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'value\n"open\n', "line 2 of .* is not CSV: unexpected end"),
        (b"value\n\xff\n", "line 2 of .* is not CSV: .*utf-8"),
        (b"value,value\n", "line 1 of .* is not CSV: a column appears twice"),
        (b"va\xfflue\n1\n", "line 1 of .* is not CSV: .*utf-8"),
        (b"value\n" + b"1" * 200, "line 2 of .* has over 100 bytes"),
        (b'value\n"' + b"1\n" * 100 + b'"\n', "line 2 of .* has over 100 bytes"),
        (b"value\n1\r2\n", "line 2 of .* is not CSV: new-line character"),
    ],
)
def test_files_that_are_not_csv(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(data)
    with pytest.raises(ConnectorError, match=message):
        values(CsvSource(file, max_bytes=100), int)


@pytest.mark.parametrize("delimiter", ["", ";;", "\n", '"'])
def test_delimiter_that_makes_no_sense(delimiter: str) -> None:
    with pytest.raises(OptionError, match="cannot be a delimiter"):
        CsvSource("x.csv", delimiter=delimiter)


def test_other_delimiter(tmp_path: Path) -> None:
    class Pair(Record):
        a: int
        b: float

    assert values(CsvSource(write(tmp_path, "a;b", "1;2.5"), delimiter=";"), Pair) == [Pair(1, 2.5)]
