"""Real servers for the pages whose examples name some, and what has to be in them afterwards."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from floodway.testing.servers import KafkaServer, RedisServer
from tests.connectors.servers_fixtures import running
from tests.house.markdown import Replacements, needs

HOST = "127.0.0.1"
REDIS_PASSWORD = "only-in-this-test"
CLICK = {"page": "home", "visitor": 7}
TOPICS = {
    "connectors.md": ({"taps": CLICK}, "clicks"),
    "backfill.md": ({"sales": {"shop": "a", "price": 3, "at": 0}}, "revenue"),
}
"""What is in topics that a page reads, and which topic it writes."""


@contextmanager
def served(page: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, Replacements]]:
    """Give the servers that a page needs; look afterwards that something has come to each.

    Where a server cannot be had, the blocks that need it do not run, and the rest of the page does.
    """
    kinds: dict[str, Callable[[], Replacements]] = {}
    with ExitStack() as stack:
        kinds["needs-kafka:"] = lambda: _kafka(page, request.getfixturevalue("kafka"), stack)
        kinds["needs-redis:"] = lambda: _redis(stack)
        kinds["needs-tcp:"] = lambda: _tcp(stack)
        found: dict[str, Replacements] = {}
        for mark in sorted(needs(page)):
            with suppress(pytest.skip.Exception):
                found[mark] = kinds[mark]()
        yield found


def _kafka(page: Path, server: KafkaServer, stack: ExitStack) -> Replacements:
    from confluent_kafka import Consumer, Producer, TopicPartition

    known, written = TOPICS[page.name]
    for topic in (*known, written):
        server.create_topic(topic)
    producer = Producer({"bootstrap.servers": server.servers})
    for topic, value in known.items():
        producer.produce(topic, json.dumps(value))
    producer.flush()

    def look() -> None:
        consumer = Consumer({"bootstrap.servers": server.servers, "group.id": "looking"})
        _, end = consumer.get_watermark_offsets(TopicPartition(written, 0), timeout=30)
        consumer.close()
        assert end > 0, f"nothing was written to {written}"

    stack.callback(look)
    return {"kafka.local:9092": server.servers}


def _redis(stack: ExitStack) -> Replacements:
    from redis import Redis

    server = stack.enter_context(running(RedisServer(password=REDIS_PASSWORD)))

    def look() -> None:
        with Redis.from_url(server.url) as client:
            assert client.dbsize() > 0

    stack.callback(look)
    return {'host="redis.local"': f'host="{HOST}", port={server.port}'}


def _tcp(stack: ExitStack) -> Replacements:
    """Give one server that has a record to say and stays, and another that listens."""
    taken: list[bytes] = []
    gate = stack.enter_context(socket.create_server((HOST, 0)))
    board = stack.enter_context(socket.create_server((HOST, 0)))

    def say(client: socket.socket) -> None:
        client.sendall(json.dumps(CLICK).encode() + b"\n")
        while client.recv(4096):
            pass

    def hear(client: socket.socket) -> None:
        while data := client.recv(4096):
            taken.append(data)

    for server, talk in ((gate, say), (board, hear)):
        stack.callback(server.shutdown, socket.SHUT_RDWR)  # which ends its thread
        threading.Thread(target=_serve, args=(server, talk), daemon=True).start()

    def look() -> None:
        assert b"home" in b"".join(taken)

    stack.callback(look)
    return {
        f'"{name}.local", {port}': f'"{HOST}", {server.getsockname()[1]}'
        for name, port, server in (("gate", 7000, gate), ("board", 7001, board))
    }


def _serve(server: socket.socket, talk: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):  # the server was closed, or the client has gone
        while True:
            client, _ = server.accept()
            with client, suppress(OSError):
                talk(client)
