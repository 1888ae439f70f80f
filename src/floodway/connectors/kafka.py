"""Read a Kafka topic, and write one.

A task reads the partitions ``p`` with ``p % of == index``, by itself and without a consumer group,
so no other program can take partitions away from it. Where to go on is part of the flow's own
state: a position is the next offset of each partition.

The client library reconnects by itself. While no broker can be reached, `poll` raises
`Unavailable` and nothing is lost on either side: a reader goes on at the offset where it was, and
a writer keeps what it took until it is delivered.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

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
from floodway.connectors.extras import hide, is_secret, load_extra
from floodway.connectors.formats import Json, Text
from floodway.connectors.keys import key_decoder, key_encoder
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

ANSWER_SECONDS = 5.0
"""How long look-ups may take: a broker that needs longer is as good as away."""

_FLUSH_SECONDS = 10.0
_FULL_SECONDS = 0.5  # how long a full queue may hold up a write
_PAUSE_SECONDS = 0.1  # between two look-ups
_SLICE_SECONDS = 0.1  # how often a flush looks whether the brokers are still there
_COMMIT_SECONDS = 5.0  # how often offsets are committed
_COMMIT_ANSWER_SECONDS = 1.0
_STATISTICS_MS = 1000  # tells when a broker is back, even if there is nothing new to read

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
        client = _Client(self)
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
        client = _Client(self)
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
        self._client = _Client(source)
        self._consumer = self._client.consumer()
        self._look_up = _LookUp(self._client, self._consumer, split)
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
                _LookUp(self._client, self._consumer, self._split),
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
        self._client = _Client(sink)
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


class _Broker(msgspec.Struct):
    state: str


class _Statistics(msgspec.Struct):
    brokers: dict[str, _Broker] = {}


_decode_statistics = msgspec.json.Decoder(_Statistics).decode


class _Client:
    """Makes clients for one topic and knows whether its brokers are away, and why."""

    def __init__(self, connector: KafkaSource | KafkaSink) -> None:
        self.library: Any = load_extra("confluent_kafka", "kafka")
        self.away: str | None = None
        self._connector = connector
        self._detail = ""

    def consumer(self) -> "Consumer":
        made: Consumer = self._make(
            self.library.Consumer,
            {
                # A name is required, but without commits no group comes of it.
                "group.id": getattr(self._connector, "group", None) or "floodway",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "session.timeout.ms": 6000,  # so long may a commit hold up the closing
                "enable.partition.eof": True,
                "auto.offset.reset": "error",  # what was deleted unread must not go unnoticed
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 100,
            },
        )
        return made

    def producer(self, on_delivery: Any = lambda _error, _message: None) -> "Producer":
        made: Producer = self._make(
            self.library.Producer,
            {
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 0,  # what was taken is never given up
                "partitioner": "murmur2_random",  # as Java clients do
                "delivery.report.only.error": True,
                "on_delivery": on_delivery,
            },
        )
        return made

    def partitions(self, client: "Consumer | Producer", deadline: float) -> list[int]:
        """Return the topic's partitions, before the deadline."""
        try:
            found = client.list_topics(self._connector.topic, timeout=_left(deadline))
        except self.library.KafkaException as error:
            client.poll(0)  # serves the callbacks that know the details
            raise self._unavailable(error.args[0]) from None
        topic = found.topics[self._connector.topic]
        if topic.error is not None:
            if self.is_final(topic.error):
                raise self.broken(topic.error)
            raise self._unavailable(topic.error)
        return sorted(topic.partitions)

    def offsets(
        self, consumer: "Consumer", parts: Iterable[int], deadline: float
    ) -> dict[int, tuple[int, int]]:
        """Return the first and the next offset of partitions, before the deadline."""
        found: dict[int, tuple[int, int]] = {}
        for part in parts:
            partition = self.library.TopicPartition(self._connector.topic, part)
            try:
                there = consumer.get_watermark_offsets(partition, timeout=_left(deadline))
            except self.library.KafkaException as error:
                raise self._unavailable(error.args[0]) from None
            if there is None:
                raise Unavailable(f"the leader of partition {part} does not answer")
            found[part] = there
        return found

    def answers(self, consumer: "Consumer") -> bool:
        """Return whether a broker answers at once: a commit to none would hold up the closing."""
        if self.away:
            return False
        try:
            consumer.list_topics(self._connector.topic, timeout=_COMMIT_ANSWER_SECONDS)
        except self.library.KafkaException:
            return False
        return True

    def is_final(self, error: "KafkaError") -> bool:
        """Return whether trying again cannot help."""
        # In idempotent producers every lasting error is fatal; these are the lasting ones of
        # consumers and of single messages. Names with an underscore are public in the library.
        codes = self.library.KafkaError
        return error.fatal() or error.code() in {
            codes._AUTO_OFFSET_RESET,  # noqa: SLF001
            codes._UNKNOWN_TOPIC,  # noqa: SLF001
            codes._UNKNOWN_PARTITION,  # noqa: SLF001
            codes.OFFSET_OUT_OF_RANGE,
            codes.UNKNOWN_TOPIC_OR_PART,
            codes.TOPIC_EXCEPTION,
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes.GROUP_AUTHORIZATION_FAILED,
        }

    def broken(self, error: "KafkaError") -> ConnectorError:
        """Return the error for what will not become better by itself."""
        codes, topic = self.library.KafkaError, self._connector.topic
        where = f"Kafka topic {topic!r} at {self._connector.servers}"
        if error.code() in {codes._UNKNOWN_TOPIC, codes.UNKNOWN_TOPIC_OR_PART}:  # noqa: SLF001
            return ConnectorError(
                f"{where} is not there", remedy="create the topic, or correct its name"
            )
        if error.code() in {codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001
            return ConnectorError(
                f"{where} has no longer the records at the flow's position: {self.reason(error)}",
                remedy="keep records longer (retention.ms), or start the flow without its state",
            )
        if error.code() in {codes.MSG_SIZE_TOO_LARGE, codes.RECORD_LIST_TOO_LARGE}:
            return ConnectorError(
                f"a row is too large for {where}",
                remedy="raise max.message.bytes of the topic and message.max.bytes in settings",
            )
        return ConnectorError(
            f"{where}: {self.reason(error)}",
            remedy="see to the permissions and settings of topic and client",
        )

    def reason(self, error: "KafkaError") -> str:
        """Return what an error says, without secrets."""
        return self._hide(f"{error.str()} ({error.name()})")

    def _make(self, kind: Any, settings: dict[str, Any]) -> Any:
        callbacks = {
            "error_cb": self._take_error,
            "stats_cb": self._take_statistics,
            "statistics.interval.ms": _STATISTICS_MS,
            "reconnect.backoff.max.ms": 1000,
            "bootstrap.servers": self._connector.servers,
        }
        chosen = {**callbacks, **settings, **self._connector.settings}
        try:
            return kind(chosen, logger=_logger)
        except (self.library.KafkaException, ValueError, TypeError) as error:
            what = error.args[0] if error.args else error
            text = what.str() if isinstance(what, self.library.KafkaError) else str(what)
            raise ConnectorError(
                f"the Kafka client does not take its settings: {self._hide(text)}",
                remedy="correct settings=; the names are those of librdkafka",
            ) from None

    def _take_error(self, error: "KafkaError") -> None:
        if error.code() == self.library.KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            self.away = self._detail or self._told(error)
        else:
            self._detail = self._told(error)

    def _take_statistics(self, text: str) -> None:
        # Not from records that come: they may have been fetched before the connection was lost.
        brokers = _decode_statistics(text).brokers.values()
        if any(broker.state == "UP" for broker in brokers):
            self.away, self._detail = None, ""
        else:
            self.away = self._detail or None

    def _unavailable(self, error: "KafkaError") -> Unavailable:
        return Unavailable(self.away or self._detail or self._told(error))

    def _told(self, error: "KafkaError") -> str:
        return f"Kafka at {self._connector.servers}: {self.reason(error)}"

    def _hide(self, text: str) -> str:
        settings = self._connector.settings
        return hide(text, (str(value) for name, value in settings.items() if is_secret(name)))


class _LookUp:
    """Finds the partitions of a split and their offsets, in a thread of its own."""

    def __init__(self, client: _Client, consumer: "Consumer", split: Split) -> None:
        self.offsets: dict[int, tuple[int, int]] = {}
        self.failure: Exception | None = None
        self._client = client
        self._consumer = consumer
        self._split = split
        self._thread = threading.Thread(target=self._run, name="floodway-kafka", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    def join(self, seconds: float | None = None) -> None:
        """Wait until it is done, or for some time."""
        self._thread.join(seconds)

    def _run(self) -> None:
        # A topic that was made just now may have no leader for a moment, so one failure is no sign.
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                self.offsets = self._find(deadline)
                return
            except Unavailable as away:
                if time.monotonic() + _PAUSE_SECONDS >= deadline:
                    self.failure = away
                    return
                time.sleep(_PAUSE_SECONDS)
            except Exception as failure:  # raised again by whoever asks
                self.failure = failure
                return

    def _find(self, deadline: float) -> dict[int, tuple[int, int]]:
        split = self._split
        parts = self._client.partitions(self._consumer, deadline)
        mine = [part for part in parts if part % split.of == split.index]
        return self._client.offsets(self._consumer, mine, deadline)


def _left(deadline: float) -> float:
    """Return the seconds that are left; never none, which would mean forever."""
    return max(0.01, deadline - time.monotonic())


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
