"""Batch sizes that keep records waiting as little as possible, for given degrees of parallelism.

Algorithm 3 gives an operator the smallest input batches that can be enough, which can make its
output batches very large: 15 and 387 in the thesis's table 4.3, where 31 and 10 do as well. A
record waits until its batch is full, so here the two are balanced.

A batch of b_out records is full after b_out times as many records as there are buffers: one buffer
for random partitioning, one for each of the consumer's tasks for hash and range (thesis, section
3.4, distinct batching). With b_in and b_out for an operator's input and output batches, and w_in
and w_out for the time a batch takes to grow by one record, the least wait, w_in * b_in + w_out *
b_out, that keeps to equation 4.24 has

    b_in = (c_fetch + sqrt(c_fetch * s * c_emit * w_out / w_in)) / (1 / r_in - c_cpu)

That is each operator's wish; a producer with several consumers follows the largest. Then every
batch size is lowered as far as possible, those first that take the longest to fill. Lowering one
leaves less room for the others and never more, so one round is enough: afterwards no batch size can
be lowered alone.
"""

import math
from collections.abc import Mapping

from floodway.provisioning.cost.equations import NS
from floodway.provisioning.cost.graph import CostGraph
from floodway.provisioning.cost.loads import rates_in, rates_out
from floodway.provisioning.cost.minimizer import Minimum
from floodway.provisioning.cost.rounding import up
from floodway.provisioning.cost.settings import Setting, Settings
from floodway.provisioning.cost.sizing import least_b_out, time_left_ns


def lean(graph: CostGraph, minimum: Minimum) -> dict[str, Setting]:
    """Return the settings of a minimum with batch sizes that keep records waiting less.

    The degrees of parallelism stay, and so does the workload that there is no bottleneck under.

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> from floodway.provisioning.cost.minimizer import minimize
    >>> graph = CostGraph.of(
    ...     [
    ...         OperatorCosts(name="spout", c_cpu_ns=1000),
    ...         OperatorCosts(name="parse", c_cpu_ns=3500),
    ...         OperatorCosts(name="agg", c_cpu_ns=2600),
    ...     ],
    ...     [Connection("spout", "parse"), Connection("parse", "agg", "hash")],
    ...     Platform(c_fetch_ns=7400, c_emit_ns=2600),
    ... )
    >>> found = minimize(graph, {"spout": 500_000})
    >>> [setting.b_out for setting in found.settings.values()]
    [15, 390, None]
    >>> [setting.b_out for setting in lean(graph, found).values()]
    [31, 10, None]
    """
    arriving = rates_in(graph, minimum.planned)
    candidates = [
        _lowered(graph, arriving, settings)
        for settings in (minimum.settings, _balanced(graph, arriving, minimum))
    ]
    leaving = rates_out(graph, arriving)
    return min(candidates, key=lambda settings: sum(waits_s(graph, leaving, settings).values()))


def waits_s(
    graph: CostGraph, rates_out: Mapping[str, float], settings: Settings
) -> dict[str, float]:
    """Return how long a record waits on average until its batch is full, in seconds.

    Where nothing is sent, nothing waits. A linger, which sends what there is, is not counted.
    """
    growing = _growing_s(graph, rates_out, settings)
    return {name: ((settings[name].b_out or 1) - 1) / 2 * growing[name] for name in growing}


def _growing_s(
    graph: CostGraph, rates_out: Mapping[str, float], settings: Settings
) -> dict[str, float]:
    """Return for each producer how long its batches take to grow by one record."""
    found: dict[str, float] = {}
    for name, links in graph.outputs.items():
        if not links or not rates_out[name]:
            found[name] = 0.0
            continue
        rate = rates_out[name] / settings[name].dop
        buffers = (
            (settings[link.consumer].dop if link.partitioning != "random" else 1) / link.share
            for link in links
        )
        found[name] = sum(buffers) / len(links) / rate
    return found


def _balanced(
    graph: CostGraph, arriving: Mapping[str, float], minimum: Minimum
) -> dict[str, Setting]:
    """Give every consumer the input batches it wishes for, and the output batches that follow."""
    growing = _growing_s(graph, rates_out(graph, arriving), minimum.settings)
    most = minimum.max_b_out
    found = dict(minimum.settings)
    wishes = {name: _wish(graph, name, arriving[name], minimum, growing) for name in found}
    for name in graph.in_order():
        if graph.is_sink(name):
            continue
        dop = found[name].dop
        # All producers follow the wish, so input batches are as large as that, or larger.
        own = least_b_out(
            graph, name, rate_in=arriving[name], dop=dop, b_in=wishes[name], max_b_out=most
        )
        wished = max(wishes[link.consumer] for link in graph.outputs[name])
        found[name] = Setting(dop, max(own, wished))
    return found


def _wish(
    graph: CostGraph, name: str, rate_in: float, minimum: Minimum, growing: Mapping[str, float]
) -> int:
    """Return the input batch size with which an operator's records wait the least."""
    fetch, emit = graph.c_fetch_ns(name), graph.emit_ns(name)
    least = minimum.steps[name].b_in_least
    producers = [growing[link.producer] for link in graph.inputs[name]]
    before = sum(producers) / len(producers) if producers else 0.0
    if not (fetch and emit and before and growing[name]):
        return least
    left = time_left_ns(graph, name, rate_in, minimum.settings[name].dop)
    wished = (fetch + math.sqrt(fetch * emit * growing[name] / before)) / left
    return max(least, min(up(wished), minimum.max_b_out or up(wished)))


def _lowered(
    graph: CostGraph, arriving: Mapping[str, float], settings: Settings
) -> dict[str, Setting]:
    """Lower every batch size as far as no operator becomes a bottleneck."""
    found = dict(settings)
    leaving = rates_out(graph, arriving)
    growing = _growing_s(graph, leaving, settings)
    spare = _spare(graph, arriving, leaving, settings)
    for name in sorted(found, key=lambda name: growing[name], reverse=True):
        b_out = found[name].b_out
        if b_out is None:
            continue
        # What each second costs more, and to whom, if a batch less is shared by one record.
        prices = [(name, arriving[name] * graph.emit_ns(name) / NS)]
        for link in graph.outputs[name]:
            rate = leaving[name] * link.share
            prices.append((link.consumer, rate * graph.c_fetch_ns(link.consumer) / NS))
        bounds = [spare[who] / price for who, price in prices if price]
        # No bound: the stream is empty or its hand-over is free, and batches serve nothing.
        lower = up(1 / (1 / b_out + max(0.0, min(bounds)))) if bounds else 1
        for who, price in prices:
            spare[who] -= price * (1 / lower - 1 / b_out)
        found[name] = Setting(found[name].dop, lower)
    return found


def _spare(
    graph: CostGraph,
    arriving: Mapping[str, float],
    leaving: Mapping[str, float],
    settings: Settings,
) -> dict[str, float]:
    """Return for each operator how many tasks' worth of time is left over."""
    found: dict[str, float] = {}
    for name, setting in settings.items():
        batches = sum(
            leaving[link.producer] * link.share / (settings[link.producer].b_out or 1)
            for link in graph.inputs[name]
        )
        each = graph.operators[name].c_cpu_ns + graph.emit_ns(name) / (setting.b_out or 1)
        busy = (batches * graph.c_fetch_ns(name) + arriving[name] * each) / NS
        found[name] = setting.dop - busy
    return found
