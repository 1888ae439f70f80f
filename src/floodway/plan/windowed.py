"""Which tables have a row per window, so that their keys are ``(group, start, end)``."""

from floodway.operators.base import MAIN, Edge
from floodway.operators.windows import Windows
from floodway.plan.graph import Graph


def windows_of(graph: Graph, table: str) -> Windows | None:
    """Return the windows of a table, if it has any."""
    operator = next(op for op in graph.operators if op.name == table)
    facts = operator.facts
    if facts.keeps_windows:
        return windows_of(graph, graph.inputs[table][0].operator.name)
    return facts.windows


def windowed(graph: Graph, edge: Edge) -> bool:
    """Return whether the messages of an output are about rows of windows."""
    if edge.port != MAIN or edge.output.kind != "changes":
        return False
    return windows_of(graph, edge.operator.name) is not None
