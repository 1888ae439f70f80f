"""The Redis connector, with a real server."""

import os
import pickle
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from redis import Redis

from floodway import Record
from floodway.connectors.base import Row, Split, Unavailable, Writer
from floodway.connectors.formats import Json, Text
from floodway.connectors.redis import RedisSink
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_sink
from floodway.testing.servers import RedisServer, ServerUnavailable, free_port
from tests.connectors.servers_fixtures import redis_server, running, wait_for

__all__ = ["redis_server"]  # a fixture

NOW = 1_767_225_600_000
INT = Schema.of(int)


class Fare(Record):
    gate: str
    sum: float


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator["Redis[bytes]"]:
    with Redis(port=redis_server.port) as redis:
        yield redis


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"test-{uuid.uuid4().hex[:8]}:"


def row(key: Any, value: Any) -> Row:
    return (NOW, key, value, None)


def write(sink: RedisSink, rows: list[Row], schema: Any = object) -> None:
    with closing(sink.open(Split(), Schema.of(schema))) as writer:
        writer.write(rows)
        writer.flush()


def deliver(writer: Writer, rows: list[Row], seconds: float = 20) -> None:
    """Write as an engine does: what was not taken is kept and tried again."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            writer.write(rows)
            writer.flush()
            return
        except Unavailable as away:
            rows = rows[away.taken :]
            if time.monotonic() > deadline:
                pytest.fail(away.reason)


# ------------------------------------------------------------------------------- conformance


def test_set_keeps_its_promises(redis_server: RedisServer, client: Any, name: str) -> None:
    rows = [row(f"gate {n}", Fare(f"gate {n}", n / 2)) for n in range(9)]
    expected = [f'{{"gate":"gate {n}","sum":{n / 2}}}'.encode() for n in range(9)]

    def read_back() -> list[bytes]:
        return [client.get(key) for key in sorted(client.scan_iter(f"{name}*"))]

    check_sink(RedisSink(redis_server.url, prefix=name), Fare, rows, read_back, expected=expected)


def test_hash_keeps_its_promises(redis_server: RedisServer, client: Any, name: str) -> None:
    rows = [row(f"gate {n}", n) for n in range(9)]

    def read_back() -> list[int]:
        return [int(value) for _, value in sorted(client.hgetall(name).items())]

    check_sink(RedisSink(redis_server.url, prefix=name, kind="hash"), int, rows, read_back)


def test_list_keeps_its_promises(redis_server: RedisServer, client: Any, name: str) -> None:
    rows = [row(None, n) for n in range(9)]

    def read_back() -> list[int]:
        return [int(value) for value in client.lrange(name, 0, -1)]

    check_sink(RedisSink(redis_server.url, prefix=name, kind="list"), int, rows, read_back)


def test_stream_keeps_its_promises(redis_server: RedisServer, client: Any, name: str) -> None:
    rows = [row(None, n) for n in range(9)]

    def read_back() -> list[int]:
        return [int(fields[b"value"]) for _, fields in client.xrange(name)]

    check_sink(RedisSink(redis_server.url, prefix=name, kind="stream"), int, rows, read_back)


# ------------------------------------------------------------------------------- what is written


def test_set_has_the_latest_value_of_each_key(
    redis_server: RedisServer, client: Any, name: str
) -> None:
    sink = RedisSink(host="127.0.0.1", port=redis_server.port, prefix=name)
    rows = [row("a", 1), row("b", 2), row("a", 3), row("b", None), row("c", None), row("c", 4)]
    write(sink, rows)
    assert {key: client.get(name + key) for key in "abc"} == {"a": b"3", "b": None, "c": b"4"}


@pytest.mark.parametrize("kind", ["set", "hash"])
def test_none_deletes(redis_server: RedisServer, client: Any, name: str, kind: Any) -> None:
    sink = RedisSink(redis_server.url, prefix=name, kind=kind)
    write(sink, [row("a", 1), row("b", 2)])
    write(sink, [row("a", None)])
    if kind == "set":
        assert client.mget(name + "a", name + "b") == [None, b"2"]
    else:
        assert client.hgetall(name) == {b"b": b"2"}


@pytest.mark.parametrize("kind", ["set", "hash"])
def test_keyed_kinds_can_be_written_twice(
    redis_server: RedisServer, client: Any, name: str, kind: Any
) -> None:
    sink = RedisSink(redis_server.url, prefix=name, kind=kind)
    rows = [row(n % 10, n) for n in range(30)]
    write(sink, rows)
    write(sink, rows)
    if kind == "set":
        found = {int(key[len(name) :]): int(client.get(key)) for key in client.keys(f"{name}*")}
    else:
        found = {int(key): int(value) for key, value in client.hgetall(name).items()}
    assert found == {n: n + 20 for n in range(10)}


def test_keys_of_several_columns(redis_server: RedisServer, client: Any, name: str) -> None:
    write(RedisSink(redis_server.url, prefix=name), [row(("gate", 7), 1)])
    assert client.get(f'{name}["gate",7]') == b"1"


def test_stream_entry_has_timestamp_key_and_value(
    redis_server: RedisServer, client: Any, name: str
) -> None:
    sink = RedisSink(redis_server.url, prefix=name, kind="stream")
    write(sink, [row("a", 1), row("a", None), row(None, 2)])
    stamp = str(NOW).encode()
    assert [fields for _, fields in client.xrange(name)] == [
        {b"timestamp": stamp, b"key": b"a", b"value": b"1"},
        {b"timestamp": stamp, b"key": b"a"},
        {b"timestamp": stamp, b"value": b"2"},
    ]


def test_stream_is_kept_short(redis_server: RedisServer, client: Any, name: str) -> None:
    sink = RedisSink(redis_server.url, prefix=name, kind="stream", maxlen=100)
    write(sink, [row(None, n) for n in range(3000)])
    assert 100 <= client.xlen(name) < 1000
    ((_, last),) = client.xrevrange(name, count=1)
    assert last[b"value"] == b"2999"


@pytest.mark.parametrize("kind", ["set", "hash", "list", "stream"])
def test_ttl(redis_server: RedisServer, client: Any, name: str, kind: Any) -> None:
    write(RedisSink(redis_server.url, prefix=name, kind=kind, ttl="1h"), [row("a", 1)])
    key = name + "a" if kind == "set" else name
    assert 3_500_000 < client.pttl(key) <= 3_600_000


def test_without_ttl_values_stay(redis_server: RedisServer, client: Any, name: str) -> None:
    write(RedisSink(redis_server.url, prefix=name), [row("a", 1)])
    assert client.pttl(name + "a") == -1


def test_other_formats(redis_server: RedisServer, client: Any, name: str) -> None:
    write(RedisSink(redis_server.url, prefix=name, format=Text()), [row("a", "näher")], str)
    assert client.get(name + "a") == "näher".encode()


def test_twenty_thousand_rows(redis_server: RedisServer, client: Any, name: str) -> None:
    write(RedisSink(redis_server.url, prefix=name), [row(n, n) for n in range(20_000)])
    values = client.mget([f"{name}{n}" for n in range(20_000)])
    assert values == [str(n).encode() for n in range(20_000)]


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("kind", ["set", "hash"])
def test_keyed_kinds_need_keys(redis_server: RedisServer, name: str, kind: Any) -> None:
    with pytest.raises(ConnectorError, match="without a key") as caught:
        write(RedisSink(redis_server.url, prefix=name, kind=kind), [row(None, 1)])
    assert "key_by" in caught.value.remedy


def test_list_has_no_place_for_deletions(redis_server: RedisServer, name: str) -> None:
    with pytest.raises(ConnectorError, match="no place for a deletion"):
        write(RedisSink(redis_server.url, prefix=name, kind="list"), [row("a", None)])


def test_key_that_holds_something_else(redis_server: RedisServer, client: Any, name: str) -> None:
    client.set(name, "x")
    with pytest.raises(ConnectorError, match="WRONGTYPE") as caught:
        write(RedisSink(redis_server.url, prefix=name, kind="list"), [row("a", 1)])
    assert "another prefix=" in caught.value.remedy


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "heap"},
        {"kind": "hash"},
        {"kind": "list", "prefix": "x", "maxlen": 10},
        {"kind": "stream", "prefix": "x", "maxlen": 0},
        {"url": "127.0.0.1:6379"},
    ],
    ids=str,
)
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(OptionError):
        RedisSink(**options)


def test_server_that_is_not_there() -> None:
    port = free_port()
    sink = RedisSink(f"redis://:hunter2@127.0.0.1:{port}/0")
    with pytest.raises(ConnectorError) as caught:
        sink.check()
    assert f"127.0.0.1:{port}" in caught.value.problem
    assert "start the server" in caught.value.remedy
    assert "hunter2" not in str(caught.value)
    with pytest.raises(Unavailable) as away:
        write(sink, [row("a", 1)])
    assert "hunter2" not in away.value.reason
    assert away.value.taken == 0


def test_password() -> None:
    with running(RedisServer(password="hunter2")) as server:
        RedisSink(server.url).check()
        for url in (f"redis://127.0.0.1:{server.port}", f"redis://:swordfish@{address(server)}"):
            with pytest.raises(ConnectorError, match="does not let us in") as caught:
                RedisSink(url).check()
            assert "swordfish" not in str(caught.value)


def address(server: RedisServer) -> str:
    return f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    "url",
    [
        "redis://jane:hunter2@127.0.0.1:6379/0",
        "rediss://:hunter2@127.0.0.1:6379/0",
        "redis://127.0.0.1:6379/0?password=hunter2",
        "redis://:hunter2@127.0.0.1:no-port/0",
    ],
)
def test_secrets_are_not_shown(url: str) -> None:
    sink = RedisSink(url)
    assert "127.0.0.1" in repr(sink)
    for text in (repr(sink), str(sink)):
        assert "hunter2" not in text
        assert "jane" not in text


def test_address_that_is_none_is_an_error_without_secrets() -> None:
    with pytest.raises(ConnectorError, match="no address of a Redis") as caught:
        RedisSink("redis://:hunter2@127.0.0.1:no-port/0").check()
    assert "hunter2" not in str(caught.value)


def test_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConnectorError) as caught:
        RedisSink().check()
    assert caught.value.remedy == "pip install floodway[redis]"


def test_descriptions_travel() -> None:
    sink = RedisSink("redis://:x@127.0.0.1:1/2", prefix="p", kind="stream", maxlen=5, ttl="1m")
    assert vars(pickle.loads(pickle.dumps(sink))) == vars(sink)


# ------------------------------------------------------------------------------- survival


@pytest.mark.parametrize("crash", [False, True], ids=["stop", "kill"])
def test_writer_survives_a_restart_of_the_server(crash: bool) -> None:
    with running(RedisServer(keep=True)) as server:
        sink = RedisSink(server.url, prefix="gate:")
        with closing(sink.open(Split(), INT)) as writer:
            deliver(writer, [row(n, n) for n in range(3000)])
            if crash:
                server.kill()
            else:
                server.stop()
            later = [row(n, n) for n in range(2000, 5000)]
            with pytest.raises(Unavailable) as away:
                writer.write(later)
            assert away.value.taken == 0
            server.start()
            deliver(writer, later)
        with Redis(port=server.port) as client:
            assert client.dbsize() == 5000
            assert client.mget([f"gate:{n}" for n in range(5000)]) == [
                str(n).encode() for n in range(5000)
            ]


class Trap(Json):
    """Ends the server when it comes to a certain value, once."""

    def __init__(self, server: RedisServer, value: int) -> None:
        self.server = server
        self.value = value

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        encode = super().encoder(schema)

        def encode_or_kill(value: Any) -> bytes:
            if value == self.value and self.server.running:
                self.server.kill()
            return encode(value)

        return encode_or_kill


def test_connection_that_is_lost_in_the_middle_says_what_was_taken() -> None:
    with running(RedisServer(keep=True)) as server:
        sink = RedisSink(server.url, prefix="all", kind="list", format=Trap(server, 1500))
        rows = [row(None, n) for n in range(2500)]
        with closing(sink.open(Split(), INT)) as writer:
            with pytest.raises(Unavailable) as away:
                writer.write(rows)
            assert away.value.taken == 1000
        server.start()
        left = rows[away.value.taken :]
        with closing(RedisSink(server.url, prefix="all", kind="list").open(Split(), INT)) as writer:
            deliver(writer, left)
        with Redis(port=server.port) as client:
            assert [int(value) for value in client.lrange("all", 0, -1)] == list(range(2500))


# ------------------------------------------------------------------------------- the server


def test_server_keeps_port_and_loses_data_by_default() -> None:
    with running(RedisServer()) as server:
        port = server.port
        with Redis(port=port) as client:
            client.set("a", 1)
        server.restart()
        assert server.port == port
        with Redis(port=port) as client:
            assert client.get("a") is None


def test_server_leaves_nothing_behind() -> None:
    with running(RedisServer()) as server:
        folder = server.folder
        assert folder is not None
        assert folder.exists()
        assert server.running
    assert not server.running
    assert not folder.exists()


def test_server_that_cannot_start_says_why() -> None:
    with running(RedisServer()) as server:
        second = RedisServer(port=server.port, password="x")
        with pytest.raises(ServerUnavailable, match="in use"):
            second.start()
        second.close()


def test_server_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerUnavailable, match="redis-server is not"), RedisServer():
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_command_ends_with_its_server(
    redis_server: RedisServer, number: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "floodway.testing.servers", "redis"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert "redis is ready: redis://127.0.0.1:" in lines[1]
        assert "Ctrl-C" in lines[2]
        (server,) = psutil.Process(process.pid).children()
        process.send_signal(number)
        last = process.stdout.read()
    wait_for(lambda: not server.is_running())
    if number != signal.SIGKILL:
        assert process.returncode == 0
        assert "its data are removed" in last
        assert list(tmp_path.iterdir()) == []
