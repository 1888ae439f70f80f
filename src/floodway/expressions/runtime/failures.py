"""How an expression fails on a record: with the problem, and what to write instead."""

from collections.abc import Callable
from typing import Any, NoReturn

from floodway.core.errors import ExpressionError


def fail(problem: str, remedy: str) -> NoReturn:
    """Raise ExpressionError; an expression, so that generated code can use it inline."""
    raise ExpressionError(problem, remedy=remedy)


def overflow(text: str, type_name: str) -> NoReturn:
    """Refuse a result that does not fit."""
    fail(
        f"{text} does not fit into {type_name}",
        "use try_add, try_subtract or try_multiply to get NULL instead, or CAST an operand to a "
        "wider type",
    )


def division_by_zero(text: str) -> NoReturn:
    """Refuse a zero divisor."""
    fail(f"division by zero in {text}", "use try_divide or try_mod to get NULL instead")


def cast_failed(value: object, target: str) -> NoReturn:
    """Refuse a value that a type does not have."""
    fail(f"{value!r} cannot be cast to {target}", f"use TRY_CAST(... AS {target}) to get NULL")


def attempt(helper: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a helper gives, or None where it fails."""
    try:
        return helper(*arguments)
    except ExpressionError:
        return None


LONGEST_TEXT = 2**26
LONGEST_ARRAY = 2**22
"""What one function may make of a record: 64 million characters, 4 million elements.

Spark's own bounds are those of the JVM, 2 GB; a single record that came near them would end a task
and all records with it.
"""


def fitting(size: int, limit: int, text: str) -> int:
    """Return a size, or refuse one above the limit."""
    if size > limit:
        what = "elements" if limit == LONGEST_ARRAY else "characters"
        fail(f"{text} makes {size} {what}, more than {limit}", "make it shorter")
    return size


def out_of_bounds(index: int, size: int, text: str) -> NoReturn:
    """Refuse an array index."""
    fail(
        f"index {index} is outside the array in {text}, which has {size} elements",
        "use get(array, index) or try_element_at(array, position) to get NULL instead",
    )
