"""Generating: every event at its time, whatever becomes of it (*open loop*).

A state machine: it is told the time and answers with when it wants to be asked again. Nothing here
waits, and nothing a system does or leaves undone makes an event late.
"""

from typing import Any

from floodway.demo.sending.queueing import Queue
from floodway.demo.sending.schedules import Schedule

TICK_US = 1_000
"""Events that are due within so long are generated together, with the same time."""

BEHIND_TICKS = 50
"""So many ticks are made up for at a time: what is queued has to be sent in between."""

DRAIN_S = 60.0
"""How long a system has to take what is left when everything has been generated."""


class Generator:
    """Puts events into a queue when they are due.

    Parameters
    ----------
    schedule, seconds
        When how many are due, and when it is over.
    began_us, began_ms
        When the first is due: by the clock that it is told, and since 1970.

    Attributes
    ----------
    over
        Whether there is nothing more to generate.
    drain_s
        How long a system then has to take what is left.
    """

    def __init__(
        self, schedule: Schedule, seconds: float, queue: Queue, *, began_us: int, began_ms: int
    ) -> None:
        self._schedule, self._queue = schedule, queue
        self._began_us, self._began_ms = began_us, began_ms
        self._tick, self._ticks = 0, round(seconds * 1e6 / TICK_US)
        self.over = False
        self.drain_s = DRAIN_S

    def turn(self, now_us: int) -> int:
        """Generate what is due; return when to be asked again."""
        for _ in range(BEHIND_TICKS):
            due_us = self._began_us + self._tick * TICK_US
            if self.over or due_us > now_us:
                return due_us
            self._generate(now_us - due_us)
        return now_us

    def _generate(self, late_us: int) -> None:
        """Generate the events of one tick."""
        self._tick += 1
        due = self._due(self._tick * TICK_US / 1e6)
        count = due - self._queue.put_in
        if count > 0:
            self._put(count, self._began_ms + (self._tick - 1) * TICK_US // 1000)
            self._note(count, due, late_us)
        if self._tick >= self._ticks:
            self.over = True

    def _due(self, t: float) -> int:
        """Return how many events are due by a moment, all told."""
        return int(self._schedule.due(t))

    def _put(self, count: int, time_ms: int) -> None:
        """Put the events of one tick into the queue."""
        self._queue.put(count, time_ms)

    def _note(self, count: int, due: int, late_us: int) -> None:
        """Note that so many events were generated, so late, and how many that makes in all."""

    @property
    def noted(self) -> dict[str, Any]:
        """What a generator that takes notes has to say in the end."""
        return {}
