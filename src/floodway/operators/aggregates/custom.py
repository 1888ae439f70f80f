"""A user's aggregate: lift, combine, lower, and subtract where the input can change."""

import itertools
from collections.abc import Callable
from typing import Any

from floodway.core.functions import require_plain
from floodway.core.schema import Schema
from floodway.core.types import Field
from floodway.operators.aggregates.base import AggregateFunction, AggregateSpec, Resolver

_SERIALS = itertools.count()


def aggregate(
    lift: Callable[[Any], Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any] | None = None,
    *,
    subtract: Callable[[Any, Any], Any] | None = None,
    holistic: bool = False,
    schema: Any = None,
) -> AggregateSpec:
    """Aggregate with your own functions.

    Parameters
    ----------
    lift
        Makes a partial from one value.
    combine
        Makes one partial from two. It has to be commutative and associative, and must not change
        its arguments.
    lower
        Makes the result from a partial; if left out, the partial is the result.
    subtract
        Undoes `combine`: ``subtract(combine(a, b), b) == a``. Needed over tables and streams with
        updates.
    holistic
        Whether a partial grows with the number of values; such aggregates need a window.
    schema
        The type of the result; by default the annotation of `lower` (or of `lift`).

    Examples
    --------
    >>> product = aggregate(lambda value: value, lambda a, b: a * b, schema=int)
    >>> product.text
    'aggregate(<lambda>)'
    """
    functions = {"lift": lift, "combine": combine, "lower": lower, "subtract": subtract}
    for option, function in functions.items():
        if function is not None:
            require_plain(function, option)
    text = f"aggregate({getattr(lift, '__name__', 'function')})"
    finish = lower or _same

    def resolve(resolver: Resolver) -> AggregateFunction:
        whole = resolver.whole()
        final = lower or lift
        result = schema if schema is not None else _returned(final)
        described = Schema.of(result)
        # Two aggregates in one agg(...) may share a combine and differ in the rest.
        serial = next(_SERIALS)
        names = {f"_lift_{serial}": lift, f"_combine_{serial}": combine}
        names |= {f"_lower_{serial}": finish, f"_subtract_{serial}": subtract or _same}
        return AggregateFunction(
            text=text,
            result=Field("aggregate", described.type, described.nullable),
            argument=whole,
            lift=lambda x, t: f"_lift_{serial}({x})",
            combine=lambda a, b: f"_combine_{serial}({a}, {b})",
            lower=lambda p: f"_lower_{serial}({p})",
            subtract=None if subtract is None else lambda a, b: f"_subtract_{serial}({a}, {b})",
            names=names,
            holistic=holistic,
            plain=False,
        )

    return AggregateSpec(text, resolve)


def _same(value: Any, *_: Any) -> Any:
    return value


def _returned(function: Callable[..., Any]) -> Any:
    return getattr(function, "__annotations__", {}).get("return", Any)
