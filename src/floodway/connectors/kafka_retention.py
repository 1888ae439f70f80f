"""Whether a Kafka topic keeps the rows that are written to it.

Brokers delete records by the timestamps that these bring along: what is older than
``retention.ms`` is gone a few minutes after it was written. Results of a flow over old events are
that old.
"""

import datetime as dt
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from floodway.connectors.kafka_client import Client
from floodway.core.duration import show_ms

if TYPE_CHECKING:
    from floodway.connectors.base import Row
    from floodway.connectors.kafka import KafkaSink

_FRESH_MS = 60_000  # rows that are no older are not worth waiting for an answer
_ASKS = 3  # a broker may be away when it is first asked


class Retention:
    """Looks at the timestamps of rows, and says once that they are older than the topic keeps.

    Brokers are asked at the beginning, so that the answer is there when few rows are all.

    Parameters
    ----------
    sink
        The topic, and which timestamps rows are written with.
    ask
        Asks for the topic's settings.
    """

    def __init__(self, sink: "KafkaSink", ask: "Callable[[], Future[Any]] | None" = None) -> None:
        self._sink = sink
        # A client of its own: what it hears of brokers says nothing about those who write.
        self._ask = ask or (lambda: Client(sink).settings_of_topic())
        self._asked = 0
        self._oldest: int | None = None
        self._answer: Future[Any] | None = None
        if sink.timestamps != "now":
            self._ask_again()

    def note(self, rows: "Sequence[Row]") -> None:
        """Take note of the oldest timestamp of rows that are written."""
        if self._answer is None:
            return
        # A row without a time is written as new.
        oldest = min((row[0] for row in rows if row[0] > 0), default=None)
        if oldest is not None and (self._oldest is None or oldest < self._oldest):
            self._oldest = oldest

    def look(self, *, wait_s: float = 0.0) -> str | None:
        """Return what people should know about the rows so far, if that is known.

        With `wait_s`, old rows are worth waiting so long for an answer.
        """
        if self._answer is None or self._oldest is None:
            return None
        age_ms = int(time.time() * 1000) - self._oldest
        wait([self._answer], wait_s if age_ms > _FRESH_MS else 0.0)
        if not self._answer.done():
            return None
        if self._answer.exception() is not None and self._asked < _ASKS:
            self._ask_again()
            return None
        keeps_ms = _keeps_ms(self._answer)
        if keeps_ms is not None and age_ms <= keeps_ms:
            return None
        self._answer = None  # nothing more to find out
        return None if keeps_ms is None else self._warning(self._oldest, keeps_ms)

    def _ask_again(self) -> None:
        self._asked += 1
        self._answer = self._ask()

    def _warning(self, oldest: int, keeps_ms: int) -> str:
        when = dt.datetime.fromtimestamp(oldest / 1000, dt.UTC).isoformat(timespec="seconds")
        return (
            f"rows for Kafka topic {self._sink.topic!r} are of {when}, and the topic keeps records "
            f"for {show_ms(keeps_ms)} (retention.ms): the broker deletes them soon after they are "
            "written. Let KafkaSink have timestamps='now', or let the topic keep records longer"
        )


def _keeps_ms(answer: "Future[Any]") -> int | None:
    """Return how long a topic keeps records, None if for good or if nobody says."""
    try:
        settings = answer.result()
        deletes = "delete" in settings["cleanup.policy"].value
        by_event_time = settings["message.timestamp.type"].value == "CreateTime"
        keeps_ms = int(settings["retention.ms"].value)
    except Exception:  # no rights to ask, or a broker of another kind: then nobody knows
        return None
    return keeps_ms if deletes and by_event_time and keeps_ms >= 0 else None
