"""What the Kafka source and sink have in common: clients for one topic."""

import logging
import re
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from floodway.connectors.base import Unavailable
from floodway.connectors.extras import hide, is_secret, load_extra, warn_of_plain_secrets
from floodway.core.errors import ConnectorError, OptionError, ServerAwayError
from floodway.core.secret import Secret, revealed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

ANSWER_SECONDS = 5.0
"""How long look-ups may take: a broker that needs longer is as good as away."""

COMMIT_ANSWER_SECONDS = 1.0
"""How long the answer to a commit may take; a flow that stops should not wait longer."""

_PLAIN = re.compile(r"password|secret|key\.pem|jaas", re.IGNORECASE)
_STATISTICS_MS = 1000  # tells when a broker is back, even if there is nothing new to read
_FETCH_WAIT_MS = 100  # a broker that has nothing new says so after this
_HEARD_US = 2_000_000  # a broker that is so late with its answer may well have something new

_logger = logging.getLogger(__name__)


class TopicConnector(Protocol):
    """A source or sink of one topic."""

    topic: str
    servers: str
    settings: dict[str, Any]


def joined(servers: str | Iterable[str]) -> str:
    """Return servers as the client library wants them.

    >>> joined(["127.0.0.1:9092", "127.0.0.1:9093"])
    '127.0.0.1:9092,127.0.0.1:9093'
    """
    if isinstance(servers, str):
        return servers
    names = [] if isinstance(servers, Secret) else list(servers)
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(
            "servers= has no addresses as text",
            remedy="write servers='host:9092' or a list of such; a secret goes into settings=, "
            "such as settings={'sasl.password': secret.env('NAME')}",
        )
    return ",".join(names)


def show(connector: TopicConnector) -> str:
    """Return a connector as text, without the values of its settings."""
    names = ", ".join(sorted(connector.settings))
    settings = f", settings=<{names}>" if names else ""
    name = type(connector).__name__
    return f"{name}({connector.topic!r}, servers={connector.servers!r}{settings})"


def warn_of_plain(connector: TopicConnector) -> None:
    """Say that secrets are part of a flow, if some settings are."""
    plain = {
        name
        for name, value in connector.settings.items()
        if _PLAIN.search(name) and isinstance(value, str)
    }
    warn_of_plain_secrets(connector, plain)


def no_broker(connector: TopicConnector, reason: str) -> ServerAwayError:
    """Return the error for brokers that do not answer when a flow is about to start."""
    return ServerAwayError(
        f"no Kafka broker at {connector.servers} answers for topic {connector.topic!r} ({reason})",
        remedy="start the broker, or correct servers= and the security settings",
    )


class _Broker(msgspec.Struct):
    """A broker; `rxidle` is how many microseconds ago it has said anything, -1 if never."""

    state: str
    nodeid: int = -1
    rxidle: int = -1


class _Partition(msgspec.Struct):
    """A partition; `broker` is who it is fetched from, -1 if nobody leads it."""

    broker: int = -1


class _Partitions(msgspec.Struct):
    partitions: dict[int, _Partition] = {}


class _Statistics(msgspec.Struct):
    brokers: dict[str, _Broker] = {}
    topics: dict[str, _Partitions] = {}

    def heard(self, topic: str, within_us: int) -> set[int]:
        """Return the partitions of a topic whose broker has said something lately."""
        answering = {
            broker.nodeid
            for broker in self.brokers.values()
            if broker.state == "UP" and broker.nodeid >= 0 and 0 <= broker.rxidle <= within_us
        }
        found = self.topics.get(topic, _Partitions()).partitions
        return {number for number, part in found.items() if part.broker in answering}


_decode_statistics = msgspec.json.Decoder(_Statistics).decode


class Client:
    """Makes clients for one topic and knows whether its brokers are away, and why.

    Attributes
    ----------
    away
        Why no broker can be reached, or None.
    heard
        The partitions whose broker has answered lately, as of the client's last statistics. A
        consumer asks for more all the time, so a broker that is there is never silent for long.
    """

    def __init__(self, connector: TopicConnector) -> None:
        self.library: Any = load_extra("confluent_kafka", "kafka")
        self.away: str | None = None
        self.heard: set[int] = set()
        self._connector = connector
        given = connector.settings
        self._settings = {name: revealed(value) for name, value in given.items()}
        self._secrets = [
            str(self._settings[name])
            for name, value in given.items()
            if is_secret(name) or isinstance(value, Secret)
        ]
        self._detail = ""
        self._heard_us = _HEARD_US + self._fetch_wait_ms() * 1000

    def consumer(self, group: str | None = None) -> "Consumer":
        """Return a consumer that commits to a group, or to none."""
        made: Consumer = self._make(
            self.library.Consumer,
            {
                # A name is required, but without commits no group comes of it.
                "group.id": group or "floodway",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "session.timeout.ms": 6000,  # so long may a commit hold up the closing
                "enable.partition.eof": True,
                "auto.offset.reset": "error",  # what was deleted unread must not go unnoticed
                "fetch.wait.max.ms": _FETCH_WAIT_MS,
                "fetch.error.backoff.ms": 100,
            },
        )
        return made

    def asker(self, group: str, *, settled: bool) -> "Consumer":
        """Return a consumer to ask what a group has committed, in transactions that are over."""
        level = "read_committed" if settled else "read_uncommitted"
        made: Consumer = self._make(
            self.library.Consumer,
            {"session.timeout.ms": 6000},  # so long may a commit hold up the closing
            {"group.id": group, "enable.auto.commit": False, "isolation.level": level},
        )
        return made

    def producer(self, on_delivery: Any = lambda _error, _message: None) -> "Producer":
        """Return a producer that writes each record once, whatever it has to try again."""
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

    def transactional(self, name: str, on_delivery: Any) -> "Producer":
        """Return a producer of transactions; of several with one name only the last can write."""
        made: Producer = self._make(
            self.library.Producer,
            {
                "partitioner": "murmur2_random",  # as Java clients do
                "delivery.report.only.error": True,
                "on_delivery": on_delivery,
            },
            {"transactional.id": name},  # whatever the settings say
        )
        return made

    def settings_of_topic(self) -> "Future[Any]":
        """Ask for the topic's settings, in a thread of its own."""
        answer: Future[Any] = Future()

        def ask() -> None:
            # Who asks must not be left to the garbage collector, which may run in a thread of the
            # library's: a client that is taken down by its own thread takes the process with it.
            try:
                answer.set_result(self._settings_of_topic())
            except Exception as error:
                answer.set_exception(error.with_traceback(None))

        threading.Thread(target=ask, name="floodway-kafka", daemon=True).start()
        return answer

    def _settings_of_topic(self) -> Any:
        library: Any = load_extra("confluent_kafka.admin", "kafka")
        admin = self._make(library.AdminClient, {})
        resource = library.ConfigResource(library.ResourceType.TOPIC, self._connector.topic)
        (answer,) = admin.describe_configs([resource], request_timeout=ANSWER_SECONDS).values()
        return answer.result()

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
            consumer.list_topics(self._connector.topic, timeout=COMMIT_ANSWER_SECONDS)
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

    def _fetch_wait_ms(self) -> int:
        given = str(self._settings.get("fetch.wait.max.ms", _FETCH_WAIT_MS))
        return int(given) if given.isdecimal() else _FETCH_WAIT_MS  # the library refuses it later

    def _make(
        self, kind: Any, settings: dict[str, Any], fixed: dict[str, Any] | None = None
    ) -> Any:
        callbacks = {
            "error_cb": self._take_error,
            "stats_cb": self.take_statistics,
            "statistics.interval.ms": _STATISTICS_MS,
            "reconnect.backoff.max.ms": 1000,
            "bootstrap.servers": self._connector.servers,
        }
        chosen = {**callbacks, **settings, **self._settings, **(fixed or {})}
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

    def take_statistics(self, text: str) -> None:
        """Take what the client library says of its brokers, about once a second."""
        # Not from records that come: they may have been fetched before the connection was lost.
        statistics = _decode_statistics(text)
        self.heard = statistics.heard(self._connector.topic, self._heard_us)
        if any(broker.state == "UP" for broker in statistics.brokers.values()):
            self.away, self._detail = None, ""
        else:
            self.away = self._detail or None

    def _unavailable(self, error: "KafkaError") -> Unavailable:
        return Unavailable(self.away or self._detail or self._told(error))

    def _told(self, error: "KafkaError") -> str:
        return f"Kafka at {self._connector.servers}: {self.reason(error)}"

    def _hide(self, text: str) -> str:
        return hide(text, self._secrets)


def _left(deadline: float) -> float:
    """Return the seconds that are left; never none, which would mean forever."""
    return max(0.01, deadline - time.monotonic())
