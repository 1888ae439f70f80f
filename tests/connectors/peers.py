"""The other side of a connection, and readers polled with a deadline."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from floodway.connectors.base import Reader, Unavailable
from tests.waiting import DEADLINE_S, pause

LOCALHOST = "127.0.0.1"


def read_lines(
    reader: Reader, *, until: Callable[[list[bytes]], object] | None = None
) -> list[Any]:
    """Poll to the end, or until what came is enough; being away is waited out."""
    got: list[Any] = []
    give_up = time.monotonic() + DEADLINE_S
    while until is None or not until(got):
        assert time.monotonic() < give_up, f"only {got!r} came"
        try:
            raw = reader.poll(100)
        except Unavailable:
            pause()
            continue
        if raw is None:
            return got
        got += raw.splitlines() if isinstance(raw, bytes) else raw
        if not raw:
            pause()
    return got


def free_port() -> int:
    """Return a port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def listening(port: int = 0) -> Iterator[socket.socket]:
    server = socket.socket()
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.settimeout(DEADLINE_S)
        server.bind((LOCALHOST, port))
        server.listen()
        yield server
    finally:
        server.close()


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


class Receiver:
    """Accepts connections one after the other and collects what they bring."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.received = b""
        self._thread = threading.Thread(target=self._run)
        self._stop = False

    def __enter__(self) -> "Receiver":
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop = True
        self._thread.join(DEADLINE_S)

    def lines(self) -> list[bytes]:
        return self.received.splitlines()

    def _run(self) -> None:
        self._server.settimeout(0.01)
        while not self._stop:
            try:
                connection, _ = self._server.accept()
            except TimeoutError:
                continue
            with connection:
                self._drain(connection)

    def _drain(self, connection: socket.socket) -> None:
        connection.settimeout(0.01)
        while not self._stop:
            try:
                chunk = connection.recv(65_536)
            except TimeoutError:
                continue
            if not chunk:
                return
            self.received += chunk
