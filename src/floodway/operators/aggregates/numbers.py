"""Which arguments aggregates take."""

from floodway.core.errors import ExpressionTypeError
from floodway.core.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    OpaqueType,
)
from floodway.expressions.coercion import is_orderable
from floodway.operators.code import Snippet

_NUMBERS = (IntegerType, LongType, DoubleType, DecimalType, OpaqueType)


def numeric(argument: Snippet, function: str) -> Snippet:
    """Return `argument` if it is a number, or refuse it."""
    if isinstance(argument.schema.type, _NUMBERS):
        return argument
    raise ExpressionTypeError(
        f"{function}({argument.text}) needs a number, and {argument.text} is "
        f"{argument.schema.type}",
        remedy=f"cast it, e.g. {function}('CAST({argument.text} AS DOUBLE)')",
    )


def rounds(argument: Snippet) -> bool:
    """Return whether numbers may round when they are added."""
    return isinstance(argument.schema.type, DoubleType | OpaqueType)


def ordered(argument: Snippet, function: str) -> Snippet:
    """Return `argument` if its values can be put in order, or refuse it."""
    kind = argument.schema.type
    if isinstance(kind, OpaqueType) or is_orderable(kind):
        return argument
    raise ExpressionTypeError(
        f"{function}({argument.text}) needs values that have an order, and {argument.text} is "
        f"{kind}",
        remedy="order by a number, a text, a time, or a struct or an array of such",
    )
