"""Going on with another number of tasks: nothing is lost and nothing comes twice."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from floodway.connectors import (
    CsvSource,
    GeneratorSource,
    JsonLinesSource,
    KafkaSource,
    ParquetSource,
    RateSource,
    StdinSource,
    TcpSource,
)
from floodway.connectors.base import SinkConnector, SourceConnector, Split
from floodway.core.errors import ConnectorError
from floodway.testing import ListSource


def plain(position: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(position))


def read(
    source: SourceConnector, positions: Sequence[Any], polls: Sequence[int]
) -> tuple[list[int], list[Any]]:
    """Poll a reader for each position so many times; return values and the new positions."""
    values, after = [], []
    for index, position in enumerate(positions):
        reader = source.open(Split(index, len(positions)), position)
        for _ in range(polls[index]):
            values += [int(line) for line in (reader.poll(1) or b"").splitlines()]
        after.append(plain(reader.position()))
        reader.close()
    return values, after


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=9),
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=6),
    st.booleans(),
)
@example([0, 0, 3], [[1], [1, 0], [1]], False)  # one task knows only where the other was
def test_files_are_read_once_whatever_the_number_of_tasks(
    blocks: list[int], stages: list[list[int]], watch: bool
) -> None:
    # Numbers of a thousand digits, so that one poll is far from reading a whole file.
    with tempfile.TemporaryDirectory() as folder:
        expected = []
        for number, count in enumerate(blocks):
            mine = [10**1000 + number * 10 + n for n in range(count)]
            expected += mine
            lines = "".join(f"{value}\n" for value in mine)
            (Path(folder) / f"{number}.jsonl").write_text(lines)
        source = JsonLinesSource(folder, watch=watch)
        values: list[int] = []
        positions: list[Any] = [None]
        for polls in [*stages, [40, 40]]:
            got, positions = read(source, source.reassign(positions, len(polls)), polls)
            values += got
        assert sorted(values) == sorted(expected)


def test_position_stays_small(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number:03}.jsonl").write_text(f"{number}\n")
    source = JsonLinesSource(tmp_path)
    positions: list[Any] = [None]
    for of in (2, 3, 2, 3, 2, 3):
        _, positions = read(source, source.reassign(positions, of), [8] * of)
    assert max(len(position["done"]) for position in positions) == 5  # two of two, three of three
    assert max(len(position["open"]) for position in positions) <= 5


def test_positions_of_different_lists_of_files_are_not_put_together(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("1\n")
    source = JsonLinesSource(tmp_path)
    _, first = read(source, [None], [1])
    (tmp_path / "b.jsonl").write_text("2\n")
    _, second = read(source, [None], [1])
    with pytest.raises(ConnectorError, match="cannot be dealt anew"):
        source.reassign(first + second, 1)
    assert source.reassign(first + second, 2) == first + second


def test_file_that_was_begun_and_is_gone_is_missed_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("1" * 1000 + "\n2\n")
    for watch in (False, True):
        reader = JsonLinesSource(tmp_path, watch=watch).open(Split())
        reader.poll(1)
        position = reader.position()
        reader.close()
        file.rename(tmp_path / "a.hidden")
        with pytest.raises(ConnectorError):
            JsonLinesSource(tmp_path, watch=watch).open(Split(), position)
        (tmp_path / "a.hidden").rename(file)


@pytest.mark.parametrize("source", [RateSource(10), GeneratorSource(abs)])
def test_numbers_go_on_with_as_many_tasks_as_before(source: SourceConnector) -> None:
    assert source.reassign([3, 4], 2) == [3, 4]
    assert source.reassign([None, None], 3) == [None, None, None]
    with pytest.raises(ConnectorError, match="read by 2 tasks and cannot go on with 3") as caught:
        source.reassign([3, 4], 3)
    assert "to 2" in caught.value.remedy


@pytest.mark.parametrize(
    ("source", "replayable"),
    [
        (CsvSource("x"), True),
        (JsonLinesSource("x"), True),
        (ParquetSource("x"), True),
        (RateSource(1), True),
        (GeneratorSource(abs), True),
        (KafkaSource("x", servers="x"), True),
        (ListSource([]), True),
        (StdinSource(), False),
        (TcpSource("x", 1), False),
        (SourceConnector(), False),
    ],
)
def test_sources_say_whether_they_can_be_replayed(
    source: SourceConnector, replayable: bool
) -> None:
    assert source.replayable is replayable


def test_sinks_promise_what_they_can_unless_they_say_more() -> None:
    plain_sink = SinkConnector()
    plain_sink.check_resumed(None)
    assert (plain_sink.delivery, plain_sink.undoes) == ("at least once", False)
