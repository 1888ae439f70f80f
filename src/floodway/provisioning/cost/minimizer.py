"""The fewest tasks for a workload, and batch sizes that make them enough (thesis, algorithm 3).

Level by level from the sources: an operator gets the smallest dop with which some batch sizes
avoid a bottleneck. If its producers' batches are too small for that, they are raised, the smallest
first. Its own batches become as large as they then have to be.

The printed algorithm computes the input batch size anew for each producer it raises. Here the sum
that it is made of is kept up to date, so that an operator costs time in proportion to its inputs
(but for sorting them).
"""

from collections.abc import Mapping

import msgspec

from floodway.provisioning.cost import checks
from floodway.provisioning.cost.equations import effective_batch, effective_record_bytes
from floodway.provisioning.cost.graph import CostGraph, Workload
from floodway.provisioning.cost.loads import arrivals_of, rates_in, rates_out
from floodway.provisioning.cost.settings import Setting, tasks
from floodway.provisioning.cost.sizing import least_b_in, least_b_out, least_dop


class Step(msgspec.Struct, frozen=True):
    """Why an operator got its dop and b_out.

    Attributes
    ----------
    rate_in
        Records per second it is planned for, headroom included.
    bytes_in
        The effective size of input records.
    b_in_least
        The input batch size it needs at least (equation 4.25); 1 for a source.
    b_in
        The effective input batch size that it then got.
    b_out_own
        The output batch size it needs with that (equation 4.27); None for a sink.
    raised_by
        The consumer that needed larger batches than that, if any.
    """

    operator: str
    rate_in: float
    bytes_in: float
    b_in_least: int
    b_in: float
    b_out_own: int | None
    raised_by: str | None = None


class Minimum(msgspec.Struct, frozen=True):
    """A configuration with the fewest tasks, and how it came about.

    Attributes
    ----------
    settings
        dop and b_out of every operator.
    steps
        Why.
    planned
        The workload it was made for: the one asked for, and the headroom on top.
    max_b_out
        The largest batch size allowed; None for any.
    """

    settings: Mapping[str, Setting]
    steps: Mapping[str, Step]
    planned: Mapping[str, float]
    max_b_out: int | None

    @property
    def tasks(self) -> int:
        """How many tasks run (equation 4.15)."""
        return tasks(self.settings)


def minimize(
    graph: CostGraph,
    workload: Workload,
    *,
    headroom: float = 0.0,
    max_b_out: int | None = None,
) -> Minimum:
    """Return a configuration with the fewest tasks that has no bottleneck under a workload.

    Parameters
    ----------
    graph, workload
        What runs, and what arrives at the sources.
    headroom
        The share of each operator's capacity that has to stay free.
    max_b_out
        The largest output batch size allowed. 1 plans without batching; None allows any, as the
        thesis does, and can give very large ones when a task has almost nothing to spare.

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> graph = CostGraph.of(
    ...     [OperatorCosts(name="read", c_cpu_ns=1000), OperatorCosts(name="count", c_cpu_ns=2000)],
    ...     [Connection("read", "count", "hash")],
    ...     Platform(c_fetch_ns=7000, c_emit_ns=3000),
    ... )
    >>> minimize(graph, {"read": 400_000}).settings
    {'read': Setting(dop=1, b_out=14), 'count': Setting(dop=1, b_out=None)}
    >>> minimize(graph, {"read": 400_000}, max_b_out=1).settings
    {'read': Setting(dop=2, b_out=1), 'count': Setting(dop=4, b_out=None)}
    """
    checks.check_workload(graph, workload)
    checks.check_headroom(headroom)
    checks.check_count("max_b_out", max_b_out)
    planned = {source: rate / (1 - headroom) for source, rate in workload.items()}
    search = _Search(graph, planned, max_b_out)
    for name in graph.in_order():
        search.size(name)
    return Minimum(search.settings, search.steps, planned, max_b_out)


class _Search:
    """The settings found so far; each operator is sized after its producers."""

    def __init__(
        self, graph: CostGraph, planned: Mapping[str, float], max_b_out: int | None
    ) -> None:
        self.graph = graph
        self.rates_in = rates_in(graph, planned)
        self.rates_out = rates_out(graph, self.rates_in)
        self.max_b_out = max_b_out
        self.settings: dict[str, Setting] = {}
        self.steps: dict[str, Step] = {}

    def size(self, name: str) -> None:
        """Give one operator its setting, and its producers larger batches if it needs them."""
        graph, rate_in, most = self.graph, self.rates_in[name], self.max_b_out
        arrivals = arrivals_of(graph, name, self.rates_out, self.settings)
        bytes_in = effective_record_bytes(arrivals)
        dop = least_dop(graph, name, rate_in=rate_in, bytes_in=bytes_in, max_b_out=most)
        least = least_b_in(graph, name, rate_in=rate_in, dop=dop, max_b_out=most)
        b_in = self._raised(name, least) if arrivals else 1.0
        b_out = None
        if not graph.is_sink(name):
            b_out = least_b_out(graph, name, rate_in=rate_in, dop=dop, b_in=b_in, max_b_out=most)
        self.settings[name] = Setting(dop, b_out)
        self.steps[name] = Step(name, rate_in, bytes_in, least, b_in, b_out)

    def _raised(self, name: str, least: int) -> float:
        """Raise the smallest batches until they are large enough on average; lines 21 to 25."""
        arrivals = arrivals_of(self.graph, name, self.rates_out, self.settings)
        rate, b_in = self.rates_in[name], effective_batch(arrivals)
        if b_in >= least or not rate:
            return b_in
        batches = rate / b_in
        links = zip(self.graph.inputs[name], arrivals, strict=True)
        for link, arrival in sorted(links, key=lambda pair: pair[1].b_out):
            if rate / batches >= least or arrival.b_out >= least:
                break
            if arrival.rate:
                batches += arrival.rate / least - arrival.rate / arrival.b_out
                self._raise(link.producer, least, name)
        return effective_batch(arrivals_of(self.graph, name, self.rates_out, self.settings))

    def _raise(self, producer: str, b_out: int, consumer: str) -> None:
        self.settings[producer] = msgspec.structs.replace(self.settings[producer], b_out=b_out)
        self.steps[producer] = msgspec.structs.replace(self.steps[producer], raised_by=consumer)
