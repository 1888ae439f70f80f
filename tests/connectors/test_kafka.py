"""The Kafka connector, with a real broker."""

import pickle
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from floodway import Record
from floodway.connectors import kafka as kafka_connector
from floodway.connectors import kafka_reader
from floodway.connectors.base import Lag, Reader, Row, Split, Unavailable
from floodway.connectors.formats import Bytes, Json, Text
from floodway.connectors.kafka import KafkaSink, KafkaSource
from floodway.connectors.kafka_client import Client
from floodway.connectors.kafka_retention import Retention
from floodway.core.errors import ConnectorError, OptionError
from floodway.core.schema import Schema
from floodway.engine.datastream.silence import Silence
from floodway.testing.conformance import check_sink, check_source
from floodway.testing.servers import KafkaServer, ServerUnavailable, free_port
from tests.connectors.kafka_topics import (
    NOW,
    Topic,
    deliver,
    drain,
    make_topic,
    opened,
    row,
    shaky_topic,
    topic,
)
from tests.connectors.servers_fixtures import kafka, running, wait_for
from tests.connectors.taking import taken

__all__ = ["kafka", "make_topic", "shaky_topic", "topic"]  # fixtures

pytestmark = pytest.mark.xdist_group("kafka")


class Tap(Record):
    gate: str
    fare: float


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let look-ups give up early, where it does not matter when."""
    monkeypatch.setattr(kafka_connector, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(kafka_reader, "ANSWER_SECONDS", 1.0)


# ------------------------------------------------------------------------------- conformance


def test_source_keeps_its_promises(topic: Topic) -> None:
    topic.fill([row(number, f"gate {number % 3}") for number in range(20)])
    expected = [(f"gate {number % 3}", number) for number in range(20)]
    check_source(topic.source(end="current"), expected, schema=int)


def test_source_with_three_partitions_keeps_its_promises(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic(3)
    topic.fill([row(number, f"gate {number}") for number in range(20)])
    expected = [(f"gate {number}", number) for number in range(20)]
    source = topic.source(end="current")
    check_source(source, expected, schema=int, ordered=False)
    source.check()
    assert source.most == 3


def test_endless_source_keeps_its_promises(topic: Topic) -> None:
    topic.fill([row(number) for number in range(6)])
    expected = [(None, number) for number in range(6)]
    check_source(topic.source(), expected, schema=int, bounded=False, splits=(1,))


def test_sink_keeps_its_promises(topic: Topic) -> None:
    rows: list[Row] = [(NOW + n, f"gate {n}", Tap(f"gate {n}", n / 2), None) for n in range(10)]
    expected = [{"gate": f"gate {n}", "fare": n / 2} for n in range(10)]
    check_sink(topic.sink(), Tap, rows, topic.values, expected=expected)


# ------------------------------------------------------------------------------- what is read


def test_record_has_timestamp_key_and_raw_value(topic: Topic) -> None:
    topic.fill([(NOW, "gate", Tap("gate", 2.5), None)], Tap)
    with opened(topic.source(end="current")) as reader:
        assert drain(reader) == [(NOW, "gate", b'{"gate":"gate","fare":2.5}')]


def test_tombstone_has_no_raw_value(topic: Topic) -> None:
    topic.fill([(NOW, "gate", 1, None), (NOW + 1, "gate", None, None)])
    with opened(topic.source(end="current")) as reader:
        assert drain(reader) == [(NOW, "gate", b"1"), (NOW + 1, "gate", None)]


@pytest.mark.parametrize(
    ("written", "read"), [(("a", 1), '["a",1]'), (7, "7"), ("näher", "näher"), (None, None)]
)
def test_keys_in_text(topic: Topic, written: Any, read: str | None) -> None:
    topic.fill([row(1, written)])
    with opened(topic.source(end="current")) as reader:
        assert [key for _, key, _ in drain(reader)] == [read]


@pytest.mark.parametrize("key", [("a", 1), 7, "gate", ("a", ("b", None)), None])
def test_keys_in_json_come_back_as_they_were(topic: Topic, key: Any) -> None:
    topic.fill([row(1, key)], key_format=Json())
    with opened(topic.source(end="current", key_format=Json())) as reader:
        assert [found for _, found, _ in drain(reader)] == [key]


def test_bad_key_is_a_record_that_cannot_be_read(topic: Topic) -> None:
    topic.fill([row(1, b"\xff"), row(2, b"good"), (NOW, b"\xfe", None, None)], key_format=Bytes())
    with opened(topic.source(end="current")) as reader:
        bad, good, deletion = drain(reader)
    assert good == (NOW + 2, "good", b"2")
    assert (bad[:2], bad[2].raw) == ((NOW + 1, None), (b"\xff", b"1"))
    assert re.match("the key at offset 0 of partition 0 .* is not Text", bad[2].problem)
    assert deletion[2].raw == (b"\xfe", None)


def test_object_in_json_is_a_bad_key(topic: Topic) -> None:
    rows = [row(1, b'{"a":1}'), row(2, b'["a",1]')]
    topic.fill(rows, key_format=Bytes())
    with opened(topic.source(end="current", key_format=Json())) as reader:
        bad, good = drain(reader)
    assert good == (NOW + 2, ("a", 1), b"2")
    assert (bad[:2], bad[2].raw) == ((NOW + 1, None), (b'{"a":1}', b"1"))
    assert "an object cannot be a key" in bad[2].problem


def test_records_of_anything_are_read_or_counted(topic: Topic) -> None:
    random = Random(7)
    rows: list[Row] = []
    for number in range(300):
        key, value = (bytes(random.choices(b'\0\n\xff"17a{', k=random.randrange(4))) for _ in "kv")
        rows.append((NOW + number, key or None, value or None, None))
    good = [n for n, (_, _, raw, _) in enumerate(rows) if raw and decodes(raw)]
    topic.fill(rows, bytes, format=Bytes(), key_format=Bytes())
    for policy in ("skip", "dead_letter"):
        found = taken(topic.source(end="current"), object, policy)
        deleted = found.values.count(None)
        assert found.count == 300 == len(found.values) + found.skipped + len(found.letters)
        assert 0 < len(found.values) - deleted <= len(good) < 300


def decodes(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return False
    return True


@pytest.mark.parametrize(
    ("settings", "age_days", "warned"),
    [
        ({}, 30, True),
        ({}, 1, False),
        ({"retention.ms": "-1"}, 30, False),
        ({"cleanup.policy": "compact"}, 30, False),
        ({"message.timestamp.type": "LogAppendTime"}, 30, False),
        ({"retention.ms": "3600000"}, 1, True),
    ],
)
def test_rows_that_their_topic_does_not_keep_are_warned_of(
    make_topic: Callable[..., Topic], settings: dict[str, str], age_days: int, warned: bool
) -> None:
    topic = make_topic(**{"retention.ms": "604800000"} | settings)
    sink, answers = topic.sink(), []

    def ask() -> Any:
        answers.append(Client(sink).settings_of_topic())
        return answers[-1]

    retention = Retention(sink, ask)
    timestamp = int(time.time() * 1000) - age_days * 86_400_000
    wait_for(lambda: answers[0].done())
    retention.note([(int(time.time() * 1000), None, 0, None), (-(2**63), None, 0, None)])
    assert retention.look() is None
    retention.note([(timestamp + 5, None, 1, None), (timestamp, None, 2, None)])
    said = retention.look()
    assert (said is not None) == warned
    if said is not None:
        assert "retention.ms" in said
        assert "timestamps='now'" in said
    assert retention.look() is None
    assert len(answers) == 1


def test_one_batch_that_its_topic_does_not_keep_is_warned_of(
    make_topic: Callable[..., Topic],
) -> None:
    topic = make_topic(**{"retention.ms": "604800000"})
    old = int(time.time() * 1000) - 30 * 86_400_000
    writer = topic.sink().open(Split(), Schema.of(int))
    with closing(writer):
        deliver(writer, [(old + 86_400_000 * 29, None, 1, None), (old, None, 2, None)])
    assert "retention.ms" in str(writer.warning)


def test_broker_that_does_not_answer_is_asked_again_for_its_settings() -> None:
    answers: list[Future[Any]] = []

    def ask() -> Future[Any]:
        answers.append(Future())
        return answers[-1]

    retention = Retention(KafkaSink("taps", servers="127.0.0.1:1"), ask)
    retention.note([(5, None, 1, None)])
    for _ in range(10):
        assert retention.look() is None
        if not answers[-1].done():
            answers[-1].set_exception(ValueError("away"))
    assert len(answers) == 3


def test_rows_written_with_the_time_of_writing_are_not_warned_of(topic: Topic) -> None:
    before = int(time.time() * 1000)
    with closing(topic.sink(timestamps="now").open(Split(), Schema.of(int))) as writer:
        deliver(writer, [(5, None, 1, None), (-(2**63), None, 2, None)])
        assert writer.warning is None
    with opened(topic.source(end="current")) as reader:
        assert all(timestamp >= before for timestamp, _, _ in drain(reader))


def test_row_before_1970_has_the_time_of_writing(topic: Topic) -> None:
    before = int(time.time() * 1000)
    with closing(topic.sink().open(Split(), Schema.of(int))) as writer:
        deliver(writer, [(-(2**63), None, 1, None), (-1, None, 2, None)])
    with opened(topic.source(end="current")) as reader:
        assert all(timestamp >= before for timestamp, _, _ in drain(reader))


def test_unknown_timestamps_are_refused() -> None:
    with pytest.raises(OptionError, match="timestamps is 'later'"):
        KafkaSink("taps", servers="a:1", timestamps="later")  # type: ignore[arg-type]


def test_other_formats(topic: Topic) -> None:
    topic.fill([(NOW, None, "näher", None)], str, format=Text())
    with opened(topic.source(end="current", format=Text())) as reader:
        assert [raw for _, _, raw in drain(reader)] == ["näher".encode()]


def test_twenty_thousand_records(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic(3)
    topic.fill([row(number, f"gate {number % 50}") for number in range(20_000)])
    found: list[int] = []
    for index in range(2):
        with opened(topic.source(end="current"), Split(index, 2)) as reader:
            items = drain(reader)
        by_key: dict[str, int] = {}
        for _, key, raw in items:
            assert by_key.get(key, -1) < int(raw), "out of order"
            by_key[key] = int(raw)
        found += [int(raw) for _, _, raw in items]
    assert sorted(found) == list(range(20_000))


# ------------------------------------------------------------------------------- positions


def test_position_is_next_offset_and_resumes_exactly(topic: Topic) -> None:
    topic.fill([row(number) for number in range(10)])
    source = topic.source(end="current")
    with opened(source) as reader:
        first: list[Any] = []
        while len(first) < 4:
            first += reader.poll(2)
        position = reader.position()
    assert position == {0: len(first)}
    through_json = msgspec.json.decode(msgspec.json.encode(position))
    for given in (position, through_json):
        with opened(source, position=given) as reader:
            assert [int(raw) for _, _, raw in drain(reader)] == list(range(len(first), 10))


def test_latest_begins_where_it_was_opened(topic: Topic) -> None:
    topic.fill([row(number) for number in range(5)])
    with opened(topic.source(start="latest")) as reader:
        assert reader.position() == {0: 5}
        topic.fill([row(5)])
        assert [int(raw) for _, _, raw in drain(reader, 1)] == [5]


def test_current_end_leaves_what_comes_later(topic: Topic) -> None:
    topic.fill([row(number) for number in range(5)])
    with opened(topic.source(end="current")) as reader:
        topic.fill([row(5)])
        wait_for(lambda: reader.lag().records == 6)  # it is fetched, too
        assert [int(raw) for _, _, raw in drain(reader)] == [0, 1, 2, 3, 4]
        assert reader.position() == {0: 5}


def test_transactions_that_were_aborted_are_not_seen_and_do_not_hold_up_the_end(
    topic: Topic,
) -> None:
    from confluent_kafka import Producer

    servers = {"bootstrap.servers": topic.server.servers}
    producer = Producer({**servers, "transactional.id": topic.name})
    producer.init_transactions(15)
    for number, finish in enumerate([producer.commit_transaction, producer.abort_transaction]):
        producer.begin_transaction()
        producer.produce(topic.name, str(number))
        producer.flush(15)
        finish(15)
    with opened(topic.source(end="current")) as reader:
        assert [raw for _, _, raw in drain(reader)] == [b"0"]
        assert reader.position() == {0: 4}  # two records, and two marks of transactions


def test_empty_topic_ends_at_once(make_topic: Callable[..., Topic]) -> None:
    with opened(make_topic(2).source(end="current")) as reader:
        assert reader.poll(10) is None


def test_task_without_partition_ends_at_once(topic: Topic) -> None:
    topic.fill([row(1)])
    with opened(topic.source(end="current"), Split(1, 2)) as reader:
        assert reader.poll(10) is None
        assert reader.position() == {}


def test_splits_share_the_partitions(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic(3)
    with opened(topic.source(), Split(0, 2)) as even, opened(topic.source(), Split(1, 2)) as odd:
        assert even.position() == {0: 0, 2: 0}
        assert odd.position() == {1: 0}


def test_partition_that_is_not_in_the_position_is_read_whole(
    make_topic: Callable[..., Topic],
) -> None:
    topic = make_topic(2)
    topic.fill([row(number, f"gate {number}") for number in range(20)])
    with opened(topic.source(end="current")) as reader:
        drain(reader)
        ends = reader.position()
    assert min(ends.values()) > 0
    with opened(topic.source(end="current", start="latest"), position={0: ends[0]}) as reader:
        assert len(drain(reader)) == ends[1]


def test_position_whose_records_are_gone_is_an_error(topic: Topic) -> None:
    topic.fill([row(number) for number in range(3)])
    with opened(topic.source(), position={0: 1000}) as reader:
        with pytest.raises(ConnectorError, match="no longer the records") as caught:
            drain(reader, 1)
        assert "retention" in caught.value.remedy


@pytest.mark.parametrize("end", ["current", "never"])
def test_offsets_are_committed_for_outside_tools(topic: Topic, end: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic.fill([row(number) for number in range(5)])
    with opened(topic.source(end=end, group="tool")) as reader:
        drain(reader, 5)
    outside = Consumer({"bootstrap.servers": topic.server.servers, "group.id": "tool"})
    try:
        (committed,) = outside.committed([TopicPartition(topic.name, 0)], timeout=10)
    finally:
        outside.close()
    assert committed.offset == 5
    with opened(topic.source(end="current", group="tool")) as reader:
        assert len(drain(reader)) == 5, "the group's offsets are not for us"


# ------------------------------------------------------------------------------- lag


def test_lag(topic: Topic) -> None:
    old = int(time.time() * 1000) - 60_000
    topic.fill([(old, None, number, None) for number in range(10)])
    with opened(topic.source()) as reader:
        assert reader.lag() == Lag(10, None, full=False)
        while not (items := reader.poll(4)):
            pass
        lag = reader.lag()
        assert lag.records == 10 - len(items)
        assert 60 <= lag.seconds < 120
        drain(reader, 10 - len(items))
        assert reader.lag() == Lag(0, 0.0, full=False)


def test_lag_sees_what_was_written_after_opening(topic: Topic) -> None:
    with opened(topic.source()) as reader:
        assert reader.poll(1) == []
        topic.fill([row(number) for number in range(10)])
        wait_for(lambda: reader.lag().records == 10)
        drain(reader, 10)
        assert reader.lag() == Lag(0, 0.0, full=False)


# ------------------------------------------------------------------------------- what is not there


@pytest.fixture
def nowhere() -> str:
    return f"127.0.0.1:{free_port()}"


def test_look_ups_take_five_seconds_at_most() -> None:
    assert kafka_connector.ANSWER_SECONDS == 5.0


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("connector", [KafkaSource, KafkaSink])
def test_broker_that_is_not_there(
    connector: Any, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def left(deadline: float) -> float:
        waits.append(round(deadline - time.monotonic(), 3))
        return waits[-1]

    monkeypatch.setattr("floodway.connectors.kafka_client._left", left)
    with pytest.raises(ConnectorError) as caught:
        connector("taps", servers=nowhere).check()
    (wait,) = waits  # asked once, and for no longer than an answer may take
    assert wait <= kafka_connector.ANSWER_SECONDS
    assert nowhere in caught.value.problem
    assert "'taps'" in caught.value.problem
    assert "start the broker" in caught.value.remedy


@pytest.mark.parametrize("connector", [KafkaSource, KafkaSink])
def test_topic_that_is_not_there(kafka: KafkaServer, connector: Any) -> None:
    with pytest.raises(ConnectorError) as caught:
        connector("no-such-topic", servers=kafka.servers).check()
    assert caught.value.problem == f"Kafka topic 'no-such-topic' at {kafka.servers} is not there"
    assert "create the topic" in caught.value.remedy


def test_reader_of_a_topic_that_is_not_there(kafka: KafkaServer) -> None:
    with pytest.raises(ConnectorError, match="is not there"):
        KafkaSource("no-such-topic", servers=kafka.servers).open(Split())


def test_writer_of_a_broker_that_is_not_there_keeps_rows_and_says_so(nowhere: str) -> None:
    with closing(KafkaSink("taps", servers=nowhere).open(Split(), Schema.of(int))) as writer:
        writer.write([row(1)])
        with pytest.raises(Unavailable, match="1 rows are not delivered yet"):
            writer.flush()


def test_full_queue_says_how_many_rows_were_taken(nowhere: str) -> None:
    sink = KafkaSink("taps", servers=nowhere, settings={"queue.buffering.max.messages": 10})
    with closing(sink.open(Split(), Schema.of(int))) as writer:
        with pytest.raises(Unavailable) as caught:
            writer.write([row(number) for number in range(15)])
        assert caught.value.taken == 10


def test_row_that_is_too_large(topic: Topic) -> None:
    writer = topic.sink().open(Split(), Schema.of(str))
    with closing(writer), pytest.raises(ConnectorError, match="too large"):
        writer.write([(NOW, None, "x" * 2_000_000, None)])


def test_row_that_the_broker_refuses(make_topic: Callable[..., Topic]) -> None:
    topic = make_topic(**{"max.message.bytes": "1000"})
    writer = topic.sink().open(Split(), Schema.of(str))
    with closing(writer), pytest.raises(ConnectorError, match="too large"):
        deliver(writer, [(NOW, None, "x" * 5000, None)])


# ------------------------------------------------------------------------------- survival


@pytest.mark.parametrize("crash", [False, True], ids=["stop", "kill"])
def test_source_and_sink_survive_a_restart_of_the_broker(shaky_topic: Topic, crash: bool) -> None:
    server = shaky_topic.server
    writer = shaky_topic.sink().open(Split(), Schema.of(int))
    with closing(writer), opened(shaky_topic.source()) as reader:
        deliver(writer, [row(number) for number in range(100)])
        found = drain(reader, 1, limit=1)  # most are fetched by now, and not read
        if crash:
            server.kill()
        else:
            server.stop()
        writer.write([row(number) for number in range(100, 200)])
        with pytest.raises(Unavailable):
            writer.flush()
        wait_for(lambda: is_away(reader, found))
        server.start()
        deliver(writer, [row(number) for number in range(200, 300)])
        found += drain(reader, 300 - len(found))
        wait_for(lambda: not is_away(reader, found))
    assert [int(raw) for _, _, raw in found] == list(range(300))


@pytest.mark.usefixtures("impatient")
def test_reader_that_was_opened_while_the_broker_is_away(shaky_topic: Topic) -> None:
    shaky_topic.fill([row(number) for number in range(5)])
    shaky_topic.server.stop()
    with opened(shaky_topic.source(), position={0: 2}) as reader:
        assert reader.position() == {0: 2}
        assert is_away(reader, [])
        shaky_topic.server.start()
        assert [int(raw) for _, _, raw in drain(reader, 3)] == [2, 3, 4]


def is_away(reader: Reader, found: list[Any]) -> bool:
    try:
        found += reader.poll(10) or []
    except Unavailable:
        return True
    return False


# ------------------------------------------------------------------------------- nothing to give

LITTLE = {
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 64,
    "fetch.message.max.bytes": 20_000,
}
"""Settings of a client that fetches only a little ahead."""


@contextmanager
def stopped(server: KafkaServer) -> Iterator[None]:
    """Stop a broker without a word, as if its machine did not answer."""
    process = server._process  # noqa: SLF001 - servers need no such thing but here
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the client library has said about itself, about once a second."""
    texts: list[str] = []
    take = Client.take_statistics

    def note(client: Client, text: str) -> None:
        texts.append(text)
        take(client, text)

    monkeypatch.setattr(Client, "take_statistics", note)
    return texts


def test_broker_that_does_not_answer_is_no_silence(topic: Topic, told: list[str]) -> None:
    topic.fill([(NOW, None, f"{number:08}" + "x" * 1000, None) for number in range(5000)])
    with opened(topic.source(settings=LITTLE)) as reader:
        found = drain(reader, 500, limit=100)
        silence = Silence()

        def told_four_times() -> bool:
            if is_away(reader, found) or not reader.there:
                silence.end()
            else:
                silence.nothing(int(time.monotonic() * 1e6), 1000)
            assert silence.us == 0
            return len(told) >= 4

        with stopped(topic.server):
            told.clear()
            wait_for(told_four_times)
        assert len(found) < 5000
        found += drain(reader, 5000 - len(found))
        wait_for(lambda: not is_away(reader, found) and reader.there)
    assert [int(raw[1:9]) for _, _, raw in found] == list(range(5000))


def test_broker_that_stops_to_answer_at_the_end_of_a_topic_is_no_longer_there(topic: Topic) -> None:
    topic.fill([row(1)])
    with opened(topic.source()) as reader:
        assert not reader.there  # nothing was fetched yet, so nobody knows
        drain(reader, 1)
        wait_for(lambda: not is_away(reader, []) and reader.there)
        with stopped(topic.server):
            wait_for(lambda: is_away(reader, []) or not reader.there)
        topic.fill([row(2)])
        assert [int(raw) for _, _, raw in drain(reader, 1)] == [2]
        wait_for(lambda: not is_away(reader, []) and reader.there)


def test_reader_without_partitions_has_nothing_to_give(topic: Topic) -> None:
    with opened(topic.source(), Split(1, 2)) as reader:
        assert reader.poll(10) == []
        assert reader.there


def statistics(leader: int, **broker: Any) -> str:
    """Return what the client library says of a topic with one partition and one broker."""
    brokers = {"b:1/1": {"nodeid": 1, "state": "UP", "rxidle": 1000, **broker}}
    topics = {"taps": {"partitions": {"0": {"broker": leader}, "-1": {"broker": -1}}}}
    return msgspec.json.encode({"brokers": brokers, "topics": topics}).decode()


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        (statistics(1), {0}),
        (statistics(-1), set()),  # no leader
        (statistics(2), set()),  # one that nobody has talked to
        (statistics(1, rxidle=10_000_000), set()),
        (statistics(1, rxidle=-1), set()),
        (statistics(1, state="CONNECT"), set()),
    ],
)
def test_partitions_whose_broker_answers(text: str, heard: set[int]) -> None:
    client = Client(KafkaSource("taps", servers="127.0.0.1:9092"))
    client.take_statistics(text)
    assert client.heard == heard


# ------------------------------------------------------------------------------- descriptions


@pytest.mark.parametrize("option", [{"start": "middle"}, {"end": "soon"}])
def test_unknown_choices_are_refused(option: Any) -> None:
    with pytest.raises(OptionError, match=r"start is 'middle'|end is 'soon'"):
        KafkaSource("taps", servers="127.0.0.1:1", **option)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("connector", [KafkaSource, KafkaSink])
def test_secrets_are_not_shown(connector: Any, nowhere: str) -> None:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "jane",
        "sasl.password": "hunter2",
    }
    described = connector("taps", servers=nowhere, settings=settings)
    assert "sasl.password" in repr(described)
    with pytest.raises(ConnectorError) as caught:
        described.check()
    for text in (repr(described), str(described), str(caught.value)):
        assert "hunter2" not in text
    settings = {"security.protocol": "SSL", "ssl.key.pem": "hunter2"}
    wrong = connector("taps", servers=nowhere, settings=settings)
    with pytest.raises(ConnectorError, match="does not take its settings") as caught:
        wrong.check()
    assert "hunter2" not in str(caught.value)


def test_unknown_setting_is_an_error(nowhere: str) -> None:
    with pytest.raises(ConnectorError, match=r"no\.such\.setting"):
        KafkaSource("taps", servers=nowhere, settings={"no.such.setting": 1}).check()


def test_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    source = KafkaSource("taps", servers="127.0.0.1:9092")
    with pytest.raises(ConnectorError) as caught:
        source.check()
    assert caught.value.remedy == "pip install floodway[kafka]"


def test_descriptions_travel() -> None:
    source = KafkaSource("taps", servers=["a:1", "b:2"], group="tool", settings={"client.id": "x"})
    again = pickle.loads(pickle.dumps(source))
    assert vars(again) == vars(source)
    assert again.servers == "a:1,b:2"


# ------------------------------------------------------------------------------- the server


@pytest.fixture
def bare_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder, which is all of the path; and nothing is fetched yet."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def command(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.mark.usefixtures("bare_path")
def test_server_needs_java() -> None:
    with pytest.raises(ServerUnavailable, match="java is not on the path"), KafkaServer():
        pass


def test_server_needs_maven_the_first_time(bare_path: Path) -> None:
    command(bare_path, "java", "exit 0")
    with pytest.raises(ServerUnavailable, match="mvn is not on the path"), KafkaServer():
        pass


def test_jars_that_cannot_be_fetched(bare_path: Path) -> None:
    command(bare_path, "java", "exit 0")
    command(bare_path, "mvn", "echo no network; exit 1")
    with pytest.raises(ServerUnavailable, match="no network"), KafkaServer():
        pass
    kept = bare_path.parent / "cache" / "floodway" / "kafka"
    assert [file.name for file in kept.iterdir()] == ["lock"]


@pytest.mark.usefixtures("bare_path")
def test_without_a_server_tests_are_skipped_unless_one_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FLOODWAY_REQUIRE_SERVERS", raising=False)
    with pytest.raises(pytest.skip.Exception), running(KafkaServer()):
        pass
    monkeypatch.setenv("FLOODWAY_REQUIRE_SERVERS", "1")
    with pytest.raises(ServerUnavailable), running(KafkaServer()):
        pass
