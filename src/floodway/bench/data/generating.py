"""Generating: every event at its time, whatever becomes of it (*open loop*).

A state machine: it is told the time and answers with when it wants to be asked again. Nothing here
waits, and nothing a system does or leaves undone makes an event late.
"""

import msgspec
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from floodway.bench.data.judging import Sustaining
from floodway.bench.data.queueing import Queue
from floodway.bench.data.schedules import Schedule

TICK_US = 1_000
"""Events that are due within so long are generated together, with the same time."""

BEHIND_TICKS = 50
"""So many ticks are made up for at a time: what is queued has to be sent in between."""


class Jitter(msgspec.Struct, frozen=True):
    """How many milliseconds after its time an event was generated, of so many of 100."""

    p50: float
    p99: float
    most: float


class Generator:
    """Puts events into a queue when they are due.

    Parameters
    ----------
    schedule, seconds
        When how many are due, and when it is over.
    began_us, began_ms
        When the first is due: by the clock that it is told, and since 1970.
    judge, warm_s
        Looks at the queue, after so long; without, nobody does.

    Attributes
    ----------
    over
        Whether everything has been generated, or the system was found not to keep up.
    """

    def __init__(
        self,
        schedule: Schedule,
        seconds: float,
        queue: Queue,
        *,
        began_us: int,
        began_ms: int,
        judge: Sustaining | None = None,
        warm_s: float = 0.0,
    ) -> None:
        self._schedule, self._seconds = schedule, seconds
        self._queue, self._judge = queue, judge
        self._began_us, self._began_ms = began_us, began_ms
        self._tick, self._ticks = 0, round(seconds * 1e6 / TICK_US)
        self._warm_ticks = round(warm_s * 1e6 / TICK_US)
        self._late = HdrHistogram(1, 60_000_000, 2)
        self.over = False

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
        due = int(self._schedule.due(self._tick * TICK_US / 1e6))
        count = due - self._queue.put_in
        if count > 0:
            time_ms = self._began_ms + (self._tick - 1) * TICK_US // 1000
            self._queue.put(count, time_ms)
            self._late.record_value(max(late_us, 1), count)
            if not self._keeps_up(due, late_us):
                self.over = True
        if self._tick >= self._ticks:
            self.over = True

    def _keeps_up(self, due: int, late_us: int) -> bool:
        """Return whether the system has kept up so far, as far as anybody looks."""
        if self._judge is None or self._tick <= self._warm_ticks:
            return True
        return self._judge.look(due, self._waiting(due, late_us))

    def _waiting(self, due: int, late_us: int) -> int:
        """Return how many events wait: in the queue, and those that should be there by now."""
        now_s = (self._tick * TICK_US + late_us) / 1e6
        return self._queue.size + int(self._schedule.due(now_s)) - due

    @property
    def jitter(self) -> Jitter:
        """How late events were generated so far."""
        of = self._late.get_value_at_percentile
        return Jitter(*(round(of(share) / 1000, 3) for share in (50, 99, 100)))
