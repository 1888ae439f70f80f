"""Finding the offsets of a topic while the reader goes on: brokers take their time."""

import threading
import time
from typing import TYPE_CHECKING

from floodway.connectors.base import Split, Unavailable
from floodway.connectors.kafka_client import ANSWER_SECONDS, Client

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_PAUSE_SECONDS = 0.1  # between two look-ups


class LookUp:
    """Finds the partitions of a split and their offsets, in a thread of its own."""

    def __init__(self, client: Client, consumer: "Consumer", split: Split) -> None:
        self.offsets: dict[int, tuple[int, int]] = {}
        self.failure: Exception | None = None
        self._client = client
        self._consumer = consumer
        self._split = split
        self._thread = threading.Thread(target=self._run, name="floodway-kafka", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    def join(self, seconds: float | None = None) -> None:
        """Wait until it is done, or for some time."""
        self._thread.join(seconds)

    def _run(self) -> None:
        # A topic that was made just now may have no leader for a moment, so one failure is no sign.
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                self.offsets = self._find(deadline)
                return
            except Unavailable as away:
                if time.monotonic() + _PAUSE_SECONDS >= deadline:
                    self.failure = away
                    return
                time.sleep(_PAUSE_SECONDS)
            except Exception as failure:  # raised again by whoever asks
                self.failure = failure
                return

    def _find(self, deadline: float) -> dict[int, tuple[int, int]]:
        split = self._split
        parts = self._client.partitions(self._consumer, deadline)
        mine = [part for part in parts if part % split.of == split.index]
        return self._client.offsets(self._consumer, mine, deadline)
