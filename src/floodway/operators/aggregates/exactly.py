"""Aggregates of numbers without rounding, for where values are replaced."""

from floodway.core.types import Field
from floodway.operators.aggregates import exact
from floodway.operators.aggregates.base import AggregateFunction
from floodway.operators.code import Snippet


def exactly(text: str, result: Field, argument: Snippet, *, lower: str) -> AggregateFunction:
    """Return what keeps the exact sum of a number, and makes of it what `lower` in `exact` does."""
    return AggregateFunction(
        text=text,
        result=result,
        argument=argument,
        lift=lambda x, t: f"_exact.lift({x})",
        combine=lambda a, b: f"_exact.combine({a}, {b})",
        subtract=lambda a, b: f"_exact.subtract({a}, {b})",
        lower=lambda p: f"_exact.{lower}({p})",
        names={"_exact": exact},
        layout="exact",
    )
