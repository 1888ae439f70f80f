"""Whole epochs to a real Redis."""

import pickle
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from threading import Thread
from typing import Any

import pytest
from redis import Redis

from floodway.connectors.base import EpochWriter, Row, Split, Unavailable
from floodway.connectors.redis import RedisSink
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_epoch_sink
from floodway.testing.servers import RedisServer
from tests.connectors.servers_fixtures import redis_server, running

__all__ = ["redis_server"]  # a fixture

NOW = 1_767_225_600_000


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator["Redis[bytes]"]:
    with Redis(port=redis_server.port) as redis:
        yield redis


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"test-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def sink(redis_server: RedisServer, name: str) -> Callable[..., RedisSink]:
    return lambda kind="list", **options: RedisSink(
        redis_server.url, prefix=f"{name}:", kind=kind, **options
    )


def row(key: Any, value: Any) -> Row:
    return (NOW, key, value, None)


def epochs(sink: RedisSink, name: str, token: Any = None) -> EpochWriter:
    shipped = pickle.loads(pickle.dumps(sink))
    writer: EpochWriter = shipped.open_epochs(Split(), Schema.of(int), name=name, token=token)
    return writer


def write(writer: EpochWriter, epoch: int, rows: list[Row]) -> tuple[list[bytes], Any]:
    blocks, token = [writer.encode(rows)], writer.prepare(epoch)
    writer.apply(epoch, blocks, token)
    return blocks, token


def in_list(client: Any, name: str) -> list[int]:
    return [int(value) for value in client.lrange(f"{name}:", 0, -1)]


# ------------------------------------------------------------------------------- conformance


ROWS = [row(f"gate {n % 5}", n) for n in range(16)]


def latest(rows: Sequence[Row]) -> list[int]:
    return sorted({key: value for _, key, value, _ in rows}.values())


def test_list_keeps_its_promises(sink: Any, client: Any, name: str) -> None:
    check_epoch_sink(sink(), int, ROWS, lambda: in_list(client, name), name=name)


def test_stream_keeps_its_promises(sink: Any, client: Any, name: str) -> None:
    def read_back() -> list[int]:
        return [int(fields[b"value"]) for _, fields in client.xrange(f"{name}:")]

    check_epoch_sink(sink("stream"), int, ROWS, read_back, name=name)


def test_hash_keeps_its_promises(sink: Any, client: Any, name: str) -> None:
    def read_back() -> list[int]:
        return sorted(int(value) for value in client.hvals(f"{name}:"))

    check_epoch_sink(sink("hash"), int, ROWS, read_back, name=name, expected=latest)


def test_set_keeps_its_promises(sink: Any, client: Any, name: str) -> None:
    def read_back() -> list[int]:
        return sorted(int(client.get(key)) for key in client.scan_iter(f"{name}:*"))

    check_epoch_sink(sink("set"), int, ROWS, read_back, name=name, expected=latest)


# ------------------------------------------------------------------------------- what is written


@pytest.mark.parametrize("kind", ["set", "hash", "list", "stream"])
def test_large_epoch(sink: Any, client: Any, name: str, kind: Any) -> None:
    rows = [row(n % 60_000, n) for n in range(100_000)]
    with closing(epochs(sink(kind), name)) as writer:
        blocks = [writer.encode(rows[begin : begin + 1000]) for begin in range(0, 100_000, 1000)]
        token = writer.prepare(1)
        for _ in range(2):
            writer.apply(1, blocks, token)
    match kind:
        case "set":
            assert [client.get(f"{name}:{key}") for key in (0, 59_999)] == [b"60000", b"59999"]
        case "hash":
            assert client.hlen(f"{name}:") == 60_000
            assert client.hget(f"{name}:", "39999") == b"99999"
        case "list":
            assert in_list(client, name) == list(range(100_000))
        case "stream":
            values = [int(fields[b"value"]) for _, fields in client.xrange(f"{name}:")]
            assert values == list(range(100_000))


@pytest.mark.parametrize("kind", ["set", "hash"])
def test_last_row_of_a_key_counts_also_if_it_deletes(
    sink: Any, client: Any, name: str, kind: Any
) -> None:
    with closing(epochs(sink(kind), name)) as writer:
        write(writer, 1, [row("a", 1), row("b", 1), row("c", 1)])
        write(writer, 2, [row("a", None), row("b", None), row("b", 2), row("c", 2), row("c", None)])
    if kind == "set":
        assert client.mget(*[f"{name}:{key}" for key in "abc"]) == [None, b"2", None]
    else:
        assert client.hgetall(f"{name}:") == {b"b": b"2"}


@pytest.mark.parametrize("kind", ["set", "hash", "list", "stream"])
def test_rows_go_when_their_time_is_over_and_the_mark_stays(
    sink: Any, client: Any, name: str, kind: Any
) -> None:
    key = f"{name}:a" if kind == "set" else f"{name}:"
    with closing(epochs(sink(kind, ttl="1h"), name)) as writer:
        _, token = write(writer, 1, [row("a", 1)])
    assert 3_000_000 < client.pttl(key) <= 3_600_000
    mark = f"floodway:applied:{name}:{token['run']}"
    assert (client.get(mark), client.pttl(mark)) == (b"1", -1)


def test_rows_that_a_kind_has_no_place_for_are_refused_before_they_are_kept(
    sink: Any, name: str
) -> None:
    with (
        closing(epochs(sink("hash"), name)) as writer,
        pytest.raises(ConnectorError, match="without a key"),
    ):
        writer.encode([row(None, 1)])
    with (
        closing(epochs(sink("list"), name)) as writer,
        pytest.raises(ConnectorError, match="no place for a deletion"),
    ):
        writer.encode([row("a", None)])


def test_key_of_another_kind_is_refused_before_anything_is_written(
    sink: Any, client: Any, name: str
) -> None:
    client.set(f"{name}:", "precious")
    with closing(epochs(sink(), name)) as writer:
        blocks, token = [writer.encode([row(None, 1)])], writer.prepare(1)
        with pytest.raises(ConnectorError, match="is no list") as caught:
            writer.apply(1, blocks, token)
        assert "use another prefix=" in caught.value.remedy
        client.delete(f"{name}:")
        writer.apply(1, blocks, token)
    assert in_list(client, name) == [1]


def test_flow_that_starts_anew_under_the_same_name_writes_everything(
    sink: Any, client: Any, name: str
) -> None:
    for value in (1, 2):
        with closing(epochs(sink(), name)) as writer:
            write(writer, 1, [row(None, value)])
    assert in_list(client, name) == [1, 2]


def test_tasks_that_apply_the_same_epoch_at_once_write_it_once(
    sink: Any, client: Any, name: str
) -> None:
    with closing(epochs(sink(), name)) as writer:
        rows = [row(None, n) for n in range(2000)]
        blocks, token = [writer.encode(rows)], writer.prepare(1)
    writers = [epochs(sink(), name, token) for _ in range(4)]
    threads = [Thread(target=writer.apply, args=(1, blocks, token)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread, writer in zip(threads, writers, strict=True):
        thread.join()
        writer.close()
    assert in_list(client, name) == list(range(2000))


# ------------------------------------------------------------------------------- away


def test_epoch_waits_for_a_redis_that_is_away(name: str) -> None:
    with running(RedisServer()) as server:
        sink = RedisSink(server.url, prefix=f"{name}:", kind="list")
        with closing(epochs(sink, name)) as writer:
            write(writer, 1, [row(None, 1)])
            server.kill()
            blocks, token = [writer.encode([row(None, 2)])], writer.prepare(2)
            with pytest.raises(Unavailable, match="Redis"):
                writer.apply(2, blocks, token)
            server.start()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                try:
                    writer.apply(2, blocks, token)
                    break
                except Unavailable:
                    continue
        with Redis(port=server.port) as client:
            assert in_list(client, name).count(2) == 1


def test_redis_without_memory_takes_all_of_an_epoch_or_nothing(name: str) -> None:
    with running(RedisServer()) as server, Redis(port=server.port) as client:
        sink = RedisSink(server.url, prefix=f"{name}:", kind="list")
        with closing(epochs(sink, name)) as writer:
            client.config_set("maxmemory", "1mb")
            blocks = [writer.encode([row(None, n) for n in range(5000)])]
            token = writer.prepare(1)
            with pytest.raises(Unavailable, match="maxmemory"):
                writer.apply(1, blocks, token)
            assert in_list(client, name) == []
            client.config_set("maxmemory", "0")
            writer.apply(1, blocks, token)
        assert in_list(client, name) == list(range(5000))
