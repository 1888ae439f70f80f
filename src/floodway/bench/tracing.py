"""One flow in one mode through one schedule, and all that was seen of it.

A run whose answers are wrong, that fails or that does not come to its end in time is told as such,
and its figures are void.
"""

import logging
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from typing import Literal

import msgspec

from floodway.bench.flooding import Phase, Progress, Sender
from floodway.bench.series import percentile
from floodway.bench.timing import Timed, Timings
from floodway.bench.workloads import Workload
from floodway.core.errors import EngineError
from floodway.engine.job import Job, start
from floodway.engine.metrics.recent import Percentiles
from floodway.engine.metrics.status import StageStatus
from floodway.engine.metrics.work import Counters
from floodway.engine.scheduler.story import Entry
from floodway.model.tuning import Pin, Tuning
from floodway.plan import Configuration

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""How often a flow is looked at."""

START_S = 90.0
"""How long a flow has to start."""

GAP_MS, BURST_MS = 40, 500
"""Without results for so long, those before were of one micro-batch, if it took no longer."""

STOP_S = 30.0
"""How long a flow has to stop."""

Mode = Literal["dual", "data", "operation", "data_unbatched"]
"""How a flow runs; see `tuning`."""

MODES: tuple[Mode, ...] = ("dual", "data", "operation", "data_unbatched")


def tuning(mode: Mode, dop: int) -> Tuning:
    """Return how operators run in a mode.

    ``dual`` is how flows run if nobody says anything; ``data`` and ``operation`` are each paradigm
    by itself with large batches; ``data_unbatched`` sends every record singly from operator to
    operator, none of which share a task.
    """
    if mode == "dual":
        return Tuning(dop=dop)
    if mode == "data_unbatched":
        return Tuning(dop=dop, b_out=1, isolate=True, paradigm="data")
    pin: Pin = mode
    return Tuning(dop=dop, b_out=1000, paradigm=pin)


class StageLook(msgspec.Struct, frozen=True):
    """A stage at a moment; times in milliseconds.

    Attributes
    ----------
    paradigm, queue
        How it works, and how many records wait in it.
    wait, process, wait_p99, process_p99
        Record by record, of late: what half of the records, and 99 of 100, took in the input cache
        and in the operators.
    p99
        What 99 of 100 records took through the stage, of late.
    counters
        What it has done since the flow began.
    """

    paradigm: str
    queue: int
    wait: float
    process: float
    wait_p99: float
    process_p99: float
    p99: float
    counters: Counters


def stage_look(stage: StageStatus) -> StageLook | None:
    """Return what is to be kept of a stage; None if nothing went through it lately."""
    passage, none = stage.passage, Percentiles(0, 0, 0, 0, 0)
    if passage is None:
        return None
    waits, services = stage.queue_wait or none, stage.service_time or none
    times = (waits.p50, services.p50, waits.p99, services.p99, passage.p99)
    wait, process, wait_p99, process_p99, p99 = (round(each / 1000, 3) for each in times)
    return StageLook(
        stage.paradigm,
        stage.queue_records,
        wait,
        process,
        wait_p99,
        process_p99,
        p99,
        stage.counters,
    )


class Look(msgspec.Struct, frozen=True):
    """A flow at a moment: seconds since the first event was due, and its stages."""

    t: float
    stages: dict[str, StageLook]


@dataclass(frozen=True)
class Trace:
    """What was seen of a run.

    Attributes
    ----------
    mode, phases
        How it ran, and under which load.
    error
        Why its figures are void; None if they are not.
    began_ms, seconds
        When the first event was due, and how long after it the flow was over.
    timed
        The probes.
    sent
        How far the sender was, ten times a second.
    looks, story
        What was seen of the flow, and what the scheduler decided.
    """

    mode: Mode
    phases: tuple[Phase, ...]
    error: str | None = None
    began_ms: int = 0
    seconds: float = 0.0
    timed: tuple[Timed, ...] = ()
    sent: tuple[Progress, ...] = ()
    looks: tuple[Look, ...] = ()
    story: tuple[Entry, ...] = ()

    @property
    def events(self) -> int:
        """How many events were sent."""
        return self.sent[-1].sent if self.sent else 0

    def took(self, start_s: float, end_s: float) -> list[float]:
        """Return the latencies of the probes that were due in a stretch of time, in order (ms)."""
        first, last = self.began_ms + 1000 * start_s, self.began_ms + 1000 * end_s
        return sorted(each.took_ms for each in self.timed if first <= each.due_ms < last)

    def area(self) -> float:
        """Return the latency of a probe, summed up over the time at which it was due (s times s).

        That is the mean latency times the length of the schedule: probes are due regularly.
        """
        seconds = sum(phase.seconds for phase in self.phases)
        return fmean(each.took_ms for each in self.timed) / 1000 * seconds

    def rate(self, start_s: float, end_s: float) -> float | None:
        """Return how many events per second the flow carries between two moments.

        When the result of a probe has come, those of all events sent before it have. The time
        counts from when all was done that had been sent by the first moment: what was put off
        before does not make it look faster. Results of a micro-batch come all at once; then the
        time counts from when all of them have come, to when all of another have. If less than half
        of the time is left so, it counts until everything was done.
        """
        came = sorted((each.due_ms + each.took_ms, each.due_ms) for each in self.timed)
        if len(came) < 2 or len(self.sent) < 2:
            return None
        times = [when for when, _ in came]
        done_ms = list(accumulate((due for _, due in came), max))
        sent = bisect_left(done_ms, self.began_ms + 1000 * start_s)
        first = _burst_end(times, min(sent, len(times) - 1), 1)
        last = bisect_right(times, self.began_ms + 1000 * end_s) - 1
        last = _burst_end(times, max(last, first), -1)
        if times[last] - times[first] < 500 * (end_s - start_s):
            last = len(times) - 1
        if times[last] - times[first] < GAP_MS:
            first = 0  # all came at once
        passed = times[last] - times[first]
        done = self._sent_by(done_ms[last]) - self._sent_by(done_ms[first])
        return done / passed * 1000 if passed > 0 else None

    def _sent_by(self, time_ms: float) -> float:
        """Return how many events were sent by a time."""
        times = [progress.at_ms for progress in self.sent]
        place = min(max(bisect_left(times, time_ms), 1), len(times) - 1)
        before, after = self.sent[place - 1], self.sent[place]
        passed = (time_ms - before.at_ms) / max(after.at_ms - before.at_ms, 1)
        return before.sent + (after.sent - before.sent) * min(max(passed, 0.0), 1.0)

    def late_ms(self, start_s: float, end_s: float) -> float:
        """Return how long events wait outside, in the middle of a stretch of time (ms)."""
        found = [
            each.late_ms
            for each in self.sent
            if start_s <= (each.at_ms - each.late_ms - self.began_ms) / 1000 < end_s
        ]
        return median(found) if found else 0.0

    def stages(self, start_s: float, end_s: float) -> dict[str, list[StageLook]]:
        """Return what was seen of each stage in a stretch of time."""
        found: dict[str, list[StageLook]] = {}
        for look in self.looks:
            if start_s <= look.t < end_s:
                for name, stage in look.stages.items():
                    found.setdefault(name, []).append(stage)
        return found


def _burst_end(times: Sequence[float], place: int, step: int) -> int:
    """Return the last place of a burst near another, after or before it; that, if there is none.

    >>> _burst_end([0, 1, 2, 90, 91, 92, 200], 1, 1), _burst_end([0, 1, 2, 90, 91], 4, -1)
    (2, 2)
    """
    at = min(place, len(times) - 2)
    while at >= 0 and at < len(times) - 1 and abs(times[at] - times[place]) < BURST_MS:
        if times[at + 1] - times[at] >= GAP_MS:
            return at
        at += step
    return place


def quantiles(took: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of latencies that are in order.

    >>> quantiles([1.0, 2.0, 3.0, 4.0])
    {'p50': 2.0, 'p90': 4.0, 'p99': 4.0, 'max': 4.0}
    """
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: round(percentile(took, share), 3) for name, share in shares.items()}


def trace(
    workload: Workload,
    mode: Mode,
    phases: Sequence[Phase],
    *,
    dop: int = 1,
    hot: bool = False,
    story: Path | None = None,
    tick: Callable[[float], None] = lambda _: None,
) -> Trace:
    """Run a flow and return what was seen; never fails, and never takes for ever.

    `tick` is called now and then with the seconds that have passed since the first event.
    """
    phases = tuple(phases)
    supply = workload.hot if hot and workload.hot else workload.supply
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        try:
            with Sender(phases, supply) as sender:
                flow, found = workload.build(sender.port, folder)
                configuration = Configuration(tuning(mode, dop))
                job = start(flow, configuration=configuration, recent_s=3, story=story)
                watch = _Watch(job, sender, Timings(folder))
                try:
                    watch.stay(tick)
                finally:
                    _stop(job)
                right = sender.counts(30) == found()
                error = None if right else "the answers are wrong"
        except Exception as problem:  # whatever it is, other runs go on
            log.debug("a run failed", exc_info=True)
            return Trace(mode, phases, error=f"{type(problem).__name__}: {problem}")
    return watch.trace(mode, error)


def _stop(job: Job) -> None:
    if not job.wait(0):
        job.stop()
        if not job.wait(STOP_S):
            raise EngineError("the flow did not stop", remedy="run `floodway doctor`")


class _Watch:
    """Looks at a flow until it is over, or has had time enough."""

    def __init__(self, job: Job, sender: Sender, timings: Timings) -> None:
        self._job, self._sender, self._timings = job, sender, timings
        self._looks: list[Look] = []
        self._timed: list[Timed] = []
        self._seconds = 0.0
        planned = sum(phase.seconds for phase in sender.phases)
        self._patience = 4 * planned + 60

    def stay(self, tick: Callable[[float], None]) -> None:
        """Look until it is over."""
        if not self._job.wait_running(START_S):
            raise EngineError("the flow did not start", remedy="run `floodway doctor`")
        until = time.monotonic() + self._patience
        while not self._job.wait(LOOK_S):
            if time.monotonic() > until:
                raise EngineError(
                    f"the flow was not through with its events after {self._patience:.0f} s",
                    remedy="send fewer",
                )
            if self._sender.progress is not None:
                tick(self._look(self._sender.progress))
        if self._sender.progress is not None:
            self._look(self._sender.progress)

    def _look(self, progress: Progress) -> float:
        self._seconds = time.time() - progress.began_ms / 1000
        seen = {stage.name: stage_look(stage) for stage in self._job.status.stages}
        stages = {name: look for name, look in seen.items() if look is not None}
        self._looks.append(Look(round(self._seconds, 3), stages))
        self._timed += self._timings.new()
        return self._seconds

    def trace(self, mode: Mode, error: str | None) -> Trace:
        """Return all that was seen."""
        sent = tuple(self._sender.history)
        return Trace(
            mode,
            self._sender.phases,
            error or (None if self._timed else "no probe came through"),
            sent[0].began_ms if sent else 0,
            round(self._seconds, 3),
            tuple(self._timed),
            sent,
            tuple(self._looks),
            tuple(self._job.story),
        )
