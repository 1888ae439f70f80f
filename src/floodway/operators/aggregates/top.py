"""top: the n largest."""

from collections.abc import Callable
from typing import Any

from floodway.core.errors import OptionError
from floodway.core.types import ArrayType, Field
from floodway.operators.aggregates import bag
from floodway.operators.aggregates.base import (
    AggregateFunction,
    AggregateSpec,
    Resolver,
    describe,
)
from floodway.operators.aggregates.numbers import ordered


def top(n: int, by: str | Callable[[Any], Any] | None = None) -> AggregateSpec:
    """Keep the `n` values that are largest by `by` (default: by themselves), largest first.

    Values that are equal by `by` are ordered by their text, so the answer does not depend on the
    order of arrival. Values whose `by` is null do not take part. The key of a record or row is not
    part of its value. If you need it, add it to the value first:
    ``totals.map_values("struct(product, sum AS total)")``.

    >>> top(3, "price").text
    'top(3, price)'
    """
    text = describe("top", f"{n}" if by is None else f"{n}, {describe('', by)[1:-1]}")

    def resolve(resolver: Resolver) -> AggregateFunction:
        if n < 1:
            raise OptionError(f"{text} keeps nothing", remedy="give n of at least 1")
        whole = resolver.whole()
        key = ordered(whole if by is None else resolver.snippet(by), "top")
        order, value = key.call(), whole.call()
        single = getattr(bag, bag.maker(whole.schema.type))
        result = Field("top", ArrayType(whole.schema.type, whole.schema.nullable))
        names = {"_bag": bag, f"_top{n}": lambda p: [e[2] for e in reversed(p[-n:])]}

        def lifted(v: Any, k: Any) -> bag.Bag:
            by_value = order(v, k)
            return [] if by_value is None else single(by_value, value(v, k))

        ranked = f"_ranked_{id(order)}"  # made once: elsewhere `order` has another identity
        names[ranked] = lifted

        def make(*, keep: bool) -> AggregateFunction:
            return AggregateFunction(
                text=text,
                result=result,
                argument=whole,
                lift=lambda x, t: f"{ranked}({x}, k)",
                combine=(lambda a, b: f"_bag.union({a}, {b})")
                if keep
                else (lambda a, b: f"_bag.union({a}, {b})[-{n}:]"),
                subtract=(lambda a, b: f"_bag.difference({a}, {b})") if keep else None,
                lower=lambda p: f"_top{n}({p})",
                names=names,
                holistic=keep,
                ordered=keep,
                layout=bag.layout(key.schema.type),
                kept=slice(-n, None) if keep else None,
                inverse=None if keep else make(keep=True),
            )

        return make(keep=False)

    return AggregateSpec(text, resolve)
