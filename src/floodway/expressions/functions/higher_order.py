"""Functions that take a function: ``transform(prices, p -> p * 2)``."""

from typing import Any

from floodway.core.errors import ExpressionTypeError
from floodway.core.types import BOOLEAN, INTEGER, ArrayType
from floodway.expressions.code import Assembly, Code
from floodway.expressions.functions.registry import definer
from floodway.expressions.logic import boolean
from floodway.expressions.runtime import lambdas
from floodway.expressions.scope import Column
from floodway.expressions.tree import Call, Lambda

define = definer("Arrays")


def _walk(assembly: Any, call: Call, most: int) -> tuple[Code, list[str], Code]:
    """Return the array, the names of the loop variables, and the body in their scope."""
    source, function = call.arguments
    array = assembly.lower(source)
    if not isinstance(array.type, ArrayType) or not isinstance(function, Lambda):
        raise ExpressionTypeError(
            f"{call.text} needs an array and a function",
            remedy=f"write it like {call.name}(array, x -> ...)",
        )
    if not 1 <= len(function.parameters) <= most:
        raise ExpressionTypeError(
            f"{function.text} has {len(function.parameters)} parameters",
            remedy="use x -> ... or, for transform and filter, (x, i) -> ...",
        )
    kinds = [(array.type.element, array.type.contains_null), (INTEGER, False)]
    names = [f"{assembly.temporary()}x" for _ in function.parameters]
    columns = {
        parameter: Column(name, *kind)
        for parameter, name, kind in zip(function.parameters, names, kinds, strict=False)
    }
    outer = assembly.scope
    assembly.scope = outer.with_columns(columns)
    try:
        return array, names, assembly.lower(function.body)
    finally:
        assembly.scope = outer


def _loop(names: list[str], source: str) -> str:
    if len(names) == 1:
        return f"for {names[0]} in {source}"
    return f"for {names[1]}, {names[0]} in enumerate({source})"


def _transform(assembly: Assembly, call: Call) -> Code:
    array, names, body = _walk(assembly, call, 2)
    target = ArrayType(body.type, body.nullable)
    return assembly.strict(
        [array],
        lambda c: f"[{body.source} {_loop(names, c[0].source)}]",
        target,
        call.text,
        twice=[0],
        fold=False,
    )


def _filter(assembly: Assembly, call: Call) -> Code:
    array, names, body = _walk(assembly, call, 2)
    condition = boolean(assembly, body, call.text)
    return assembly.strict(
        [array],
        lambda c: f"[{names[0]} {_loop(names, c[0].source)} if {condition.source}]",
        array.type,
        call.text,
        twice=[0],
        fold=False,
    )


def _quantifier(helper: Any) -> Any:
    def build(assembly: Assembly, call: Call) -> Code:
        array, names, body = _walk(assembly, call, 1)
        condition = boolean(assembly, body, call.text)
        name = assembly.refer(helper)
        # A list, not a generator: in a generator the temporaries would be out of reach.
        return assembly.strict(
            [array],
            lambda c: f"{name}([{condition.source} {_loop(names, c[0].source)}])",
            BOOLEAN,
            call.text,
            nullable=condition.nullable,
            twice=[0],
            fold=False,
        )

    return build


define(
    "transform",
    "array ARRAY, function FUNCTION",
    None,
    _transform,
    "what the function gives for each element: `transform(a, x -> x + 1)`",
    tree=True,
)
define(
    "filter",
    "array ARRAY, function FUNCTION",
    None,
    _filter,
    "the elements for which the function is true: `filter(a, x -> x > 0)`",
    tree=True,
)
define(
    "exists",
    "array ARRAY, function FUNCTION",
    BOOLEAN,
    _quantifier(lambdas.exists),
    "whether the function is true for some element",
    tree=True,
)
define(
    "forall",
    "array ARRAY, function FUNCTION",
    BOOLEAN,
    _quantifier(lambdas.forall),
    "whether the function is true for all elements",
    tree=True,
)
