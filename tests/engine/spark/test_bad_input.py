"""What goes wrong while a flow runs: who says what, and what goes on."""

import ctypes
import logging
import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

import floodway as fw
from floodway.connectors.csv import CsvSource
from floodway.connectors.json_lines import JsonLinesSink, JsonLinesSource
from floodway.connectors.kafka import KafkaSource
from floodway.connectors.tcp import TcpSource
from floodway.core.errors import ConnectorError, EngineError, FloodwayError, OperatorError
from floodway.engine.datastream.settings import Settings
from floodway.testing import ListSink, ListSource
from floodway.testing.servers import free_port
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("shared_spark", "clean")]

LINES = b'{"n": 1}\n\xff\xfe{\n{"n": "two"}\n{"m": 3}\n{"n": 4}\n{"n": 5'


class Number(fw.Record):
    n: int


def bad_file(folder: Path) -> JsonLinesSource:
    file = folder / "in.jsonl"
    file.write_bytes(LINES)
    return JsonLinesSource(file)


def test_bytes_that_are_no_json_fail_the_flow(tmp_path: Path) -> None:
    flow, sink = fw.Flow("bad"), ListSink()
    flow.source("numbers", bad_file(tmp_path), schema=Number).to(sink)
    with pytest.raises(OperatorError, match="numbers") as caught:
        flow.run()
    assert caught.value.operator == "numbers"
    assert str(caught.value.place).startswith("tests/engine/spark/test_bad_input.py:")
    assert r"b'\xff\xfe{'" in caught.value.problem
    assert "on_error='skip'" in caught.value.remedy


def test_bytes_that_are_no_json_are_skipped_and_counted(tmp_path: Path) -> None:
    flow, sink = fw.Flow("bad"), ListSink()
    flow.source("numbers", bad_file(tmp_path), schema=Number, on_error="skip").to(sink)
    job = flow.run()
    assert [number.n for number in sink.values] == [1, 4]
    assert job.status.totals.skipped == 4


def test_bytes_that_are_no_json_become_dead_letters(tmp_path: Path) -> None:
    flow, sink, dead = fw.Flow("bad"), ListSink(), ListSink()
    numbers = flow.source("numbers", bad_file(tmp_path), schema=Number, on_error="dead_letter")
    numbers.to(sink)
    numbers.dead_letters.to(dead)
    flow.run(dop=2)
    assert [number.n for number in sink.values] == [1, 4]
    assert [letter.value for letter in dead.values] == [
        b"\xff\xfe{",
        b'{"n": "two"}',
        b'{"m": 3}',
        b'{"n": 5',  # half a line at the end of a file is a line
    ]
    assert {letter.operator for letter in dead.values} == {"numbers"}


ROWS = b"n\n1\n\xff\n" + b"9" * 140_000 + b'\n"2\n3\n9223372036854775808\n4\n'


@pytest.mark.parametrize("paradigm", ["data", "operation"])
def test_rows_that_are_no_csv_are_skipped_or_become_dead_letters(
    tmp_path: Path, paradigm: str
) -> None:
    file = tmp_path / "in.csv"
    file.write_bytes(ROWS)
    for policy in ("skip", "dead_letter"):
        flow, sink, dead = fw.Flow("bad"), ListSink(), ListSink()
        numbers = flow.source("numbers", CsvSource(file), schema=Number, on_error=policy)
        numbers.key_by("n").to(sink)
        if policy == "dead_letter":
            numbers.dead_letters.to(dead)
        job = flow.run(dop=2, paradigm=paradigm)
        assert sorted(number.n for number in sink.values) == [1, 3, 4]
        assert job.status.totals.skipped + len(dead.values) == 4
        assert job.status.totals.records_in == 7
    assert "utf-8" in dead.values[0].error


def test_half_a_line_at_the_end_of_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b'{"n": 1}\n{"n": 2}\n{"n"')

        thread = threading.Thread(target=serve)
        thread.start()
        flow, sink, dead = fw.Flow("half"), ListSink(), ListSink()
        source = TcpSource("127.0.0.1", server.getsockname()[1])
        numbers = flow.source("numbers", source, schema=Number, on_error="dead_letter")
        numbers.to(sink)
        numbers.dead_letters.to(dead)
        flow.run()
        thread.join()
    assert [number.n for number in sink.values] == [1, 2]
    assert [letter.value for letter in dead.values] == [b'{"n"']


def test_no_broker_is_refused_before_anything_starts() -> None:
    flow = fw.Flow("nobody")
    address = f"127.0.0.1:{free_port()}"
    flow.source("taps", KafkaSource("taps", servers=address), schema=Number).to(ListSink())
    with pytest.raises(ConnectorError, match=address) as caught:
        flow.start()
    assert caught.value.operator == "taps"


def test_a_server_that_is_not_there() -> None:
    flow = fw.Flow("nobody")
    source = TcpSource("127.0.0.1", free_port(), patience="300ms")
    flow.source("numbers", source, schema=Number).to(ListSink())
    with pytest.raises(ConnectorError, match=str(source.port)) as caught:
        flow.run()
    assert caught.value.operator == "numbers"
    assert caught.value.place is not None


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    flow = fw.Flow("nowhere")
    numbers = flow.source("numbers", ListSource([1]), schema=int)
    numbers.to(JsonLinesSink(tmp_path / "file" / "out"), name="out")
    with pytest.raises(ConnectorError, match="cannot be written to") as caught:
        flow.start()
    assert caught.value.operator == "out"


def test_a_function_that_cannot_be_shipped() -> None:
    lock = threading.Lock()

    def locked(value: int) -> int:
        with lock:
            return value

    flow = fw.Flow("locked")
    flow.source("numbers", ListSource([1]), schema=int).map(locked, name="mine").to(ListSink())
    with pytest.raises(EngineError, match=r"cannot be shipped.*lock") as caught:
        flow.start()
    assert caught.value.operator == "mine"
    assert str(caught.value.place).startswith("tests/engine/spark/test_bad_input.py:")
    assert "locks" in caught.value.remedy


def fails_on_seven(value: int) -> int:
    if value == 7:
        raise ValueError("no sevens")
    return value


@pytest.mark.parametrize("dop", [1, 3])
def test_a_function_that_raises(dop: int) -> None:
    flow, sink = fw.Flow("sevens"), ListSink()
    numbers = flow.source("numbers", ListSource(range(10)), schema=int)
    numbers.map(fails_on_seven, name="mine").to(sink)
    with pytest.raises(OperatorError, match=r"record 7 .*ValueError: no sevens") as caught:
        flow.run(dop=dop)
    assert caught.value.operator == "mine"
    assert str(caught.value.place).startswith("tests/engine/spark/test_bad_input.py:")


def test_a_function_that_returns_something_else_than_it_says(tmp_path: Path) -> None:
    def lies(value: int) -> int:
        return "x"  # type: ignore[return-value]

    flow, sink = fw.Flow("lies"), ListSink()
    flow.source("numbers", ListSource([1]), schema=int).map(lies, name="mine").to(sink)
    with pytest.raises(FloodwayError) as caught:
        flow.run()
    assert "mine" in str(caught.value)
    assert "Floodway" not in caught.value.remedy  # it is not our fault


class Strange:
    """What no channel can carry: it refuses to be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("strange things stay where they are")


def test_a_value_that_cannot_travel() -> None:
    flow, sink = fw.Flow("strange"), ListSink()
    numbers = flow.source("numbers", ListSource([1]), schema=int)
    numbers.map(lambda value: Strange(), schema=Any, name="mine").to(sink)
    with pytest.raises(FloodwayError) as caught:
        flow.run()
    assert "Strange" in caught.value.problem or "strange" in caught.value.problem
    assert "mine" in str(caught.value)
    assert "Floodway" not in caught.value.remedy


def test_a_function_that_blocks_is_named(caplog: pytest.LogCaptureFixture) -> None:
    def waits(value: int) -> int:
        threading.Event().wait(2)
        return value

    flow, sink = fw.Flow("blocked"), ListSink()
    flow.source("numbers", ListSource([1]), schema=int).map(waits, name="mine").to(sink)
    with caplog.at_level(logging.WARNING), flow.start(settings=Settings(stuck_s=0.4)) as job:
        wait_for(lambda: "in one call" in caplog.text, "a warning")
        assert job.wait(60)
    line = waits.__code__.co_firstlineno + 1
    assert f"{__file__}:{line} in waits" in caplog.text
    assert sink.values == [1]


def test_a_function_that_keeps_the_interpreter_to_itself_is_named_and_not_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def searches(value: str) -> bool:
        return re.match(r"(a+)+$", value) is None  # takes twice as long for each letter

    text, settings = "a" * 27 + "!", Settings(stuck_s=0.4, silent_s=2.0)
    flow, sink = fw.Flow("searches"), ListSink()
    flow.source("texts", ListSource([text]), schema=str).map(searches, name="mine").to(sink)
    with caplog.at_level(logging.WARNING), flow.start(settings=settings) as job:
        wait_for(lambda: "in one call" in caplog.text, "a warning")
        assert job.wait(120)
    assert f"at the record '{text}'" in caplog.text
    assert f"{__file__}:{searches.__code__.co_firstlineno + 1} in searches" in caplog.text
    assert "silent" not in caplog.text
    assert sink.values == [True]


def test_a_call_into_c_that_crashes_is_named() -> None:
    def crashes(value: int) -> int:
        return len(ctypes.string_at(value))

    flow = fw.Flow("crashes")
    flow.source("numbers", ListSource([1]), schema=int).map(crashes, name="mine").to(ListSink())
    with pytest.raises(EngineError, match="its process died") as caught:
        flow.run(recovery=False)
    line = crashes.__code__.co_firstlineno + 1
    assert f"(Segmentation fault, {__file__}:{line} in crashes)" in str(caught.value)


def test_a_flow_that_failed_leaves_spark_usable() -> None:
    flow = fw.Flow("fails")
    numbers = flow.source("numbers", ListSource([7]), schema=int)
    numbers.map(fails_on_seven).to(ListSink())
    with pytest.raises(OperatorError):
        flow.run()
    flow, sink = fw.Flow("works"), ListSink()
    flow.source("numbers", ListSource([6]), schema=int).map(fails_on_seven).to(sink)
    flow.run()
    assert sink.values == [6]
