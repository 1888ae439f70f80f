"""What a flow reads from Kafka, and what it has written to Kafka and Redis."""

from collections.abc import Iterator
from typing import Any

import msgspec

from floodway_lab.chaos.workload import COUNTED, ECHOED, LETTERS, item

ANSWER_S = 30.0
CHUNK = 10_000


def write_letters(servers: str, count: int) -> None:
    """Write items to the topic that the flow reads."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 2 * CHUNK})
    for number in range(count):
        value = msgspec.json.encode(item(number))
        producer.produce(LETTERS, value, key=str(number))
        if number % CHUNK == 0:
            producer.flush(ANSWER_S)
    if producer.flush(ANSWER_S):
        raise OSError(f"Kafka at {servers} does not take letters")


def echoed(servers: str) -> Iterator[bytes]:
    """Return what is committed in the topic that the flow writes."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "floodway-chaos-verdict",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(ECHOED, timeout=ANSWER_S).topics[ECHOED].partitions
        consumer.assign([TopicPartition(ECHOED, number, 0) for number in partitions])
        yield from _values(consumer, len(partitions))
    finally:
        consumer.close()


def _values(consumer: Any, partitions: int) -> Iterator[bytes]:
    from confluent_kafka import KafkaError

    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(ANSWER_S)
        if message is None:
            raise OSError("Kafka does not say what is in a topic")
        error = message.error()
        if error is None:
            yield message.value()
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            ended.add(message.partition())
        else:
            raise OSError(str(error))


def pushed(url: str) -> Iterator[bytes]:
    """Return what is in the list in Redis."""
    from redis import Redis

    with Redis.from_url(url) as redis:
        yield from redis.lrange(COUNTED, 0, -1)
