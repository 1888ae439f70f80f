"""Files of JSON lines, read and written."""

import errno
import gzip
import io
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from floodway import Record
from floodway.connectors.base import Split, Unavailable
from floodway.connectors.formats import Json
from floodway.connectors.json_lines import JsonLinesSink, JsonLinesSource, LinesWriter
from floodway.connectors.lines import LineCutter
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_sink, check_source
from tests.connectors.peers import read_lines


class Click(Record):
    page: str
    visitor: int


def clicks(first: int, count: int) -> list[Click]:
    return [Click(f"page {n % 7}", n) for n in range(first, first + count)]


def as_lines(values: list[Any]) -> bytes:
    return msgspec.json.Encoder().encode_lines(values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files of 50 clicks, one packed, one without an end of its last line, one empty."""
    (tmp_path / "a.jsonl").write_bytes(as_lines(clicks(0, 50)))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(as_lines(clicks(50, 50))))
    (tmp_path / "c.jsonl").write_bytes(as_lines(clicks(100, 50)).rstrip(b"\n"))
    (tmp_path / "d.jsonl").write_bytes(b"")
    (tmp_path / "e.jsonl").write_bytes(as_lines(clicks(150, 50)))
    for unfinished in (".f.jsonl", "_g.jsonl", "h.jsonl.tmp"):
        (tmp_path / unfinished).write_bytes(b"not for you\n")
    return tmp_path


def test_promises_of_sources(folder: Path) -> None:
    source = JsonLinesSource(folder, pattern="*.jsonl*")
    check_source(source, clicks(0, 200), schema=Click)
    check_source(JsonLinesSource(folder / "[ab].jsonl*"), clicks(0, 100), schema=Click)
    check_source(JsonLinesSource(str(folder / "c.jsonl")), clicks(100, 50), schema=Click)
    check_source(JsonLinesSource(folder / "d.jsonl"), [], schema=Click)


@given(st.binary(), st.lists(st.integers(1, 9), min_size=1))
def test_cutting_loses_nothing(data: bytes, sizes: list[int]) -> None:
    cutter, blocks, rest = LineCutter("a test"), [], data
    while rest:
        size = sizes[len(blocks) % len(sizes)]
        blocks.append(cutter.feed(rest[:size]))
        rest = rest[size:]
    assert all(block.endswith(b"\n") or not block for block in blocks)
    blocks.append(cutter.rest())
    ended = data if data.endswith(b"\n") or not data else data + b"\n"
    assert b"".join(blocks) == ended


def test_polls_are_about_as_large_as_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_bytes(b'{"n": 1}\n' * 100_000)
    reader = JsonLinesSource(file).open(Split())
    sizes = [len(block.splitlines()) for block in iter(lambda: reader.poll(1_000), None)]
    reader.close()
    assert sum(sizes) == 100_000
    assert sorted(sizes)[len(sizes) // 2] in range(900, 1_101)


def test_path_without_files(tmp_path: Path) -> None:
    for path, message in [
        (tmp_path / "no.jsonl", "there is no file"),
        (tmp_path, r"there is no file '\*\.jsonl' in"),
        (tmp_path / "*.jsonl", "there is no file"),
    ]:
        with pytest.raises(ConnectorError, match=message):
            JsonLinesSource(path).check()


def test_file_that_disappears(folder: Path) -> None:
    reader = JsonLinesSource(folder).open(Split())
    assert reader.poll(1)
    (folder / "c.jsonl").unlink()
    with pytest.raises(ConnectorError, match=r"c\.jsonl disappeared before it was read"):
        read_lines(reader)
    reader.close()


def test_files_that_changed_since(folder: Path) -> None:
    source = JsonLinesSource(folder)
    reader = source.open(Split())
    reader.poll(1)
    position = reader.position()
    reader.close()
    (folder / "a2.jsonl").write_bytes(b"")
    with pytest.raises(ConnectorError, match="have changed, so reading cannot go on"):
        source.open(Split(), position)


def test_file_that_became_shorter(folder: Path) -> None:
    source = JsonLinesSource(folder / "a.jsonl")
    reader = source.open(Split())
    read_lines(reader, until=len)
    position = reader.position()
    reader.close()
    (folder / "a.jsonl").write_bytes(b"1\n")
    with pytest.raises(ConnectorError, match="shorter than it was"):
        source.open(Split(), position)


@pytest.mark.parametrize("size", [1_001, 2_000, 200_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n2\n\n3\n"])
def test_line_that_is_too_long_is_one_that_cannot_be_read(
    tmp_path: Path, size: int, end: bytes
) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(b"1\n" + b"x" * size + end)
    source = JsonLinesSource(file, max_bytes=1_000)
    reader, items, positions = source.open(Split()), [], [None]
    while (raw := reader.poll(1)) is not None:
        items.append(Json().lines(raw) if isinstance(raw, bytes) else raw)
        positions.append(reader.position())
    reader.close()
    first, bad, *others = chain(*items)
    assert (first, others) == (b"1", [b"2", b"3"] if end.endswith(b"3\n") else [])
    assert bad.problem.endswith("long.jsonl is longer than 1,000 bytes")
    assert bad.raw == b"x" * 1_000
    for number, position in enumerate(positions):  # also inside the line that was given up
        with closing(source.open(Split(), position)) as again:
            assert [item for item in read_lines(again) if item] == list(chain(*items[number:]))


def test_mark_at_the_beginning_of_a_file_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "marked.jsonl"
    file.write_bytes(b"\xef\xbb\xbf1\n2\n")
    check_source(JsonLinesSource(file), [1, 2], schema=int)


def test_packed_file_that_is_not_whole(tmp_path: Path) -> None:
    packed = gzip.compress(as_lines(clicks(0, 1_000)))
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-20])
    (tmp_path / "no.jsonl.gz").write_bytes(b"this is not packed at all")
    for name in ("cut.jsonl.gz", "no.jsonl.gz"):
        reader = JsonLinesSource(tmp_path / name).open(Split())
        with pytest.raises(ConnectorError, match=f"{name} cannot be read"):
            read_lines(reader)
        reader.close()


ROWS = [(n, f"key {n}", click, None) for n, click in enumerate(clicks(0, 20))]


def read_back(*files: Path) -> list[Click]:
    decode = msgspec.json.Decoder(Click).decode_lines
    return [click for file in files if file.exists() for click in decode(file.read_bytes())]


def test_promises_of_sinks(tmp_path: Path) -> None:
    part = tmp_path / "new" / "folder" / "part-0.jsonl"
    check_sink(JsonLinesSink(part.parent), Click, ROWS, lambda: read_back(part))
    one = tmp_path / "one.jsonl"
    check_sink(JsonLinesSink(one), Click, ROWS, lambda: read_back(one))


def test_one_file_has_one_writer(tmp_path: Path) -> None:
    assert JsonLinesSink(tmp_path / "one.jsonl").most == 1
    assert JsonLinesSink(tmp_path).most is None


def write(sink: JsonLinesSink, rows: list[Any], split: Split | None = None) -> None:
    writer = sink.open(split or Split(), Schema.of(Click))
    try:
        writer.write(rows)
    finally:
        writer.close()


def test_what_sink_wrote_can_be_read(tmp_path: Path) -> None:
    sink = JsonLinesSink(tmp_path)
    for index in range(3):
        write(sink, ROWS[index::3], Split(index, 3))
    values = [row[2] for row in ROWS]
    check_source(JsonLinesSource(tmp_path), values, schema=Click, ordered=False)


def test_envelope_shows_updates(tmp_path: Path) -> None:
    sink = JsonLinesSink(tmp_path / "updates.jsonl", envelope=True)
    write(sink, [(1, ("k", 2), Click("home", 7), (1, 2)), (1, ("k", 2), None, (1, 2))])
    first, second = map(msgspec.json.decode, (tmp_path / "updates.jsonl").read_bytes().splitlines())
    assert first == {
        "timestamp": 1,
        "key": ["k", 2],
        "value": {"page": "home", "visitor": 7},
        "id": [1, 2],
    }
    assert second == {"timestamp": 1, "key": ["k", 2], "value": None, "id": [1, 2]}


def test_updates_without_envelope_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="update of a record") as caught:
        write(JsonLinesSink(tmp_path), [(1, "k", None, 5)])
    assert "envelope=True" in caught.value.remedy


def test_results_of_another_run_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "part-3.jsonl"
    file.write_bytes(b"precious\n")
    sink = JsonLinesSink(tmp_path)
    with pytest.raises(ConnectorError, match=r"part-3\.jsonl is there already") as caught:
        sink.check()
    assert "overwrite=True" in caught.value.remedy
    write(sink, ROWS[:1], Split(0, 2))  # the other half of the files is not this task's business
    with pytest.raises(ConnectorError, match=r"part-3\.jsonl is there already"):
        write(sink, ROWS[:1], Split(1, 2))
    assert file.read_bytes() == b"precious\n"


def test_results_of_another_run_are_replaced(tmp_path: Path) -> None:
    old = JsonLinesSink(tmp_path)
    for index in range(4):
        write(old, ROWS, Split(index, 4))
    new = JsonLinesSink(tmp_path, overwrite=True)
    new.check()
    for index in range(2):
        write(new, ROWS[index : index + 1], Split(index, 2))
    left = sorted(tmp_path.glob("part-*"))
    assert [file.name for file in left] == ["part-0.jsonl", "part-1.jsonl"]
    assert read_back(*left) == clicks(0, 2)


@pytest.mark.parametrize("overwrite", [False, True])
def test_task_that_is_started_again_goes_on(tmp_path: Path, overwrite: bool) -> None:
    sink = JsonLinesSink(tmp_path, overwrite=overwrite)
    write(sink, ROWS[:5])
    file = tmp_path / "part-0.jsonl"
    with file.open("ab") as died:
        died.write(b'{"page": "ha')
    again = cloudpickle.loads(cloudpickle.dumps(sink))
    write(again, ROWS[5:])
    assert read_back(file) == [row[2] for row in ROWS]


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "file" / "x.jsonl"):
        with pytest.raises(ConnectorError, match="cannot be written to"):
            JsonLinesSink(path).check()
        with pytest.raises(ConnectorError, match="cannot be written to"):
            JsonLinesSink(path).open(Split(), Schema.of(int))


class FullFile(io.FileIO):
    """A file on a disk that has room for three bytes and no more, until it is made larger."""

    room = 3

    def write(self, data: Any) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = super().write(bytes(data)[: self.room]) or 0
        self.room -= taken
        return taken


def test_full_disk_can_be_waited_out(tmp_path: Path) -> None:
    name = tmp_path / "full.jsonl"
    name.write_bytes(b"0\n")
    file = FullFile(name, "r+")
    writer = LinesWriter(file, lambda rows: b"12345\n")
    with pytest.raises(Unavailable, match="cannot grow: No space left") as caught:
        writer.write(ROWS[:1])
    assert caught.value.taken == 0
    assert name.read_bytes() == b"0\n"
    file.room = 100
    writer.write(ROWS[:1])
    writer.close()
    assert name.read_bytes() == b"0\n12345\n"


def test_value_that_json_cannot_hold(tmp_path: Path) -> None:
    writer = JsonLinesSink(tmp_path).open(Split(), Schema.of(object))
    with pytest.raises(ConnectorError, match="JsonLinesSink got a value that its format"):
        writer.write([(1, None, object(), None)])
    writer.write([(1, None, {"plain": [1, 2]}, None)])
    writer.close()
    assert (tmp_path / "part-0.jsonl").read_bytes() == b'{"plain":[1,2]}\n'
