"""Functions of JSON text."""

from floodway.core.errors import UnsupportedExpressionError
from floodway.core.types import INTEGER, STRING
from floodway.expressions.code import Assembly, Code
from floodway.expressions.functions.registry import definer
from floodway.expressions.runtime import jsons

define = definer("JSON")


def _get(assembly: Assembly, codes: list[Code], text: str) -> Code:
    path = jsons.read_path(codes[1].value)
    if path is None:
        raise UnsupportedExpressionError(
            f"the path {codes[1].text} in {text} cannot be used",
            remedy="use a path such as $.a.b[0], without wildcards, or a Python function",
        )
    steps = assembly.keep("path", path)
    name = assembly.refer(jsons.json_at)
    return assembly.strict(
        codes[:1], lambda c: f"{name}({c[0].source}, {steps})", STRING, text, nullable=True
    )


define(
    "get_json_object",
    "json STRICT STRING, path TEXT CONSTANT",
    STRING,
    _get,
    "what is at a path such as `$.a.b[0]`, as text, or NULL",
    builder=True,
)
define(
    "json_array_length",
    "json STRICT STRING",
    INTEGER,
    jsons.json_length,
    "the number of elements of a JSON array, or NULL",
    nullable=True,
)
