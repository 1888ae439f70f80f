"""Some partitions of a Kafka topic, read.

A task reads the partitions ``p`` with ``p % of == index``, by itself and without a consumer group,
so no other program can take partitions away from it. Where to go on is part of the flow's own
state: a position is the next offset of each partition.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floodway.connectors.base import Lag, Reader, Split, Unavailable, Unreadable
from floodway.connectors.kafka_client import ANSWER_SECONDS, Client
from floodway.connectors.kafka_look_up import LookUp
from floodway.connectors.keys import key_decoder
from floodway.core.errors import ConnectorError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, TopicPartition

    from floodway.connectors.kafka import KafkaSource

_COMMIT_SECONDS = 5.0  # how often offsets are committed

_logger = logging.getLogger(__name__)


class KafkaReader(Reader):
    """Some partitions of a topic, open; see `KafkaSource`.

    What partitions there are and where they begin and end is looked up in a thread of its own, so
    that a reader can be opened while the brokers are away and `poll` never waits.
    """

    keyed = True

    def __init__(self, source: "KafkaSource", split: Split, position: Any) -> None:
        self._source = source
        self._split = split
        self._resumed = position is not None
        # JSON has no numbers as names, so a position may come back with texts.
        self._given = {
            int(part): int(offset)
            for part, offset in (position or {}).items()
            if int(part) % split.of == split.index
        }
        self._next: dict[int, int] | None = None
        self._highest: dict[int, int] = {}
        self._said_end: dict[int, int] = {}
        self._ends: dict[int, int] | None = None
        self._last_ms: int | None = None
        self._committed: dict[int, int] = {}
        self._commit_at = time.monotonic() + _COMMIT_SECONDS
        self._with_epochs = False
        self._failure: Exception | None = None
        self._closed = False
        self._decode_key = key_decoder(source.key_format)
        self._client = Client(source)
        self._consumer = self._client.consumer(source.group)
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
            self._commit_now()
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
            self._commit_now()
        return items

    @property
    def there(self) -> bool:  # type: ignore[override]
        """Whether all brokers have said that nothing follows what was read, and still answer.

        Between two questions a client knows nothing: not when it begins, not while a broker is
        stopped or a partition has no leader. A broker says where a partition ends only once, so
        whether that still holds is known from its answering at all.
        """
        if self._next is None:
            return False
        return self._next == self._said_end and self._client.heard.issuperset(self._next)

    def position(self) -> dict[int, int] | None:
        """Return the next offset of each partition; None if that is not known yet."""
        if self._next is None:
            return dict(self._given) if self._resumed else None
        return dict(self._next)

    def lag(self) -> Lag:
        """Return how many records are still to be read, and how old the last one read is."""
        if self._next is None:
            return Lag()
        records = sum(max(0, self._high(part) - offset) for part, offset in self._next.items())
        if not records:
            return Lag(0, 0.0, full=False)
        if self._last_ms is None:
            return Lag(records, full=False)
        return Lag(records, max(0.0, time.time() - self._last_ms / 1000), full=False)

    def commits_with_epochs(self) -> None:
        """Commit offsets to the group only when epochs are committed."""
        self._with_epochs = True

    def commit(self, position: Any) -> None:
        """Commit the offsets of an epoch to the group, if there is one."""
        offsets = {int(part): int(offset) for part, offset in (position or {}).items()}
        if self._source.group and offsets and offsets != self._committed:
            self._committed = offsets
            self._consumer.commit(offsets=self._partitions(offsets), asynchronous=True)

    def close(self) -> None:
        """Leave the topic."""
        if self._closed:
            return
        self._closed = True
        self._look_up.join()  # bounded, and the client must not be closed under it
        if self._source.group and self._client.answers(self._consumer):
            self._commit_now()
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
        latest = self._source.start == "latest" and not self._resumed
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
            kind, timestamp = message.timestamp()
            value: bytes | Unreadable | None = message.value()
            try:
                key = decode_key(message.key())
            except Exception as cause:
                key, value = None, _bad_key(self._source, message, cause)
            items.append((timestamp if kind else None, key, value))
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
                self._said_end[part] = offset
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

    def _commit_now(self) -> None:
        self._commit_at = time.monotonic() + _COMMIT_SECONDS
        if not self._with_epochs:
            self.commit(self._next)

    def _partitions(self, offsets: Mapping[int, int]) -> list["TopicPartition"]:
        return [self._partition(part, offset) for part, offset in offsets.items()]

    def _partition(self, part: int, *offset: int) -> "TopicPartition":
        made: TopicPartition = self._client.library.TopicPartition(
            self._source.topic, part, *offset
        )
        return made


def _bad_key(source: "KafkaSource", message: "Message", cause: Exception) -> Unreadable:
    return Unreadable(
        (message.key(), message.value()),
        f"the key at offset {message.offset()} of partition {message.partition()} of Kafka topic "
        f"{source.topic!r} is not {source.key_format}: {cause}",
        remedy="use the key_format= that the topic was written with, for example Bytes()",
    )
