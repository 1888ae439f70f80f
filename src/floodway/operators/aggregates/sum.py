"""sum: all together; nulls do not count, and the sum of nothing but nulls is null."""

from collections.abc import Callable
from typing import Any

from floodway.core.types import DOUBLE, LONG, DataType, DecimalType, Field, IntegerType, LongType
from floodway.operators.aggregates.base import (
    AggregateFunction,
    AggregateSpec,
    Resolver,
    describe,
)
from floodway.operators.aggregates.exactly import exactly
from floodway.operators.aggregates.numbers import numeric, rounds


def sum(of: str | Callable[[Any], Any]) -> AggregateSpec:
    """Add up `of`. Integers are exact, without bounds; floats round as they are added.

    Where values are replaced, over tables and streams with updates, floats are added exactly and
    rounded once, so that a value that has left leaves nothing behind.

    >>> sum("price * pieces").text
    'sum(price * pieces)'
    """

    def resolve(resolver: Resolver) -> AggregateFunction:
        argument = numeric(resolver.snippet(of), "sum")
        nullable = argument.schema.nullable
        text = describe("sum", of)
        result = Field("sum", _widened(argument.schema.type), nullable)
        inverse = exactly(text, result, argument, lower="total") if rounds(argument) else None
        if nullable:
            return AggregateFunction(
                text=text,
                result=result,
                argument=argument,
                lift=lambda x, t: f"((0, 0) if {x} is None else ({x}, 1))",
                combine=lambda a, b: f"({a}[0] + {b}[0], {a}[1] + {b}[1])",
                add=lambda a, x, t: f"({a} if {x} is None else ({a}[0] + {x}, {a}[1] + 1))",
                subtract=None if inverse else (lambda a, b: f"({a}[0] - {b}[0], {a}[1] - {b}[1])"),
                lower=lambda p: f"({p}[0] if {p}[1] else None)",
                inverse=inverse,
            )
        return AggregateFunction(
            text=text,
            result=result,
            argument=argument,
            lift=lambda x, t: x,
            combine=lambda a, b: f"{a} + {b}",
            lower=lambda p: p,
            subtract=None if inverse else (lambda a, b: f"{a} - {b}"),
            inverse=inverse,
        )

    return AggregateSpec(describe("sum", of), resolve)


def _widened(data_type: DataType) -> DataType:
    if isinstance(data_type, IntegerType | LongType):
        return LONG
    return data_type if isinstance(data_type, DecimalType) else DOUBLE
