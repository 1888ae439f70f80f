"""Who writes to a Kafka topic under a name: noted with Kafka, so that everybody can see it.

Of several producers of transactions with one name only the last that began can write; Kafka keeps
out the others. What it cannot tell them is who has kept them out. It may have been another task,
and then they are to give up. It may also have been a producer of their own that was given up while
it began and whose request came late, or Kafka itself, which ends transactions that take too long.
Then they have to begin anew.
"""

import uuid
from typing import TYPE_CHECKING

from floodway.connectors.base import Unavailable
from floodway.connectors.kafka_client import ANSWER_SECONDS, Client
from floodway.core.errors import ConnectorError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition


class Owner:
    """One writer that wants a name for itself.

    The note is the text beside an offset of a consumer group that has the name and that nobody
    reads with. It is there before the writer's producer begins, and so before anybody is kept out.

    Parameters
    ----------
    topic
        The topic.
    name
        The name, of transactions and of the group.
    """

    def __init__(self, topic: str, name: str) -> None:
        self._topic = topic
        self._name = name
        self._id = uuid.uuid4().hex
        self._claimed = False

    def claim(self, client: Client) -> None:
        """Take the name the first time; after that, refuse to go on if somebody else has it."""
        consumer = client.asker(self._name, settled=False)
        try:
            if not client.answers(consumer):
                raise Unavailable(client.away or "Kafka does not answer")
            noted = self._noted(client, consumer)
            if self._claimed and noted not in (None, self._id):
                raise self.kept_out()
            if noted != self._id:
                note = self._partition(client, 0, self._id)
                (done,) = consumer.commit(offsets=[note], asynchronous=False)
                if done.error is not None:
                    raise client.library.KafkaException(done.error)
            self._claimed = True
        finally:
            consumer.close()

    def kept_out(self) -> ConnectorError:
        """Return the error for a name that another writer has."""
        return ConnectorError(
            f"another task writes to Kafka topic {self._topic!r} as {self._name}",
            remedy="run a flow once at a time, and give flows names of their own",
        )

    def _noted(self, client: Client, consumer: "Consumer") -> str | None:
        partition = self._partition(client)
        (found,) = consumer.committed([partition], timeout=ANSWER_SECONDS)
        if found.error is not None:
            raise client.library.KafkaException(found.error)
        return found.metadata if found.offset >= 0 else None

    def _partition(self, client: Client, *note: object) -> "TopicPartition":
        made: TopicPartition = client.library.TopicPartition(self._topic, 0, *note)
        return made
