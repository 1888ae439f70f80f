"""CSV that is no CSV: what is read of it, and how often."""

import csv
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.connectors.base import Split, Unreadable
from floodway.connectors.csv import CsvSource
from floodway.connectors.csv_lines import CsvLines

OPEN = 'a","b'  # opens a quoted field, whether it begins in one or not


def items_of(source: CsvSource, position: Any = None) -> list[Any]:
    reader = source.open(Split(), position)
    try:
        return [item for items in iter(lambda: reader.poll(2), None) for item in items]
    finally:
        reader.close()


def positions_of(source: CsvSource) -> list[tuple[int, Any]]:
    """Return where a reader is after each item, and how many it has given by then."""
    reader, found, count = source.open(Split()), [], 0
    try:
        while (items := reader.poll(1)) is not None:
            count += len(items)
            found.append((count, reader.position()))
    finally:
        reader.close()
    return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the lines that a parser was given."""
    read: list[int] = []
    give = CsvLines.__next__

    def counted(lines: CsvLines) -> str:
        line = give(lines)
        read.append(len(line))
        return line

    monkeypatch.setattr(CsvLines, "__next__", counted)
    return read


@pytest.mark.parametrize(
    ("end", "options"),
    [
        pytest.param("home,1", {}, id="the file ends"),
        pytest.param('x"y', {}, id="a quote is followed by text"),
        pytest.param("x" * 200_000, {}, id="a field is too long"),
        pytest.param("home,1", {"max_bytes": 1000}, id="a record is too long"),
    ],
)
def test_a_quote_that_is_not_closed_costs_each_line_a_bounded_number_of_reads(
    tmp_path: Path, reads: list[int], end: str, options: dict[str, Any]
) -> None:
    lines = 600
    file = tmp_path / "open.csv"
    file.write_text("page,visitor\n" + f"{OPEN}\n" * lines + end + "\n")

    items = items_of(CsvSource(file, **options))

    assert sum(isinstance(item, Unreadable) for item in items) >= lines
    assert len(reads) <= 3 * (lines + 2)
    assert sum(reads) <= 3 * file.stat().st_size


def one_by_one(lines: list[str]) -> list[Any]:
    """Return what is in lines by the rule: where a record fails, its first line is given up."""
    found: list[Any] = []
    at = 0
    while at < len(lines):
        records = csv.reader(iter(lines[at:]), strict=True)
        try:
            fields = next(records)
        except csv.Error:
            found.append(lines[at])
            at += 1
            continue
        at += records.line_num
        if fields:
            found.append((fields, at))
    return found


PIECES = st.sampled_from(["a", "b", ",", '"', '"', '""', "\r", "é"])
LINES = st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=12)


@given(LINES)
def test_lines_are_given_up_and_given_again_as_if_each_were_tried_alone(texts: list[str]) -> None:
    lines = [f"{text}\n" for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "any.csv")
        file.write_bytes("".join(lines).encode())
        source = CsvSource(file, header=False)
        items = items_of(source)
        goes_on = all(items_of(source, at) == items[count:] for count, at in positions_of(source))
    found = [i.raw.decode() if isinstance(i, Unreadable) else (i[1], i[2]) for i in items]
    assert found == one_by_one(lines)
    assert goes_on


@given(LINES, st.integers(min_value=2, max_value=20))
def test_whoever_goes_on_gives_up_the_same_lines(texts: list[str], max_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "any.csv")
        file.write_bytes("".join(f"{text}\n" for text in texts).encode())
        source = CsvSource(file, header=False, max_bytes=max_bytes)
        items = items_of(source)
        for count, position in positions_of(source):
            assert items_of(source, position) == items[count:]
