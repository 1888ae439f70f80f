"""Why an operator's load is what it is, and why so much comes through it."""

import math
from collections.abc import Sequence

from floodway.provisioning.cost.bottlenecks import Diagnosis
from floodway.provisioning.cost.figures import PER_S, Figure, emitting, output_figure
from floodway.provisioning.cost.graph import Connection, CostGraph
from floodway.provisioning.cost.loads import Load
from floodway.provisioning.cost.throughput import Prediction


def explain_load(graph: CostGraph, diagnosis: Diagnosis, name: str) -> list[Figure]:
    """Return the figures of an operator's load, each after those it is made of.

    Examples
    --------
    >>> from floodway.provisioning.cost.bottlenecks import detect
    >>> from floodway.provisioning.cost.graph import OperatorCosts, Platform
    >>> from floodway.provisioning.cost.settings import Setting
    >>> graph = CostGraph.of([OperatorCosts(name="read", c_cpu_ns=1000)], [], Platform())
    >>> diagnosis = detect(graph, {"read": 500_000}, {"read": Setting(2)})
    >>> for figure in explain_load(graph, diagnosis, "read"):
    ...     print(figure)
    R_in = 500,000 records/s: the workload, R_in with R_in = 500,000
    c_p = 1,000 ns: equation 3.8, c_cpu with c_cpu = 1,000
    C_p = 1,000,000 records/s: equation 3.5, 1e9 / c_p with c_p = 1,000
    C_t = 1,000,000 records/s: equation 3.4, C_p with C_p = 1,000,000
    C = 2,000,000 records/s: equation 3.3, dop * C_t with dop = 2, C_t = 1,000,000
    utilisation = 0.25: equation 4.3, R_in / C with R_in = 500,000, C = 2,000,000
    R_out = 500,000 records/s: equation 4.6, s * min(R_in, C) with s = 1, R_in = 500,000,
    C = 2,000,000
    """
    load = diagnosis.loads[name]
    return [
        *_arriving(graph, diagnosis, load),
        _cost(graph, load),
        *_capacities(graph, load),
    ]


def _arriving(graph: CostGraph, diagnosis: Diagnosis, load: Load) -> list[Figure]:
    links = graph.inputs[load.operator]
    if not links:
        inputs = {"R_in": load.rate_in}
        return [Figure("R_in", load.rate_in, PER_S, "the workload", "R_in", inputs)]
    rates: dict[str, float] = {}
    batches: dict[str, float] = {}
    sizes: dict[str, float] = {}
    for link in links:
        producer = diagnosis.loads[link.producer]
        rates[f"R_out({link.producer})"] = producer.rate_out
        if link.share != 1:
            rates[f"share({link.producer})"] = link.share
        batches[f"b_out({link.producer})"] = producer.setting.b_out or 1
        sizes[f"rs_out({link.producer})"] = graph.operators[link.producer].record_bytes
    found = [Figure("R_in", load.rate_in, PER_S, "3.16", _sum(links), rates)]
    if load.rate_in:  # otherwise there is nothing to take an average of
        batched = f"({_sum(links)}) / ({_sum(links, ' / b_out({})')})"
        found.append(Figure("b_in", load.b_in, "records", "3.21", batched, rates | batches))
        sized = f"({_sum(links, ' * rs_out({})')}) / ({_sum(links)})"
        found.append(Figure("rs_in", load.bytes_in, "bytes", "3.27", sized, rates | sizes))
    return found


def _sum(links: Sequence[Connection], factor: str = "") -> str:
    terms = (
        f"R_out({link.producer})"
        + (f" * share({link.producer})" if link.share != 1 else "")
        + factor.format(link.producer)
        for link in links
    )
    return " + ".join(terms)


def _cost(graph: CostGraph, load: Load) -> Figure:
    name = load.operator
    terms, inputs = ["c_cpu"], {"c_cpu": graph.operators[name].c_cpu_ns}
    if not graph.is_source(name):
        terms.insert(0, "c_fetch / b_in")
        inputs |= {"c_fetch": graph.c_fetch_ns(name), "b_in": load.b_in}
    if not graph.is_sink(name):
        terms.append("s * c_emit / b_out")
        inputs |= emitting(graph, name) | {"b_out": load.setting.b_out or 1}
    return Figure("c_p", load.cost_ns, "ns", "3.8", " + ".join(terms), inputs)


def _capacities(graph: CostGraph, load: Load) -> list[Figure]:
    found: list[Figure] = []
    if load.cost_ns:
        cost = {"c_p": load.cost_ns}
        found.append(Figure("C_p", load.capacities["cpu"], PER_S, "3.5", "1e9 / c_p", cost))
    # Without a number there is no limit: an infinite capacity has no reason to be told.
    value = load.capacities["input network"]
    if value != math.inf:
        inputs = {"N": graph.platform.in_bits_per_s, "rs_in": load.bytes_in}
        found.append(Figure("C_i", value, PER_S, "3.28", "N / (8 * rs_in)", inputs))
    if load.capacities["output network"] != math.inf:
        found.append(output_figure(graph, load.operator))
    given = {figure.name: figure.value for figure in found}
    if not found:
        return []
    capacity, task = load.capacity, load.task_capacity
    smallest = f"min({', '.join(given)})" if len(given) > 1 else found[0].name
    found += [
        Figure("C_t", task, PER_S, "3.4", smallest, given),
        Figure("C", capacity, PER_S, "3.3", "dop * C_t", {"dop": load.setting.dop, "C_t": task}),
        Figure(
            "utilisation",
            load.utilisation,
            "",
            "4.3",
            "R_in / C",
            {"R_in": load.rate_in, "C": capacity},
        ),
        Figure(
            "R_out",
            load.rate_out,
            PER_S,
            "4.6",
            "s * min(R_in, C)",
            {"s": load.selectivity, "R_in": load.rate_in, "C": capacity},
        ),
    ]
    return found


def explain_throughput(graph: CostGraph, prediction: Prediction, name: str) -> Figure:
    """Return how much an operator processes in the end, back-pressure included."""
    load = prediction.diagnosis.loads[name]
    inputs = {"R_in": load.rate_in, "C": load.capacity}
    value = prediction.effective[name]
    arriving = {
        link.consumer: prediction.diagnosis.loads[link.consumer].rate_in
        for link in graph.outputs[name]
    }
    parts = {
        consumer: prediction.effective[consumer] / rate
        for consumer, rate in arriving.items()
        if rate
    }
    slowest = min(parts, key=lambda consumer: parts[consumer], default=None)
    if slowest is None or parts[slowest] >= 1:
        return Figure("R_eff", value, PER_S, "4.10", "min(R_in, C)", inputs)
    letters = (f"R_eff({slowest})", f"R_in({slowest})")
    inputs |= {letters[0]: prediction.effective[slowest], letters[1]: arriving[slowest]}
    formula = f"min(R_in, C) * {letters[0]} / {letters[1]}"
    return Figure("R_eff", value, PER_S, "4.11 to 4.13", formula, inputs)
