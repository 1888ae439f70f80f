"""Read a Kafka topic, and write one.

A task reads the partitions ``p`` with ``p % of == index``, by itself and without a consumer group,
so no other program can take partitions away from it. Where to go on is part of the flow's own
state: a position is the next offset of each partition.

The client library reconnects by itself. While no broker can be reached, `poll` raises
`Unavailable` and nothing is lost on either side: a reader goes on at the offset where it was, and
a writer keeps what it took until it is delivered.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from floodway.connectors.base import (
    Format,
    Lag,
    Reader,
    Row,
    SinkConnector,
    SourceConnector,
    Split,
    Unavailable,
    Writer,
)
from floodway.connectors.formats import Json, Text
from floodway.connectors.kafka_client import ANSWER_SECONDS, Client, LookUp
from floodway.connectors.keys import key_decoder, key_encoder
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, TopicPartition

_FLUSH_SECONDS = 10.0
_FULL_SECONDS = 0.5  # how long a full queue may hold up a write
_SLICE_SECONDS = 0.1  # how often a flush looks whether the brokers are still there
_COMMIT_SECONDS = 5.0  # how often offsets are committed

_logger = logging.getLogger(__name__)


class KafkaSource(SourceConnector):
    """The records of a Kafka topic, with their keys and timestamps.

    A record without a value deletes its key. After `check`, `most` is the number of partitions.
    Partitions that are added later are read, from their beginning, once the source is opened again.

    Parameters
    ----------
    topic
        The topic to read.
    servers
        The brokers to ask first: ``"host:port"``, several with commas or in a list.
    format
        How values look.
    group
        A consumer group to which offsets are committed now and then, so that outside tools can
        see how far the flow is. It is never read.
    start
        Where to begin without a position: at the ``"earliest"`` record, or with those that come
        from now on (``"latest"``).
    end
        ``"never"``, or ``"current"``: at the offsets that were there when the source was opened.
    key_format
        How keys look.
    settings
        More settings of the client library, such as ``sasl.password``. They are never shown.

    Examples
    --------
    >>> source = KafkaSource("taps", servers="127.0.0.1:9092", settings={"sasl.password": "x"})
    >>> source
    KafkaSource('taps', servers='127.0.0.1:9092', settings=<sasl.password>)
    >>> source.check()  # doctest: +SKIP
    >>> reader = source.open(Split())  # doctest: +SKIP
    >>> reader.poll(100)  # doctest: +SKIP
    [(1767225600000, 'gate 7', b'{"fare": 2.5}')]
    """

    def __init__(
        self,
        topic: str,
        *,
        servers: str | Iterable[str],
        format: Format | None = None,
        group: str | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        end: Literal["never", "current"] = "never",
        key_format: Format | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        _require_choice("start", start, ("earliest", "latest"))
        _require_choice("end", end, ("never", "current"))
        self.topic = topic
        self.servers = _join(servers)
        self.group = group
        self.start = start
        self.end = end
        self.key_format = key_format or Text()
        self.settings = dict(settings or {})
        self.most = None
        self._format = format or Json()

    @property
    def format(self) -> Format:
        """How values look."""
        return self._format

    def check(self) -> None:
        """Refuse brokers that do not answer within five seconds, and a topic that is not there."""
        client = Client(self)
        consumer = client.consumer()
        try:
            self.most = len(client.partitions(consumer, time.monotonic() + ANSWER_SECONDS))
        except Unavailable as away:
            raise _no_broker(self, away.reason) from None
        finally:
            consumer.close()

    def open(self, split: Split, position: Any = None) -> "KafkaReader":
        """Return a reader of the split's partitions, from `position` on or from the start."""
        return KafkaReader(self, split, position)

    def __repr__(self) -> str:
        return _show(self)


class KafkaSink(SinkConnector):
    """Write results to a Kafka topic, with their keys and timestamps.

    Rows go out in batches and each is written once, in order, even if the client has to send it
    again. A row that was taken is kept until it is delivered. After a flow was restarted from an
    older state, rows may come again: at least once.

    A value of None is a tombstone. Equal keys go to the partition where Java clients put them, too.
    The client library reads a timestamp of 0 as "now".

    Parameters
    ----------
    topic
        The topic to write.
    servers
        The brokers to ask first: ``"host:port"``, several with commas or in a list.
    format
        How values look.
    key_format
        How keys look. In `Text`, a key that is no text is JSON, so several columns are an array.
    settings
        More settings of the client library, such as ``sasl.password``. They are never shown.

    Examples
    --------
    >>> sink = KafkaSink("fares", servers=["127.0.0.1:9092", "127.0.0.1:9093"])
    >>> sink
    KafkaSink('fares', servers='127.0.0.1:9092,127.0.0.1:9093')
    >>> writer = sink.open(Split(), Schema.of(float))  # doctest: +SKIP
    >>> writer.write([(1767225600000, "gate 7", 2.5, None)])  # doctest: +SKIP
    >>> writer.flush()  # doctest: +SKIP
    """

    def __init__(
        self,
        topic: str,
        *,
        servers: str | Iterable[str],
        format: Format | None = None,
        key_format: Format | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic = topic
        self.servers = _join(servers)
        self.format = format or Json()
        self.key_format = key_format or Text()
        self.settings = dict(settings or {})

    def check(self) -> None:
        """Refuse brokers that do not answer within five seconds, and a topic that is not there."""
        client = Client(self)
        producer = client.producer()
        try:
            client.partitions(producer, time.monotonic() + ANSWER_SECONDS)
        except Unavailable as away:
            raise _no_broker(self, away.reason) from None
        finally:
            producer.close()

    def open(self, split: Split, schema: Schema) -> "KafkaWriter":
        """Return a writer for one task; all tasks write to all partitions."""
        return KafkaWriter(self, schema)

    def __repr__(self) -> str:
        return _show(self)


class KafkaReader(Reader):
    """Some partitions of a topic, open; see `KafkaSource`.

    What partitions there are and where they begin and end is looked up in a thread of its own, so
    that a reader can be opened while the brokers are away and `poll` never waits.
    """

    keyed = True

    def __init__(self, source: KafkaSource, split: Split, position: Any) -> None:
        self._source = source
        self._split = split
        # JSON has no numbers as names, so a position may come back with texts.
        self._given = {int(part): int(offset) for part, offset in (position or {}).items()}
        self._next: dict[int, int] | None = None
        self._highest: dict[int, int] = {}
        self._ends: dict[int, int] | None = None
        self._last_ms: int | None = None
        self._committed: dict[int, int] = {}
        self._commit_at = time.monotonic() + _COMMIT_SECONDS
        self._failure: Exception | None = None
        self._closed = False
        self._decode_key = key_decoder(source.key_format)
        self._client = Client(source)
        self._consumer = self._client.consumer()
        self._look_up = LookUp(self._client, self._consumer, split)
        self._look_up.join(ANSWER_SECONDS + 1)
        try:
            self._assign()
        except Unavailable:
            pass  # then poll says so, until it works
        except BaseException:
            self.close()
            raise

    def poll(self, limit: int) -> list[Any] | None:
        """Return up to `limit` records that the client has fetched already."""
        if self._failure:
            raise self._failure
        if self._next is None:
            self._assign()
        if self._at_end():
            self._commit()
            return None
        messages = self._consumer.consume(max(1, limit), 0)
        try:
            items = self._take(messages)
        except ConnectorError as failure:
            # The client is past the record by now, so going on would lose it.
            self._failure = failure
            raise
        if not items and self._client.away:
            raise Unavailable(self._client.away)
        if time.monotonic() >= self._commit_at:
            self._commit()
        return items

    def position(self) -> dict[int, int] | None:
        """Return the next offset of each partition; None if that is not known yet."""
        if self._next is None:
            return dict(self._given) or None
        return dict(self._next)

    def lag(self) -> Lag:
        """Return how many records are still to be read, and how old the last one read is."""
        if self._next is None:
            return Lag()
        records = sum(max(0, self._high(part) - offset) for part, offset in self._next.items())
        if not records:
            return Lag(0, 0.0)
        if self._last_ms is None:
            return Lag(records)
        return Lag(records, max(0.0, time.time() - self._last_ms / 1000))

    def close(self) -> None:
        """Leave the topic."""
        if self._closed:
            return
        self._closed = True
        self._look_up.join()  # bounded, and the client must not be closed under it
        if self._source.group and self._client.answers(self._consumer):
            self._commit()
        self._consumer.close()

    def _assign(self) -> None:
        """Begin to read if the look-up is done; start another if it failed."""
        if self._look_up.running:
            raise Unavailable(self._client.away or "Kafka has not answered yet")
        if isinstance(self._look_up.failure, Unavailable):
            failure, self._look_up = (
                self._look_up.failure,
                LookUp(self._client, self._consumer, self._split),
            )
            raise failure
        if self._look_up.failure:
            raise self._look_up.failure
        self._next = self._starts(self._look_up.offsets)
        self._committed = dict(self._next)
        self._highest = {part: high for part, (_, high) in self._look_up.offsets.items()}
        if self._source.end == "current":
            self._ends = dict(self._highest)
        self._consumer.assign(self._partitions(self._next))

    def _starts(self, offsets: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        # A partition that is not in the position was added since: read all of it.
        latest = self._source.start == "latest" and not self._given
        return {
            part: self._given.get(part, high if latest else low)
            for part, (low, high) in offsets.items()
        }

    def _at_end(self) -> bool:
        if self._ends is None or self._next is None:
            return False
        return all(self._next[part] >= end for part, end in self._ends.items())

    def _take(self, messages: Sequence["Message"]) -> list[Any]:
        assert self._next is not None
        following, ends, decode_key = self._next, self._ends, self._decode_key
        items: list[Any] = []
        for message in messages:
            error, part, offset = message.error(), message.partition(), message.offset()
            if error is not None:
                self._take_error(error, part, offset)
                continue
            assert part is not None
            assert offset is not None
            if ends is not None and offset >= ends[part]:
                following[part] = max(following[part], ends[part])
                continue
            try:
                key = decode_key(message.key())
            except Exception as cause:
                raise _bad_key(self._source, part, offset, cause) from cause
            kind, timestamp = message.timestamp()
            items.append((timestamp if kind else None, key, message.value()))
            following[part] = offset + 1
        if items:
            self._last_ms = items[-1][0]
        return items

    def _take_error(self, error: "KafkaError", part: int | None, offset: int | None) -> None:
        client = self._client
        if error.code() == client.library.KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            # Says where the end is, also behind records that are not ours to see (transactions).
            assert self._next is not None
            if part in self._next and offset is not None:
                self._next[part] = max(self._next[part], offset)
        elif client.is_final(error):
            raise client.broken(error)
        else:
            _logger.warning("Kafka topic %s: %s", self._source.topic, client.reason(error))

    def _high(self, part: int) -> int:
        # From what the last fetch said: no question to a broker.
        there = self._consumer.get_watermark_offsets(self._partition(part), cached=True)
        if there and there[1] > self._highest[part]:
            self._highest[part] = there[1]
        return self._highest[part]

    def _commit(self) -> None:
        self._commit_at = time.monotonic() + _COMMIT_SECONDS
        if not self._source.group or not self._next or self._next == self._committed:
            return
        self._committed = dict(self._next)
        self._consumer.commit(offsets=self._partitions(self._committed), asynchronous=True)

    def _partitions(self, offsets: Mapping[int, int]) -> list["TopicPartition"]:
        return [self._partition(part, offset) for part, offset in offsets.items()]

    def _partition(self, part: int, *offset: int) -> "TopicPartition":
        made: TopicPartition = self._client.library.TopicPartition(
            self._source.topic, part, *offset
        )
        return made


class KafkaWriter(Writer):
    """A topic, open for writing; see `KafkaSink`."""

    def __init__(self, sink: KafkaSink, schema: Schema) -> None:
        self._topic = sink.topic
        self._encode = sink.format.encoder(schema)
        self._encode_key = key_encoder(sink.key_format)
        self._client = Client(sink)
        self._failure: ConnectorError | None = None
        self._closed = False
        self._producer = self._client.producer(on_delivery=self._delivered)

    def write(self, rows: Sequence[Row]) -> None:
        """Hand rows to the client's queue; raise `Unavailable` if that stays full."""
        for taken, (timestamp, key, value, _) in enumerate(rows):
            raw = None if value is None else self._encode(value)
            self._produce(raw, self._encode_key(key), timestamp, taken)
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

    def close(self) -> None:
        """Drop what is not delivered and leave the topic."""
        if self._closed:
            return
        self._closed = True
        self._producer.purge()
        self._producer.close()

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


def _require_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(
            f"{option} is {value!r}", remedy=f"use one of: {', '.join(map(repr, choices))}"
        )


def _join(servers: str | Iterable[str]) -> str:
    return servers if isinstance(servers, str) else ",".join(servers)


def _show(connector: KafkaSource | KafkaSink) -> str:
    names = ", ".join(sorted(connector.settings))
    settings = f", settings=<{names}>" if names else ""
    name = type(connector).__name__
    return f"{name}({connector.topic!r}, servers={connector.servers!r}{settings})"


def _no_broker(connector: KafkaSource | KafkaSink, reason: str) -> ConnectorError:
    return ConnectorError(
        f"no Kafka broker at {connector.servers} answers for topic {connector.topic!r} ({reason})",
        remedy="start the broker, or correct servers= and the security settings",
    )


def _bad_key(source: KafkaSource, part: int, offset: int, cause: Exception) -> ConnectorError:
    return ConnectorError(
        f"the key at offset {offset} of partition {part} of Kafka topic {source.topic!r} "
        f"is not {source.key_format}: {cause}",
        remedy="use the key_format= that the topic was written with, for example Bytes()",
    )
