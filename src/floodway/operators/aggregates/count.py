"""count: how many."""

from collections.abc import Callable
from typing import Any

from floodway.core.types import LONG, Field
from floodway.operators.aggregates.base import (
    AggregateFunction,
    AggregateSpec,
    Resolver,
    describe,
)


def count(of: str | Callable[[Any], Any] | None = None) -> AggregateSpec:
    """Count records, or those for which `of` is not null.

    >>> count("price").text
    'count(price)'
    """

    def resolve(resolver: Resolver) -> AggregateFunction:
        argument = None if of is None else resolver.snippet(of)
        return AggregateFunction(
            text=describe("count", of),
            result=Field("count", LONG),
            argument=argument,
            lift=(lambda x, t: "1")
            if argument is None or not argument.schema.nullable
            else (lambda x, t: f"(0 if {x} is None else 1)"),
            combine=lambda a, b: f"{a} + {b}",
            subtract=lambda a, b: f"{a} - {b}",
            lower=lambda p: p,
        )

    return AggregateSpec(describe("count", of), resolve)
