"""The measured run: a flow as fast as it goes, with batches of one size after the other."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import msgspec

from floodway.core.errors import OptionError
from floodway.engine.driver.job import Job, start
from floodway.engine.metrics.status import StageStatus, Status
from floodway.engine.metrics.work import Counters
from floodway.model.flow import Flow
from floodway.operators.base import DEAD, LATE
from floodway.plan.stages import Plan, Stage
from floodway.provisioning.calibration.fitting import LEAST, WorkStretch

SIZES = (1, 8, 64, 512)
"""Batch sizes, one after the other."""

SETTLE_S, STRETCH_S = 0.22, 0.18
"""How long batches of a new size do not count yet, and how long they are measured. What is known of
a task is a tenth of a second old: with less, large batches would be taken for cheap small ones."""

CACHE_BYTES = 1024 * 1024
"""What may wait before a task: little, so that batches of the size before are soon gone, but more
than a few large batches, or tasks would have to wait for each other all the time."""

WARM_S = 1.5
"""Nothing counts before: at first tasks ask for memory, and caches fill."""

MOST_S = 15.0
"""The run is over after so long, or when the input is."""

STARTS_S = 90.0

RunProgress = Callable[[float], None]
"""Told which part of the run is over."""


class Measured(msgspec.Struct, frozen=True):
    """What a run has shown.

    Attributes
    ----------
    stretches
        What the task of each stage has done, stretch by stretch.
    sent
        For each operator and port whose output leaves its stage: how many records did.
    taken
        How many records each source has brought.
    rates
        For each of some more batch sizes, how many records all sources together brought a second,
        stretch by stretch.
    """

    stretches: Mapping[str, Sequence[WorkStretch]]
    sent: Mapping[tuple[str, str], int]
    taken: Mapping[str, int]
    rates: Mapping[int, Sequence[float]] = {}

    def __add__(self, other: Self) -> Self:
        """Return what two runs of the same flow have shown."""
        return type(self)(
            {name: [*self.stretches[name], *other.stretches[name]] for name in self.stretches},
            {edge: self.sent[edge] + other.sent[edge] for edge in self.sent},
            {name: self.taken[name] + other.taken[name] for name in self.taken},
            {size: [*self.rates[size], *other.rates[size]] for size in self.rates},
        )


def measure(
    flow: Flow,
    *,
    also: Sequence[int] = (),
    master: str | None = None,
    progress: RunProgress = lambda _: None,
) -> Measured:
    """Run a flow, one task for each stage, record by record, and see what its tasks do.

    Parameters
    ----------
    also
        More batch sizes. What comes through with them is measured in between, and not used to find
        costs: it shows how good those are, on a machine that is as fast as it was for them.
    """
    job = start(
        flow,
        dop=1,
        b_out=SIZES[0],
        paradigm="data",
        input_cache=CACHE_BYTES,
        master=master,
        metrics_port=None,
    )
    with job:
        if not job.wait_running(STARTS_S):
            raise OptionError(
                f"the flow did not start within {STARTS_S:.0f} s",
                remedy="see if Spark has enough slots for a task of each stage",
            )
        stretches, rates = _observed(job, also, progress)
        status = job.status
        job.stop()
        job.wait()
    if all(len(found) < LEAST for found in stretches.values()):
        raise OptionError(
            "the sample was over before anything could be measured",
            remedy="give a sample with more records",
        )
    counts = {o.counts.name: o.counts for s in status.stages for o in s.operators}
    sources = [source.name for source in job.plan.graph.sources]
    return Measured(
        stretches,
        _sent(job.plan, status),
        {name: counts[name].records_out for name in sources},
        rates,
    )


def size_at(step: int, level: int) -> int:
    """Return the batch size of a level in a step; neighbours have every pair of sizes in turn.

    >>> [(size_at(step, 0), size_at(step, 1)) for step in range(6)]
    [(1, 1), (8, 8), (64, 64), (512, 512), (1, 8), (8, 64)]
    """
    ahead = step // len(SIZES) if level % 2 else 0
    return SIZES[(step + ahead) % len(SIZES)]


def _observed(
    job: Job, also: Sequence[int], progress: RunProgress
) -> tuple[dict[str, list[WorkStretch]], dict[int, list[float]]]:
    """Return what each stage did with batches of all sizes, and what came through with others."""
    found: dict[str, list[WorkStretch]] = {stage.name: [] for stage in job.plan.stages}
    rates: dict[int, list[float]] = {size: [] for size in also}
    if job.wait(WARM_S):
        return found, rates
    began, step = time.monotonic(), 0
    most_s = 2 * MOST_S if also else MOST_S
    while (passed := time.monotonic() - began) < most_s:
        progress(passed / most_s)
        done = _stretch_with(job, {s.name: size_at(step, s.level) for s in job.plan.stages})
        if done is None:
            break
        for name, counters in done.items():
            found[name].append(_stretch(counters))
        if also:
            size = also[(step + step // len(also)) % len(also)]
            done = _stretch_with(job, {stage.name: size for stage in job.plan.stages})
            if done is None:
                break
            rates[size].append(_rate(job.plan, done))
        step += 1
    progress(1.0)
    return found, rates


def _stretch_with(job: Job, sizes: Mapping[str, int]) -> dict[str, Counters] | None:
    """Return what all stages do in a stretch with batches of some sizes; None if it is over."""
    for stage in job.plan.stages:
        _tune(job, stage, sizes[stage.name])
    if job.wait(SETTLE_S):
        return None
    before = _counters(job.status)
    over = job.wait(STRETCH_S)
    status = job.status
    if over or _drained(job.plan, status):
        return None  # at the end batches are not full, and tasks not busy
    return {name: after - before[name] for name, after in _counters(status).items()}


def _rate(plan: Plan, done: Mapping[str, Counters]) -> float:
    """Return how many records the streams brought a second, by the clock of their own tasks."""
    read = [done[name] for name in _streams(plan)]
    return sum(each.records_processed / max(_lasted(each), 1e-9) for each in read)


def _lasted(done: Counters) -> float:
    return done.busy_s + done.idle_s + done.blocked_s


def _tune(job: Job, stage: Stage, size: int) -> None:
    for exchange in job.plan.outputs(stage):
        job.tune(exchange.edge.operator.name, b_out=size)


def _counters(status: Status) -> dict[str, Counters]:
    return {stage.name: stage.counters for stage in status.stages}


def _drained(plan: Plan, status: Status) -> bool:
    """Return whether a stream has come to its end; tables may."""
    streams = _streams(plan)
    return any(
        task.state == "ended"
        for stage in status.stages
        if stage.name in streams
        for task in stage.tasks
    )


def _streams(plan: Plan) -> set[str]:
    """Return the stages that read streams, not only tables."""
    return {
        stage.name for stage in plan.stages for source in stage.sources if not source.brings_updates
    }


def _stretch(done: Counters) -> WorkStretch:
    return WorkStretch(
        busy_s=done.busy_s,
        records=done.records_processed,
        records_out=done.records_out,
        bytes_out=done.bytes_out,
        frames_in=done.frames_in,
        frames_out=done.frames_out,
        sleeps=done.sleeps,
    )


def _sent(plan: Plan, status: Status) -> dict[tuple[str, str], int]:
    found = {}
    for exchange in plan.exchanges:
        edge = exchange.edge
        found[edge.operator.name, edge.port] = _passed(
            next(s for s in status.stages if s.name == exchange.sender),
            edge.operator.name,
            edge.port,
        )
    return found


def _passed(stage: StageStatus, operator: str, port: str) -> int:
    """Return how many records have left an operator through a port."""
    counts = next(o.counts for o in stage.operators if o.counts.name == operator)
    return {LATE: counts.late, DEAD: counts.dead_letters}.get(port, counts.records_out)
