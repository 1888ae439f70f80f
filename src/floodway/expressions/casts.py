"""Casts, written and implied: how a value of one type becomes one of another.

Each pair of types has one entry in a table: a template of Python source, or a helper with the
constants it needs. Pairs that are not in the table do not exist in ANSI Spark SQL.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from floodway.core.errors import ExpressionTypeError
from floodway.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
)
from floodway.expressions.code import INT_BOUNDS, LONG_BOUNDS, Assembly, Code
from floodway.expressions.coercion import INTEGRAL, is_atomic, is_numeric, mismatch
from floodway.expressions.literals import DAYS
from floodway.expressions.runtime import conversions, moments, numbers, parsing
from floodway.expressions.runtime.failures import attempt, cast_failed

# Templates: they cannot fail and need no call where Python has an operator.
_INLINE: dict[tuple[DataType, DataType], str] = {
    (BOOLEAN, INTEGER): "(+{0})",
    (BOOLEAN, LONG): "(+{0})",
    (BOOLEAN, DOUBLE): "({0} * 1.0)",
    (BOOLEAN, STRING): "('true' if {0} else 'false')",
    (INTEGER, DOUBLE): "({0} * 1.0)",
    (LONG, DOUBLE): "({0} * 1.0)",
    (INTEGER, STRING): "str({0})",
    (LONG, STRING): "str({0})",
    (INTEGER, BOOLEAN): "({0} != 0)",
    (LONG, BOOLEAN): "({0} != 0)",
    (DOUBLE, BOOLEAN): "({0} != 0.0)",
    (STRING, BINARY): "{0}.encode()",
    (BINARY, STRING): "{0}.decode('utf-8', 'replace')",
    (DATE, STRING): "{0}.isoformat()",
    (TIMESTAMP, DATE): "{0}.date()",
    (DAYS, INTERVAL): "{0}",
}
_Helper = tuple[Callable[..., Any], tuple[object, ...]]
_HELPERS: dict[tuple[DataType, DataType], _Helper] = {
    (INTEGER, TIMESTAMP): (moments.from_seconds, ()),
    (LONG, TIMESTAMP): (moments.from_seconds, ()),
    (DOUBLE, INTEGER): (numbers.to_integer, (*INT_BOUNDS, "INT")),
    (DOUBLE, LONG): (numbers.to_integer, (*LONG_BOUNDS, "BIGINT")),
    (DOUBLE, STRING): (numbers.double_text, ()),
    (DOUBLE, TIMESTAMP): (moments.from_double, ()),
    (STRING, INTEGER): (parsing.string_to_integer, (*INT_BOUNDS, "INT")),
    (STRING, LONG): (parsing.string_to_integer, (*LONG_BOUNDS, "BIGINT")),
    (STRING, DOUBLE): (parsing.string_to_double, ()),
    (STRING, BOOLEAN): (parsing.string_to_boolean, ()),
    (STRING, DATE): (parsing.string_to_date, ()),
    (STRING, TIMESTAMP): (parsing.string_to_timestamp, ()),
    (DATE, TIMESTAMP): (moments.midnight, ()),
    (TIMESTAMP, STRING): (moments.moment_text, ()),
    (TIMESTAMP, LONG): (conversions.moment_seconds, ()),
    (TIMESTAMP, INTEGER): (conversions.moment_int_seconds, ()),
    (TIMESTAMP, DOUBLE): (conversions.moment_double, ()),
}


def convert(assembly: Assembly, code: Code, target: DataType, *, lenient: bool = False) -> Code:
    """Return the code cast to a type; `lenient` gives NULL where the cast fails."""
    source = code.type
    if source == target:
        return code
    if source == NULL or code.is_null:
        return assembly.null(target, code.text)
    if (source, target) == (INTEGER, LONG):
        return msgspec.structs.replace(code, type=LONG)
    if (source, target) == (LONG, INTEGER):
        return _narrow(assembly, code, lenient=lenient)
    template = _INLINE.get((source, target))
    if template is not None:
        return _inline(assembly, code, target, template)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _elements(assembly, code, target)
    helper = _HELPERS.get((source, target)) or _decimal_helper(source, target)
    if helper is None:
        raise _refused(code, target)
    return _call(assembly, code, target, helper, lenient=lenient)


def agreed(assembly: Assembly, code: Code, target: DataType, text: str) -> Code:
    """Return an operand in its common type; a constant that is not of that type is refused."""
    result = convert(assembly, code, target)
    if code.constant and not result.constant:
        raise mismatch(text, [code], f"write a literal that is {target}")
    return result


def implied(assembly: Assembly, code: Code, target: DataType) -> Code | None:
    """Return the code converted as a function's argument, or None where Spark would not."""
    source = code.type
    if source in (target, NULL):
        return convert(assembly, code, target)
    if is_numeric(source) and is_numeric(target):
        return convert(assembly, code, target)
    if target == STRING and is_atomic(source) and source != BINARY:
        return convert(assembly, code, target)
    if source == STRING and is_atomic(target):
        return convert(assembly, code, target)
    if {source, target} == {DATE, TIMESTAMP}:
        return convert(assembly, code, target)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        if source.element in (target.element, NULL):
            return msgspec.structs.replace(code, type=target)
        inner = {source.element, target.element}
        if inner <= {INTEGER, LONG, DOUBLE} or inner == {DATE, TIMESTAMP}:
            return convert(assembly, code, target)
    return None


def _narrow(assembly: Assembly, code: Code, *, lenient: bool) -> Code:
    low, high = code.range
    if INT_BOUNDS[0] <= low and high <= INT_BOUNDS[1]:
        return msgspec.structs.replace(code, type=INTEGER)
    failed = "None" if lenient else f"{assembly.refer(cast_failed)}({{0}}, 'INT')"
    return assembly.strict(
        [code],
        lambda codes: (
            f"({codes[0].source} if -2147483648 <= {codes[0].source} <= 2147483647 "
            f"else {failed.format(codes[0].source)})"
        ),
        INTEGER,
        code.text,
        nullable=lenient,
        twice=[0],
    )


def _inline(assembly: Assembly, code: Code, target: DataType, template: str) -> Code:
    bounds = (0, 1) if code.type == BOOLEAN and target in INTEGRAL else None
    return assembly.strict(
        [code], lambda codes: template.format(codes[0].source), target, code.text, bounds=bounds
    )


def _decimal_helper(source: DataType, target: DataType) -> _Helper | None:
    if isinstance(target, DecimalType):
        size = (target.precision, target.scale)
        match source:
            case DecimalType():
                return numbers.decimal_cast, size
            case _ if source in INTEGRAL and target.precision - target.scale >= 19:
                return Decimal, ()
            case _ if source in INTEGRAL or source == BOOLEAN:
                return numbers.integer_to_decimal, size
            case _ if source == DOUBLE:
                return numbers.double_to_decimal, size
            case _ if source == STRING:
                return parsing.string_to_decimal, size
            case _ if source == TIMESTAMP:
                return conversions.moment_decimal, size
    if isinstance(source, DecimalType):
        helpers: dict[DataType, _Helper] = {
            INTEGER: (numbers.to_integer, (*INT_BOUNDS, "INT")),
            LONG: (numbers.to_integer, (*LONG_BOUNDS, "BIGINT")),
            DOUBLE: (conversions.decimal_double, ()),
            STRING: (numbers.decimal_text, (source.scale,)),
            BOOLEAN: (conversions.decimal_boolean, ()),
            TIMESTAMP: (moments.from_decimal, ()),
        }
        return helpers.get(target)
    return None


def _call(
    assembly: Assembly, code: Code, target: DataType, helper: _Helper, *, lenient: bool
) -> Code:
    function, extra = helper
    if not lenient:
        return assembly.call(function, [code], target, code.text, *extra)
    name = assembly.refer(function)
    tail = "".join(f", {value!r}" for value in extra)
    return assembly.strict(
        [code],
        lambda codes: f"{assembly.refer(attempt)}({name}, {codes[0].source}{tail})",
        target,
        code.text,
        nullable=True,
    )


def _elements(assembly: Assembly, code: Code, target: ArrayType) -> Code:
    """Convert each element; the element itself is converted by the same table."""
    element = Code("_x", code.type.element, nullable=False, text=code.text, atom=True)  # type: ignore[attr-defined]
    converted = convert(assembly, element, target.element)
    if converted.source == "_x":
        return msgspec.structs.replace(code, type=target)
    return assembly.strict(
        [code],
        lambda codes: f"[None if _x is None else {converted.source} for _x in {codes[0].source}]",
        target,
        code.text,
        twice=[0],
    )


def _refused(code: Code, target: DataType) -> ExpressionTypeError:
    return ExpressionTypeError(
        f"{code.text} is {code.type}, which cannot be cast to {target}",
        remedy="cast by way of STRING, or use a Python function",
    )
