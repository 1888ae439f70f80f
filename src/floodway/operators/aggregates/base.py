"""An aggregate as lift, combine, lower, and subtract where its input can change.

``lift`` makes a partial of one value, ``combine`` makes one partial of two, ``lower`` makes the
result of a partial. ``combine`` is commutative and associative, so partials can be made anywhere,
in any order, and merged by whoever owns the state. ``subtract`` undoes ``combine``; a table or a
stream with updates needs it, because a value that was counted may turn out to have been replaced.

Each of the four is a *source template*: a function from Python source to Python source. The
built-in aggregates are a few operators long, and as templates they are written straight into the
generated loop; a user's functions become calls.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any, Protocol

import msgspec

from floodway.core.errors import AggregateError
from floodway.core.types import Field
from floodway.operators.code import Snippet


class AggregateFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A resolved aggregate.

    Attributes
    ----------
    text
        How the user wrote it.
    result
        Name, type and nullability of the lowered value.
    argument
        What of the record goes in; None for nothing (``count()``) or the whole value.
    lift
        From the sources of argument and timestamp to the source of a partial; the record's key
        is ``k``.
    combine, subtract
        From the sources of two partials to that of one.
    lower
        From the source of a partial to that of the result.
    add
        From the sources of a partial, argument and timestamp to that of all combined, if that is
        shorter than to lift and combine.
    parts
        The aggregates that this one is made of, if it is made of several: its partial is a tuple of
        theirs.
    holistic
        Whether a partial grows with the number of values: allowed in windows and over tables.
    inverse
        The same aggregate in a form that can be subtracted from, if this one cannot.
    ordered
        Whether a partial is a bag: values in order (see `bag`).
    kept
        Of a bag from which nothing is taken out any more, the part that still counts.
    layout
        What a partial is made of, if it is not what it was at first: the state of a flow that was
        written with another is not taken for this one's.
    plain
        Whether partials are plain data, which can travel between tasks.
    """

    text: str
    result: Field
    lift: Callable[[str, str], str]
    combine: Callable[[str, str], str]
    lower: Callable[[str], str]
    subtract: Callable[[str, str], str] | None = None
    add: Callable[[str, str, str], str] | None = None
    argument: Snippet | None = None
    names: Mapping[str, Any] = {}
    parts: "tuple[AggregateFunction, ...]" = ()
    holistic: bool = False
    inverse: "AggregateFunction | None" = None
    ordered: bool = False
    kept: slice | None = None
    layout: str = ""
    plain: bool = True

    def retractable(self) -> "AggregateFunction":
        """Return a form with ``subtract``, or say why there is none."""
        if self.subtract is not None:
            return self
        if self.inverse is not None:
            return self.inverse
        raise AggregateError(
            f"{self.text} cannot be kept up to date here: its input replaces earlier values, and "
            "the aggregate has no subtract",
            remedy="pass subtract=..., the function that undoes combine",
        )

    def compiled(self) -> "CompiledAggregate":
        """Return the four functions as callables, for code that is not generated."""
        names = dict(self.names)
        extract = self.argument.call() if self.argument is not None else _whole
        lift = eval(_code(f"lambda x, t, k: {self.lift('x', 't')}"), names)
        combine = eval(_code(f"lambda a, b: {self.combine('a', 'b')}"), names)
        lower = eval(_code(f"lambda p: {self.lower('p')}"), names)
        taken = f"lambda a, b: {self.subtract('a', 'b')}" if self.subtract else None
        subtract = eval(_code(taken), names) if taken else None
        return CompiledAggregate(extract, lift, combine, lower, subtract)


@lru_cache(maxsize=1024)  # every partition of an operator has the same source
def _code(source: str) -> CodeType:
    return compile(source, "<floodway aggregate>", "eval")


class CompiledAggregate:
    """An aggregate's functions."""

    __slots__ = ("_extract", "_lift", "combine", "lower", "subtract")

    def __init__(
        self,
        extract: Callable[[Any, Any], Any],
        lift: Callable[[Any, int, Any], Any],
        combine: Callable[[Any, Any], Any],
        lower: Callable[[Any], Any],
        subtract: Callable[[Any, Any], Any] | None,
    ) -> None:
        self._extract = extract
        self._lift = lift
        self.combine = combine
        self.lower = lower
        self.subtract = subtract

    def lift(self, timestamp: int, key: Any, value: Any) -> Any:
        """Return the partial of one record."""
        return self._lift(self._extract(value, key), timestamp, key)


class Resolver(Protocol):
    """Turns what the user wrote into a snippet over the input's columns."""

    def snippet(self, code: str | Callable[[Any], Any], /, *, schema: Any = None) -> Snippet:
        """Compile an expression or wrap a function."""
        ...

    def whole(self) -> Snippet:
        """Return the whole value."""
        ...


class AggregateSpec(msgspec.Struct, frozen=True):
    """An aggregate as the user asks for it, before the columns are known."""

    text: str
    resolve: Callable[[Resolver], AggregateFunction]


def _whole(value: Any, key: Any) -> Any:
    return value


def describe(function: str, argument: object = None) -> str:
    """Return an aggregate as text: ``sum(price)``."""
    if argument is None:
        return f"{function}()"
    shown = argument if isinstance(argument, str) else getattr(argument, "__name__", "function")
    return f"{function}({shown})"
