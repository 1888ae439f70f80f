"""Kafka and Redis: whoever reads what is committed sees every input once, and in order."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import Consumer, Producer, TopicPartition

import floodway as fw
from floodway.connectors.kafka import KafkaSink, KafkaSource
from floodway.connectors.redis import RedisSink
from floodway.engine.driver.job import Job
from floodway.testing.servers import KafkaServer, RedisServer
from tests.connectors.servers_fixtures import kafka, redis_server
from tests.engine.spark.recovering import (
    COUNT,
    GATES,
    Tap,
    Taps,
    committed_again,
    ended,
    kill_and_recover,
    release_of,
    started,
    tap,
    until,
)
from tests.waiting import DEADLINE_S

__all__ = ["kafka", "redis_server"]  # fixtures

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("shared_spark", "clean"),
]

KILLS = 10
PARTITIONS = 2
CHUNK = COUNT // (2 * KILLS + 4)

Row = tuple[int, int]
"""How many taps there have been at a gate, and the number of the latest."""


def numbered(time: int, key: int, value: Tap, count: int) -> tuple[int, list[Any]]:
    """Number the taps of a gate."""
    return count + 1, [(time, key, (count + 1, value.number))]


def expected() -> dict[int, list[Row]]:
    """Return what there has to be for each gate, by a plain loop."""
    found: dict[int, list[Row]] = defaultdict(list)
    for number in range(COUNT):
        rows = found[tap(number).gate]
        rows.append((len(rows) + 1, number))
    return dict(found)


# --------------------------------------------------------------------------- Kafka


def from_kafka_to_kafka(server: KafkaServer) -> fw.Flow:
    """Return a flow of three stages that numbers the taps of each gate."""
    flow = fw.Flow("numbering")
    source = KafkaSource("taps", servers=server.servers, group="numbering")
    taps = flow.source("taps", source, schema=Tap).isolate()
    numbers = taps.key_by("gate").process(
        init=lambda key: 0, update=numbered, schema=tuple[int, int], name="numbers"
    )
    numbers.isolate().to(KafkaSink("numbers", servers=server.servers), name="out")
    return flow


class Feeder:
    """Puts taps into a topic, bit by bit."""

    def __init__(self, server: KafkaServer) -> None:
        self._producer = Producer({"bootstrap.servers": server.servers})
        self._next = 0

    def feed(self, count: int) -> None:
        """Add some more, but never more than there are."""
        for number in range(self._next, min(self._next + count, COUNT)):
            given = tap(number)
            value = json.dumps({"gate": given.gate, "number": number})
            self._producer.produce("taps", key=str(given.gate), value=value)
            self._next = number + 1
        assert self._producer.flush(60) == 0


class Committed:
    """What a reader of committed records has seen in a topic, by key."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.rows: dict[int, list[Row]] = defaultdict(list)
        self.count = 0

    def look(self) -> int:
        """Read what there is; return how many rows there are by now."""
        while messages := self._consumer.consume(1000, timeout=0.1):
            for message in messages:
                assert message.error() is None
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                count, number = json.loads(value)
                self.rows[int(key)].append((count, number))
                self.count += 1
        return self.count


@contextmanager
def committed(server: KafkaServer, topic: str) -> Iterator[Committed]:
    settings = {
        "bootstrap.servers": server.servers,
        "group.id": "nobody",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        yield Committed(consumer)


@pytest.mark.slow
def test_every_input_is_in_the_output_topic_once(kafka: KafkaServer, tmp_path: Path) -> None:
    for topic in ("taps", "numbers"):
        kafka.create_topic(topic, partitions=PARTITIONS, settings={"retention.ms": "-1"})
    feeder = Feeder(kafka)
    with committed(kafka, "numbers") as output:
        with started(from_kafka_to_kafka(kafka), tmp_path) as job:
            kill_often(job, feeder, output, KILLS // 2)
            feeder.feed(CHUNK)
        with started(from_kafka_to_kafka(kafka), tmp_path) as job:
            kill_often(job, feeder, output, KILLS - KILLS // 2)
            feeder.feed(COUNT)
            until(job, lambda: output.look() >= COUNT, "all output")
            committed_again(job, 2)
            job.drain()
            assert job.wait(DEADLINE_S)
        output.look()
    assert dict(output.rows) == expected()


def kill_often(job: Job, feeder: Feeder, output: Committed, times: int) -> None:
    """Kill tasks of all stages, always while something is on its way."""
    for number in range(times):
        before = output.look()
        feeder.feed(CHUNK)
        until(job, lambda: output.look() > before, "more output")  # noqa: B023 - waits for it
        feeder.feed(CHUNK)
        kill_and_recover(job, ("out", "taps", "numbers")[number % 3], number % 2)
    assert job.recoveries == times


# --------------------------------------------------------------------------- Redis


def test_every_input_is_in_a_redis_list_once(redis_server: RedisServer, tmp_path: Path) -> None:
    flow = fw.Flow("to-redis")
    taps = flow.source("taps", Taps(release_of(tmp_path)), schema=Tap).isolate()
    numbers = taps.key_by("gate").process(
        init=lambda key: 0, update=numbered, schema=tuple[int, int], name="numbers"
    )
    rows = numbers.map(lambda row: (row[1], row[0]), schema=tuple[int, int], name="rows")
    rows.to(RedisSink(redis_server.url, prefix="rows", kind="list"), name="out")
    with redis.Redis.from_url(redis_server.url) as client:
        with started(flow, tmp_path) as job:
            until(job, lambda: client.llen("rows"), "rows")
            for number, operator in enumerate(("out", "taps", "numbers")):
                kill_and_recover(job, operator, number % 2)
            ended(job, tmp_path)
        rows_there = [json.loads(row) for row in client.lrange("rows", 0, -1)]
    found: dict[int, list[Row]] = defaultdict(list)
    for number, count in rows_there:
        found[tap(number).gate].append((count, number))
    assert job.recoveries == 3
    # Two tasks of the source take turns, so which tap of a gate comes first is open.
    assert {gate: [count for count, _ in each] for gate, each in found.items()} == {
        gate: [count for count, _ in each] for gate, each in expected().items()
    }
    assert sorted(number for number, _ in rows_there) == list(range(COUNT))
    assert len(found) == GATES
