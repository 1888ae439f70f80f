"""Every error Floodway raises on purpose.

An error says four things: the problem, the operator, the place in the user's source, and the
remedy. Lower layers (expressions, schemas) know only the problem and the remedy; the layer that
knows the operator adds it with `FloodwayError.at`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from floodway.core.place import Place


class FloodwayError(Exception):
    """The base of all errors raised by Floodway.

    Parameters
    ----------
    problem
        What is wrong, in one sentence.
    remedy
        What to do about it.
    operator
        The name of the operator concerned.
    place
        Where in the user's source that operator was written.

    Examples
    --------
    >>> print(FloodwayError("the sky is low", remedy="duck"))
    the sky is low
      remedy: duck
    """

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        operator: str | None = None,
        place: Place | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.operator = operator
        self.place = place

    def at(self, operator: str, place: Place) -> Self:
        """Add operator and place where they are not known yet, and return the error."""
        self.operator = self.operator or operator
        self.place = self.place or place
        return self

    def __str__(self) -> str:
        where = ""
        if self.operator:
            where += f"\n  operator: {self.operator}"
        if self.place:
            where += f"\n  place: {self.place}"
        return f"{self.problem}{where}\n  remedy: {self.remedy}"


@contextmanager
def locating(operator: str) -> Iterator[None]:
    """Make errors raised inside say which call it was, and where the user made it."""
    place = Place.here()
    try:
        yield
    except FloodwayError as error:
        raise error.at(operator, place) from None


class FlowError(FloodwayError):
    """The flow is not well formed; raised while it is built or checked, never while it runs."""


class UnknownColumnError(FlowError):
    """An expression or option names a column that the schema does not have."""


class ExpressionSyntaxError(FlowError):
    """An expression cannot be parsed."""


class ExpressionTypeError(FlowError):
    """An expression combines types that do not go together."""


class UnsupportedExpressionError(FlowError):
    """An expression is valid Spark SQL that Floodway cannot lower."""


class SchemaError(FlowError):
    """A schema is missing, malformed or does not match another."""


class DurationError(FlowError):
    """A duration cannot be read or is not positive."""


class WindowRequiredError(FlowError):
    """An aggregate or an emit strategy needs a window and there is none."""


class EmitError(FlowError):
    """An emit strategy does not fit the table it is asked of."""


class DuplicateNameError(FlowError):
    """Two operators of one flow have the same name."""


class CycleError(FlowError):
    """The flow's graph has a cycle."""


class MixedTimesError(FlowError):
    """Some sources have event times, and others the times of a clock."""


class UnkeyedError(FlowError):
    """A join or keyed operator was asked for on a stream without a key."""


class StreamRequiredError(FlowError, AttributeError):
    """A table was asked for something that only streams do."""


class UndefinedError(FlowError):
    """A declared stream was never defined, or something refers to a name that is not there."""


class AggregateError(FlowError):
    """An aggregate cannot be kept up to date over this input, for example for lack of subtract."""


class OptionError(FlowError):
    """An option has a value outside its choices."""


class OperatorError(FloodwayError):
    """A record made an operator fail while the flow ran, and its ``on_error`` policy is fail."""


class ExpressionError(FloodwayError):
    """An expression failed on a record: division by zero, overflow, a cast that does not fit."""


class DriverError(FloodwayError):
    """The reference driver was asked for something the flow does not have."""


class ConnectorError(FloodwayError):
    """A source or sink cannot be opened, read or written: a path, an address, a server."""


class ServerAwayError(ConnectorError):
    """A server that a source or sink needs does not answer now; it may do so later."""


class EngineError(FloodwayError):
    """The engine cannot run the flow: too few slots, a lost task, what cannot be shipped."""


class CorruptError(EngineError):
    """A file of the checkpoint is missing, or is not what was written."""


class DiskFullError(EngineError):
    """The disk or quota on which the checkpoint lies is full."""
