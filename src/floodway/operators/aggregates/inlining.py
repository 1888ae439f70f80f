"""An aggregate written into a generated loop over records."""

from typing import NamedTuple

from floodway.operators.aggregates.base import AggregateFunction
from floodway.operators.code import CodeWriter


class Inlined(NamedTuple):
    """The source of an aggregate.

    Attributes
    ----------
    arguments
        Statements that take from a record (``t``, ``k``, ``v``) what goes in.
    lift
        A partial of that.
    add
        A partial ``a`` with that.
    """

    arguments: list[str]
    lift: str
    add: str


def inlined(code: CodeWriter, function: AggregateFunction) -> Inlined:
    """Return the source of an aggregate; several in one are each written by themselves."""
    code.names |= function.names
    parts = function.parts or (function,)
    names = [f"x{number}" for number in range(len(parts))]
    arguments = [
        f"{name} = {code.inline(part.argument)}"
        for name, part in zip(names, parts, strict=True)
        if part.argument is not None
    ]
    if not function.parts:
        return Inlined(arguments, function.lift("x0", "t"), _added(function, "a", "x0"))
    lifts = [part.lift(name, "t") for name, part in zip(names, parts, strict=True)]
    adds = [
        _added(part, f"a[{number}]", name)
        for number, (name, part) in enumerate(zip(names, parts, strict=True))
    ]
    return Inlined(arguments, _tuple(lifts), _tuple(adds))


def _added(function: AggregateFunction, partial: str, argument: str) -> str:
    if function.add is not None:
        return function.add(partial, argument, "t")
    return function.combine(partial, function.lift(argument, "t"))


def _tuple(sources: list[str]) -> str:
    return f"({', '.join(sources)},)"
