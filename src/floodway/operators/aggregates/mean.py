"""mean: the sum over the count; nulls do not count."""

from collections.abc import Callable
from typing import Any

from floodway.core.types import DOUBLE, Field
from floodway.operators.aggregates.base import (
    AggregateFunction,
    AggregateSpec,
    Resolver,
    describe,
)
from floodway.operators.aggregates.exactly import exactly
from floodway.operators.aggregates.numbers import numeric, rounds


def mean(of: str | Callable[[Any], Any]) -> AggregateSpec:
    """Average `of`.

    >>> mean("price").text
    'mean(price)'
    """

    def resolve(resolver: Resolver) -> AggregateFunction:
        argument = numeric(resolver.snippet(of), "mean")
        nullable = argument.schema.nullable
        text, result = describe("mean", of), Field("mean", DOUBLE, nullable)
        inverse = exactly(text, result, argument, lower="mean") if rounds(argument) else None
        return AggregateFunction(
            text=text,
            result=result,
            argument=argument,
            lift=(lambda x, t: f"((0, 0) if {x} is None else ({x}, 1))")
            if nullable
            else (lambda x, t: f"({x}, 1)"),
            combine=lambda a, b: f"({a}[0] + {b}[0], {a}[1] + {b}[1])",
            add=(lambda a, x, t: f"({a} if {x} is None else ({a}[0] + {x}, {a}[1] + 1))")
            if nullable
            else (lambda a, x, t: f"({a}[0] + {x}, {a}[1] + 1)"),
            subtract=None if inverse else (lambda a, b: f"({a}[0] - {b}[0], {a}[1] - {b}[1])"),
            inverse=inverse,
            lower=(lambda p: f"(float({p}[0]) / {p}[1] if {p}[1] else None)")
            if nullable
            else (lambda p: f"float({p}[0]) / {p}[1]"),
        )

    return AggregateSpec(describe("mean", of), resolve)
