"""How two joined values become one: a Python function, or selected fields."""

from collections.abc import Callable
from typing import Any

import msgspec

from floodway.core.schema import Schema
from floodway.expressions import Expression
from floodway.operators.code import CodeWriter


class Joiner(msgspec.Struct, frozen=True):
    """Makes the joined value from the left and the right one; in outer joins one may be None."""

    text: str
    schema: Schema
    function: Callable[[Any, Any], Any]


def select_joiner(text: str, schema: Schema, columns: list[Expression]) -> Joiner:
    """Return a joiner that makes a record of expressions over ``l`` and ``r``."""
    code = CodeWriter()
    for expression in columns:
        code.use(expression.names)
    row = code.bind("Row", schema.python)
    sources = ", ".join(f"({expression.source})" for expression in columns)
    code.line("def join(l, r):").indent().line(f"return {row}({sources})")
    return Joiner(text, schema, code.compile("join"))


def has_null(key: Any) -> bool:
    """Return whether a key is null or has a null column: as in SQL, it equals no other then.

    >>> has_null(None), has_null(("a", None)), has_null(("a", 1))
    (True, True, False)
    """
    return key is None or (type(key) is tuple and None in key)
