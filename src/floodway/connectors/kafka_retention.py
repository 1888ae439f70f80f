"""Whether a Kafka topic keeps the rows that are written to it.

Brokers delete records by the timestamps that these bring along: what is older than
``retention.ms`` is gone a few minutes after it was written. Results of a flow over old events are
that old.
"""

import datetime as dt
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from floodway.connectors.kafka_client import Client
from floodway.core.duration import show_ms

if TYPE_CHECKING:
    from floodway.connectors.kafka import KafkaSink

_FRESH_MS = 60_000  # who writes rows that are no older need not be asked about


class Retention:
    """Looks at the timestamps of rows, and says once that they are older than the topic keeps.

    Brokers are asked when the first old row comes, and not waited for.

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
        self._answer: Future[Any] | None = None
        self._done = sink.timestamps == "now"

    def look(self, timestamp: int) -> str | None:
        """Return what people should know about a row with that timestamp."""
        if self._done:
            return None
        age_ms = int(time.time() * 1000) - timestamp
        if age_ms <= _FRESH_MS or timestamp <= 0:  # a row without a time is written as new
            return None
        if self._answer is None:
            self._answer = self._ask()
            return None
        if not self._answer.done():
            return None
        keeps_ms = _keeps_ms(self._answer)
        if keeps_ms is None:
            self._finish()
            return None
        if age_ms <= keeps_ms:
            return None
        self._finish()
        when = dt.datetime.fromtimestamp(timestamp / 1000, dt.UTC).isoformat(timespec="seconds")
        return (
            f"rows for Kafka topic {self._sink.topic!r} are of {when}, and the topic keeps records "
            f"for {show_ms(keeps_ms)} (retention.ms): the broker deletes them soon after they are "
            "written. Let KafkaSink have timestamps='now', or let the topic keep records longer"
        )

    def _finish(self) -> None:
        self._done, self._answer = True, None


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
