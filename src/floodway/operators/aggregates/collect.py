"""collect: all values as a list. Holistic: its state grows with its input."""

from collections.abc import Callable
from typing import Any

from floodway.core.types import ArrayType, Field
from floodway.operators.aggregates import bag
from floodway.operators.aggregates.base import (
    AggregateFunction,
    AggregateSpec,
    Resolver,
    describe,
)


def collect(of: str | Callable[[Any], Any] | None = None) -> AggregateSpec:
    """Collect all values, or `of` for each, in timestamp order; nulls are left out.

    Values of one timestamp are ordered by their text, so the answer does not depend on the order
    of arrival. Needs a window, or a table as input: over an endless stream the list would grow
    without bound.

    >>> collect("page").text
    'collect(page)'
    """

    def resolve(resolver: Resolver) -> AggregateFunction:
        argument = resolver.whole() if of is None else resolver.snippet(of)
        single = bag.maker(argument.schema.type)
        return AggregateFunction(
            text=describe("collect", of),
            result=Field("collect", ArrayType(argument.schema.type, contains_null=False)),
            argument=argument,
            lift=lambda x, t: f"([] if {x} is None else _bag.{single}({t}, {x}))",
            combine=lambda a, b: f"_bag.union({a}, {b})",
            subtract=lambda a, b: f"_bag.difference({a}, {b})",
            lower=lambda p: f"_bag.values({p})",
            names={"_bag": bag},
            holistic=True,
            ordered=True,
        )

    return AggregateSpec(describe("collect", of), resolve)
