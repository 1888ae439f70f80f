"""Whole epochs as transactions of Kafka, each exactly once."""

import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from floodway.connectors.base import EpochWriter, Row, Unavailable
from floodway.connectors.kafka_client import ANSWER_SECONDS, COMMIT_ANSWER_SECONDS, Client
from floodway.connectors.kafka_owner import Owner
from floodway.connectors.kafka_retention import Retention
from floodway.connectors.kafka_writer import NOW
from floodway.connectors.keys import key_encoder
from floodway.core.errors import ConnectorError
from floodway.core.schema import Schema

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

    from floodway.connectors.kafka import KafkaSink

_FLUSH_SECONDS = 30.0  # less than a transaction may take, which is a minute
_INIT_SECONDS = 0.5  # the first answer takes about so long
_SLICE_SECONDS = 0.1  # how often a flush looks whether the brokers are still there

_PENDING_SECONDS = 60.0  # so long may Kafka take to end a transaction that it has confirmed

_Encoded = tuple[int, bytes | None, bytes | None]
"""Timestamp, key and value of a row, as they go out."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[_Encoded]).decode


class _KeptOut(Exception):
    """Kafka lets this producer write no more: another one has begun under its name."""


class KafkaEpochs(EpochWriter):
    """Writes an epoch in a transaction, together with its number.

    The number is the offset of partition 0 in a consumer group that nobody reads with: Kafka keeps
    it with the rows or not at all. Whether an epoch was applied before, by whomever, is asked
    there.

    After any failure the producer is given up and a new one made, under the same name. That ends
    the transaction of the former one, or of one in another process that was given up for dead.
    A producer that is given up has to be gone at once: one that was about to begin goes on with
    that for as long as it lives, and would keep out its successor. So nothing but the writer itself
    refers to it: a local variable lives on in the traceback of an error that somebody keeps.

    Parameters
    ----------
    sink
        The topic and its formats.
    schema
        The schema of the values.
    name
        The name of the task.
    token
        Where to go on, or None. ``run`` is a name for all that began with the same first start,
        ``epoch`` the epoch at whose end the token was made, and ``known`` the last epoch whose
        number was known to be with Kafka by then; None if there was none.
    """

    def __init__(self, sink: "KafkaSink", schema: Schema, *, name: str, token: Any) -> None:
        self._sink = sink
        self._encode = sink.format.encoder(schema)
        self._encode_key = key_encoder(sink.key_format)
        self._name = f"floodway.{name}"
        began = token or {"run": uuid.uuid4().hex[:12], "epoch": 0, "known": None}
        self._run: str = began["run"]
        self._epoch: int = began["epoch"]
        self._known: int | None = began["known"]
        self._applied: int | None = None
        self._failure: KafkaError | None = None
        self._pending_since: float | None = None
        self._group = f"{self._name}.{self._run}"
        self._metadata: Any = None
        self._owner = Owner(sink.topic, self._name)
        self._kept_out = False
        self._client = Client(sink)
        self._producer: Producer | None = None
        self._begun = False
        self._client.transactional(self._name, self._undelivered)  # refuses bad settings
        self._now = sink.timestamps == "now"
        self._retention = Retention(sink)
        if token is None:
            self._begin_group()

    def encode(self, rows: Sequence[Row]) -> bytes:
        """Return rows as keys and values in their formats."""
        encode, encode_key, now = self._encode, self._encode_key, self._now
        self._retention.note(rows)
        self._look()
        return _pack(
            [
                (
                    NOW if now or timestamp < 0 else timestamp,
                    encode_key(key),
                    None if value is None else encode(value),
                )
                for timestamp, key, value, _ in rows
            ]
        )

    def prepare(self, epoch: int) -> Any:
        """Return the number of the epoch, and what is known about earlier ones."""
        self._look()
        return {"run": self._run, "epoch": epoch, "known": self._known}

    def apply(self, epoch: int, blocks: Sequence[bytes], token: Any) -> None:
        """Write an epoch in one transaction, unless it is there already."""
        rows = [row for block in blocks for row in _unpack(block)]
        if not rows:
            return
        try:
            self._write(rows, epoch)
            self._kept_out = False
        except _KeptOut:
            if self._kept_out:  # the last time, too: somebody wants the name for himself
                raise self._owner.kept_out() from None
            self._kept_out = True
            self._write_anew(rows, epoch)
        self._known = self._applied if self._applied is not None else self._known

    def close(self) -> None:
        """Give up the producer; a transaction that is not committed never will be."""
        self._look(wait_s=COMMIT_ANSWER_SECONDS)
        self._give_up()

    def _look(self, *, wait_s: float = 0.0) -> None:
        self.warning = self._retention.look(wait_s=wait_s) or self.warning

    def _give_up(self) -> None:
        # Producer.close would wait for brokers that are away, without end; letting go does not.
        self._producer, self._begun = None, False

    def _write_anew(self, rows: list[_Encoded], epoch: int) -> None:
        """Write an epoch with another producer, unless another task has the name by now."""
        try:
            self._write(rows, epoch)
        except _KeptOut:
            raise self._owner.kept_out() from None

    def _write(self, rows: list[_Encoded], epoch: int) -> None:
        exception = self._client.library.KafkaException
        try:
            if not self._begun:
                self._begin()
            if not self._is_applied(epoch):
                self._transact(rows, epoch)
                self._applied = epoch
        except exception as error:
            cause = self._failure or self._cause(error.args[0])
            self._give_up()
            raise self._judged(cause) from None
        except (Unavailable, ConnectorError, _KeptOut):
            self._give_up()
            raise

    # ------------------------------------------------------------------ transactions

    def _begin(self) -> None:
        """Make a producer, which ends transactions of earlier ones, and see what is applied."""
        self._client = Client(self._sink)
        self._failure = None
        self._owner.claim(self._client)
        self._producer = self._client.transactional(self._name, self._undelivered)
        self._initialise()
        self._applied = self._last_applied()
        if self._applied is not None and self._applied < (self._known or 0):
            raise self._gone_back(self._applied)
        self._begun = True

    def _initialise(self) -> None:
        assert self._producer is not None
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self._producer.init_transactions(_INIT_SECONDS)
            except self._client.library.KafkaException as error:
                self._producer.poll(0)  # serves the callback that knows whether brokers are away
                if not error.args[0].retriable() or time.monotonic() >= deadline:
                    raise
                self._check(deadline)

    def _transact(self, rows: list[_Encoded], epoch: int) -> None:
        assert self._producer is not None
        self._producer.begin_transaction()
        deadline = time.monotonic() + _FLUSH_SECONDS
        for timestamp, key, value in rows:
            self._produce(key, value, timestamp, deadline)
        while self._producer.flush(_SLICE_SECONDS):
            self._check(deadline)
        self._check(deadline)
        # Not before all is delivered: this call waits a minute for a broker that is away.
        mark = [self._mark(epoch)]
        self._producer.send_offsets_to_transaction(mark, self._metadata, ANSWER_SECONDS)
        self._producer.commit_transaction(ANSWER_SECONDS)

    def _produce(
        self, key: bytes | None, value: bytes | None, timestamp: int, deadline: float
    ) -> None:
        assert self._producer is not None
        while True:
            try:
                self._producer.produce(self._sink.topic, value, key, timestamp=timestamp)
                return
            except BufferError:
                self._producer.poll(_SLICE_SECONDS)
                self._check(deadline)

    def _check(self, deadline: float) -> None:
        """Raise what has gone wrong with rows on their way."""
        if self._failure is not None:
            raise self._judged(self._failure)
        if self._client.away or time.monotonic() >= deadline:
            raise Unavailable(self._client.away or "Kafka is slow")

    def _undelivered(self, error: "KafkaError | None", _message: "Message") -> None:
        # The first error is the cause; the others are rows that shared its fate.
        self._failure = self._failure or error

    def _cause(self, error: "KafkaError") -> "KafkaError":
        """Return why a producer is broken for good, if that is all that an error says."""
        library = self._client.library
        if error.code() != library.KafkaError._FATAL or self._producer is None:  # noqa: SLF001
            return error
        try:
            self._producer.poll(0)
        except library.KafkaException as fatal:
            cause: KafkaError = fatal.args[0]
            return cause
        return error

    def _judged(self, error: "KafkaError") -> Exception:
        """Return what an error means: trying again, or the end."""
        codes = self._client.library.KafkaError
        if error.code() in _fencing(codes):
            return _KeptOut()
        if error.code() in _passing(codes) or (error.retriable() and not error.fatal()):
            return Unavailable(self._client.away or f"Kafka: {self._client.reason(error)}")
        return self._client.broken(error)

    # ------------------------------------------------------------------ what is applied

    def _begin_group(self) -> None:
        """Note that no epoch is applied, so that a group that is forgotten can be told from none.

        If that cannot be done now, the first epoch that is applied does it.
        """
        consumer = self._client.asker(self._group, settled=True)
        try:
            if self._client.answers(consumer):
                consumer.commit(offsets=[self._mark(0)], asynchronous=False)
                self._known = 0
        except self._client.library.KafkaException:
            pass
        finally:
            consumer.close()

    def _last_applied(self) -> int | None:
        consumer = self._client.asker(self._group, settled=True)
        try:
            self._metadata = consumer.consumer_group_metadata()
            found = self._committed(consumer)
        except self._client.library.KafkaException as error:
            raise self._unsettled(self._judged(error.args[0])) from None
        finally:
            consumer.close()
        self._pending_since = None
        return found

    def _committed(self, consumer: "Consumer") -> int | None:
        (found,) = consumer.committed([self._mark()], timeout=ANSWER_SECONDS)
        if found.error is not None:
            raise self._client.library.KafkaException(found.error)
        return found.offset if found.offset >= 0 else None

    def _unsettled(self, reason: Exception) -> Exception:
        """Return why Kafka does not say what is applied.

        It does not as long as a transaction is under way, and nobody but us has any. Brokers of
        Kafka 4.3 forget about one that they have confirmed if they are killed before they
        have ended it (KAFKA-20734): a partition without a leader counts as deleted with them.
        """
        if not isinstance(reason, Unavailable):
            return reason
        consumer = self._client.asker(self._group, settled=False)
        try:
            self._committed(consumer)
        except self._client.library.KafkaException:
            return reason
        finally:
            consumer.close()
        now = time.monotonic()
        self._pending_since = self._pending_since or now
        if now - self._pending_since < _PENDING_SECONDS:
            return Unavailable(f"Kafka has not ended the last transaction of {self._name} yet")
        return ConnectorError(
            f"Kafka does not end the last transaction of {self._name}, so nobody knows what is in "
            f"topic {self._sink.topic!r}; brokers of Kafka 4.3 forget transactions when they "
            "are killed (KAFKA-20734)",
            remedy="find transactions that hang with kafka-transactions.sh and abort them, in the "
            "topic and in __consumer_offsets; then start the flow again",
        )

    def _gone_back(self, applied: int) -> ConnectorError:
        """Return the error for a Kafka that has lost what it had confirmed."""
        return ConnectorError(
            f"Kafka had confirmed epoch {self._known} of {self._name} and now has only epoch "
            f"{applied}: the rows in between may be missing in topic {self._sink.topic!r}",
            remedy="let no replica lead that lacks what others have "
            "(unclean.leader.election.enable); to write everything again, start the flow anew "
            "with another checkpoint folder",
        )

    def _is_applied(self, epoch: int) -> bool:
        if self._applied is not None:
            return epoch <= self._applied
        if self._known is None or epoch > self._epoch:
            return False
        if epoch <= self._known:
            return True
        raise ConnectorError(
            f"Kafka has forgotten the group {self._group}, so nobody knows whether epoch {epoch} "
            f"is in topic {self._sink.topic!r} already",
            remedy="let brokers keep offsets for longer than a flow is stopped "
            "(offsets.retention.minutes); start this one anew with another checkpoint folder",
        )

    def _mark(self, *epoch: int) -> Any:
        return self._client.library.TopicPartition(self._sink.topic, 0, *epoch)


def _fencing(codes: Any) -> set[int]:
    """Return the errors of a producer whose name another one has taken."""
    return {codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH}  # noqa: SLF001


def _passing(codes: Any) -> set[int]:
    """Return the errors of rows and transactions that are over once the brokers are back."""
    return {
        codes._MSG_TIMED_OUT,  # noqa: SLF001
        codes._PURGE_INFLIGHT,  # noqa: SLF001
        codes._PURGE_QUEUE,  # noqa: SLF001
        codes._TIMED_OUT,  # noqa: SLF001
        codes._TRANSPORT,  # noqa: SLF001
        codes._INCONSISTENT,  # noqa: SLF001
        codes._STATE,  # noqa: SLF001
        codes.BROKER_NOT_AVAILABLE,
        codes.CONCURRENT_TRANSACTIONS,
        codes.COORDINATOR_LOAD_IN_PROGRESS,
        codes.COORDINATOR_NOT_AVAILABLE,
        codes.FENCED_LEADER_EPOCH,
        codes.INVALID_PRODUCER_ID_MAPPING,
        codes.KAFKA_STORAGE_ERROR,
        codes.LEADER_NOT_AVAILABLE,
        codes.NETWORK_EXCEPTION,
        codes.NOT_COORDINATOR,
        codes.NOT_ENOUGH_REPLICAS,
        codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        codes.NOT_LEADER_FOR_PARTITION,
        codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        codes.REQUEST_TIMED_OUT,
        codes.UNKNOWN_PRODUCER_ID,
        codes.UNSTABLE_OFFSET_COMMIT,
    }
