"""The table of functions: what each one takes, gives and becomes.

A function is declared in one line of its topic's module::

    define(
        "substring, substr",
        "text STRING, position INT, [length INT]",
        STRING,
        strings.substring,
        "the part of the text that starts at a position, counted from 1",
    )

The parameters are checked and converted by Spark's rules before anything else happens. The
lowering is a template (``{0}`` is the first argument), a helper from ``runtime``, or a builder
for functions whose result depends on more than their arguments' values. NULL in gives NULL out,
except in builders.
"""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from floodway.core.errors import ExpressionTypeError, UnsupportedExpressionError
from floodway.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    ArrayType,
    DataType,
    MapType,
)
from floodway.expressions.casts import convert, implied
from floodway.expressions.code import Assembly, Bounds, Code
from floodway.expressions.coercion import INTEGRAL, is_numeric
from floodway.expressions.tree import Call, Lambda, Term

CodeBuilder = Callable[[Assembly, list[Code], str], Code]
TreeBuilder = Callable[[Assembly, Call], Code]
ResultType = DataType | Callable[[Sequence[Code]], DataType]

_CONCRETE: dict[str, DataType] = {
    "STRING": STRING,
    "INT": INTEGER,
    "BIGINT": LONG,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "BINARY": BINARY,
}


class Parameter(msgspec.Struct, frozen=True):
    """One parameter: its name for the documentation, and the kind of value it takes."""

    name: str
    kind: str


class Function(msgspec.Struct, frozen=True):
    """A function of Spark SQL that can be lowered.

    Parameters
    ----------
    name, aliases
        What it is called.
    topic
        The section of the documentation.
    parameters
        What it takes.
    required
        How many arguments it needs at least.
    variadic
        Whether the last parameter may be repeated.
    doc
        What it gives, in one line.
    build
        Lowers a call.
    """

    name: str
    aliases: tuple[str, ...]
    topic: str
    parameters: tuple[Parameter, ...]
    required: int
    variadic: bool
    doc: str
    build: TreeBuilder

    @property
    def signature(self) -> str:
        """The parameters as the documentation shows them."""
        shown = []
        for i, parameter in enumerate(self.parameters):
            text = f"{parameter.name} {parameter.kind}"
            if self.variadic and i == len(self.parameters) - 1:
                text += "..."
            shown.append(f"[{text}]" if i >= self.required and not self.variadic else text)
        return f"{self.name}({', '.join(shown)})"


FUNCTIONS: dict[str, Function] = {}
REFUSED: dict[str, tuple[str, str]] = {}


def definer(topic: str) -> Callable[..., None]:
    """Return the function by which a topic's module declares its functions."""

    def define(
        names: str,
        parameters: str,
        result: ResultType | None,
        lowering: str | Callable[..., Any],
        doc: str,
        *,
        nullable: bool = False,
        bounds: Bounds | None = None,
        builder: bool = False,
        tree: bool = False,
    ) -> None:
        name, *aliases = names.split(", ")
        taken, required, variadic = _parameters(parameters)

        def build(assembly: Assembly, call: Call) -> Code:
            function = FUNCTIONS[name]
            _check_count(function, call)
            if tree:
                return lowering(assembly, call)  # type: ignore[operator,no-any-return]
            codes = _arguments(assembly, function, call)
            if builder:
                return lowering(assembly, codes, call.text)  # type: ignore[operator,no-any-return]
            assert result is not None
            target = result(codes) if callable(result) else result
            return _apply(
                assembly, lowering, codes, target, call.text, nullable=nullable, bounds=bounds
            )

        function = Function(name, tuple(aliases), topic, taken, required, variadic, doc, build)
        for each in (name, *aliases):
            assert each not in FUNCTIONS, each
            FUNCTIONS[each] = function

    return define


def refuse(names: str, problem: str, remedy: str) -> None:
    """Declare functions that exist in Spark SQL but cannot be lowered, and say why."""
    for name in names.split():
        REFUSED[name] = (problem, remedy)


def find_function(name: str, count: int) -> Function:
    """Return the function of that name, or raise UnsupportedExpressionError."""
    function = FUNCTIONS.get(name)
    if function is not None:
        return function
    if name in REFUSED:
        problem, remedy = REFUSED[name]
        raise UnsupportedExpressionError(f"{name}() {problem}", remedy=remedy)
    near = difflib.get_close_matches(name, [*FUNCTIONS], n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise UnsupportedExpressionError(
        f"there is no function {name} with {count} arguments that expressions can use",
        remedy=f"{hint}See docs/expressions.md for all functions, or use a Python function",
    )


def accept(assembly: Assembly, code: Code, kind: str) -> Code | None:
    """Return an argument converted to what a parameter takes, or None if it does not fit."""
    if kind in _CONCRETE:
        return implied(assembly, code, _CONCRETE[kind])
    if kind == "ANY":
        return code
    if kind == "NUMBER":
        if code.type in (STRING, NULL):
            return convert(assembly, code, DOUBLE)
        return code if is_numeric(code.type) else None
    if kind == "INTEGRAL":
        return code if code.type in INTEGRAL else None
    if kind == "ARRAY":
        return code if isinstance(code.type, ArrayType) else None
    if kind == "ARRAY<STRING>":
        return implied(assembly, code, ArrayType(STRING))
    if kind == "MAP":
        return code if isinstance(code.type, MapType) else None
    if kind.startswith("STRICT ") and kind != "STRICT INT":
        target = _CONCRETE[kind.removeprefix("STRICT ")]
        return implied(assembly, code, target) if code.type in (target, NULL) else None
    if kind == "BOOLEAN CONSTANT":
        return code if code.constant and isinstance(code.value, bool) else None
    if kind == "TEXT CONSTANT":
        return code if code.constant and isinstance(code.value, str) else None
    if kind == "INT CONSTANT":
        fits = code.constant and isinstance(code.value, int) and code.type in INTEGRAL
        return implied(assembly, code, INTEGER) if fits else None
    if kind == "STRICT INT":
        if code.type == STRING:
            return convert(assembly, code, INTEGER)
        return implied(assembly, code, INTEGER) if code.type in (INTEGER, NULL) else None
    raise AssertionError(kind)


def wrong_arguments(function: Function, text: str, codes: Sequence[Code]) -> ExpressionTypeError:
    """Return the error for arguments that a function does not take."""
    shown = ", ".join(f"{code.text} is {code.type}" for code in codes) or "no arguments"
    return ExpressionTypeError(
        f"{text} does not work: {shown}", remedy=f"{function.name} takes {function.signature}"
    )


def _check_count(function: Function, call: Call) -> None:
    count = len(call.arguments)
    if count < function.required or (count > len(function.parameters) and not function.variadic):
        raise ExpressionTypeError(
            f"{call.text} has {count} arguments", remedy=f"write {function.signature}"
        )


def _arguments(assembly: Assembly, function: Function, call: Call) -> list[Code]:
    codes = [_value(assembly, argument, function) for argument in call.arguments]
    taken = []
    for i, code in enumerate(codes):
        parameter = function.parameters[min(i, len(function.parameters) - 1)]
        accepted = accept(assembly, code, parameter.kind)
        if accepted is None:
            raise wrong_arguments(function, call.text, codes)
        taken.append(accepted)
    return taken


def _value(assembly: Assembly, node: Term, function: Function) -> Code:
    if isinstance(node, Lambda):
        raise ExpressionTypeError(
            f"{function.name} does not take a function such as {node.text}",
            remedy=f"write {function.signature}",
        )
    return assembly.lower(node)


def _apply(
    assembly: Assembly,
    lowering: str | Callable[..., Any],
    codes: list[Code],
    target: DataType,
    text: str,
    *,
    nullable: bool,
    bounds: Bounds | None,
) -> Code:
    if not isinstance(lowering, str):
        return assembly.call(lowering, codes, target, text, nullable=nullable, bounds=bounds)
    twice = [i for i in range(len(codes)) if lowering.count(f"{{{i}}}") > 1]
    return assembly.strict(
        codes,
        lambda given: lowering.format(*(code.source for code in given)),
        target,
        text,
        nullable=nullable,
        bounds=bounds,
        twice=twice,
    )


def _parameters(text: str) -> tuple[tuple[Parameter, ...], int, bool]:
    taken, required, variadic = [], 0, text.endswith("...")
    for item in filter(None, text.removesuffix("...").split(", ")):
        optional = item.startswith("[")
        name, _, kind = item.strip("[]").partition(" ")
        taken.append(Parameter(name, kind))
        required += not optional
    return tuple(taken), required, variadic
