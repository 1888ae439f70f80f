"""Real servers for tests, one of each per worker; a machine that has none skips those tests."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from floodway.testing.servers import KafkaServer, RedisServer, Server, ServerUnavailable
from tests.waiting import pause

AnyServer = TypeVar("AnyServer", bound=Server)


@contextmanager
def running(server: AnyServer) -> Iterator[AnyServer]:
    """Run a server; skip if there is none, except where CI has promised one."""
    try:
        server.__enter__()
    except ServerUnavailable as missing:
        if os.environ.get("FLOODWAY_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(missing.reason)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    with running(KafkaServer()) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with running(RedisServer()) as server:
        yield server


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until a condition holds; fail if that takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause()
