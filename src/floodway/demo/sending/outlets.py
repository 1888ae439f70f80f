"""How events leave the queue of a data engine: a system pulls them."""

import select
import socket
import time
from abc import ABC, abstractmethod

from floodway.demo.sending.queueing import Queue

BLOCKS = 8
"""So many blocks are sent with one call, if they are taken; no more are made before that."""


class Outlet(ABC):
    """Takes events from the queue."""

    @abstractmethod
    def send(self) -> None:
        """Send as much as is taken."""

    @abstractmethod
    def wait(self, microseconds: int) -> None:
        """Wait until something can be sent, or for so long."""

    @abstractmethod
    def close(self) -> None:
        """Send what is left, as far as it is this outlet's to send."""


class Pulled(Outlet):
    """The system's end of the queue is a socket, whose buffer is small."""

    def __init__(self, client: socket.socket, queue: Queue) -> None:
        self._client, self._queue = client, queue
        client.settimeout(0)
        # Otherwise a small piece waits until the one before it is acknowledged, up to 40 ms.
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._poll.register(client, select.POLLOUT)

    def send(self) -> None:
        """Send as much as the system takes."""
        while blocks := self._queue.front(BLOCKS):
            try:
                self._queue.gone(self._client.sendmsg(blocks))
            except BlockingIOError:
                return

    def wait(self, microseconds: int) -> None:
        """Wait until something can be sent, or for so long."""
        if microseconds <= 0:
            return
        if self._queue.size:
            self._poll.poll(microseconds / 1000)
        else:
            time.sleep(microseconds / 1e6)

    def close(self) -> None:
        """Do nothing: what the system has not taken is not sent."""
