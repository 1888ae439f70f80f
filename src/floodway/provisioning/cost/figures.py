"""Where a number comes from: the equation, and what went into it.

Figures are made after the fact from loads and steps, so that the arithmetic stays free of them.
A formula is written in the thesis's letters, and is right as it stands: with the inputs put in, it
gives the value.
"""

from collections.abc import Mapping

import msgspec

from floodway.provisioning.cost.graph import CostGraph
from floodway.provisioning.cost.loads import output_capacity

PER_S = "records/s"


class Figure(msgspec.Struct, frozen=True):
    """A number with its reason.

    Attributes
    ----------
    name, value, unit
        What it is.
    equation
        Its number in the thesis, chapters 3 and 4, or where else it comes from.
    formula
        How it is computed.
    inputs
        The values of the letters in the formula.

    Examples
    --------
    >>> print(Figure("C_p", 200_000.0, "records/s", "3.5", "1e9 / c_p", {"c_p": 5000.0}))
    C_p = 200,000 records/s: equation 3.5, 1e9 / c_p with c_p = 5,000
    """

    name: str
    value: float
    unit: str
    equation: str
    formula: str
    inputs: Mapping[str, float]

    def __str__(self) -> str:
        said = f"{self.name} = {_shown(self.value)} {self.unit}".rstrip()
        source = f"equation {self.equation}" if self.equation[:1].isdigit() else self.equation
        given = ", ".join(f"{name} = {_shown(value)}" for name, value in self.inputs.items())
        return f"{said}: {source}, {self.formula}" + (f" with {given}" if given else "")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"


def emitting(graph: CostGraph, name: str) -> dict[str, float]:
    """Return the letters of what emitting costs an operator."""
    return {"s": graph.operators[name].selectivity, "c_emit": graph.c_emit_ns(name)}


def output_figure(graph: CostGraph, name: str) -> Figure:
    """Return an operator's output capacity with its reason."""
    operator = graph.operators[name]
    inputs = {
        "N": graph.platform.out_bits_per_s,
        "rs_out": operator.record_bytes,
        "f": graph.fan_out(name),
        "s": operator.selectivity,
    }
    value = output_capacity(graph, name)
    return Figure("C_o", value, PER_S, "3.33", "N / (8 * rs_out * f * s)", inputs)
