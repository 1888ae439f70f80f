"""Generating events for a trial: whether a system keeps up is seen while they are generated.

To find out how much a system can take, events can also be due as fast as they are taken, from some
moment on (*closed loop*).
"""

import math
from typing import Any

import msgspec
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from floodway.demo.sending.engine import Ending, Named
from floodway.demo.sending.generating import TICK_US, Generator
from floodway.demo.sending.queueing import Queue
from floodway.demo.sending.schedules import Schedule
from floodway_lab.sending.judging import Sustaining

AHEAD = 10_000
"""So many events wait while they are due as fast as they are taken: there is always one more."""

BLOCK = 1_000
"""They come in blocks of so many: only a whole block counts as taken."""


class Jitter(msgspec.Struct, frozen=True):
    """How many milliseconds after its time an event was generated, of so many of 100."""

    p50: float
    p99: float
    most: float


class Noted(msgspec.Struct, frozen=True):
    """What was noted in a trial: whether the system kept up, why not, how late events were."""

    sustained: bool
    why: str
    jitter: Jitter


class TrialGenerator(Generator):
    """Generates events, and ends when the system turns out not to keep up.

    Parameters
    ----------
    schedule, seconds, queue, began_us, began_ms
        As for any `Generator`.
    acceptable, tolerated
        The limits of the queue, in events; without them nobody looks at it.
    warm_s
        Nobody looks at it before: systems need some time to get going.
    closed_s
        From then on events are due as fast as they are taken.
    """

    def __init__(
        self,
        schedule: Schedule,
        seconds: float,
        queue: Queue,
        *,
        began_us: int,
        began_ms: int,
        acceptable: int | None = None,
        tolerated: int | None = None,
        warm_s: float = 0.0,
        closed_s: float | None = None,
    ) -> None:
        super().__init__(schedule, seconds, queue, began_us=began_us, began_ms=began_ms)
        self._judge = _judge(acceptable, tolerated)
        self._warm_ticks = round(warm_s * 1e6 / TICK_US)
        self._closed_s = math.inf if closed_s is None else closed_s
        self._late = HdrHistogram(1, 60_000_000, 2)

    def _due(self, t: float) -> int:
        return super()._due(t) if t <= self._closed_s else self._queue.taken + AHEAD

    def _put(self, count: int, time_ms: int) -> None:
        most = BLOCK if self._tick * TICK_US > self._closed_s * 1e6 else count
        for first in range(0, count, most):
            self._queue.put(min(most, count - first), time_ms)

    def _note(self, count: int, due: int, late_us: int) -> None:
        self._late.record_value(max(late_us, 1), count)
        if not self._keeps_up(due, late_us):
            self.over, self.drain_s = True, 0.0

    def _keeps_up(self, due: int, late_us: int) -> bool:
        """Return whether the system has kept up so far, as far as anybody looks."""
        if self._judge is None or self._tick <= self._warm_ticks:
            return True
        return self._judge.look(due, self._waiting(due, late_us))

    def _waiting(self, due: int, late_us: int) -> int:
        """Return how many events wait: in the queue, and those that should be there by now."""
        now_s = (self._tick * TICK_US + late_us) / 1e6
        return self._queue.size + self._due(now_s) - due

    @property
    def jitter(self) -> Jitter:
        """How late events were generated so far."""
        of = self._late.get_value_at_percentile
        return Jitter(*(round(of(share) / 1000, 3) for share in (50, 99, 100)))

    @property
    def noted(self) -> dict[str, Any]:
        """A `Noted`, as it travels."""
        judge = self._judge
        sustained, why = (True, "") if judge is None else (judge.sustained, judge.why)
        found: dict[str, Any] = msgspec.to_builtins(Noted(sustained, why, self.jitter))
        return found


def _judge(acceptable: int | None, tolerated: int | None) -> Sustaining | None:
    if acceptable is None or tolerated is None:
        return None
    return Sustaining(acceptable, tolerated)


def trial(**options: Any) -> Named:
    """Return how a data engine makes a `TrialGenerator`."""
    return Named(f"{TrialGenerator.__module__}:{TrialGenerator.__qualname__}", options)


def noted(ending: Ending) -> Noted:
    """Return what was noted in a trial that has come to its end."""
    return msgspec.convert(ending.noted, Noted)
