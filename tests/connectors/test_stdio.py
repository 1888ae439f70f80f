"""Standard input and output."""

import fcntl
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodway.connectors.base import Split
from floodway.connectors.formats import Bytes, Msgpack, Text
from floodway.connectors.stdio import DescriptorReader, StdinSource, StdoutSink
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_sink
from tests.connectors.peers import read_lines
from tests.waiting import DEADLINE_S

SUM = """
from floodway.connectors.base import Split
from floodway.connectors.stdio import StdinSource, StdoutSink
from floodway.core.schema import Schema
from floodway.testing.conformance import check_source

check_source(StdinSource(), range(1000), schema=int)
StdoutSink().open(Split(), Schema.of(int)).write([(1, None, 499500, None)])
"""


def test_promises_with_a_real_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SUM],
        input=b"\n".join(b"%d" % n for n in range(1000)),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"499500\n", b"")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe; a test may close the writing end."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    try:
        os.close(writing)
    except OSError:
        return


def test_half_a_line_is_no_silence(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    reader = DescriptorReader(reading, 4, "a pipe")
    assert not reader.amid
    for piece, expected, amid in [
        (b"1\n2", b"1\n", True),
        (b"3\n", b"23\n", False),
        (b"45678", None, True),  # too long, and not over
        (b"9\n", b"", False),
    ]:
        os.write(writing, piece)
        found = reader.poll(10)
        assert expected is None or found == expected
        assert reader.amid == amid


def test_reader_never_waits_and_changes_no_flags(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    flags = fcntl.fcntl(reading, fcntl.F_GETFL)
    reader = DescriptorReader(reading, 1_000, "a pipe")
    assert reader.fileno() == reading
    assert reader.poll(10) == []
    os.write(writing, b"one\ntw")
    assert reader.poll(10) == b"one\n"
    assert reader.poll(10) == []
    os.write(writing, b"o")
    os.close(writing)
    assert read_lines(reader) == [b"two"]
    assert reader.poll(10) is None
    assert reader.fileno() is None
    assert fcntl.fcntl(reading, fcntl.F_GETFL) == flags
    reader.close()
    os.fstat(reading)  # still open: it is not the reader's


def test_line_that_is_too_long(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"x" * 2_000 + b"\n2\n")
    reader = DescriptorReader(pipe[0], 1_000, "a pipe")
    bad, good = read_lines(reader, until=lambda got: len(got) == 2)
    assert (bad.problem, good) == ("a line of a pipe is longer than 1,000 bytes", b"2")


def test_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"1\n2\n")
    with file.open("rb") as opened:
        reader = DescriptorReader(opened.fileno(), 1_000, "a file")
        assert reader.fileno() is None
        assert read_lines(reader) == [b"1", b"2"]


def test_closed_input_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as opened:
        reader = DescriptorReader(opened.fileno(), 1_000, "standard input")
        with pytest.raises(ConnectorError, match="standard input cannot be read"):
            reader.poll(1)


def test_promises_of_output(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw) as out:
        monkeypatch.setattr(sys, "stdout", out)
        rows = [(n, None, n, None) for n in range(9)]
        check_sink(StdoutSink(), int, rows, lambda: [int(n) for n in raw.getvalue().splitlines()])
        monkeypatch.undo()


def test_order_with_print(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    writer = StdoutSink(Text()).open(Split(), Schema.of(str))
    sys.stdout.write("first\n")
    writer.write([(1, None, "second", None)])
    sys.stdout.write("third\n")
    assert capsysbinary.readouterr().out == b"first\nsecond\nthird\n"


def test_notebooks_take_only_text(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    StdoutSink(envelope=True).open(Split(), Schema.of(int)).write([(1, "k", 5, 7)])
    monkeypatch.undo()
    assert out.getvalue() == '{"timestamp":1,"key":"k","value":5,"id":7}\n'


def test_output_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    out.close()
    monkeypatch.setattr(sys, "stdout", out)
    writer = StdoutSink().open(Split(), Schema.of(int))
    with pytest.raises(ConnectorError, match="standard output cannot be written"):
        writer.write([(1, None, 5, None)])
    monkeypatch.undo()


def test_value_with_a_line_end_is_refused() -> None:
    writer = StdoutSink(Text()).open(Split(), Schema.of(str))
    with pytest.raises(ConnectorError, match="a line end in it") as caught:
        writer.write([(1, None, "two\nlines", None)])
    assert "Json()" in caught.value.remedy


def test_formats_that_do_not_go_with_lines() -> None:
    for connector in (StdinSource(Msgpack()), StdoutSink(Text("utf-16"))):
        with pytest.raises(OptionError, match="cannot be split into lines"):
            connector.check()
    with pytest.raises(OptionError, match="envelope only in JSON"):
        StdoutSink(Bytes(), envelope=True).open(Split(), Schema.of(bytes))
