"""From a description with costs to a plan and what it leads to.

A description is a `Paper`: a graph with costs, a workload, and the cores of a server. Nothing here
asks where it comes from.
"""

import math
from collections.abc import Sequence

import msgspec

from floodway.core.errors import FloodwayError, OptionError
from floodway.provisioning.cost import (
    Difference,
    Figure,
    Kind,
    Minimum,
    Outcome,
    Settings,
    checks,
    compare,
    detect,
    explain_load,
    explain_minimum,
    explain_throughput,
    largest_workload,
    lean,
    minimize,
    minimize_within,
    outcome,
    servers,
    tasks,
)
from floodway.provisioning.cost.bottlenecks import Diagnosis
from floodway.provisioning.cost.loads import rates_in
from floodway.provisioning.cost.what_if import MAX_B_OUT
from floodway.provisioning.paper import Paper
from floodway.provisioning.planning.changes import with_rate


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """How to plan.

    Attributes
    ----------
    headroom
        The share of each operator's capacity that has to stay free.
    max_b_out
        The largest batches allowed; 1 is no batching, None any.
    lean
        Whether batch sizes are chosen that keep records waiting the least.
    max_tasks
        How many tasks there are at most.
    largest
        Whether to plan for the largest rate that they can take, instead of the workload.
    """

    headroom: float = 0.0
    max_b_out: int | None = None
    lean: bool = False
    max_tasks: int | None = None
    largest: bool = False


class PlannedStage(msgspec.Struct, frozen=True, kw_only=True):
    """How an operator of the plan is to run, and what to expect of it; in a flow's plan, a stage.

    Attributes
    ----------
    dop, b_out
        How many tasks it has, and how many records its batches hold; None if it sends nothing.
    b_in
        How many records the batches that it gets hold, on average.
    rate_in, rate_out
        Records per second that it gets, and that it sends.
    rate_through
        Records per second that arrive once back-pressure has slowed the sources down.
    cost_ns
        How long a task works on a record, handing over included, in nanoseconds.
    capacity
        Records per second that all its tasks can take.
    utilisation
        Which part of that is needed; above 1, it is a bottleneck.
    binding
        What it would run out of first; None if it costs nothing.
    wait_s
        How long a record waits on average for a batch to fill.
    """

    dop: int
    b_out: int | None
    b_in: float
    rate_in: float
    rate_out: float
    rate_through: float
    cost_ns: float
    capacity: float
    utilisation: float
    binding: Kind | None
    wait_s: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, planned or given, and what becomes of the workload under it.

    Attributes
    ----------
    paper
        What it is about; the workload is the one that was planned for.
    wishes
        How it was planned.
    minimum
        How the configuration came about; None if it was given.
    diagnosis
        Loads and bottlenecks, with the headroom that was wished for.
    outcome
        The configuration, what comes through, and what waits.
    """

    paper: Paper
    wishes: Wishes
    minimum: Minimum | None
    diagnosis: Diagnosis
    outcome: Outcome

    @property
    def settings(self) -> Settings:
        """The degree of parallelism and the batch size of every operator."""
        return self.outcome.settings

    @property
    def tasks(self) -> int:
        """How many tasks run."""
        return tasks(self.settings)

    @property
    def servers(self) -> int | None:
        """How many servers that takes, if their cores are known."""
        return None if self.paper.cores is None else servers(self.tasks, cores=self.paper.cores)

    @property
    def rate(self) -> float:
        """How many records per second are expected, all sources together."""
        return sum(self.paper.workload.values())

    @property
    def rates_through(self) -> dict[str, float]:
        """What each operator gets when back-pressure has slowed the sources down."""
        return rates_in(self.paper.graph, self.outcome.prediction.throughput)

    @property
    def stages(self) -> dict[str, PlannedStage]:
        """Every operator of the plan, with all that is known of it."""
        through = self.rates_through
        return {
            name: PlannedStage(
                dop=load.setting.dop,
                b_out=load.setting.b_out,
                b_in=load.b_in,
                rate_in=load.rate_in,
                rate_out=load.rate_out,
                rate_through=through[name],
                cost_ns=load.cost_ns,
                capacity=load.capacity,
                utilisation=load.utilisation,
                binding=None if math.isinf(load.capacity) else load.binding,
                wait_s=self.outcome.waits_s[name],
            )
            for name, load in self.diagnosis.loads.items()
        }


def answer(paper: Paper, wishes: Wishes, settings: Settings | None = None) -> Answer:
    r"""Plan as wished, or check the settings that are given.

    Examples
    --------
    >>> from floodway.provisioning.paper import parse
    >>> paper = parse("[operators.read]\nrate = 2_500_000\nc_cpu_ns = 1000")
    >>> answer(paper, Wishes()).tasks
    3
    """
    minimum = None
    if settings is None:
        if wishes.largest:
            paper = _with_largest(paper, wishes)
        minimum = _minimum(paper, wishes)
        settings = lean(paper.graph, minimum) if wishes.lean else minimum.settings
    return Answer(
        paper=paper,
        wishes=wishes,
        minimum=minimum,
        diagnosis=detect(paper.graph, paper.workload, settings, headroom=wishes.headroom),
        outcome=outcome(paper.graph, paper.workload, settings),
    )


def _minimum(paper: Paper, wishes: Wishes) -> Minimum:
    bound = wishes.max_b_out
    if wishes.max_tasks is None:
        return minimize(paper.graph, paper.workload, headroom=wishes.headroom, max_b_out=bound)
    if wishes.largest:
        bound = bound or MAX_B_OUT  # the largest rate is reached with a bound only
    return minimize_within(
        paper.graph,
        paper.workload,
        count=wishes.max_tasks,
        headroom=wishes.headroom,
        max_b_out=bound,
    )


def _with_largest(paper: Paper, wishes: Wishes) -> Paper:
    found = largest_workload(
        paper.graph,
        paper.workload,
        count=wishes.max_tasks or 1,
        headroom=wishes.headroom,
        max_b_out=wishes.max_b_out or MAX_B_OUT,
    )
    if not all(math.isfinite(rate) for rate in found.values()) or not any(found.values()):
        raise OptionError(
            "there is no largest rate: nothing arrives, or what arrives costs nothing",
            remedy="give the sources a rate, for its mix, and the operators costs",
        )
    # What is shown as a whole number has to fit if somebody asks for it.
    whole = {name: math.floor(rate) if rate >= 100 else rate for name, rate in found.items()}
    return msgspec.structs.replace(paper, workload=whole)


class Step(msgspec.Struct, frozen=True):
    """One rate of a range: its answer, or why there is none."""

    rate: float
    answer: Answer | None
    problem: str | None = None


def answer_range(
    paper: Paper, rates: Sequence[float], wishes: Wishes, settings: Settings | None = None
) -> list[Step]:
    """Plan for each rate; a rate that nothing reaches does not keep the others from being shown."""
    steps: list[Step] = []
    for rate in rates:
        at = with_rate(paper, rate)
        try:
            steps.append(Step(rate, answer(at, wishes, settings)))
        except OptionError as error:
            where = f"{error.operator}: " if error.operator else ""
            steps.append(Step(rate, None, where + error.problem))
    return steps


class Comparison(msgspec.Struct, frozen=True):
    """What differs from another answer, or why that one does not exist.

    Attributes
    ----------
    before, after
        What the two are called.
    differences
        The figures that they do not share.
    problem
        Why there is no answer to compare with, if there is none.
    """

    before: str
    after: str
    differences: list[Difference]
    problem: str | None = None


def compare_with(
    found: Answer,
    other: Paper,
    settings: Settings | None,
    *,
    before: str = "before",
    after: str = "after",
) -> Comparison:
    """Compare an answer with that for another description, or with other settings."""
    try:
        first = answer(other, found.wishes, settings)
    except FloodwayError as error:
        where = f"{error.operator}: " if error.operator else ""
        return Comparison(before, after, [], where + error.problem)
    return Comparison(before, after, compare(first.outcome, found.outcome))


def explain_operator(found: Answer, name: str) -> list[Figure]:
    """Return every number of an operator with its equation and inputs."""
    graph = found.paper.graph
    checks.check_known([name], graph.operators, "question")
    figures: list[Figure] = []
    if found.minimum is not None:
        figures += explain_minimum(graph, found.minimum, name)
        b_out = found.settings[name].b_out
        if found.wishes.lean and b_out is not None:
            figures = [figure for figure in figures if figure.name == "dop"]
            reason = "the batches with which records wait the least"
            figures.append(Figure("b_out", b_out, "records", reason, "b_out", {"b_out": b_out}))
    figures += explain_load(graph, found.diagnosis, name)
    return [*figures, explain_throughput(graph, found.outcome.prediction, name)]
