"""min and max; nulls do not count, and NaN is larger than every number."""

from collections.abc import Callable
from typing import Any

from floodway.core.types import ArrayType, DoubleType, Field, OpaqueType, StructType
from floodway.operators.aggregates import bag
from floodway.operators.aggregates.base import (
    AggregateFunction,
    AggregateSpec,
    Resolver,
    describe,
)
from floodway.operators.aggregates.numbers import ordered

_NOT_PYTHONS = (DoubleType, OpaqueType, ArrayType, StructType)
"""Types of which Spark orders values otherwise than Python, or Python not at all."""


def min(of: str | Callable[[Any], Any]) -> AggregateSpec:
    """Keep the smallest `of`.

    >>> min("price").text
    'min(price)'
    """
    return AggregateSpec(describe("min", of), lambda resolver: _extreme("min", of, resolver))


def max(of: str | Callable[[Any], Any]) -> AggregateSpec:
    """Keep the largest `of`.

    >>> max("price").text
    'max(price)'
    """
    return AggregateSpec(describe("max", of), lambda resolver: _extreme("max", of, resolver))


def _extreme(name: str, of: str | Callable[[Any], Any], resolver: Resolver) -> AggregateFunction:
    argument = resolver.snippet(of)
    schema = ordered(argument, name).schema
    text, result = describe(name, of), Field(name, schema.type, schema.nullable)
    single = bag.maker(schema.type)
    less = "<" if name == "min" else ">"
    inverse = AggregateFunction(
        text=text,
        result=result,
        argument=argument,
        lift=lambda x, t: f"([] if {x} is None else _bag.{single}({x}, {x}))",
        combine=lambda a, b: f"_bag.union({a}, {b})",
        subtract=lambda a, b: f"_bag.difference({a}, {b})",
        lower=lambda p: f"({p}[{0 if name == 'min' else -1}][2] if {p} else None)",
        names={"_bag": bag},
        holistic=True,
        ordered=True,
        layout=bag.layout(schema.type),
        kept=slice(1) if name == "min" else slice(-1, None),
    )
    if schema.nullable or isinstance(schema.type, _NOT_PYTHONS):
        return AggregateFunction(
            text=text,
            result=result,
            argument=argument,
            lift=lambda x, t: x,
            combine=lambda a, b: f"_{name}_of({a}, {b})",
            lower=lambda p: p,
            names={f"_{name}_of": _min_of if name == "min" else _max_of},
            inverse=inverse,
        )
    return AggregateFunction(
        text=text,
        result=result,
        argument=argument,
        lift=lambda x, t: x,
        combine=lambda a, b: f"({b} if {b} {less} {a} else {a})",
        lower=lambda p: p,
        inverse=inverse,
    )


def _min_of(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return b if bag.order(b) < bag.order(a) else a


def _max_of(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return b if bag.order(b) > bag.order(a) else a
