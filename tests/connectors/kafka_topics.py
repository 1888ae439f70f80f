"""Topics for tests, on a real broker."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec
import pytest
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from floodway.connectors.base import Reader, Row, Split, Unavailable, Writer
from floodway.connectors.kafka import KafkaSink, KafkaSource
from floodway.connectors.kafka_reader import KafkaReader
from floodway.core.schema import Schema
from floodway.testing.servers import KafkaServer
from tests.waiting import DEADLINE_S, pause

NOW = 1_767_225_600_000


KEEPS = {"retention.ms": "-1"}
"""Topics keep what tests write, however old it is by its timestamps."""


class Topic:
    """A topic of a test's own."""

    def __init__(self, server: KafkaServer, name: str) -> None:
        self.server = server
        self.name = name

    def source(self, **options: Any) -> KafkaSource:
        if options.get("end") == "current":
            self._settle()
        return KafkaSource(self.name, servers=self.server.servers, **options)

    def sink(self, **options: Any) -> KafkaSink:
        return KafkaSink(self.name, servers=self.server.servers, **options)

    def fill(self, rows: list[Row], schema: Any = object, **options: Any) -> None:
        # Asking for the id of an idempotent producer takes half a second, in each test.
        sink = self.sink(settings={"enable.idempotence": False}, **options)
        with closing(sink.open(Split(), Schema.of(schema))) as writer:
            deliver(writer, rows)

    def values(self) -> list[Any]:
        with closing(self.source(end="current").open(Split())) as reader:
            return [raw and msgspec.json.decode(raw) for _, _, raw in drain(reader)]

    def _settle(self) -> None:
        """Wait until what was committed can be read, or something is left open on purpose.

        A broker answers a commit before it has written down in each partition that it was one.
        """
        deadline = time.monotonic() + 2.0
        while not self._settled() and time.monotonic() < deadline:
            pause(0.02)

    def _settled(self) -> bool:
        try:
            read = self._ends(IsolationLevel.READ_COMMITTED)
            return read == self._ends(IsolationLevel.READ_UNCOMMITTED)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            return False  # a partition of a topic that is new may have no leader yet

    def _ends(self, isolation: IsolationLevel) -> list[int]:
        admin = AdminClient({"bootstrap.servers": self.server.servers})
        parts = admin.list_topics(self.name, timeout=DEADLINE_S).topics[self.name].partitions
        asked = {TopicPartition(self.name, part): OffsetSpec.latest() for part in parts}
        answers = admin.list_offsets(asked, isolation_level=isolation, request_timeout=DEADLINE_S)
        return [int(answer.result().offset) for answer in answers.values()]


@pytest.fixture
def make_topic(kafka: KafkaServer) -> Callable[..., Topic]:
    def make(partitions: int = 1, **settings: str) -> Topic:
        name = f"taps-{uuid.uuid4().hex[:8]}"
        kafka.create_topic(name, partitions=partitions, settings=KEEPS | settings)
        return Topic(kafka, name)

    return make


@pytest.fixture
def topic(make_topic: Callable[..., Topic]) -> Topic:
    return make_topic()


@pytest.fixture
def shaky_topic(topic: Topic) -> Iterator[Topic]:
    """A topic whose broker the test may stop."""
    yield topic
    topic.server.start()


def row(number: int, key: Any = None) -> Row:
    return (NOW + number, key, number, None)


def deliver(writer: Writer, rows: list[Row], seconds: float = DEADLINE_S) -> None:
    """Write and flush as an engine does: what was not taken is kept and tried again."""
    deadline = time.monotonic() + seconds
    left: list[Row] | None = rows
    while True:
        try:
            if left is not None:
                writer.write(left)
                left = None
            writer.flush()
            return
        except Unavailable as away:
            left = left[away.taken :] if left is not None else None
            if time.monotonic() > deadline:
                pytest.fail(away.reason)


def drain(
    reader: Reader, count: int | None = None, *, limit: int = 1000, seconds: float = DEADLINE_S
) -> list[Any]:
    """Read to the end, or until there are enough."""
    items: list[Any] = []
    deadline = time.monotonic() + seconds
    while count is None or len(items) < count:
        try:
            got = reader.poll(limit)
        except Unavailable:
            got = []
        if got is None:
            break
        items += got
        assert time.monotonic() < deadline, f"only {len(items)} of {count}"
        if not got:
            pause()
    return items


@contextmanager
def opened(source: KafkaSource, split: Split | None = None, position: Any = None) -> Iterator[Any]:
    with closing(source.open(split or Split(), position)) as reader:
        assert isinstance(reader, KafkaReader)
        yield reader
