"""What runs have around them: a Kafka broker and a Redis, started when the first one wants them."""

import logging
from collections import Counter
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from floodway.connectors.extras import load_extra
from floodway.core.errors import EngineError
from floodway.testing.servers import KafkaServer, RedisServer, Server, ServerUnavailable

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Server)


class Around:
    """Servers that several runs share. A context manager; when it is left, they are gone."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._kafka: KafkaServer | None = None
        self._redis: RedisServer | None = None
        self._topics: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._kafka = self._redis = None

    def topic(self, name: str, partitions: int) -> tuple[str, str]:
        """Return the brokers, and a topic that nobody has used yet."""
        if self._kafka is None:
            self._kafka = self._started(KafkaServer(heap_mb=1024))
        self._topics[name] += 1
        topic = f"{name}-{self._topics[name]}"
        self._kafka.create_topic(topic, partitions=partitions)
        return self._kafka.servers, topic

    def forget(self, topic: str) -> None:
        """Delete a topic: its events would fill the disk."""
        assert self._kafka is not None
        client = load_extra("confluent_kafka.admin", "kafka")
        admin = client.AdminClient({"bootstrap.servers": self._kafka.servers}, logger=log)
        admin.delete_topics([topic], operation_timeout=10.0)[topic].result(timeout=15.0)

    def redis(self) -> int:
        """Return the port of a Redis that has nothing in it."""
        if self._redis is None:
            self._redis = self._started(RedisServer())
        client = self._client()
        client.flushall()
        client.close()
        return self._redis.port

    def stored(self) -> dict[tuple[Any, int], str]:
        """Return what is in the Redis: text by key and window."""
        client = self._client()
        keys = [key.decode() for key in client.scan_iter()]
        found = {
            (key, int(window)): value.decode()
            for key in keys
            for window, value in client.hgetall(key).items()
        }
        client.close()
        return found

    def _started(self, server: S) -> S:
        try:
            self._stack.enter_context(server)
            return server
        except ServerUnavailable as error:
            raise EngineError(
                f"there is no {server.name}: {error}",
                remedy="run `make servers` in a checkout of the repository, or measure without it",
            ) from error

    def _client(self) -> Any:
        assert self._redis is not None
        return load_extra("redis", "redis").Redis(port=self._redis.port)
