"""How events leave the queue of a data engine: a system pulls them, or a Kafka topic gets them."""

import select
import socket
import time
from abc import ABC, abstractmethod
from typing import Any

from floodway.bench.data.queueing import Queue
from floodway.connectors.extras import load_extra

BLOCKS = 8
"""So many blocks are sent with one call, if they are taken; no more are made before that."""

UNSENT = 200_000
"""So many events the Kafka client may have that are not in the topic yet; others are queued."""

FLUSH_S = 30.0
"""How long the last events may take into the topic."""


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


class Filled(Outlet):
    """A partition of a Kafka topic gets each event as a message.

    The client has settings that are quick: no compression, and a millisecond to gather messages.
    """

    def __init__(self, servers: str, topic: str, partition: int, queue: Queue) -> None:
        self._topic, self._partition, self._queue = topic, partition, queue
        settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "linger.ms": 1,
            "acks": 1,
            "queue.buffering.max.messages": 2 * UNSENT,
            "queue.buffering.max.kbytes": 2**20,
        }
        self._producer = load_extra("confluent_kafka", "kafka").Producer(settings)
        self._lost: list[str] = []

    def send(self) -> None:
        """Hand events to the client, as long as it does not have too many."""
        while self._queue.size and len(self._producer) < UNSENT:
            (block,) = self._queue.front(1)
            messages = [{"value": line} for line in bytes(block).splitlines()]
            self._producer.produce_batch(
                self._topic, messages, partition=self._partition, on_delivery=self._told
            )
            self._queue.gone(len(block))
            self._producer.poll(0)
        if self._lost:
            raise OSError(f"Kafka did not take events: {self._lost[0]}")

    def _told(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._lost.append(str(error))

    def wait(self, microseconds: int) -> None:
        """Wait until the client has room, or for so long."""
        if microseconds > 0:
            self._producer.poll(microseconds / 1e6)

    def close(self) -> None:
        """Have everything in the topic."""
        if self._producer.flush(FLUSH_S):
            raise OSError(f"Kafka has not taken all events within {FLUSH_S:.0f} s")
        if self._lost:
            raise OSError(f"Kafka did not take events: {self._lost[0]}")
