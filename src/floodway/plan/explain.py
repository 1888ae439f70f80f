"""A flow as text, for people."""

from floodway.core.duration import show_ms
from floodway.model.flow import Flow
from floodway.operators.base import MAIN, Edge, Operator, Output
from floodway.plan.graph import Graph

_KINDS = {"records": "stream", "revisions": "stream with updates", "changes": "table"}


def explain(flow: Flow) -> str:
    """Return the graph of `flow`: every operator with its kind, inputs, key, window and schema.

    Examples
    --------
    >>> from floodway import Flow, tumbling
    >>> flow = Flow("clicks")
    >>> clicks = flow.source("clicks", schema=str)
    >>> counts = clicks.group_by("value AS country").window(tumbling("10s")).count()
    >>> print(flow.explain())
    flow clicks: 2 operators
    <BLANKLINE>
    clicks  (source: stream)
      schema     value STRING NOT NULL
      time       ingestion
    <BLANKLINE>
    count_by_country  (aggregate: table)
      from       clicks
      key        country STRING NOT NULL
      schema     count BIGINT NOT NULL
      by         value AS country
      of         count()
      window     tumbling(10s)
      retention  1h
      also       late
    """
    graph = Graph.of(flow)
    head = f"flow {flow.name}: {len(graph.operators)} operators"
    return "\n\n".join([head, *(_describe(operator, graph) for operator in graph.operators)])


def _describe(operator: Operator, graph: Graph) -> str:
    output = operator.outputs.get(MAIN) or next(iter(operator.outputs.values()))
    kind = _KINDS[output.kind]
    if operator.name in graph.versioned:
        kind += " with versions"
    lines = [f"{operator.name}  ({operator.label}: {kind})"]
    for title, text in _facts(operator, output, graph).items():
        lines.append(f"  {title:<9}  {text}")
    return "\n".join(lines)


def _facts(operator: Operator, output: Output, graph: Graph) -> dict[str, str]:
    facts: dict[str, str] = {}
    edges = graph.inputs[operator.name]
    if edges:
        facts["from"] = ", ".join(_edge(edge) for edge in edges)
    if output.key is not None:
        facts["key"] = ", ".join(map(str, output.key.fields))
    facts["schema"] = str(output.schema)
    facts |= operator.details()
    lag_ms = graph.lags[operator.name].most_ms
    if operator.state() is not None and lag_ms:
        facts["lag"] = f"up to {show_ms(lag_ms)} behind stream time"
    ports = [port for port in operator.outputs if port != MAIN]
    if ports:
        facts["also"] = ", ".join(ports)
    return facts


def _edge(edge: Edge) -> str:
    return edge.operator.name if edge.port == MAIN else f"{edge.operator.name}.{edge.port}"
