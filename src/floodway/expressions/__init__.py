"""Spark SQL expressions, compiled to Python source.

>>> from floodway.core.types import LONG
>>> from floodway.expressions import Column, Scope, compile_expression
>>> expression = compile_expression("price * 2", Scope({"price": Column("v", LONG, True)}))
>>> expression.function("v")(21)
42
"""

from floodway.expressions.compiler import (
    Expression,
    compile_expression,
    compile_projection,
    compile_projections,
)
from floodway.expressions.functions import FUNCTIONS
from floodway.expressions.scope import Column, Scope

__all__ = [
    "FUNCTIONS",
    "Column",
    "Expression",
    "Scope",
    "compile_expression",
    "compile_projection",
    "compile_projections",
]
