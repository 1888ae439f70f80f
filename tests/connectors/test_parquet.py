"""Parquet, read and written."""

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from floodway import Record
from floodway.connectors.base import Split
from floodway.connectors.parquet import ParquetSink, ParquetSource
from floodway.core.errors import ConnectorError, OptionError, SchemaError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_sink, check_source


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


def wide(n: int) -> Wide:
    return Wide(
        text=f"text {n}",
        number=n,
        share=n / 8,
        flag=n % 2 == 0,
        raw=bytes([n % 256]),
        price=decimal.Decimal(n).scaleb(-2).quantize(decimal.Decimal("1e-18")),
        day=dt.date(2026, 1, 1) + dt.timedelta(days=n),
        at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=n),
        inner=Inner([str(n)] * (n % 3), {"x": n / 2}),
        maybe=None if n % 5 else n,
    )


WIDE = [wide(n) for n in range(40)]
ROWS = [(n, None, value, None) for n, value in enumerate(WIDE)]


def read_back(folder: Path, schema: Any) -> list[Any]:
    rows = [
        row
        for file in sorted(folder.glob("part-*.parquet"), key=lambda file: file.stat().st_mtime_ns)
        for row in pq.read_table(file).to_pylist(maps_as_pydicts="strict")
    ]
    if schema is int:
        return [row["value"] for row in rows]
    # Arrow's name for UTC is not Python's.
    plain = [row | {"at": row["at"].astimezone(dt.UTC)} for row in rows]
    return [msgspec.convert(row, schema) for row in plain]


def test_promises_of_sinks(tmp_path: Path) -> None:
    folder = tmp_path / "wide"
    check_sink(ParquetSink(folder), Wide, ROWS, lambda: read_back(folder, Wide), visible="close")
    numbers = [(n, None, n, None) for n in range(25)]
    folder = tmp_path / "numbers"
    sink = ParquetSink(folder, rows_per_group=5, rows_per_file=10)
    check_sink(sink, int, numbers, lambda: read_back(folder, int), visible="close")


def write(sink: ParquetSink, rows: list[Any], schema: Any = int) -> None:
    writer = sink.open(Split(), Schema.of(schema))
    try:
        writer.write(rows)
    finally:
        writer.close()


def test_what_sink_wrote_can_be_read(tmp_path: Path) -> None:
    write(ParquetSink(tmp_path, rows_per_group=7, rows_per_file=14), ROWS, Wide)
    assert len(list(tmp_path.glob("*.parquet"))) == 3
    reader = ParquetSource(tmp_path).open(Split())
    decode = ParquetSource(tmp_path).format.decoder(Schema.of(Wide))
    read = [decode(row) for rows in iter(lambda: reader.poll(9), None) for row in rows]
    reader.close()
    assert read == WIDE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of several row groups."""
    for number in range(3):
        numbers = list(range(number * 100, number * 100 + 100))
        table = pa.table({"value": numbers, "other": [str(n) for n in numbers]})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=30)
    return tmp_path


def test_promises_of_sources(folder: Path) -> None:
    check_source(ParquetSource(folder), range(300), schema=int)
    rows = [{"other": str(n)} for n in range(100)]
    check_source(ParquetSource(folder / "0.parquet", columns=["other"]), rows)


def test_rows_of_an_empty_file(tmp_path: Path) -> None:
    write(ParquetSink(tmp_path), [])
    check_source(ParquetSource(tmp_path), [], schema=int)


def test_file_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "bad.parquet"
    for data in (b"", b"this is not Parquet, but long enough to be"):
        file.write_bytes(data)
        reader = ParquetSource(file).open(Split())
        with pytest.raises(ConnectorError, match=r"bad\.parquet cannot be read as Parquet"):
            reader.poll(1)
        reader.close()


def test_file_that_is_cut_off(folder: Path) -> None:
    whole = (folder / "0.parquet").read_bytes()
    (folder / "0.parquet").write_bytes(whole[: len(whole) // 2])
    reader = ParquetSource(folder).open(Split())
    with pytest.raises(ConnectorError, match=r"0\.parquet cannot be read as Parquet"):
        reader.poll(1)
    reader.close()


def test_unknown_columns(folder: Path) -> None:
    reader = ParquetSource(folder, columns=["value", "nothing"]).open(Split())
    with pytest.raises(ConnectorError, match="no column 'nothing'") as caught:
        reader.poll(1)
    assert "value, other" in caught.value.remedy
    reader.close()
    with pytest.raises(ValueError, match="no column 'value', only other"):
        ParquetSource(folder).format.decoder(Schema.of(int))({"other": "1"})


def test_file_has_no_name_until_it_is_complete(tmp_path: Path) -> None:
    writer = ParquetSink(tmp_path, rows_per_group=1).open(Split(), Schema.of(int))
    writer.write([(1, None, 1, None), (2, None, 2, None)])
    writer.flush()
    assert list(tmp_path.glob("[!.]*")) == []
    writer.close()
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    assert list(tmp_path.glob(".*")) == []


def test_results_of_another_run(tmp_path: Path) -> None:
    first = ParquetSink(tmp_path)
    write(first, [(1, None, 1, None)])
    write(first, [(1, None, 2, None)])  # the same run, started again
    assert sorted(read_back(tmp_path, int)) == [1, 2]
    with pytest.raises(ConnectorError, match="is there already"):
        ParquetSink(tmp_path).check()
    with pytest.raises(ConnectorError, match="is there already"):
        write(ParquetSink(tmp_path), [])
    write(ParquetSink(tmp_path, overwrite=True), [(1, None, 3, None)])
    assert read_back(tmp_path, int) == [3]


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConnectorError, match="cannot be written to"):
        ParquetSink(tmp_path / "file").check()


def test_values_without_a_type_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no place in a Parquet file"):
        ParquetSink(tmp_path).open(Split(), Schema.of(object))


def test_updates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="update of a record"):
        write(ParquetSink(tmp_path), [(1, None, None, 5)])


def test_sizes_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="do not go into"):
        ParquetSink(tmp_path, rows_per_group=10, rows_per_file=5)


def test_names_outside_are_used(tmp_path: Path) -> None:
    class Renamed(Record, rename="camel"):
        user_name: str

    write(ParquetSink(tmp_path), [(1, None, Renamed("a"), None)], Renamed)
    check_source(ParquetSource(tmp_path), [Renamed("a")], schema=Renamed)


def test_values_that_are_not_of_the_schema_leave_nothing(tmp_path: Path) -> None:
    writer = ParquetSink(tmp_path, rows_per_group=1).open(Split(), Schema.of(int))
    writer.write([(1, None, 1, None)])
    with pytest.raises(ConnectorError, match="cannot be written"):
        writer.write([(2, None, "two", None)])
    writer.close()
    assert list(tmp_path.iterdir()) == []
