"""The shape of a flow: what of it the state depends on, in words that can be compared later.

A commit record carries the shape of the flow that wrote it. A program that goes on from there may
be another; `floodway.engine.checkpoint.upgrade` says what it can keep.
"""

import re
from typing import Any, Literal

import msgspec

from floodway.core.duration import show_ms
from floodway.operators.base import MAIN, Edge, Key, Operator
from floodway.operators.sink import Sink
from floodway.operators.source import Source
from floodway.plan.graph import Graph
from floodway.plan.stages import Plan

Role = Literal["source", "sink", "operator"]

_WORDS = {"by": "grouping", "of": "function"}
"""What `explain` says in a table, as it can be said in a sentence."""


class OperatorShape(msgspec.Struct, frozen=True):
    """An operator, as far as what is kept for it goes.

    Attributes
    ----------
    label
        Its kind.
    role
        Whether it has a position to go on from (a source) or a token (a sink).
    numbered
        Whether its name is made by numbering, and so changes when the program around it does.
    state
        What its state consists of: key, value, function, window and so on, each as text. None if
        it has none.
    retention
        How long state is kept.
    connector
        For sources and sinks, the class of the connector.
    delivery
        For sinks, what the connector promises.
    """

    name: str
    label: str
    role: Role = "operator"
    numbered: bool = False
    state: dict[str, str] | None = None
    retention: str | None = None
    connector: str | None = None
    delivery: str | None = None


class StageShape(msgspec.Struct, frozen=True):
    """A stage: its name, its number of tasks, and the names of its operators."""

    name: str
    dop: int
    operators: list[str]


class FlowShape(msgspec.Struct, frozen=True):
    """A flow, as far as what is kept of it goes."""

    stages: list[StageShape]
    operators: list[OperatorShape]
    key_groups: int

    @classmethod
    def of(cls, plan: Plan) -> "FlowShape":
        """Return the shape of a planned flow."""
        stages = [
            StageShape(stage.name, stage.dop, [operator.name for operator in stage.operators])
            for stage in plan.stages
        ]
        operators = [_shape(operator, plan.graph) for operator in plan.graph.operators]
        return cls(stages, operators, plan.key_groups)

    def dop_of(self, operator: str) -> int:
        """Return how many tasks an operator has."""
        return next(stage.dop for stage in self.stages if operator in stage.operators)


def _shape(operator: Operator, graph: Graph) -> OperatorShape:
    connector: Any = getattr(operator, "connector", None)
    retention: int | None = getattr(operator, "retention_ms", None)
    return OperatorShape(
        name=operator.name,
        label=operator.label,
        role=_role(operator),
        numbered=_numbered(operator),
        state=_state(operator, graph),
        retention=None if retention is None else show_ms(retention),
        connector=None if connector is None else type(connector).__qualname__,
        delivery=getattr(connector, "delivery", None) if isinstance(operator, Sink) else None,
    )


def _role(operator: Operator) -> Role:
    if isinstance(operator, Source):
        return "source"
    return "sink" if isinstance(operator, Sink) else "operator"


def _numbered(operator: Operator) -> bool:
    """Return whether a name looks like one that the flow has made by counting."""
    stem = operator.counted_as
    if stem is None:
        return False
    return re.fullmatch(rf"{re.escape(stem)}(_[0-9]+)?", operator.name) is not None


def _state(operator: Operator, graph: Graph) -> dict[str, str] | None:
    versioned = graph.keeps_versions(operator)
    state = operator.state(versioned=versioned)
    if state is None:
        return None
    edges = graph.inputs[operator.name]
    parts = {
        "kernel": state.kernel.__name__,
        **_rows(operator, edges if state.inputs == "rows" else ()),
    }
    if state.layout:
        parts["layout"] = state.layout
    if state.versions:
        parts["versions"] = "all within retention" if versioned else "the latest"
    if state.inputs == "names":
        parts["inputs"] = ", ".join(edge.operator.name for edge in edges)
    details = {name: text for name, text in operator.details().items() if name != "retention"}
    return parts | {_WORDS.get(name, name): text for name, text in details.items()}


def _rows(operator: Operator, edges: tuple[Edge, ...]) -> dict[str, str]:
    """Return the types of keys and values, of what comes out and of what comes in through edges."""
    output = operator.outputs.get(MAIN) or next(iter(operator.outputs.values()))
    parts = {"key": _key(output.key), "value": str(output.schema.type)}
    for number, edge in enumerate(edges, 1):
        parts[f"key of input {number}"] = _key(edge.output.key)
        parts[f"value of input {number}"] = str(edge.output.schema.type)
    return parts


def _key(key: Key | None) -> str:
    # Whether a column may be null does not change what is stored.
    return "none" if key is None else ", ".join(f"{f.name} {f.type}" for f in key.fields)
