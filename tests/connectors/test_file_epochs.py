"""Whole epochs in files and in lists."""

import datetime as dt
import pickle
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from floodway import Record
from floodway.connectors import CallbackSink, DiscardSink, StdoutSink, TcpSink
from floodway.connectors.base import EpochWriter, Row, SinkConnector, Split, Unavailable
from floodway.connectors.json_lines import JsonLinesSink
from floodway.connectors.parquet import ParquetSink
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing import ListSink
from floodway.testing.conformance import check_eager_sink, check_epoch_sink


class Click(Record):
    page: str
    visitor: int


ROWS: list[Row] = [(n, None, n, None) for n in range(40)]


def epochs(
    sink: SinkConnector, token: Any = None, split: Split | None = None, schema: Any = int
) -> EpochWriter:
    shipped = sink if sink.place == "driver" else pickle.loads(pickle.dumps(sink))
    writer = shipped.open_epochs(split or Split(), Schema.of(schema), name="f.s.0", token=token)
    assert isinstance(writer, EpochWriter)
    return writer


def write(writer: EpochWriter, epoch: int, rows: list[Row]) -> tuple[list[bytes], Any]:
    blocks, token = [writer.encode(rows)], writer.prepare(epoch)
    writer.apply(epoch, blocks, token)
    return blocks, token


def in_lines(*files: Path) -> list[int]:
    return [int(line) for file in files for line in file.read_text().splitlines()]


def in_parquet(folder: Path) -> list[int]:
    files = sorted(folder.glob("part-*.parquet"))
    return [row["value"] for file in files for row in pq.read_table(file).to_pylist()]


@pytest.mark.parametrize("single", [True, False])
def test_lines_keep_their_promises(tmp_path: Path, single: bool) -> None:
    file = tmp_path / "part-0.jsonl"
    sink = JsonLinesSink(file if single else tmp_path)
    check_epoch_sink(sink, int, ROWS, lambda: in_lines(file))


@pytest.mark.parametrize("single", [True, False])
def test_lines_are_taken_back(tmp_path: Path, single: bool) -> None:
    file = tmp_path / "part-0.jsonl"
    sink = JsonLinesSink(file if single else tmp_path)
    writer = sink.open(Split(), Schema.of(int))
    writer.write([(0, None, 77, None)])  # the same run has been here before
    writer.close()
    check_eager_sink(sink, int, ROWS, lambda: in_lines(file) if file.exists() else [])


def test_lines_that_somebody_has_removed_are_missed(tmp_path: Path) -> None:
    sink = JsonLinesSink(tmp_path / "out.jsonl")
    writer = sink.open_eager(Split(), Schema.of(int), name="f.s.0", position=None)
    writer.write(ROWS)
    position = writer.position()
    writer.close()
    (tmp_path / "out.jsonl").write_text("0\n")
    with pytest.raises(ConnectorError, match="has only 2 of"):
        sink.open_eager(Split(), Schema.of(int), name="f.s.0", position=position)


def test_lists_are_shortened() -> None:
    results = ListSink()
    check_eager_sink(results, int, ROWS, lambda: results.values)


def test_sink_that_has_only_epochs_takes_epochs(tmp_path: Path) -> None:
    class Only(JsonLinesSink):
        open = SinkConnector.open  # type: ignore[assignment]
        open_eager = SinkConnector.open_eager

    sink = Only(tmp_path)
    writer = sink.open_eager(Split(), Schema.of(int), name="f.s.0", position=None)
    assert isinstance(writer, EpochWriter)


def test_parquet_of_a_former_start_stays(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path)
    for number in (1, 2):
        writer = sink.open_eager(Split(), Schema.of(int), name="f.s.0", position=None)
        assert isinstance(writer, EpochWriter)
        _, token = write(writer, 7, [(0, None, number, None)])
    again = sink.open_eager(Split(), Schema.of(int), name="f.s.0", position=token)
    assert isinstance(again, EpochWriter)
    write(again, 8, [(0, None, 3, None)])
    assert sorted(in_parquet(tmp_path)) == [1, 2, 3]
    with pytest.raises(ConnectorError, match="was not written by this run"):
        ParquetSink(tmp_path).check()


def test_parquet_keeps_its_promises(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, rows_per_group=3)
    check_epoch_sink(sink, int, ROWS, lambda: in_parquet(tmp_path))
    assert list(tmp_path.glob(".*")) == []


def test_lists_keep_their_promises() -> None:
    results = ListSink()
    check_epoch_sink(results, int, ROWS, lambda: results.values)


@pytest.mark.parametrize(
    "sink", [CallbackSink(print), DiscardSink(), StdoutSink(), TcpSink("localhost", 1)]
)
def test_other_sinks_have_no_epochs(sink: SinkConnector) -> None:
    assert sink.open_epochs(Split(), Schema.of(int), name="f.s.0", token=None) is None
    assert sink.delivery == "at least once"


FILE_SINKS = [JsonLinesSink, ParquetSink]


def there(folder: Path) -> list[int]:
    return in_parquet(folder) or in_lines(*sorted(folder.glob("part-*.jsonl")))


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_first_start_refuses_results_that_are_there(tmp_path: Path, kind: Any) -> None:
    with closing(epochs(kind(tmp_path))) as writer:
        write(writer, 1, ROWS[:5])
    with pytest.raises(ConnectorError, match="is there already"):
        kind(tmp_path).check()
    with pytest.raises(ConnectorError, match="is there already"):
        epochs(kind(tmp_path))
    with closing(epochs(kind(tmp_path, overwrite=True))) as writer:
        write(writer, 1, ROWS[5:10])
    assert there(tmp_path) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_description_that_is_used_twice_does_not_mix_results(tmp_path: Path, kind: Any) -> None:
    sink = kind(tmp_path)
    with closing(epochs(sink)) as writer:
        write(writer, 1, ROWS[:5])
    with pytest.raises(ConnectorError, match="is there already"):
        epochs(sink)
    assert there(tmp_path) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_start_that_was_lost_before_anything_was_committed_is_no_obstacle(
    tmp_path: Path, kind: Any
) -> None:
    epochs(kind(tmp_path)).close()
    later = kind(tmp_path)
    later.check()
    with closing(epochs(later)) as writer:
        write(writer, 1, ROWS[:5])
    assert there(tmp_path) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", FILE_SINKS)
def test_flow_that_goes_on_finds_its_results(tmp_path: Path, kind: Any, overwrite: bool) -> None:
    with closing(epochs(kind(tmp_path, overwrite=overwrite))) as writer:
        _, token = write(writer, 1, ROWS[:5])
    later = kind(tmp_path, overwrite=overwrite)
    later.check_resumed(token)
    with closing(epochs(later, token)) as writer:
        write(writer, 2, ROWS[5:10])
    assert there(tmp_path) == list(range(10))


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_flow_that_goes_on_needs_a_folder_to_write_to(tmp_path: Path, kind: Any) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConnectorError, match="cannot be written to"):
        kind(tmp_path / "file").check_resumed({})


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_tasks_may_become_more_and_fewer(tmp_path: Path, kind: Any) -> None:
    sink, rows = kind(tmp_path), iter(ROWS)
    tokens: list[Any] = [None, None]
    for epoch, of in enumerate((2, 3, 1, 3)):
        tokens = kind(tmp_path).reassign(tokens, of)
        for index in range(of):
            with closing(epochs(sink, tokens[index], Split(index, of))) as writer:
                _, tokens[index] = write(writer, epoch, [next(rows)])
    assert sorted(there(tmp_path)) == list(range(9))


# ------------------------------------------------------------------------------- lines


def test_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    sink = JsonLinesSink(tmp_path)
    with closing(epochs(sink)) as writer:
        _, token = write(writer, 1, ROWS[:5])
    (tmp_path / "part-0.jsonl").unlink()
    with pytest.raises(ConnectorError, match=r"part-0\.jsonl is not there") as caught:
        epochs(sink, token)
    assert "put the file back" in caught.value.remedy


def test_file_that_was_cut_is_not_written_to_behind_a_hole(tmp_path: Path) -> None:
    sink, file = JsonLinesSink(tmp_path), tmp_path / "part-0.jsonl"
    with closing(epochs(sink)) as writer:
        _, token = write(writer, 1, ROWS[:5])
    file.write_bytes(b"0\n1\n")
    with (
        closing(epochs(sink, token)) as writer,
        pytest.raises(ConnectorError, match="has only 4 of 10 bytes"),
    ):
        write(writer, 2, ROWS[5:])
    assert in_lines(file) == [0, 1]


def test_file_that_is_removed_while_it_is_written(tmp_path: Path) -> None:
    with closing(epochs(JsonLinesSink(tmp_path))) as writer:
        write(writer, 1, ROWS[:5])
        (tmp_path / "part-0.jsonl").unlink()
        with pytest.raises(ConnectorError, match="was removed while it was written"):
            write(writer, 2, ROWS[5:])


def test_half_an_epoch_that_was_written_is_written_over(tmp_path: Path) -> None:
    sink, file = JsonLinesSink(tmp_path), tmp_path / "part-0.jsonl"
    with closing(epochs(sink)) as writer:
        write(writer, 1, ROWS[:5])
        blocks, token = [writer.encode(ROWS[5:])], writer.prepare(2)
    with file.open("ab") as died:
        died.write(blocks[0][:7])
    with closing(epochs(sink, token)) as writer:
        writer.apply(2, blocks, token)
    assert in_lines(file) == list(range(40))


def test_epoch_waits_for_room_on_the_disk(tmp_path: Path) -> None:
    # In a process of its own, whose system calls can be made to fail.
    script = f"""
        import errno, os
        from floodway.connectors.base import Split, Unavailable
        from floodway.connectors.json_lines import JsonLinesSink
        from floodway.core.schema import Schema

        full = True
        pwrite = os.pwrite

        def write(descriptor, data, offset):
            if full and offset >= 6:
                raise OSError(errno.ENOSPC, "No space left on device")
            return pwrite(descriptor, bytes(data)[:4], offset)

        os.pwrite = write
        sink = JsonLinesSink({str(tmp_path)!r})
        writer = sink.open_epochs(Split(), Schema.of(int), name="f.s.0", token=None)
        blocks, token = [writer.encode([(n, None, n, None) for n in range(9)])], writer.prepare(1)
        try:
            writer.apply(1, blocks, token)
        except Unavailable as away:
            print(away.reason)
        full = False
        writer.apply(1, blocks, token)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("part-0.jsonl cannot grow: No space left on device\n")
    assert in_lines(tmp_path / "part-0.jsonl") == list(range(9))


def test_writer_that_is_closed_touches_no_file(tmp_path: Path) -> None:
    writer = epochs(JsonLinesSink(tmp_path))
    blocks, token = [writer.encode(ROWS)], writer.prepare(1)
    writer.close()
    with pytest.raises(Unavailable, match="is closed"):
        writer.apply(1, blocks, token)


def test_lines_with_an_envelope(tmp_path: Path) -> None:
    with closing(epochs(JsonLinesSink(tmp_path, envelope=True))) as writer:
        write(writer, 1, [(1, "a", 5, 7), (2, "a", None, 7)])
    assert (tmp_path / "part-0.jsonl").read_text() == (
        '{"timestamp":1,"key":"a","value":5,"id":7}\n'
        '{"timestamp":2,"key":"a","value":null,"id":7}\n'
    )


# ------------------------------------------------------------------------------- parquet


def test_epoch_is_one_file_and_an_empty_one_is_none(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, rows_per_group=7)
    with closing(epochs(sink)) as writer:
        assert list(tmp_path.iterdir()) == []
        write(writer, 1, [])
        write(writer, 2, ROWS)
        write(writer, 10, ROWS[:1])
    names = [file.name for file in sorted(tmp_path.iterdir())]
    assert [name[-20:] for name in names] == ["000000000002.parquet", "000000000010.parquet"]
    assert pq.ParquetFile(tmp_path / names[0]).metadata.num_row_groups == 6


def test_what_was_not_completed_is_removed(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path)
    with closing(epochs(sink)) as writer:
        _, token = write(writer, 1, ROWS)
    hidden = [f".part-{task}-{sink.run}-000000000002.parquet.abc.tmp" for task in range(3)]
    for name in (*hidden, ".part-0-other-000000000002.parquet.abc.tmp"):
        (tmp_path / name).write_bytes(b"half")
    epochs(sink, token, Split(0, 2)).close()
    left = sorted(file.name for file in tmp_path.glob(".*"))
    assert left == [".part-0-other-000000000002.parquet.abc.tmp", *hidden[1:]]


def test_values_that_are_not_of_the_schema_are_refused_before_they_are_kept(tmp_path: Path) -> None:
    with closing(epochs(ParquetSink(tmp_path))) as writer:
        with pytest.raises(ConnectorError, match="cannot be written"):
            writer.encode([(1, None, "text", None)])
        with pytest.raises(ConnectorError, match="update of a record"):
            writer.encode([(1, None, 1, 5)])


def test_folder_of_parquet_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with closing(epochs(ParquetSink(folder))) as writer:
        folder.rmdir()
        with pytest.raises(ConnectorError, match="check the disk and the rights"):
            write(writer, 1, ROWS)


# ------------------------------------------------------------------------------- lists


def test_values_of_classes_that_only_a_test_has_come_back_as_they_were() -> None:
    class Local(Record):
        at: dt.datetime

    value, results = Local(dt.datetime(2026, 1, 1, tzinfo=dt.UTC)), ListSink()
    with closing(epochs(results, schema=object)) as writer:
        write(writer, 1, [(1, "a", value, None), (2, "b", {"x": Click("home", 1)}, None)])
    assert results.values == [value, {"x": Click("home", 1)}]
    assert type(results.values[0]) is Local


def test_values_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(ConnectorError, match="cannot be kept in a checkpoint"):
        epochs(ListSink(), schema=object).encode([(1, None, threading.Lock(), None)])


def test_list_of_two_sinks_keeps_them_apart() -> None:
    results = ListSink()
    writers = [
        results.open_epochs(Split(), Schema.of(int), name=name, token=None) for name in ("a", "b")
    ]
    tokens = [write(writer, 1, [(1, None, 1, None)])[1] for writer in writers]
    write(writers[0], 2, [(1, None, 2, None)])
    write(writers[1], 2, [(1, None, 3, None)])
    results.open_epochs(Split(), Schema.of(int), name="a", token=tokens[0])
    assert results.values == [1, 1, 3]


def test_new_list_takes_what_comes_from_then_on() -> None:
    old, new = ListSink(), ListSink()
    blocks, token = write(epochs(old), 1, ROWS[:5])
    writer = epochs(new, token)
    writer.apply(1, blocks, token)  # committed, and not known to be applied
    write(writer, 2, ROWS[5:10])
    assert (len(old.values), new.values) == (5, list(range(10)))


def test_list_that_is_used_for_another_flow_keeps_what_it_has() -> None:
    results = ListSink()
    for _ in range(2):
        write(epochs(results), 1, ROWS[:2])
    assert results.values == [0, 1, 0, 1]
