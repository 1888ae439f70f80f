"""Which tables have a row per window, so that their keys are ``(group, start, end)``."""

from floodway.operators.aggregate import Aggregate
from floodway.operators.base import MAIN, Edge
from floodway.operators.map_values import MapValues
from floodway.operators.table_join import TableJoin
from floodway.operators.windows import Windows
from floodway.plan.graph import Graph


def windows_of(graph: Graph, table: str) -> Windows | None:
    """Return the windows of a table, if it has any."""
    operator = next(op for op in graph.operators if op.name == table)
    if isinstance(operator, Aggregate):
        return operator.windows
    edges = graph.inputs[table]
    keeps_keys = isinstance(operator, MapValues | TableJoin)
    if keeps_keys and edges and edges[0].output.kind == "changes":
        return windows_of(graph, edges[0].operator.name)
    return None


def windowed(graph: Graph, edge: Edge) -> bool:
    """Return whether the messages of an output are about rows of windows."""
    if edge.port != MAIN or edge.output.kind != "changes":
        return False
    return windows_of(graph, edge.operator.name) is not None
