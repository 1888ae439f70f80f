"""Read a Kafka topic, and write one.

The client library reconnects by itself. While no broker can be reached, nothing is lost on either
side: a reader goes on at its offset, and a writer keeps what it took until that is delivered.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from floodway.connectors.base import (
    Delivery,
    EpochWriter,
    Format,
    SinkConnector,
    SourceConnector,
    Split,
    Unavailable,
)
from floodway.connectors.formats import Json, Text
from floodway.connectors.kafka_client import (
    ANSWER_SECONDS,
    Client,
    joined,
    no_broker,
    show,
    warn_of_plain,
)
from floodway.connectors.kafka_epochs import KafkaEpochs
from floodway.connectors.kafka_reader import KafkaReader
from floodway.connectors.kafka_writer import KafkaWriter
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema


class KafkaSource(SourceConnector):
    """The records of a Kafka topic, with their keys and timestamps.

    A record without a value deletes its key. Records of transactions come when the transactions are
    committed, unless `settings` have another ``isolation.level``. Can go on from any offset, also
    with another number of tasks, as long as the topic keeps the records: replayable. After `check`,
    `most` is the number of partitions. Partitions that are added later are read, from their
    beginning, once the source is opened again.

    Parameters
    ----------
    topic
        The topic to read.
    servers
        The brokers to ask first: ``"host:port"``, several with commas or in a list.
    format
        How values look.
    group
        A consumer group to which offsets are committed with each epoch or, without recovery, every
        few seconds, so that outside tools can see how far the flow is. It is never read.
    start
        Where to begin without a position: at the ``"earliest"`` record, or with those that come
        from now on (``"latest"``).
    end
        ``"never"``, or ``"current"``: at the offsets that were there when the source was opened.
    key_format
        How keys look.
    settings
        More settings of the client library, such as ``sasl.password``. They are never shown; a
        secret should be a reference such as ``floodway.secret.env("KAFKA_PASSWORD")``.

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

    replayable: ClassVar[bool] = True

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
        self.servers = joined(servers)
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

    @property
    def bounded(self) -> bool:
        """Whether it ends where the topic ended when it was opened."""
        return self.end == "current"

    @property
    def timed(self) -> bool:
        """Every record has the timestamp that its producer, or the broker, gave it."""
        return True

    def check(self) -> None:
        """Refuse brokers that do not answer within five seconds, and a topic that is not there."""
        warn_of_plain(self)
        client = Client(self)
        consumer = client.consumer()
        try:
            self.most = len(client.partitions(consumer, time.monotonic() + ANSWER_SECONDS))
        except Unavailable as away:
            raise no_broker(self, away.reason) from None
        finally:
            consumer.close()

    def open(self, split: Split, position: Any = None) -> KafkaReader:
        """Return a reader of the split's partitions, from `position` on or from the start."""
        return KafkaReader(self, split, position)

    def reassign(self, positions: Sequence[Any], of: int) -> list[Any]:
        """Put together the offsets of all partitions; each new task takes those of its own."""
        given = [position for position in positions if position is not None]
        if len(positions) == of or not given:
            return super().reassign(positions, of)
        if len(given) < len(positions) and self.start == "latest":
            raise ConnectorError(
                f"a task had not found out yet where Kafka topic {self.topic!r} ends",
                remedy=f"set the parallelism of the source to {len(positions)}, as it was",
            )
        offsets = [item for position in given for item in position.items()]
        return [{int(part): int(offset) for part, offset in offsets}] * of

    def __repr__(self) -> str:
        return show(self)


class KafkaSink(SinkConnector):
    """Write results to a Kafka topic, with their keys and timestamps.

    Rows go out in batches and each is written once, in order, even if the client has to send it
    again. A row that was taken is kept until it is delivered. After a task was lost, rows may come
    again: at least once.

    With a checkpoint, exactly once for readers of committed records
    (``isolation.level=read_committed``): an epoch is one transaction, which also stores the number
    of the epoch as an offset of a consumer group. Names of transactions and groups begin with
    ``floodway.`` and the name of the flow.

    A value of None is a tombstone. A key goes to the same partition as with Java clients.

    A record's timestamp is the event time of the row, so that readers of the topic have it. But
    brokers delete records by it: results of events that are older than the topic's ``retention.ms``
    are gone soon after they are written. The flow warns of that; see `timestamps`.

    Parameters
    ----------
    topic
        The topic to write.
    servers
        The brokers to ask first: ``"host:port"``, several with commas or in a list.
    format
        How values look.
    key_format
        How keys look. In `Text`, a key that is not text is JSON, so several columns are an array.
    timestamps
        ``"event"``: a record's timestamp is the event time of the row; one that is not after the
        beginning of 1970 is the time of writing. ``"now"``: it is always the time of writing, as
        for a backfill into a topic with a retention.
    settings
        More settings of the client library, such as ``sasl.password``. They are never shown; a
        secret should be a reference such as ``floodway.secret.env("KAFKA_PASSWORD")``.

    Examples
    --------
    >>> sink = KafkaSink("fares", servers=["127.0.0.1:9092", "127.0.0.1:9093"])
    >>> sink
    KafkaSink('fares', servers='127.0.0.1:9092,127.0.0.1:9093')
    >>> writer = sink.open(Split(), Schema.of(float))  # doctest: +SKIP
    >>> writer.write([(1767225600000, "gate 7", 2.5, None)])  # doctest: +SKIP
    >>> writer.flush()  # doctest: +SKIP
    """

    delivery: ClassVar[Delivery] = "exactly once"

    def __init__(
        self,
        topic: str,
        *,
        servers: str | Iterable[str],
        format: Format | None = None,
        key_format: Format | None = None,
        timestamps: Literal["event", "now"] = "event",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        _require_choice("timestamps", timestamps, ("event", "now"))
        self.topic = topic
        self.servers = joined(servers)
        self.format = format or Json()
        self.key_format = key_format or Text()
        self.timestamps = timestamps
        self.settings = dict(settings or {})

    def check(self) -> None:
        """Refuse brokers that do not answer within five seconds, and a topic that is not there."""
        warn_of_plain(self)
        client = Client(self)
        producer = client.producer()
        try:
            client.partitions(producer, time.monotonic() + ANSWER_SECONDS)
        except Unavailable as away:
            raise no_broker(self, away.reason) from None
        finally:
            producer.close()

    def check_resumed(self, token: Any) -> None:
        """Refuse the same as `check`."""
        self.check()

    def open(self, split: Split, schema: Schema) -> KafkaWriter:
        """Return a writer for one task; all tasks write to all partitions."""
        return KafkaWriter(self, schema)

    def open_epochs(self, split: Split, schema: Schema, *, name: str, token: Any) -> EpochWriter:
        """Return a writer of transactions."""
        return KafkaEpochs(self, schema, name=name, token=token)

    def __repr__(self) -> str:
        return show(self)


def _require_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(
            f"{option} is {value!r}", remedy=f"use one of: {', '.join(map(repr, choices))}"
        )
