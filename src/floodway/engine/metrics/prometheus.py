"""The status of a flow as Prometheus metrics.

Counters and gauges carry the labels ``flow``, ``stage`` and ``task`` or ``operator``. Rates are
not exported, since Prometheus makes them from counters. Times of sampled records are gauges with a
``quantile`` label: the percentiles of the last half minute, made from HDR histograms. They are not
of the type summary, whose quantiles come with a count and a sum over the whole run, which samples
do not have.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from floodway.engine.metrics.recent import Percentiles
from floodway.engine.metrics.status import (
    HealthState,
    OperatorStatus,
    StageStatus,
    Status,
    TaskStatus,
)

PREFIX = "floodway_"
"""How all names begin."""

_QUANTILES = {"0.5": "p50", "0.9": "p90", "0.99": "p99", "1": "max"}
_HEALTH = get_args(HealthState)
_STEADY = ("starting", "paused", "draining", "running")


class _TaskMetric(NamedTuple):
    name: str
    help: str
    value: Callable[[TaskStatus], float | None]


class _OperatorMetric(NamedTuple):
    name: str
    help: str
    value: Callable[[OperatorStatus], float]


class _TimeMetric(NamedTuple):
    name: str
    help: str
    value: Callable[[StageStatus], Percentiles | None]


_TASK_COUNTERS = (
    _TaskMetric("records_in", "Records received or read.", lambda t: t.counters.records_in),
    _TaskMetric(
        "records_processed",
        "Records taken from the input cache and processed.",
        lambda t: t.counters.records_processed,
    ),
    _TaskMetric(
        "records_out", "Records handed to channels and sinks.", lambda t: t.counters.records_out
    ),
    _TaskMetric("in_bytes", "Bytes received or read.", lambda t: t.counters.bytes_in),
    _TaskMetric("out_bytes", "Bytes handed to channels and sinks.", lambda t: t.counters.bytes_out),
    _TaskMetric("frames_in", "Frames received.", lambda t: t.counters.frames_in),
    _TaskMetric("frames_out", "Frames sent.", lambda t: t.counters.frames_out),
    _TaskMetric(
        "task_frames_sent_again",
        "Frames sent again, since they were lost with a connection.",
        lambda t: t.counters.frames_again,
    ),
    _TaskMetric("busy_seconds", "Time at work.", lambda t: t.counters.busy_s),
    _TaskMetric("idle_seconds", "Time without input.", lambda t: t.counters.idle_s),
    _TaskMetric("blocked_seconds", "Time without room for output.", lambda t: t.counters.blocked_s),
    _TaskMetric(
        "sampled_records",
        "Records whose costs were measured.",
        lambda t: t.counters.sampled_records,
    ),
    _TaskMetric(
        "sampled_fetch_seconds",
        "Time to take the sampled records from the input cache.",
        lambda t: t.counters.fetch_ns / 1e9,
    ),
    _TaskMetric(
        "sampled_cpu_seconds",
        "Time of the sampled records in operators.",
        lambda t: t.counters.cpu_ns / 1e9,
    ),
    _TaskMetric(
        "sampled_emit_seconds",
        "Time to hand on the results of the sampled records.",
        lambda t: t.counters.emit_ns / 1e9,
    ),
    _TaskMetric("batches", "Micro-batches processed.", lambda t: t.counters.batches.batches),
    _TaskMetric("batch_records", "Records in micro-batches.", lambda t: t.counters.batches.records),
    _TaskMetric(
        "batch_waited_seconds",
        "Time in which micro-batches were collected.",
        lambda t: t.counters.batches.waited_us / 1e6,
    ),
    _TaskMetric(
        "batch_scheduled_seconds",
        "Time of micro-batches until and after their Spark jobs ran.",
        lambda t: t.counters.batches.scheduled_us / 1e6,
    ),
    _TaskMetric(
        "batch_processed_seconds",
        "Time of micro-batches in Spark jobs.",
        lambda t: t.counters.batches.processed_us / 1e6,
    ),
    _TaskMetric(
        "batch_merged_seconds",
        "Time in which tasks merged micro-batches.",
        lambda t: t.counters.batches.merged_us / 1e6,
    ),
    _TaskMetric("task_restarts", "Attempts that took over from another.", lambda t: t.restarts),
)

_TASK_GAUGES = (
    _TaskMetric(
        "task_up",
        "1 while the task reports and has neither failed nor ended.",
        lambda t: float(t.state in _STEADY),
    ),
    _TaskMetric(
        "task_operation",
        "1 while the task works in micro-batches, 0 while it does record by record.",
        lambda t: float(t.paradigm == "operation"),
    ),
    _TaskMetric("task_silent_seconds", "Time since the last report.", lambda t: t.silent_s),
    _TaskMetric(
        "task_stalled_seconds",
        "Time since when the task has input and does nothing with it.",
        lambda t: t.stalled_s,
    ),
    _TaskMetric(
        "task_resident_memory_bytes", "Memory of the task's process.", lambda t: t.rss_bytes
    ),
    _TaskMetric("state_keys", "Rows of state, in memory and elsewhere.", lambda t: t.state_keys),
    _TaskMetric(
        "state_bytes", "What the rows of state in memory need, about.", lambda t: t.state_bytes
    ),
    _TaskMetric(
        "state_aside_keys", "Rows of state that are not in memory.", lambda t: t.state_aside
    ),
    _TaskMetric("queue_records", "Records in the input cache.", lambda t: t.queue_records),
    _TaskMetric("queue_bytes", "Bytes in the input cache.", lambda t: t.queue_bytes),
    _TaskMetric(
        "source_lag_records", "Records that wait outside the flow.", lambda t: t.lag_records
    ),
    _TaskMetric("source_lag_seconds", "Age of the newest record read.", lambda t: t.lag_seconds),
    _TaskMetric(
        "source_event_time_seconds",
        "Largest timestamp read, since 1970.",
        lambda t: None if t.event_time is None else t.event_time / 1e3,
    ),
    _TaskMetric(
        "stream_time_seconds",
        "Stream time, since 1970.",
        lambda t: None if t.stream_time is None else t.stream_time / 1e3,
    ),
)

_OPERATOR_COUNTERS = (
    _OperatorMetric("operator_records_in", "Records taken.", lambda o: o.counts.records_in),
    _OperatorMetric("operator_records_out", "Records given.", lambda o: o.counts.records_out),
    _OperatorMetric(
        "operator_late_records", "Records that came too late.", lambda o: o.counts.late
    ),
    _OperatorMetric(
        "operator_skipped_records",
        "Records that failed and were skipped.",
        lambda o: o.counts.skipped,
    ),
    _OperatorMetric(
        "operator_dead_letters",
        "Records that failed and went to a dead-letter sink.",
        lambda o: o.counts.dead_letters,
    ),
    _OperatorMetric(
        "operator_duplicate_records",
        "Records left out because of others: duplicates.",
        lambda o: o.counts.duplicates,
    ),
    _OperatorMetric(
        "operator_undated_records",
        "Records that came without the timestamp they should have had.",
        lambda o: o.counts.undated,
    ),
    _OperatorMetric(
        "operator_returns",
        "How often a source was idle and came back behind stream time.",
        lambda o: o.counts.returns,
    ),
    _OperatorMetric(
        "operator_dropped_records",
        "Records that the policy of the queue before it dropped.",
        lambda o: o.counts.dropped,
    ),
)

_TIMES = (
    _TimeMetric("queue_wait_seconds", "Wait in the input cache, lately.", lambda s: s.queue_wait),
    _TimeMetric("service_seconds", "Processing of a record, lately.", lambda s: s.service_time),
    _TimeMetric("latency_seconds", "From entry to sink, lately.", lambda s: s.latency),
)


def families(status: Status) -> Iterator[Metric]:
    """Return the metrics of a status."""
    yield from _flow_families(status)
    for each in _TASK_COUNTERS:
        counter = CounterMetricFamily(
            PREFIX + each.name, each.help, labels=("flow", "stage", "task")
        )
        _fill(counter, each, _tasks(status))
        yield counter
    for each in _TASK_GAUGES:
        gauge = GaugeMetricFamily(PREFIX + each.name, each.help, labels=("flow", "stage", "task"))
        _fill(gauge, each, _tasks(status))
        yield gauge
    yield from _operator_families(status)
    yield from _time_families(status)


def _flow_families(status: Status) -> Iterator[Metric]:
    start = GaugeMetricFamily(
        PREFIX + "flow_start_time_seconds", "When the first task started.", labels=("flow",)
    )
    if status.started is not None:
        start.add_metric((status.flow,), status.started)
    yield start
    yield from _health_families(status)
    tasks = GaugeMetricFamily(
        PREFIX + "stage_tasks", "Tasks the stage should have (dop).", labels=("flow", "stage")
    )
    for stage in status.stages:
        tasks.add_metric((status.flow, stage.name), stage.dop)
    yield tasks


def _health_families(status: Status) -> Iterator[Metric]:
    health = GaugeMetricFamily(
        PREFIX + "flow_health", "0 healthy, 1 degraded, 2 unhealthy.", labels=("flow",)
    )
    health.add_metric((status.flow,), _HEALTH.index(status.health.state))
    yield health
    reasons = GaugeMetricFamily(
        PREFIX + "flow_health_reason",
        "1 for each reason why the flow is not healthy.",
        labels=("flow", "reason", "operator"),
    )
    for reason in status.health.reasons:
        reasons.add_metric((status.flow, reason.kind, reason.operator), 1)
    yield reasons


def _tasks(status: Status) -> Iterator[tuple[tuple[str, str, str], TaskStatus]]:
    """Return the tasks with their labels."""
    for stage in status.stages:
        for task in stage.tasks:
            yield (status.flow, stage.name, str(task.index)), task


def _fill(
    family: CounterMetricFamily | GaugeMetricFamily,
    metric: _TaskMetric,
    tasks: Iterable[tuple[tuple[str, str, str], TaskStatus]],
) -> None:
    for labels, task in tasks:
        value = metric.value(task)
        if value is not None:
            family.add_metric(labels, value)


def _operator_families(status: Status) -> Iterator[Metric]:
    for each in _OPERATOR_COUNTERS:
        family = CounterMetricFamily(
            PREFIX + each.name, each.help, labels=("flow", "stage", "operator")
        )
        for stage in status.stages:
            for operator in stage.operators:
                labels = (status.flow, stage.name, operator.counts.name)
                family.add_metric(labels, each.value(operator))
        yield family


def _time_families(status: Status) -> Iterator[Metric]:
    for each in _TIMES:
        family = GaugeMetricFamily(
            PREFIX + each.name, each.help, labels=("flow", "stage", "quantile")
        )
        for stage in status.stages:
            found = each.value(stage)
            for quantile, field in _QUANTILES.items() if found else ():
                labels = (status.flow, stage.name, quantile)
                family.add_metric(labels, getattr(found, field) / 1e6)
        yield family


class StatusCollector(Collector):
    """A Prometheus collector that asks for the status whenever it is scraped.

    Parameters
    ----------
    status
        Returns the present status, for example ``lambda: board.status(time.time())``.
    """

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """Return the present metrics."""
        return families(self._status())


def exposition(status: Status) -> bytes:
    """Return the metrics of a status in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StatusCollector(lambda: status))
    return generate_latest(registry)
