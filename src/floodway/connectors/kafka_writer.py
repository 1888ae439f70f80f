"""A Kafka topic, written as rows come."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from floodway.connectors.base import Row, Unavailable, Writer
from floodway.connectors.kafka_client import COMMIT_ANSWER_SECONDS, Client
from floodway.connectors.kafka_retention import Retention
from floodway.connectors.keys import key_encoder
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from floodway.connectors.kafka import KafkaSink

_FLUSH_SECONDS = 10.0
_FULL_SECONDS = 0.5  # how long a full queue may hold up a write
_SLICE_SECONDS = 0.1  # how often a flush looks whether the brokers are still there


NOW = 0
"""What the client library reads as the time at which it takes a record."""


class KafkaWriter(Writer):
    """A topic, open for writing; see `KafkaSink`."""

    def __init__(self, sink: "KafkaSink", schema: Schema) -> None:
        self._topic = sink.topic
        self._encode = sink.format.encoder(schema)
        self._encode_key = key_encoder(sink.key_format)
        self._client = Client(sink)
        self._failure: ConnectorError | None = None
        self._closed = False
        self._producer = self._client.producer(on_delivery=self._delivered)
        self._now = sink.timestamps == "now"
        self._retention = Retention(sink)

    def write(self, rows: Sequence[Row]) -> None:
        """Hand rows to the client's queue; raise `Unavailable` if that stays full."""
        self._retention.note(rows)
        self._look()
        now = self._now
        for taken, (timestamp, key, value, _) in enumerate(rows):
            raw = None if value is None else self._encode(value)
            time_of_row = NOW if now or timestamp < 0 else timestamp
            self._produce(raw, self._encode_key(key), time_of_row, taken)
        self._producer.poll(0)
        self._raise_failure()

    def flush(self) -> None:
        """Wait until all that was taken is delivered; raise `Unavailable` if that takes long."""
        deadline = time.monotonic() + _FLUSH_SECONDS
        while left := self._producer.flush(_SLICE_SECONDS):
            self._raise_failure()
            if self._client.away or time.monotonic() >= deadline:
                reason = self._client.away or "Kafka is slow"
                raise Unavailable(f"{reason} ({left} rows are not delivered yet)")
        self._raise_failure()
        self._look()

    def close(self) -> None:
        """Drop what is not delivered and leave the topic."""
        if self._closed:
            return
        self._closed = True
        self._look(wait_s=COMMIT_ANSWER_SECONDS)
        self._producer.purge()
        self._producer.close()

    def _look(self, *, wait_s: float = 0.0) -> None:
        self.warning = self._retention.look(wait_s=wait_s) or self.warning

    def _produce(self, raw: bytes | None, key: bytes | None, timestamp: int, taken: int) -> None:
        try:
            self._producer.produce(self._topic, raw, key, timestamp=timestamp)
        except BufferError:
            self._produce_later(raw, key, timestamp, taken)
        except self._client.library.KafkaException as error:
            raise self._client.broken(error.args[0]) from None

    def _produce_later(
        self, raw: bytes | None, key: bytes | None, timestamp: int, taken: int
    ) -> None:
        self._producer.flush(_FULL_SECONDS)
        self._raise_failure()
        try:
            self._producer.produce(self._topic, raw, key, timestamp=timestamp)
        except BufferError:
            reason = self._client.away or "Kafka is slow"
            raise Unavailable(f"{reason} (the queue is full)", taken=taken) from None

    def _delivered(self, error: "KafkaError | None", _message: "Message") -> None:
        if error is not None and not self._closed:
            self._failure = self._failure or self._client.broken(error)

    def _raise_failure(self) -> None:
        if self._failure:
            raise self._failure
