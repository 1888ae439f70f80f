"""Why the minimizer chose a dop and a batch size."""

import math

from floodway.provisioning.cost.figures import Figure, emitting
from floodway.provisioning.cost.graph import CostGraph
from floodway.provisioning.cost.loads import output_capacity
from floodway.provisioning.cost.minimizer import Minimum


def explain_minimum(graph: CostGraph, minimum: Minimum, name: str) -> list[Figure]:
    """Return why an operator got its dop and b_out.

    Examples
    --------
    >>> from floodway.provisioning.cost.graph import Connection, OperatorCosts, Platform
    >>> from floodway.provisioning.cost.minimizer import minimize
    >>> graph = CostGraph.of(
    ...     [OperatorCosts(name="read", c_cpu_ns=1000), OperatorCosts(name="count", c_cpu_ns=2000)],
    ...     [Connection("read", "count", "hash")],
    ...     Platform(c_fetch_ns=7000, c_emit_ns=3000),
    ... )
    >>> for figure in explain_minimum(graph, minimize(graph, {"read": 400_000}), "read"):
    ...     print(figure)
    dop = 1 tasks: equation 4.23, floor(R_in * c_cpu / 1e9) + 1 with R_in = 400,000,
    c_cpu = 1,000
    b_out = 2 records: equation 4.27, ceil(s * c_emit / (1e9 * dop / R_in - c_cpu)) with s = 1,
    c_emit = 3,000, dop = 1, R_in = 400,000, c_cpu = 1,000
    b_out = 14 records: algorithm 3, line 24, b_in*(count) with b_in*(count) = 14
    """
    found = [_dop(graph, minimum, name)]
    step, setting = minimum.steps[name], minimum.settings[name]
    shared = {"dop": setting.dop, "R_in": step.rate_in, "c_cpu": graph.operators[name].c_cpu_ns}
    left = "1e9 * dop / R_in - c_cpu"
    if graph.c_fetch_ns(name) and step.rate_in:
        inputs = {"c_fetch": graph.c_fetch_ns(name)} | shared
        room = left
        if minimum.max_b_out and graph.emit_ns(name):
            room += " - s * c_emit / b_max"
            inputs |= emitting(graph, name) | {"b_max": minimum.max_b_out}
        bound = f"c_fetch / ({room})"
        strict = not minimum.max_b_out and graph.emit_ns(name)
        formula = f"floor({bound}) + 1" if strict else f"max(1, ceil({bound}))"
        found.append(Figure("b_in*", step.b_in_least, "records", "4.25", formula, inputs))
        left += " - c_fetch / b_in"
        shared |= {"c_fetch": graph.c_fetch_ns(name), "b_in": step.b_in}
    if step.b_out_own is not None and graph.emit_ns(name) and step.rate_in:
        formula = f"ceil(s * c_emit / ({left}))"
        inputs = emitting(graph, name) | shared
        found.append(Figure("b_out", step.b_out_own, "records", "4.27", formula, inputs))
    if step.raised_by is not None and setting.b_out is not None:
        letter = f"b_in*({step.raised_by})"
        raised = {letter: float(setting.b_out)}
        found.append(
            Figure("b_out", setting.b_out, "records", "algorithm 3, line 24", letter, raised)
        )
    return found


def _dop(graph: CostGraph, minimum: Minimum, name: str) -> Figure:
    step = minimum.steps[name]
    term, inputs = _busy(graph, minimum, name)
    terms = [term]
    capacity_in = graph.platform.in_bits_per_s
    if capacity_in != math.inf and step.bytes_in:
        inputs["C_i"] = capacity_in / (8 * step.bytes_in)
        terms.append("ceil(R_in / C_i)")
    if output_capacity(graph, name) != math.inf:
        inputs["C_o"] = output_capacity(graph, name)
        terms.append("ceil(R_in / C_o)")
    if term.startswith("ceil"):
        terms.append("1")
    whole = terms[0] if len(terms) == 1 else f"max({', '.join(terms)})"
    return Figure("dop", minimum.settings[name].dop, "tasks", "4.23", whole, inputs)


def _busy(graph: CostGraph, minimum: Minimum, name: str) -> tuple[str, dict[str, float]]:
    """Return how many tasks the cpu cost takes, with the largest batches there may be."""
    cost = "c_cpu"
    inputs = {"R_in": minimum.steps[name].rate_in, "c_cpu": graph.operators[name].c_cpu_ns}
    if not minimum.max_b_out:
        free = not (graph.c_fetch_ns(name) + graph.emit_ns(name))
        whole = f"R_in * {cost} / 1e9"
        return (f"ceil({whole})" if free else f"floor({whole}) + 1"), inputs
    if graph.c_fetch_ns(name):
        cost += " + c_fetch / b_max"
        inputs["c_fetch"] = graph.c_fetch_ns(name)
    if graph.emit_ns(name):
        cost += " + s * c_emit / b_max"
        inputs |= emitting(graph, name)
    inputs["b_max"] = minimum.max_b_out
    return f"ceil(R_in * ({cost}) / 1e9)", inputs
