"""What is remembered of one stage: what was measured, since when it floods, when it last switched.

Nothing here decides; the `scheduler` does.
"""

from collections import deque
from statistics import fmean, median
from typing import Literal

import msgspec

from floodway.engine.scheduler.loads import StageLoad
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.switch_point import SwitchPoint, switch_point
from floodway.model.tuning import Paradigm

FloodPhase = Literal["calm", "prepare", "switch", "run", "back"]
"""Where a stage is: as it should be; with larger batches, or about to; told to switch; in the
operation paradigm; told to go back."""

STALE_MS = 1_000
"""So old a report may be: what it says of the paradigm does not count that soon after a switch."""

NOTED_MS = 60_000
"""Why nothing is done about a flood is told so often."""

SMOOTHED_MS = 1_000
"""Over so long the arrival rate is smoothed: a second, two intervals."""

REMEMBERED = 5
"""Of so many measurements the median counts: one report in which the machine was busy with
something else must not be what the other paradigm is compared with for the length of a flood."""


class Streak:
    """How long, and how often in a row, something has been seen."""

    def __init__(self) -> None:
        self.count = 0
        self._since = 0

    def see(self, now_ms: int, *, holds: bool) -> None:
        """Take note whether it holds now."""
        if holds and not self.count:
            self._since = now_ms
        self.count = self.count + 1 if holds else 0

    def lasts(self, now_ms: int, least_ms: int, least: int) -> bool:
        """Return whether it has been seen for so long, and so often."""
        return self.count >= least and now_ms - self._since >= least_ms


class StageWatch:
    """One stage.

    Attributes
    ----------
    load, point
        What was measured last, and the switch point that follows.
    paradigm, pending
        How it works, and what it has been told to change to but has not answered.
    before
        What was measured last while it worked record by record.
    waits
        A stage that waits for this one to take its output; None if nobody does.
    calm_ms
        How long it has to be calm before it goes back.
    """

    def __init__(self, load: StageLoad, settings: SchedulerSettings, now_ms: int) -> None:
        self.stage = load.stage
        self.load = self.before = load
        self.paradigm: Paradigm = load.paradigm
        self.pending: Paradigm | None = None
        self.waits: str | None = None
        self.calm_ms = settings.calm_ms
        self.point: SwitchPoint = switch_point(load, settings)
        self._settings = settings
        self._data: deque[float] = deque(maxlen=REMEMBERED)
        self._operation: deque[float] = deque(maxlen=REMEMBERED)
        self._arrivals: deque[tuple[int, float]] = deque()
        self._operated_ms: int | None = None
        self._free_ms = self._settled_ms = now_ms
        self._warm_ms = now_ms + settings.warm_ms
        self._asked_ms = 0
        self._returned_ms: int | None = None
        self._noted: dict[str, int] = {}
        self._flood, self._rise, self._calm, self._worse = (Streak() for _ in range(4))

    # ------------------------------------------------------------------ seeing

    def see(
        self,
        load: StageLoad,
        *,
        held_back: bool,
        waits: str | None,
        now_ms: int,
        room: float | None = None,
        spared: bool = False,
    ) -> None:
        """Take what was measured, and whether others hold it back or wait for it.

        `room` is what those after it let it do, record by record; `spared` says whether it gets
        combined records, which tell nothing of what it could do with single ones.
        """
        longer = load.queue_records > self.load.queue_records
        self.load, self.waits = load, waits
        if self.pending is None and now_ms >= self._settled_ms:
            self.paradigm = load.paradigm  # after a restart a stage may be as it began
        self._measure(now_ms, spared=spared)
        unbounded = not held_back and (load.saturated or waits is not None)
        self.point = point = switch_point(
            self._smoothed(now_ms),
            self._settings,
            data_per_s=self._data_rate(room),
            operation_per_s=median(self._operation) if self._operation else None,
            unbounded=unbounded,
        )
        in_data = self.paradigm == "data" and self.pending is None and not held_back
        in_operation = self.paradigm == "operation" and self.pending is None
        full = point.arrival_per_s > point.data_per_s or longer
        rising = point.above or (full and point.begun)
        self._flood.see(now_ms, holds=in_data and point.above)
        self._rise.see(now_ms, holds=in_data and rising)
        self._calm.see(now_ms, holds=in_operation and point.below)
        self._worse.see(now_ms, holds=in_operation and point.worse)

    def _data_rate(self, room: float | None) -> float | None:
        rate = self.data_per_s
        return rate if rate is None or room is None else min(rate, room)

    @property
    def data_per_s(self) -> float | None:
        """What it can do in a second record by record, if that was measured."""
        return median(self._data) if self._data else None

    def _smoothed(self, now_ms: int) -> StageLoad:
        """Return the load to judge by.

        Whether a flood has passed is a matter of seconds, and in the operation paradigm, also that
        of the stages before, records come in the lots of micro-batches. So the mean arrival rate
        counts. A flood that begins would be found too late with it.
        """
        seen = self._arrivals
        seen.append((now_ms, self.load.arrival_per_s))
        while now_ms - seen[0][0] >= SMOOTHED_MS:
            seen.popleft()
        if self.paradigm == "data":
            return self.load
        mean = fmean(arrival for _, arrival in seen)
        return msgspec.structs.replace(self.load, arrival_per_s=mean)

    def _measure(self, now_ms: int, *, spared: bool) -> None:
        """Remember the rate of the present paradigm; the other one's does not change meanwhile."""
        load = self.load
        if load.paradigm != self.paradigm or self.pending is not None:
            return
        if self.paradigm == "data" and not spared:
            if load.data_per_s is not None:
                self._data.append(load.data_per_s)
            if load.out_per_in is not None:
                self.before = load
        if self.paradigm == "operation":
            self._operated_ms = now_ms
            if load.operation_per_s is not None:
                self._operation.append(load.operation_per_s)
        elif self._operated_ms is None and load.operation_per_s is not None:
            self._operated_ms = now_ms  # measured before there was a watch

    # ------------------------------------------------------------------ what it looks like

    def free(self, now_ms: int) -> bool:
        """Return whether it may be told to switch: no answer is missing, it has cooled down."""
        return self.pending is None and now_ms >= self._free_ms

    def warm(self, now_ms: int) -> bool:
        """Return whether it has run for long enough to be judged."""
        return now_ms >= self._warm_ms

    @property
    def pressed(self) -> bool:
        """Whether it seems to rise, to flood, or to be flooded still."""
        return self._rise.count > 0 or self.paradigm == "operation" or self.pending is not None

    def rising(self, now_ms: int) -> bool:
        """Return whether its queue grows, for sure."""
        return self._rise.lasts(now_ms, self._settings.confirm_ms, self._settings.confirm)

    def flooded(self, now_ms: int) -> bool:
        """Return whether it floods, for sure."""
        return self._flood.lasts(now_ms, self._settings.confirm_ms, self._settings.confirm)

    def calm(self, now_ms: int) -> bool:
        """Return whether the flood has passed, for sure."""
        return self._calm.lasts(now_ms, self.calm_ms, self._settings.confirm)

    def worse(self, now_ms: int) -> bool:
        """Return whether the operation paradigm makes it worse, for sure."""
        return self._worse.lasts(now_ms, self._settings.calm_ms, self._settings.confirm)

    def pays(self, now_ms: int) -> bool:
        """Return whether the operation paradigm is worth trying."""
        return self.point.pays or (
            self._operated_ms is not None and now_ms - self._operated_ms >= self._settings.doubt_ms
        )

    @property
    def phase(self) -> FloodPhase:
        """Where it is between calm and flood."""
        if self.pending is not None:
            return "switch" if self.pending == "operation" else "back"
        if self.paradigm == "operation":
            return "run"
        return "prepare" if self._rise.count else "calm"

    def note(self, reason: str, now_ms: int) -> bool:
        """Return whether something is worth telling, since it was not told just now."""
        last = self._noted.get(reason)
        if last is not None and now_ms - last < NOTED_MS:
            return False
        self._noted[reason] = now_ms
        return True

    # ------------------------------------------------------------------ switching

    def ask(self, paradigm: Paradigm, now_ms: int) -> None:
        """Take note that it is told to switch."""
        self.pending = paradigm
        self._asked_ms = now_ms
        for streak in (self._flood, self._rise, self._calm, self._worse):
            streak.see(now_ms, holds=False)
        if paradigm == "operation":
            returned = self._returned_ms
            soon = returned is not None and now_ms - returned < self._settings.soon_ms
            most = self._settings.most_calm_ms
            self.calm_ms = min(2 * self.calm_ms, most) if soon else self._settings.calm_ms

    def overdue(self, now_ms: int) -> bool:
        """Return whether it should have answered."""
        asked = self.pending is not None
        return asked and now_ms - self._asked_ms >= self._settings.answer_ms

    def switched(self, now_ms: int) -> None:
        """Take note that it did what it was told."""
        if self.pending is not None:
            self.paradigm = self.pending
        self.pending = None
        self._free_ms = now_ms + self._settings.cool_ms
        self._settled_ms = now_ms + STALE_MS
        if self.paradigm == "data":
            self._returned_ms = now_ms

    def failed(self, now_ms: int) -> None:
        """Take note that it could not."""
        self.pending = None
        self._free_ms = now_ms + self._settings.failed_ms
        self._settled_ms = now_ms + STALE_MS
