"""Feeding a flow through a socket: a server for one client, in a thread."""

import socket
import threading
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

CONNECT_SECONDS = 120.0
"""How long the flow has to connect."""


class Feeder(ABC):
    """Serves one TCP client on loopback; what it is sent is for subclasses to say.

    Attributes
    ----------
    port
        Where to connect to.
    began
        When the client came (monotonic), or 0.
    """

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(CONNECT_SECONDS)
        self.port: int = self._server.getsockname()[1]
        self.began = 0.0
        self._thread = threading.Thread(target=self._serve, name="floodway-feeder", daemon=True)

    @abstractmethod
    def feed(self, client: socket.socket) -> None:
        """Send everything."""

    def _serve(self) -> None:
        try:
            client, _ = self._server.accept()
            self.began = time.monotonic()
            with client:
                self.feed(client)
        except OSError:
            return  # the flow was stopped, or never came

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        self._thread.join(5)


class RepeatingFeeder(Feeder):
    """Sends a block of lines over and over, as fast as they are taken."""

    def __init__(self, block: bytes, repeats: int) -> None:
        super().__init__()
        self._block = memoryview(block)
        self._repeats = repeats

    def feed(self, client: socket.socket) -> None:
        """Send the block, again and again."""
        for _ in range(self._repeats):
            client.sendall(self._block)
