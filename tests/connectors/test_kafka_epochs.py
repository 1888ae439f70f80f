"""Whole epochs as transactions of a real Kafka."""

import pickle
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from floodway import Record
from floodway.connectors import kafka_epochs
from floodway.connectors.base import EpochWriter, Row, Split, Unavailable
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema
from floodway.testing.conformance import check_epoch_sink
from tests.connectors.kafka_topics import (
    NOW,
    Topic,
    drain,
    make_topic,
    opened,
    row,
    shaky_topic,
    topic,
)
from tests.connectors.servers_fixtures import kafka, wait_for
from tests.waiting import DEADLINE_S

__all__ = ["kafka", "make_topic", "shaky_topic", "topic"]  # fixtures

pytestmark = pytest.mark.xdist_group("kafka")


class Tap(Record):
    gate: str
    fare: float


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"flow-{uuid.uuid4().hex[:8]}.taps.0"


def epochs(
    topic: Topic, name: str, token: Any = None, schema: Any = int, **options: Any
) -> EpochWriter:
    sink = pickle.loads(pickle.dumps(topic.sink(**options)))
    writer: EpochWriter = sink.open_epochs(Split(), Schema.of(schema), name=name, token=token)
    return writer


def apply(writer: EpochWriter, epoch: int, blocks: list[bytes], token: Any) -> None:
    """Apply as an engine does: again, as long as it cannot be done."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return writer.apply(epoch, blocks, token)
        except Unavailable as away:
            if time.monotonic() > deadline:
                pytest.fail(away.reason)


def write(writer: EpochWriter, epoch: int, rows: list[Row]) -> tuple[list[bytes], Any]:
    blocks, token = [writer.encode(rows)], writer.prepare(epoch)
    apply(writer, epoch, blocks, token)
    return blocks, token


def numbers(first: int, count: int = 5) -> list[Row]:
    return [row(number, f"gate {number}") for number in range(first, first + count)]


def test_sink_keeps_its_promises(topic: Topic, name: str) -> None:
    rows: list[Row] = [(NOW + n, f"gate {n}", Tap(f"gate {n}", n / 2), None) for n in range(12)]

    def expected(there: Any) -> list[Any]:
        return [{"gate": tap.gate, "fare": tap.fare} for _, _, tap, _ in there]

    check_epoch_sink(topic.sink(), Tap, rows, topic.values, name=name, expected=expected)


def test_rows_have_timestamps_keys_and_values_or_none(topic: Topic, name: str) -> None:
    with closing(epochs(topic, name)) as writer:
        write(writer, 1, [(NOW, ("a", 1), 5, None), (NOW + 1, ("a", 1), None, None)])
    with opened(topic.source(end="current")) as reader:
        assert drain(reader) == [(NOW, '["a",1]', b"5"), (NOW + 1, '["a",1]', None)]


def test_large_epoch_is_one_transaction_in_order(
    make_topic: Callable[..., Topic], name: str
) -> None:
    topic = make_topic(3)
    rows = [row(number, f"gate {number % 50}") for number in range(120_000)]  # more than the queue
    with closing(epochs(topic, name)) as writer:
        blocks = [writer.encode(rows[begin : begin + 1000]) for begin in range(0, 120_000, 1000)]
        apply(writer, 1, blocks, writer.prepare(1))
    with opened(topic.source(end="current")) as reader:
        items = drain(reader)
    latest: dict[str, int] = {}
    for _, key, raw in items:
        assert latest.get(key, -1) < int(raw), "out of order"
        latest[key] = int(raw)
    assert len(items) == 120_000


def test_number_of_an_epoch_may_be_far_behind_the_end_of_the_topic(topic: Topic, name: str) -> None:
    with closing(epochs(topic, name)) as writer:
        blocks, token = write(writer, 10**12, numbers(0))
    with closing(epochs(topic, name, token)) as again:
        apply(again, 10**12, blocks, token)
        write(again, 10**12 + 1, numbers(5))
    assert topic.values() == list(range(10))


def test_rows_of_a_task_that_is_lost_in_a_transaction_are_never_seen(
    topic: Topic, name: str
) -> None:
    from confluent_kafka import Producer

    with closing(epochs(topic, name)) as writer:
        blocks, token = [writer.encode(numbers(0))], writer.prepare(1)
    settings = {"bootstrap.servers": topic.server.servers}
    lost = Producer({**settings, "transactional.id": f"floodway.{name}"})
    lost.init_transactions(15)
    lost.begin_transaction()
    lost.produce(topic.name, b"77")
    lost.flush(15)
    with opened(topic.source()) as reader:
        with closing(epochs(topic, name, token)) as successor:
            apply(successor, 1, blocks, token)
        assert [int(raw) for _, _, raw in drain(reader, 5)] == [0, 1, 2, 3, 4]


def test_task_that_was_given_up_for_dead_is_kept_out(topic: Topic, name: str) -> None:
    with closing(epochs(topic, name)) as zombie:
        _, token = write(zombie, 1, numbers(0))
        with closing(epochs(topic, name, token)) as successor:
            write(successor, 2, numbers(5))
            with pytest.raises(ConnectorError, match=f"another task writes .* as floodway.{name}"):
                zombie.apply(2, [zombie.encode(numbers(5))], zombie.prepare(2))
            write(successor, 3, numbers(10))
    assert topic.values() == list(range(15))


def begin_as(topic: Topic, name: str) -> Any:
    """Begin to write under a name, as a request that comes late does."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": topic.server.servers}
    other = Producer({**settings, "transactional.id": f"floodway.{name}"})
    other.init_transactions(15)
    return other


def test_writer_that_nobody_has_succeeded_begins_anew(topic: Topic, name: str) -> None:
    with closing(epochs(topic, name)) as writer:
        for epoch in (1, 3):
            write(writer, epoch, numbers(10 * epoch))
            begin_as(topic, name)
            write(writer, epoch + 1, numbers(10 * epoch + 5))
    expected = [*range(10, 20), *range(30, 40)]
    assert topic.values() == expected


def test_writer_that_is_kept_out_again_and_again_gives_up(topic: Topic, name: str) -> None:
    with closing(epochs(topic, name)) as writer:
        write(writer, 1, numbers(0))
        begin_as(topic, name)
        write(writer, 2, numbers(5))
        begin_as(topic, name)
        with pytest.raises(ConnectorError, match=f"another task writes .* as floodway.{name}"):
            apply(writer, 3, [writer.encode(numbers(10))], writer.prepare(3))
    assert topic.values() == list(range(10))


def test_task_that_was_given_up_for_dead_does_not_come_back_after_an_outage(
    shaky_topic: Topic, name: str
) -> None:
    server = shaky_topic.server
    with closing(epochs(shaky_topic, name)) as zombie:
        _, token = write(zombie, 1, numbers(0))
        with closing(epochs(shaky_topic, name, token)) as successor:
            write(successor, 2, numbers(5))
            wait_for(lambda: shaky_topic.values() == list(range(10)))
            server.restart()
            with pytest.raises(ConnectorError, match="another task writes"):
                apply(zombie, 2, [zombie.encode(numbers(5))], zombie.prepare(2))
            write(successor, 3, numbers(10))
    wait_for(lambda: shaky_topic.values() == list(range(15)))


def test_flow_that_starts_anew_under_the_same_name_writes_everything(
    topic: Topic, name: str
) -> None:
    for first in (0, 5):
        with closing(epochs(topic, name)) as writer:
            write(writer, 1, numbers(first))
    assert topic.values() == list(range(10))


def test_tasks_do_not_share_what_is_applied(topic: Topic) -> None:
    flow = uuid.uuid4().hex[:8]
    for index in range(2):
        with closing(epochs(topic, f"{flow}.taps.{index}")) as writer:
            write(writer, 1, numbers(5 * index))
    assert topic.values() == list(range(10))


def test_settings_of_producers_are_used(topic: Topic, name: str) -> None:
    settings = {"compression.type": "lz4", "linger.ms": 1, "group.id": "x", "transactional.id": "x"}
    with closing(epochs(topic, name, settings=settings)) as writer:
        blocks, token = write(writer, 1, numbers(0))
    with closing(epochs(topic, name, token, settings=settings)) as again:
        apply(again, 1, blocks, token)
    assert topic.values() == list(range(5))


def test_settings_that_do_not_go_with_transactions_are_refused(topic: Topic, name: str) -> None:
    with pytest.raises(ConnectorError, match="does not take its settings"):
        epochs(topic, name, settings={"enable.idempotence": False})


# ------------------------------------------------------------------------------- away


@pytest.mark.parametrize("crash", [False, True], ids=["stop", "kill"])
def test_epoch_waits_for_a_broker_that_is_away(
    shaky_topic: Topic, name: str, crash: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever waited for the flush to end, and did not look for the broker, would do so for days.
    monkeypatch.setattr("floodway.connectors.kafka_epochs._FLUSH_SECONDS", 1e6)
    server = shaky_topic.server
    with closing(epochs(shaky_topic, name)) as writer:
        write(writer, 1, numbers(0))
        (server.kill if crash else server.stop)()
        blocks, token = [writer.encode(numbers(5))], writer.prepare(2)
        for _ in range(2):
            with pytest.raises(Unavailable):
                writer.apply(2, blocks, token)
        server.start()
        apply(writer, 2, blocks, token)
        write(writer, 3, numbers(10))
    assert shaky_topic.values() == list(range(15))


@pytest.mark.slow
def test_broker_that_is_killed_twice_keeps_nobody_out(shaky_topic: Topic, name: str) -> None:
    server = shaky_topic.server
    kept = []  # errors with their tracebacks, as whoever tries again has at least the last one
    with closing(epochs(shaky_topic, name)) as writer:
        write(writer, 1, numbers(0))
        wait_for(shaky_topic.values)
        epoch = 1
        for _ in range(2):
            server.kill()
            epoch += 1
            blocks, token = [writer.encode(numbers(5 * epoch - 5))], writer.prepare(epoch)
            for _ in range(6):
                with pytest.raises(Unavailable) as away:
                    writer.apply(epoch, blocks, token)
                kept.append(away.value)
            server.start()
            apply(writer, epoch, blocks, token)
            # Producers that were given up, if they lived on, would begin within a second or two.
            soon = time.monotonic() + 4
            while time.monotonic() < soon:
                epoch += 1
                write(writer, epoch, numbers(5 * epoch - 5))
    wait_for(lambda: shaky_topic.values() == list(range(5 * epoch)))
    assert len(kept) == 12


def test_writer_can_be_opened_and_closed_while_the_broker_is_away(
    shaky_topic: Topic, name: str
) -> None:
    shaky_topic.server.stop()
    with closing(epochs(shaky_topic, name)) as writer:
        blocks, token = [writer.encode(numbers(0))], writer.prepare(1)
        with pytest.raises(Unavailable):
            writer.apply(1, blocks, token)
    shaky_topic.server.start()
    with closing(epochs(shaky_topic, name, token)) as again:
        apply(again, 1, blocks, token)
        apply(again, 1, blocks, token)
    # A commit is answered before everybody can see it; a broker that has just started is slow.
    wait_for(shaky_topic.values)
    assert shaky_topic.values() == list(range(5))


def test_row_that_the_broker_refuses_is_an_error(
    make_topic: Callable[..., Topic], name: str
) -> None:
    topic = make_topic(**{"max.message.bytes": "1000"})
    with closing(epochs(topic, name, schema=str)) as writer:
        blocks = [writer.encode([(NOW, None, "x" * 5000, None)])]
        with pytest.raises(ConnectorError, match="too large"):
            apply(writer, 1, blocks, writer.prepare(1))
        write(writer, 2, [(NOW, None, "small", None)])
    assert topic.values() == ["small"]


# ------------------------------------------------------------------------------- forgotten


def forget(topic: Topic, name: str, token: Any) -> None:
    """Do what brokers do with the offsets of a group that nobody has used for a week."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": topic.server.servers})
    group = f"floodway.{name}.{token['run']}"
    (deleted,) = admin.delete_consumer_groups([group]).values()
    deleted.result(15)


@pytest.mark.parametrize("epoch", [1, 2], ids=["first", "later"])
def test_epoch_that_may_be_there_is_not_written_if_kafka_has_forgotten(
    topic: Topic, name: str, epoch: int
) -> None:
    with closing(epochs(topic, name)) as writer:
        for number in range(1, epoch + 1):
            blocks, token = write(writer, number, numbers(5 * number))
    forget(topic, name, token)
    with closing(epochs(topic, name, token)) as again:
        with pytest.raises(ConnectorError, match="Kafka has forgotten the group") as caught:
            apply(again, epoch, blocks, token)
        assert "offsets.retention.minutes" in caught.value.remedy
    assert len(topic.values()) == 5 * epoch


def test_kafka_that_has_lost_an_epoch_that_it_had_confirmed_is_not_written_to(
    topic: Topic, name: str
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    with closing(epochs(topic, name)) as writer:
        write(writer, 1, numbers(0))
        write(writer, 2, numbers(5))
        token = writer.prepare(3)
    group = {"group.id": f"floodway.{name}.{token['run']}"}
    with closing(Consumer({"bootstrap.servers": topic.server.servers, **group})) as behind:
        behind.commit(offsets=[TopicPartition(topic.name, 0, 1)], asynchronous=False)
    with (
        closing(epochs(topic, name, token)) as again,
        pytest.raises(ConnectorError, match=r"confirmed epoch 2 .* now has only epoch 1"),
    ):
        apply(again, 3, [again.encode(numbers(10))], token)
    assert topic.values() == list(range(10))


def test_epochs_of_which_there_is_no_doubt_go_on_if_kafka_has_forgotten(
    topic: Topic, name: str
) -> None:
    with closing(epochs(topic, name)) as writer:
        blocks, first = write(writer, 1, numbers(0))
        token = writer.prepare(2)  # without rows, when the first is known to be applied
    forget(topic, name, token)
    with closing(epochs(topic, name, token)) as again:
        apply(again, 1, blocks, first)
        write(again, 3, numbers(5))
        apply(again, 1, blocks, first)
    assert topic.values() == list(range(10))


@pytest.mark.parametrize(
    ("patience", "error", "message"),
    [
        (60.0, Unavailable, "has not ended the last transaction"),
        (0.0, ConnectorError, "does not end the last transaction"),
    ],
)
def test_transaction_that_kafka_does_not_end(
    topic: Topic,
    name: str,
    patience: float,
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    monkeypatch.setattr(kafka_epochs, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(kafka_epochs, "_PENDING_SECONDS", patience)
    with closing(epochs(topic, name)) as writer:
        blocks, token = write(writer, 1, numbers(0))
    settings = {"bootstrap.servers": topic.server.servers}
    with closing(Consumer({**settings, "group.id": f"floodway.{name}.{token['run']}"})) as group:
        metadata = group.consumer_group_metadata()
    hanging = Producer({**settings, "transactional.id": topic.name})
    hanging.init_transactions(15)
    hanging.begin_transaction()
    hanging.send_offsets_to_transaction([TopicPartition(topic.name, 0, 2)], metadata, 15)
    with closing(epochs(topic, name, token)) as again:
        with pytest.raises(error, match=message):
            again.apply(1, blocks, token)
        hanging.abort_transaction(15)
        apply(again, 1, blocks, token)
    assert topic.values() == list(range(5))


# ------------------------------------------------------------------------------- reading


@pytest.fixture
def unfinished(topic: Topic) -> Iterator[Any]:
    """A transaction with one record, under way."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": topic.server.servers}
    producer = Producer({**settings, "transactional.id": topic.name})
    producer.init_transactions(15)
    producer.begin_transaction()
    producer.produce(topic.name, b"1")
    producer.flush(15)
    yield producer
    producer.abort_transaction(15)


def test_source_reads_what_is_committed(topic: Topic, unfinished: Any) -> None:
    loose = topic.source(settings={"isolation.level": "read_uncommitted"})
    with opened(topic.source()) as strict, opened(loose) as reader:
        assert [raw for _, _, raw in drain(reader, 1)] == [b"1"]
        assert strict.poll(10) == []
        unfinished.commit_transaction(15)
        assert [raw for _, _, raw in drain(strict, 1)] == [b"1"]
        unfinished.begin_transaction()


def committed(topic: Topic, group: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": topic.server.servers, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic.name, 0)], timeout=15)
        return int(found.offset)
    finally:
        consumer.close()


def test_offsets_are_committed_with_epochs(topic: Topic) -> None:
    topic.fill([row(number) for number in range(6)])
    group = f"tool-{topic.name}"
    with opened(topic.source(group=group, end="current")) as reader:
        reader.commits_with_epochs()
        first = drain(reader, 1, limit=2)
        position = reader.position()
        drain(reader)
        assert reader.poll(1) is None
        reader.commit(position)
        wait_for(lambda: committed(topic, group) == len(first))
    assert committed(topic, group) == len(first)


def test_positions_are_dealt_out_to_another_number_of_tasks(
    make_topic: Callable[..., Topic],
) -> None:
    topic = make_topic(3)
    dealt = topic.source().reassign([{0: 4, 2: 6}, {"1": 5}], 3)
    for index, mine in enumerate([{0: 4}, {1: 5}, {2: 6}]):
        with opened(topic.source(), Split(index, 3), dealt[index]) as reader:
            assert reader.position() == mine


def test_offsets_that_were_not_known_yet_are_not_made_up(topic: Topic) -> None:
    assert topic.source().reassign([None, None], 3) == [None] * 3
    assert topic.source().reassign([None, {1: 5}], 1) == [{1: 5}]
    with pytest.raises(ConnectorError, match="had not found out yet"):
        topic.source(start="latest").reassign([None, {1: 5}], 1)


# ------------------------------------------------------------------------------- timestamps


def timestamps(topic: Topic) -> list[int]:
    with opened(topic.source(end="current")) as reader:
        return [timestamp for timestamp, _, _ in drain(reader)]


def test_rows_of_an_epoch_may_have_the_time_of_writing(topic: Topic, name: str) -> None:
    before = int(time.time() * 1000)
    with closing(epochs(topic, name, timestamps="now")) as writer:
        write(writer, 1, [(5, None, 1, None)])
    assert all(before <= timestamp for timestamp in timestamps(topic))


def test_epoch_that_its_topic_does_not_keep_is_warned_of_once(
    make_topic: Callable[..., Topic], name: str
) -> None:
    topic = make_topic(**{"retention.ms": "604800000"})
    with closing(epochs(topic, name)) as writer:
        wait_for(lambda: writer.encode([row(1)]) and writer.warning)
        assert "timestamps='now'" in str(writer.warning)
        writer.warning = None
        writer.encode([row(1)])
        assert writer.warning is None


def test_only_epoch_that_its_topic_does_not_keep_is_warned_of(
    make_topic: Callable[..., Topic], name: str
) -> None:
    topic = make_topic(**{"retention.ms": "604800000"})
    with closing(epochs(topic, name)) as writer:
        write(writer, 1, [(int(time.time() * 1000), None, 1, None), (5, None, 2, None)])
    assert "timestamps='now'" in str(writer.warning)
