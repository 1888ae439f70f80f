"""The engine's own figures: a hop, the ad pipeline, a pipeline's latency, the cost of metrics.

Every figure stands beside what limits it, measured in the same run: a plain Python loop, a plain
socket between two processes. Machines differ and are noisy; ratios are what to compare.
"""

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import floodway as fw
from floodway.connectors.tcp import TcpSource
from floodway.demo import ads
from floodway.demo.sending.engine import Named, Orders
from floodway.demo.sending.engines import DataEngine
from floodway.demo.sending.lines import PREPARED
from floodway.demo.sending.sent import Part, Sent, read_stretches
from floodway.engine.datastream.reporting import REPORT_US, Reporter
from floodway.engine.datastream.task import Task
from floodway.engine.driver.job import Job, start
from floodway.engine.transport.frame import parse
from floodway.model.tuning import Tuning
from floodway.plan import Configuration, Plan
from floodway.testing import ListSink
from floodway_lab.figures.connectors import Counted, Delays, Paced, Repeated, Slow, results
from floodway_lab.figures.machine import Machine
from floodway_lab.figures.plain import socket_pair_rate
from floodway_lab.sending.generating import trial
from floodway_lab.sending.schedules import Constant

Progress = Callable[[str], None]
T = TypeVar("T")

HOPS = ((1, 500_000), (10, 2_000_000), (100, 4_000_000), (1000, 5_000_000))
"""Batch sizes, and how many records to send at each."""


class Tick(fw.Record, frozen=True):
    """A small record: what a hop carries."""

    user: int
    page: str
    amount: float


class Hop(msgspec.Struct, frozen=True):
    """Records per second from one task to another, and through a plain socket."""

    b_out: int
    records_per_second: float
    plain_socket_records_per_second: float
    ratio: float


class AdsFigure(msgspec.Struct, frozen=True):
    """Events per second through the ad pipeline, and by a plain loop over the same bytes."""

    b_out: int
    events: int
    events_per_second: float
    plain_loop_events_per_second: float
    ratio: float
    correct: bool


class LatencyFigure(msgspec.Struct, frozen=True):
    """Milliseconds from when a record was due to the sink of the third stage."""

    per_second: float
    seconds: float
    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


class Overhead(msgspec.Struct, frozen=True):
    """What metrics cost a task that receives: time per record with and without sampling.

    Both variants work on the same frames in one process, in turns of some milliseconds, so that
    whatever else the machine does hits both alike. `report_us` is what a report costs, twenty of
    which are made every second; `overhead` is both together, as a fraction.
    """

    b_out: int
    turns: int
    with_sampling_ns: float
    without_sampling_ns: float
    report_us: float
    overhead: float


class Micro(msgspec.Struct, frozen=True):
    """All figures of one run."""

    machine: Machine
    hops: list[Hop]
    ads: AdsFigure
    latency: LatencyFigure
    metrics: list[Overhead]


def micro(progress: Progress, *, scale: float = 1.0, rounds: int = 3) -> Micro:
    """Measure everything; `scale` shortens the runs. Of several rounds the middle one counts."""
    machine = Machine.here()
    hop_figures = []
    for b_out, count in HOPS:
        progress(f"one hop, b_out {b_out}")
        hops = [measure_hop(b_out, int(count * scale)) for _ in range(rounds)]
        hop_figures.append(_middle(hops, lambda hop: hop.records_per_second))
    progress("ad pipeline")
    runs = [measure_ads(seconds=max(6 * scale, 1)) for _ in range(rounds)]
    ads_figure = _middle(runs, lambda run: run.events_per_second)
    progress("latency of three stages")
    delays = [measure_latency(seconds=max(8 * scale, 3)) for _ in range(rounds)]
    latency = _middle(delays, lambda run: run.p99_ms)
    overheads = []
    for b_out in (1, 100):
        progress(f"cost of metrics, b_out {b_out}")
        overheads.append(measure_overhead(b_out))
    return Micro(machine, hop_figures, ads_figure, latency, overheads)


def _middle(figures: Sequence[T], key: Callable[[T], float]) -> T:
    return sorted(figures, key=key)[len(figures) // 2]


def measure_hop(b_out: int, count: int) -> Hop:
    """Measure one hop between two tasks."""
    plain_rows = [(1_700_000_000_000, None, tick) for tick in ticks()]
    row_type = tuple[int, None, Tick]
    plain = socket_pair_rate(plain_rows, row_type, b_out, count)
    rate = hop_rate(b_out, count)
    return Hop(b_out, round(rate), round(plain), round(rate / plain, 3))


def ticks() -> list[Tick]:
    """Return a thousand records."""
    return [Tick(i, f"page-{i % 50}", i * 0.5) for i in range(1000)]


def hop_flow(source: Repeated, sink: Counted) -> fw.Flow:
    """Return a flow of two tasks: a source and a sink."""
    flow = fw.Flow("hop")
    flow.source("ticks", source, schema=Tick).isolate().to(sink, name="sink")
    return flow


def hop_rate(b_out: int, count: int) -> float:
    """Return records per second from a source's task to a sink's task.

    The paradigm is pinned: otherwise the scheduler would raise the batch size that is measured.
    """
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        flow = hop_flow(Repeated(tuple(ticks()), count), Counted(folder))
        start(flow, b_out=b_out, paradigm="data").wait()
        (found,) = results(Path(folder))
    if found["count"] != count:
        raise AssertionError(f"{found['count']} of {count} records arrived")
    seconds: float = found["last"] - found["first"]
    return count / seconds


def measure_overhead(b_out: int, *, turns: int = 300) -> Overhead:
    """Measure what sampling and reports cost a task that receives frames."""
    flow = hop_flow(Repeated(tuple(ticks()), 1000), Counted(""))
    plan = Plan.of(flow, Configuration(Tuning(b_out=b_out)))
    frames: list[bytes] = []
    sender = Task(plan, plan.stages[0], 0, lambda _, frame: frames.append(frame))
    for _ in range(5):
        sender.feed_raw("ticks", ticks(), 1_700_000_000_000_000, keyed=False)
    tasks = [_receiver(plan, sampling=sampling) for sampling in (True, False)]
    spent = [0, 0]
    gc.collect()
    gc.disable()  # it strikes at regular intervals, and so always the same variant
    for turn in range(turns):
        for which in (0, 1) if turn % 2 else (1, 0):
            spent[which] += _turn(tasks[which], frames)
    gc.enable()
    records = turns * 5 * 1000
    reporter = Reporter(tasks[0], time.time_ns() // 1000)
    began = time.perf_counter_ns()
    for number in range(200):
        reporter.report(number, "running", None, {}, bad_frames=0)
    report_ns = (time.perf_counter_ns() - began) / 200
    on, off = spent[0] / records, spent[1] / records
    overhead = on / off - 1 + report_ns * 1e6 / REPORT_US / 1e9
    return Overhead(
        b_out, turns, round(on, 1), round(off, 1), round(report_ns / 1000, 1), round(overhead, 4)
    )


def _receiver(plan: Plan, *, sampling: bool) -> Task:
    return Task(plan, plan.stages[1], 0, lambda _, frame: None, sampling=sampling)


def _turn(task: Task, frames: list[bytes]) -> int:
    began = time.perf_counter_ns()
    for frame in frames:
        task.receive(parse(frame), frame)
    while task.step(0):
        pass
    task.program.sinks["sink"].collect()
    return time.perf_counter_ns() - began


def measure_ads(*, seconds: float, b_out: int = 1000, **options: Any) -> AdsFigure:
    """Measure the ad pipeline from a socket to a sink; `options` are for `Flow.start`.

    For so many seconds it gets events as fast as it takes them.
    """
    lines, lookup = ads.to_lines(ads.make_events(PREPARED)), ads.campaigns()
    plain_seconds = []
    for _ in range(5):
        began = time.perf_counter()
        ads.plain_count(lines, lookup)
        plain_seconds.append(time.perf_counter() - began)
    out = ListSink()
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        log = str(Path(folder) / "sent")
        orders = Orders(
            supply=Named("floodway.demo.ads:supply"),
            schedule=Named.of(Constant(0)),
            seconds=seconds,
            generator=trial(closed_s=0.0),
            log=log,
        )
        with DataEngine(orders) as engine:
            flow = ads.build(TcpSource("127.0.0.1", engine.port), out)
            job = start(flow, b_out=b_out, **options)
            job.wait()
            over = time.time()
            ending = engine.wait(10)
        expected = ads.expected(Sent([Part(ads.lines(), read_stretches(log))]))
    rate = ending.taken / (over - ending.began_ms / 1000)
    plain = PREPARED / statistics.median(plain_seconds)
    return AdsFigure(
        b_out,
        ending.taken,
        round(rate),
        round(plain),
        round(rate / plain, 3),
        ads.final_counts(out.records) == expected,
    )


def measure_latency(
    *, per_second: float = 1000, seconds: float = 12, **options: Any
) -> LatencyFigure:
    """Measure a pipeline of three stages under a calm load, from when each record was due.

    `options` are for `Flow.start`.
    """
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        flow = fw.Flow("calm")
        source = flow.source("due", Paced(per_second, seconds), schema=int)
        doubled = source.filter("value > 0").isolate().map("value + 0").isolate()
        doubled.to(Delays(folder, warm_up_s=seconds / 4), name="sink")
        start(flow, **options).wait()
        (found,) = results(Path(folder))
    return LatencyFigure(per_second, seconds, **found)


# --------------------------------------------------------------------------- longer runs


class CountFigure(msgspec.Struct, frozen=True):
    """A hash-partitioned count: how many records, how fast, and whether the result is exact."""

    machine: Machine
    records: int
    dop: int
    keys: int
    records_per_second: float
    exact: bool


def measure_count(records: int, *, dop: int = 3, keys: int = 1000, **options: Any) -> CountFigure:
    """Count records per key in several tasks and compare with plain arithmetic.

    `options` are for `Flow.start`.
    """
    machine = Machine.here()
    out = ListSink()
    flow = fw.Flow("count")
    numbers = flow.source("numbers", Repeated(tuple(range(keys)), records), schema=int)
    counts = numbers.group_by("value").count(name="counts").tune(dop=dop)
    counts.changes(emit=fw.emit.at_most_every("1s"), name="updates").to(out, name="results")
    job = start(flow, b_out=1000, **options)
    job.wait_running()
    began = time.monotonic()
    job.wait()
    seconds = time.monotonic() - began
    found = {record.value.key: record.value.value for record in out.records}
    expected = {key: records // keys + (key < records % keys) for key in range(keys)}
    return CountFigure(machine, records, dop, keys, round(records / seconds), found == expected)


class MemoryFigure(msgspec.Struct, frozen=True):
    """Resident memory while a sink is slower than the source, second by second."""

    machine: Machine
    seconds: float
    source_per_second: float
    sink_per_second: float
    input_cache_bytes: int
    queue_bytes_most: int
    rss_mib: dict[str, list[float]]
    growth_mib_after_full: float
    read: int
    delivered: int
    lost: int


def measure_memory(seconds: float, *, cache: int = 8 * 1024 * 1024) -> MemoryFigure:
    """Let a source offer ten times what its sink can take, and watch the memory of the tasks."""
    offered, taken = 200_000.0, 20_000.0
    machine = Machine.here()
    with tempfile.TemporaryDirectory(prefix="floodway-") as folder:
        flow = fw.Flow("slow_sink")
        source = flow.source("ticks", Repeated(tuple(ticks()), 10**12), schema=Tick)
        source.isolate().to(Slow(folder, taken), name="sink")
        job = start(flow, b_out=100, input_cache=cache)
        job.throttle("ticks", offered)
        job.wait_running()
        memory, queue = _watch(job, seconds)
        job.drain()
        job.wait()
        status = job.status
        (found,) = results(Path(folder))
    read = status.totals.records_in
    return MemoryFigure(
        machine,
        seconds,
        offered,
        taken,
        cache,
        queue,
        memory,
        round(max(_growth(series) for series in memory.values()), 1),
        read,
        found["count"],
        read - found["count"],
    )


def _watch(job: Job, seconds: float) -> tuple[dict[str, list[float]], int]:
    memory: dict[str, list[float]] = {}
    queue, ends = 0, time.monotonic() + seconds
    while time.monotonic() < ends:
        if job.wait(1.0):
            break
        for stage in job.status.stages:
            for task in stage.tasks:
                name = f"{stage.name}/{task.index}"
                memory.setdefault(name, []).append(round(task.rss_bytes / 2**20, 1))
                queue = max(queue, task.queue_bytes)
    return memory, queue


def _growth(series: list[float]) -> float:
    """Return how much memory grew after the first third, when all caches are full."""
    settled = series[len(series) // 3 :]
    return max(settled) - settled[0] if settled else 0.0
