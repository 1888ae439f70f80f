"""What ``floodway plan`` computes: from a description with costs to a plan and what it leads to.

A description is a `Paper`: a graph with costs, a workload, and the cores of a server. Nothing here
asks where it comes from.
"""

import math
import re
from collections.abc import Sequence

import msgspec

from floodway.core.errors import FloodwayError, OptionError
from floodway.provisioning.cost import (
    Difference,
    Figure,
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

MOST_RATES = 1000
"""How many rates a range may have."""

_CHANGE = re.compile(r"\s*(?P<operator>.+)\.(?P<field>\w+?)\s*(?P<sign>\*?=)\s*(?P<value>[^=]+)")


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


def with_rate(paper: Paper, rate: float) -> Paper:
    """Return the description with another rate, all sources together, in the mix they had."""
    whole = sum(paper.workload.values())
    if not whole:
        raise OptionError(
            "the rates of all sources are 0, so a rate cannot be shared out to them",
            remedy="give the sources rates in the mix that is expected",
        )
    mix = {source: rate * part / whole for source, part in paper.workload.items()}
    return msgspec.structs.replace(paper, workload=mix)


def with_cores(paper: Paper, cores: int) -> Paper:
    """Return the description on servers with other cores, which share a server's bandwidth."""
    part = (paper.cores or 1) / cores
    platform = msgspec.structs.replace(
        paper.graph.platform,
        in_bits_per_s=paper.graph.platform.in_bits_per_s * part,
        out_bits_per_s=paper.graph.platform.out_bits_per_s * part,
    )
    graph = msgspec.structs.replace(paper.graph, platform=platform)
    return msgspec.structs.replace(paper, graph=graph, cores=cores)


def with_change(paper: Paper, change: str) -> Paper:
    r"""Return the description after a change, ``operator.field=value`` or ``...*=factor``.

    Examples
    --------
    >>> from floodway.provisioning.paper import parse
    >>> paper = parse("[operators.read]\nrate = 500\nc_cpu_ns = 1000")
    >>> with_change(paper, "read.c_cpu_ns*=2").graph.operators["read"].c_cpu_ns
    2000.0
    >>> with_change(paper, "read.rate=700").workload
    {'read': 700.0}
    """
    match = _CHANGE.fullmatch(change)
    value = _number(match["value"]) if match else None
    if match is None or value is None:
        raise OptionError(
            f"{change!r} is not a change",
            remedy="write operator.field=value or operator.field*=factor, such as "
            "parse.selectivity*=2",
        )
    operator, field, times = match["operator"], match["field"], match["sign"] == "*="
    checks.check_known([operator], paper.graph.operators, "change")
    if field == "rate":
        rate = paper.workload.get(operator, 0.0) * value if times else value
        workload = {**paper.workload, operator: rate}
        checks.check_workload(paper.graph, workload)
        return msgspec.structs.replace(paper, workload=workload)
    if field == "max_dop":
        if times or value != round(value):
            raise OptionError(
                f"{change!r} does not give max_dop a whole number",
                remedy=f"write {operator}.max_dop=N",
                operator=operator,
            )
        return msgspec.structs.replace(
            paper, graph=paper.graph.changed(operator, max_dop=int(value))
        )
    make = paper.graph.multiplied if times else paper.graph.changed
    return msgspec.structs.replace(paper, graph=make(operator, **{field: value}))


def rates_of(text: str) -> list[float]:
    """Return the rate that somebody wrote, or the rates of a range ``FROM:TO:STEP``.

    Examples
    --------
    >>> rates_of("500_000"), rates_of("100:300:100")
    ([500000.0], [100.0, 200.0, 300.0])
    """
    numbers = [_number(part) for part in text.split(":")]
    found = [number for number in numbers if number is not None and number >= 0]
    if len(found) != len(numbers) or len(found) not in (1, 3):
        raise OptionError(
            f"{text!r} is not a rate",
            remedy="give records per second, such as 500000, or a range such as "
            "100000:500000:50000 (from, to, step)",
        )
    if len(found) == 1:
        return found
    first, last, step = found
    if first > last or not step:
        raise OptionError(
            f"the range {text!r} has no rates in it",
            remedy="go from the lower rate to the higher, in steps above 0",
        )
    count = math.floor((last - first) / step + 1e-9) + 1
    if count > MOST_RATES:
        raise OptionError(
            f"the range {text!r} has {count:,} rates; {MOST_RATES:,} can be shown",
            remedy="take larger steps",
        )
    return [first + step * number for number in range(count)]


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
