"""Events that leave the queue of a data engine for a Kafka topic, from which a system reads."""

import socket
from typing import Any

from floodway.connectors.extras import load_extra
from floodway.demo.sending.outlets import Outlet
from floodway.demo.sending.queueing import Queue

UNSENT = 200_000
"""So many events the Kafka client may have that are not in the topic yet; others are queued."""

FLUSH_S = 30.0
"""How long the last events may take into the topic."""


class Filled(Outlet):
    """A partition of a Kafka topic gets each event as a message.

    The connection of a system only says that it is ready. The client of Kafka has settings that
    are quick: no compression, and a millisecond to gather messages.
    """

    def __init__(
        self, _ready: socket.socket, queue: Queue, *, servers: str, topic: str, partition: int
    ) -> None:
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
