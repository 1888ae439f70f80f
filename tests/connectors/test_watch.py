"""Following a folder: files as they appear, complete ones only, oldest first."""

import os
from pathlib import Path

import pytest

from floodway.connectors.base import Split
from floodway.connectors.json_lines import JsonLinesSource
from floodway.core.errors import ConnectorError
from floodway.testing.conformance import check_source
from tests.connectors.peers import read_lines


def put(folder: Path, name: str, lines: bytes, *, age: int = 0) -> Path:
    """Write a file of a given age under another name and rename it."""
    hidden = folder / f".{name}.writing"
    hidden.write_bytes(lines)
    os.utime(hidden, (1_000_000 - age, 1_000_000 - age))
    return hidden.rename(folder / name)


def source(folder: Path) -> JsonLinesSource:
    return JsonLinesSource(folder, watch=True)


def test_promises(tmp_path: Path) -> None:
    for number in range(8):
        values = range(number * 100, number * 100 + 100)
        put(tmp_path, f"{number}.jsonl", b"".join(b"%d\n" % n for n in values), age=-number)
    check_source(source(tmp_path), range(800), schema=int, bounded=False)


def test_files_as_they_appear(tmp_path: Path) -> None:
    reader = source(tmp_path).open(Split())
    assert reader.poll(10) == []
    put(tmp_path, "b.jsonl", b"1\n", age=20)
    put(tmp_path, "a.jsonl", b"2\n", age=10)
    put(tmp_path, "c.jsonl", b"3\n", age=10)
    assert read_lines(reader, until=lambda got: len(got) == 3) == [b"1", b"2", b"3"]
    assert reader.poll(10) == []
    put(tmp_path, "d.jsonl", b"4\n", age=1_000)  # older than what was read: renamed late
    assert read_lines(reader, until=len) == [b"4"]
    reader.close()
    assert reader.poll(10) is None


@pytest.mark.parametrize("name", [".a.jsonl", "_a.jsonl", "a.jsonl.tmp", "a.txt"])
def test_files_that_are_not_complete_wait(tmp_path: Path, name: str) -> None:
    reader = source(tmp_path).open(Split())
    (tmp_path / name).write_bytes(b"1\n")
    assert reader.poll(10) == []
    (tmp_path / name).rename(tmp_path / "a.jsonl")
    assert read_lines(reader, until=len) == [b"1"]
    reader.close()


def test_position_knows_what_was_read(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", b"1\n", age=20)
    put(tmp_path, "b.jsonl", b"2\n", age=10)
    reader = source(tmp_path).open(Split())
    assert read_lines(reader, until=len) == [b"1"]
    position = reader.position()
    reader.close()
    put(tmp_path, "c.jsonl", b"3\n", age=30)
    again = source(tmp_path).open(Split(), position)
    assert read_lines(again, until=lambda got: len(got) == 2) == [b"3", b"2"]
    assert again.poll(10) == []
    again.close()


def test_position_forgets_files_that_are_gone(tmp_path: Path) -> None:
    old = put(tmp_path, "old.jsonl", b"1\n")
    reader = source(tmp_path).open(Split())
    read_lines(reader, until=len)
    assert reader.poll(10) == []
    assert reader.position()["done"] == [str(old)]
    old.unlink()
    assert reader.poll(10) == []
    assert reader.position()["done"] == []
    reader.close()


def test_file_that_disappears_while_it_waits(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", b"1\n", age=10)
    put(tmp_path, "b.jsonl", b"2\n")
    reader = source(tmp_path).open(Split())
    read_lines(reader, until=len)
    (tmp_path / "b.jsonl").unlink()
    with pytest.raises(ConnectorError, match=r"b\.jsonl disappeared before it was read"):
        read_lines(reader, until=len)
    reader.close()


def test_only_folders_can_be_watched(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", put(tmp_path, "file", b"")):
        with pytest.raises(ConnectorError, match="is not a folder, so it cannot be watched"):
            source(path).check()
