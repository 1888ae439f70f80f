"""A plan beside the engine: Linear Road planned for a rate, run at it, and with one task less.

The flow's costs are measured, and it is planned for more than one task of its dearest stage can
take. Run as planned, it has to keep up. With one task less for that stage it must not, and what is
busy all the time then has to be the stage that the model calls the bottleneck.
"""

import time
from collections.abc import Callable, Mapping

import msgspec

from floodway.connectors.base import SourceConnector
from floodway.core.errors import OptionError
from floodway.engine.driver.job import Job, start
from floodway.engine.metrics.work import Counters, Shares
from floodway.model.flow import Flow
from floodway.model.tuning import Tuning
from floodway.plan import Configuration
from floodway.plan.stages import Plan
from floodway.provisioning.applying import configuration_of, stages_of
from floodway.provisioning.calibration.calibrating import calibrate
from floodway.provisioning.cost import CostGraph, Setting, Settings, detect, minimize, outcome
from floodway.provisioning.cost.lean import lean
from floodway_lab.figures.linear_road import RoadSource, linear_road
from floodway_lab.figures.machine import Machine

ABOVE = 1.12
"""The flow is planned for so many times what one task of its dearest stage can take."""

HEADROOM = 0.435
"""So much of each stage's capacity is to stay free. Without, batches would be as small as they can
be and all tasks busy all the time, for which a small machine has too few cores."""

MOST_B_OUT = 1_000
SETTLE_S = 3.0
"""So long a run does not count yet."""

KEPT_UP = 0.98
"""Who takes such a share of what becomes due meanwhile keeps up."""

STARTS_S = 90.0

Progress = Callable[[int, int, str], None]
Build = Callable[[SourceConnector], Flow]
Source = Callable[[float | None], SourceConnector]


class StageRun(msgspec.Struct, frozen=True):
    """A stage in a run: its tasks, and which part of their time they work, planned and measured."""

    dop: int
    b_out: int | None
    planned: float
    used: float


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration should make of the rate, and what it did.

    Attributes
    ----------
    title
        Which configuration it is.
    stages
        All stages that work.
    predicted, measured
        Records per second that come through.
    expected, bottleneck
        The stage that should be, and the one that is, the bottleneck; None if there is none.
    behind_s
        How long records waited at the source at the end; at its start a flow has a backlog.
    """

    title: str
    stages: dict[str, StageRun]
    predicted: float
    measured: float
    expected: str | None
    bottleneck: str | None
    behind_s: float

    @property
    def as_predicted(self) -> bool:
        """Whether the bottleneck is where it was predicted, or there is none as predicted."""
        return self.expected == self.bottleneck


class PlannedFigures(msgspec.Struct, frozen=True):
    """The rate, and what became of it as planned and with one task less."""

    machine: Machine
    rate: float
    runs: list[PlannedRun]

    @property
    def as_predicted(self) -> bool:
        """Whether all runs had their bottlenecks where they were predicted."""
        return all(run.as_predicted for run in self.runs)


def run_planned(
    progress: Progress = lambda *_: None,
    *,
    rate: float | None = None,
    seconds: float = 10.0,
    build: Build = linear_road,
    source: Source = RoadSource,
) -> PlannedFigures:
    """Plan a flow, run it as planned, and with one task less.

    Parameters
    ----------
    rate
        Records per second to plan for; without, a quarter more than one task of the dearest stage
        can take.
    seconds
        How long each run counts.
    build, source
        The flow, and what it reads at a rate.
    """
    machine = Machine.here()
    progress(0, 3, "what it costs")
    flow = build(source(None))
    graph = calibrate(flow, fresh=True).graph
    rate = rate if rate is not None else ABOVE * alone(graph)
    workload = dict.fromkeys(graph.sources, rate / len(graph.sources))
    settings = lean(graph, minimize(graph, workload, headroom=HEADROOM, max_b_out=MOST_B_OUT))
    tried = {"as planned": settings}
    less = dearest(graph, settings)
    if settings[less].dop > 1:
        one_less = msgspec.structs.replace(settings[less], dop=settings[less].dop - 1)
        tried[f"one task less for {less}"] = {**settings, less: one_less}
    runs = []
    for number, (title, given) in enumerate(tried.items(), start=1):
        progress(number, 3, title)
        runs.append(_run(title, build(source(rate)), graph, workload, given, seconds))
    progress(3, 3, "done")
    return PlannedFigures(machine, rate, runs)


def alone(graph: CostGraph) -> float:
    """Return how many records per second come through with one task for each stage.

    Examples
    --------
    >>> from floodway.provisioning.paper import parse
    >>> graph = parse('''
    ... [operators.read]
    ... rate = 1
    ... c_cpu_ns = 1000
    ... [operators.count]
    ... from = "read"
    ... c_cpu_ns = 4000
    ... ''').graph
    >>> alone(graph), dearest(graph, {"read": Setting(1, 1), "count": Setting(2)})
    (250000.0, 'count')
    """
    settings = {
        name: Setting(1, None if graph.is_sink(name) else MOST_B_OUT) for name in graph.operators
    }
    loads = detect(graph, dict.fromkeys(graph.sources, 1.0), settings).loads
    return len(graph.sources) * min(load.capacity / load.rate_in for load in loads.values())


def dearest(graph: CostGraph, settings: Settings) -> str:
    """Return which stage would miss a task the most: the one whose tasks have most to do."""
    loads = detect(graph, dict.fromkeys(graph.sources, 1.0), settings).loads
    return max(loads, key=lambda name: loads[name].rate_in / loads[name].task_capacity)


def _run(
    title: str,
    flow: Flow,
    graph: CostGraph,
    workload: Mapping[str, float],
    settings: Settings,
    seconds: float,
) -> PlannedRun:
    planned = outcome(graph, workload, settings)
    found = detect(graph, workload, settings)
    operators = configuration_of(stages_of(Plan.of(flow), settings)).operators
    with start(
        flow,
        configuration=Configuration(Tuning(paradigm="data"), operators),
        metrics_port=None,
    ) as job:
        if not job.wait_running(STARTS_S):
            raise OptionError(
                f"the flow did not start within {STARTS_S:.0f} s",
                remedy="see if Spark has enough slots for a task of each stage",
            )
        spent, took_s, behind_s = _spent(job, seconds)
        job.stop()
        job.wait()
    shares = {name: Shares.of(spent[name]) for name in graph.operators}
    used = {name: share.busy if share is not None else 0.0 for name, share in shares.items()}
    measured = through(spent, graph) / took_s
    return PlannedRun(
        title=title,
        stages={
            name: StageRun(one.dop, one.b_out, found.loads[name].utilisation, used[name])
            for name, one in settings.items()
        },
        predicted=sum(planned.prediction.throughput.values()),
        measured=measured,
        expected=found.bottlenecks[0].operator if found.bottlenecks else None,
        bottleneck=bottleneck_of(used, measured / sum(workload.values())),
        behind_s=behind_s,
    )


def bottleneck_of(used: Mapping[str, float], taken: float) -> str | None:
    """Return the stage that holds the others back: the busiest, if not everything was taken.

    Parameters
    ----------
    used
        Which part of their time the tasks of each stage worked.
    taken
        The share that was taken of what became due.

    Examples
    --------
    >>> bottleneck_of({"spout": 0.4, "parse": 0.99}, 0.8)
    'parse'
    >>> bottleneck_of({"spout": 0.4, "parse": 0.9}, 1.0) is None
    True
    """
    if taken >= KEPT_UP:
        return None
    return max(used, key=lambda name: used[name])


def through(spent: Mapping[str, Counters], graph: CostGraph) -> float:
    r"""Return how many records have come through: what was read, and did not stay in a queue.

    Examples
    --------
    >>> from floodway.provisioning.paper import parse
    >>> text = '[operators.read]\nrate = 1\nc_cpu_ns = 1\n[operators.count]\nfrom = "read"\n'
    >>> graph = parse(text + "c_cpu_ns = 1").graph
    >>> through({"read": Counters(1000, 1000), "count": Counters(800, 600)}, graph)
    750.0
    """
    read = sum(spent[name].records_processed for name in graph.sources)
    kept_up = min(
        spent[name].records_processed / spent[name].records_in
        for name in graph.operators
        if spent[name].records_in
    )
    return read * min(kept_up, 1.0)


def _spent(job: Job, seconds: float) -> tuple[dict[str, Counters], float, float]:
    """Return what each stage has done in a while, how long that was, and how far it was behind."""
    job.wait(SETTLE_S)
    began, before = time.monotonic(), _counters(job)
    job.wait(seconds)
    took_s, after = time.monotonic() - began, _counters(job)
    behind = [stage.lag_seconds or 0.0 for stage in job.status.stages]
    return {name: after[name] - before[name] for name in after}, took_s, max(behind)


def _counters(job: Job) -> dict[str, Counters]:
    return {stage.name: stage.counters for stage in job.status.stages}
