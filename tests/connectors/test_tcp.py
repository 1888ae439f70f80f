"""TCP: lines in, lines out, servers that go away and come back."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from floodway.connectors.base import Lag, Reader, Split, Unavailable
from floodway.connectors.formats import Bytes, Msgpack, Text
from floodway.connectors.tcp import TcpSink, TcpSource
from floodway.connectors.tcp_reader import TcpReader
from floodway.connectors.tcp_writer import unacknowledged
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_sink, check_source
from tests.connectors.peers import LOCALHOST, Receiver, free_port, listening, port_of, read_lines
from tests.waiting import wait_for


def serve(server: socket.socket, *pieces: bytes) -> None:
    """Accept one connection, send pieces and close."""
    connection, _ = server.accept()
    with connection:
        for piece in pieces:
            connection.sendall(piece)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with listening() as opened:
        yield opened


def test_promises_of_sources(server: socket.socket) -> None:
    numbers = b"".join(b"%d\n" % number for number in range(2_000))
    thread = threading.Thread(target=serve, args=(server, numbers))
    thread.start()
    check_source(TcpSource(LOCALHOST, port_of(server)), range(2_000), schema=int)
    thread.join()


def test_lines_in_pieces_and_half_a_line_at_the_end(server: socket.socket) -> None:
    thread = threading.Thread(target=serve, args=(server, b"on", b"e\ntw", b"o\n", b"half"))
    thread.start()
    reader = TcpSource(LOCALHOST, port_of(server), format=Text()).open(Split())
    assert read_lines(reader) == [b"one", b"two", b"half"]
    assert reader.poll(1) is None
    thread.join()
    reader.close()


def test_lag_is_what_waits_in_the_socket(server: socket.socket) -> None:
    reader = TcpSource(LOCALHOST, port_of(server)).open(Split())
    assert reader.lag() == Lag()
    reader.poll(10)
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"1\n" * 10)
        assert len(read_lines(reader, until=lambda lines: len(lines) >= 10)) == 10
        assert reader.lag() == Lag(0, full=False)
        connection.sendall(b"2\n" * 100)
        wait_for(lambda: reader.lag() == Lag(100, full=False))
        connection.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                connection.send(b"3\n" * 100_000)
        wait_for(lambda: reader.lag().full)
    reader.close()


def test_descriptor_becomes_readable(server: socket.socket) -> None:
    reader = TcpSource(LOCALHOST, port_of(server)).open(Split())
    assert reader.fileno() is None
    assert reader.poll(10) in ([], b"")
    connection, _ = server.accept()
    with connection:
        wait_for(lambda: reader.poll(10) is not None and reader.fileno() is not None)
        connection.sendall(b"1\n")
        assert read_lines(reader, until=len) == [b"1"]
    reader.close()
    assert reader.fileno() is None


def test_half_a_line_is_no_silence(server: socket.socket) -> None:
    # A line that took longer to arrive than a source may be silent made its source idle.
    reader = TcpSource(LOCALHOST, port_of(server), on_close="reconnect").open(Split())
    assert reader.poll(10) in ([], b"")
    connection, _ = server.accept()
    with connection:
        wait_for(lambda: reader.poll(10) is not None and reader.fileno() is not None)
        assert not reader.amid
        connection.sendall(b"1\n2")
        assert read_lines(reader, until=len) == [b"1"]
        assert reader.amid
        assert reader.poll(10) == []
        assert reader.amid
        connection.sendall(b"3\n")
        assert read_lines(reader, until=len) == [b"23"]
        assert not reader.amid
    reader.close()


def why_away(reader: Reader) -> str | None:
    """Return why there is nothing to read, if that is said."""
    try:
        reader.poll(10)
    except Unavailable as error:
        return error.reason
    return None


def test_nobody_listens_until_patience_is_over() -> None:
    port, now = free_port(), 100.0
    reader = TcpReader(TcpSource(LOCALHOST, port, patience="5s"), clock=lambda: now)
    refused = f"{LOCALHOST}:{port} cannot be reached (ECONNREFUSED)"
    wait_for(lambda: why_away(reader) == refused)
    now += 4.9
    wait_for(lambda: why_away(reader) == refused)
    now += 10
    with pytest.raises(ConnectorError, match=f"{LOCALHOST}:{port} cannot be reached .* for 5s"):
        wait_for(lambda: why_away(reader) == "gave up")
    reader.close()


def test_server_comes_later() -> None:
    port = free_port()
    reader = TcpSource(LOCALHOST, port, patience="20s").open(Split())
    wait_for(lambda: why_away(reader))
    assert not reader.there  # so that it has nothing to give does not make it idle
    with listening(port) as server:
        thread = threading.Thread(target=serve, args=(server, b"7\n"))
        thread.start()
        assert read_lines(reader) == [b"7"]
        thread.join()
    reader.close()


def test_host_with_several_addresses(server: socket.socket) -> None:
    """Only one of the addresses of localhost has a server; which is tried first is not said."""
    thread = threading.Thread(target=serve, args=(server, b"7\n"))
    thread.start()
    reader = TcpSource("localhost", port_of(server), patience="20s").open(Split())
    assert read_lines(reader) == [b"7"]
    reader.close()
    thread.join()


def test_server_closes_and_comes_back(server: socket.socket) -> None:
    source = TcpSource(LOCALHOST, port_of(server), on_close="reconnect")
    reader = source.open(Split())

    def twice() -> None:
        serve(server, b"1\n2")
        serve(server, b"3\n")

    thread = threading.Thread(target=twice)
    thread.start()
    assert read_lines(reader, until=lambda got: len(got) == 3) == [b"1", b"2", b"3"]
    thread.join()
    reader.close()


def reset(server: socket.socket, data: bytes) -> None:
    """Accept one connection, send something and break it off."""
    connection, _ = server.accept()
    connection.sendall(data)
    wait_for(lambda: unacknowledged(connection) == 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_broken_connection_is_an_error(server: socket.socket) -> None:
    thread = threading.Thread(target=reset, args=(server, b"1\nhalf"))
    reader = TcpSource(LOCALHOST, port_of(server)).open(Split())
    thread.start()
    with pytest.raises(ConnectorError, match=f"{port_of(server)} broke"):
        read_lines(reader)
    thread.join()
    reader.close()


def test_half_line_of_broken_connection_is_dropped(server: socket.socket) -> None:
    def resets_then_serves() -> None:
        reset(server, b"half")
        serve(server, b"2\n")

    thread = threading.Thread(target=resets_then_serves)
    reader = TcpSource(LOCALHOST, port_of(server), on_close="reconnect").open(Split())
    thread.start()
    assert read_lines(reader, until=len) == [b"2"]
    thread.join()
    reader.close()


def test_line_that_never_ends_cannot_be_read(server: socket.socket) -> None:
    thread = threading.Thread(target=serve, args=(server, b"x" * 5_000))
    reader = TcpSource(LOCALHOST, port_of(server), max_bytes=1_000).open(Split())
    thread.start()
    (bad,) = read_lines(reader)
    assert bad.problem.endswith(f"{port_of(server)} is longer than 1,000 bytes")
    reader.close()
    thread.join()


@pytest.mark.parametrize(
    "make",
    [
        lambda: TcpSource(LOCALHOST, 0),
        lambda: TcpSink(LOCALHOST, 70_000),
        lambda: TcpSource(LOCALHOST, 1, on_close="wait"),  # type: ignore[arg-type]
        lambda: TcpSource(LOCALHOST, 1, format=Msgpack()).check(),
        lambda: TcpSink(LOCALHOST, 1, format=Msgpack()).check(),
    ],
)
def test_options_that_make_no_sense(make: Callable[[], object]) -> None:
    with pytest.raises(OptionError):
        make()


def test_unknown_host_is_refused_before_the_start() -> None:
    with pytest.raises(ConnectorError, match=r"host 'nowhere\.invalid' of nowhere\.invalid:1"):
        TcpSource("nowhere.invalid", 1).check()


def test_promises_of_sinks(server: socket.socket) -> None:
    rows = [(number, None, number, None) for number in range(100)]
    with Receiver(server) as receiver:
        check_sink(
            TcpSink(LOCALHOST, port_of(server)),
            int,
            rows,
            lambda: [int(line) for line in receiver.lines()],
        )


def test_sink_says_that_nobody_is_there() -> None:
    port = free_port()
    writer = TcpSink(LOCALHOST, port).open(Split(), Schema.of(int))
    with pytest.raises(Unavailable, match=f"{LOCALHOST}:{port} cannot be reached") as caught:
        writer.write([(1, None, 10, None)])
    assert caught.value.taken == 1
    with listening(port) as server, Receiver(server) as receiver:
        writer.write([(2, None, 20, None)])
        writer.flush()
        wait_for(lambda: receiver.lines() == [b"10", b"20"])
        writer.close()


def accepts(write: Callable[[], None]) -> bool:
    try:
        write()
    except Unavailable:
        return False
    return True


def test_sink_sends_again_what_was_not_acknowledged() -> None:
    with listening() as server:
        port = port_of(server)
        writer = TcpSink(LOCALHOST, port).open(Split(), Schema.of(int))
        writer.write([(1, None, 10, None)])
        first, _ = server.accept()
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        first.close()

        wait_for(lambda: not accepts(lambda: writer.write([])))
        with Receiver(server) as receiver:
            writer.write([(2, None, 20, None)])
            writer.flush()
            wait_for(lambda: receiver.lines() == [b"10", b"20"])
            writer.close()


def test_sink_says_that_receiver_is_slow(server: socket.socket) -> None:
    writer = TcpSink(LOCALHOST, port_of(server), format=Bytes()).open(Split(), Schema.of(bytes))
    row, written = (1, None, b"x" * 1_000_000, None), 0
    while accepts(lambda: writer.write([row])):
        written += 1
        assert written < 100, "nothing is full"
    written += 1  # the sink keeps the row that did not fit
    with Receiver(server) as receiver:
        wait_for(lambda: accepts(writer.flush))
        wait_for(lambda: len(receiver.received) == written * 1_000_001)
        writer.close()
