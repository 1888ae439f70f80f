"""Arithmetic: ``+ - * / % DIV``, signs, bits, and dates plus intervals.

Integers are computed by Python's operators and then checked against the bounds of their type.
The check is left out where the operands' own bounds show that the result always fits.
"""

from collections.abc import Callable, Sequence
from typing import Any

from floodway.core.types import (
    DOUBLE,
    INTEGER,
    INTERVAL,
    LONG,
    NULL,
    STRING,
    DataType,
    DecimalType,
)
from floodway.expressions.casts import convert
from floodway.expressions.code import INT_BOUNDS, LONG_BOUNDS, Assembly, Bounds, Code
from floodway.expressions.coercion import (
    INTEGRAL,
    decimal_result,
    is_numeric,
    literal_decimal,
    mismatch,
    widest,
)
from floodway.expressions.literals import DAYS
from floodway.expressions.runtime import numbers
from floodway.expressions.runtime.failures import attempt, division_by_zero, overflow
from floodway.expressions.temporal import TEMPORAL, temporal_arithmetic

_DECIMAL_HELPERS: dict[str, Callable[..., Any]] = {
    "+": numbers.decimal_add,
    "-": numbers.decimal_subtract,
    "*": numbers.decimal_multiply,
    "/": numbers.decimal_divide,
    "%": numbers.decimal_remainder,
    "pmod": numbers.decimal_pmod,
}


def arithmetic(assembly: Assembly, operator: str, left: Code, right: Code, text: str) -> Code:
    """Return ``left operator right``."""
    if left.type in TEMPORAL or right.type in TEMPORAL:
        return temporal_arithmetic(assembly, operator, left, right, text)
    left, right = operands(assembly, left, right, text)
    if operator == "DIV":
        return _whole_division(assembly, left, right, text)
    target = widest(left.type, right.type) or DOUBLE
    if isinstance(target, DecimalType):
        return decimal_arithmetic(assembly, operator, left, right, text)
    if operator == "/" or target == DOUBLE:
        left, right = convert(assembly, left, DOUBLE), convert(assembly, right, DOUBLE)
        return _doubles(assembly, operator, left, right, text)
    if operator == "%":
        return remainder(assembly, left, right, target, text)
    return _integers(assembly, operator, left, right, target, text)


def operands(assembly: Assembly, left: Code, right: Code, text: str) -> tuple[Code, Code]:
    """Return both operands as numbers; a string follows the other side, NULL too."""
    for code in (left, right):
        if not is_numeric(code.type) and code.type not in (STRING, NULL):
            raise mismatch(
                text,
                [left, right],
                f"use numbers, e.g. CAST({code.text} AS BIGINT), if that is meant",
            )
    if left.type == STRING and right.type == STRING:
        return convert(assembly, left, DOUBLE), convert(assembly, right, DOUBLE)
    if NULL in (left.type, right.type) and left.type != right.type:
        other = right.type if left.type == NULL else left.type
        other = DOUBLE if other == STRING else other
        return convert(assembly, left, other), convert(assembly, right, other)
    if left.type == NULL:
        return convert(assembly, left, DOUBLE), convert(assembly, right, DOUBLE)
    if left.type == STRING:
        left = convert(assembly, left, LONG if right.type in INTEGRAL else DOUBLE)
    if right.type == STRING:
        right = convert(assembly, right, LONG if left.type in INTEGRAL else DOUBLE)
    return left, right


def decimal_arithmetic(
    assembly: Assembly, operator: str, left: Code, right: Code, text: str, *, lenient: bool = False
) -> Code:
    """Return exact arithmetic of decimals; `lenient` gives NULL where it would fail."""
    one, two = literal_decimal(left), literal_decimal(right)
    target = decimal_result("%" if operator == "pmod" else operator, one, two)
    extra = (target.precision, target.scale, text)
    both = [convert(assembly, left, one), convert(assembly, right, two)]
    helper = _DECIMAL_HELPERS[operator]
    if not lenient:
        return assembly.call(helper, both, target, text, *extra)
    start = f"{assembly.refer(attempt)}({assembly.refer(helper)}"
    return assembly.strict(
        both,
        lambda c: f"{start}, {c[0].source}, {c[1].source}, {', '.join(map(repr, extra))})",
        target,
        text,
        nullable=True,
    )


def _doubles(assembly: Assembly, operator: str, left: Code, right: Code, text: str) -> Code:
    if operator == "%":
        return assembly.call(numbers.double_remainder, [left, right], DOUBLE, text, text)
    if operator != "/" or (right.constant and right.value):
        return assembly.strict(
            [left, right],
            lambda codes: f"({codes[0].source} {operator} {codes[1].source})",
            DOUBLE,
            text,
        )
    zero = assembly.refer(division_by_zero)
    return assembly.strict(
        [left, right],
        lambda codes: (
            f"({codes[0].source} / {codes[1].source} if {codes[1].source} else {zero}({text!r}))"
        ),
        DOUBLE,
        text,
        twice=[1],
    )


def _integers(
    assembly: Assembly, operator: str, left: Code, right: Code, target: DataType, text: str
) -> Code:
    bounds = _bounds(operator, left.range, right.range)
    return assembly.strict(
        [left, right],
        lambda codes: checked(
            assembly, f"({codes[0].source} {operator} {codes[1].source})", bounds, target, text
        ),
        target,
        text,
        bounds=_within(bounds, target),
    )


def checked(assembly: Assembly, source: str, bounds: Bounds, target: DataType, text: str) -> str:
    """Return the source with an overflow check, unless its bounds make that needless."""
    low, high = INT_BOUNDS if target == INTEGER else LONG_BOUNDS
    if low <= bounds[0] and bounds[1] <= high:
        return source
    name = assembly.temporary()
    test = f"{low} <= ({name} := {source}) <= {high}"
    if bounds[0] >= low:
        test = f"({name} := {source}) <= {high}"
    elif bounds[1] <= high:
        test = f"({name} := {source}) >= {low}"
    return f"({name} if {test} else {assembly.refer(overflow)}({text!r}, {str(target)!r}))"


def _bounds(operator: str, left: Bounds, right: Bounds) -> Bounds:
    if operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operator == "-":
        return left[0] - right[1], left[1] - right[0]
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


def _within(bounds: Bounds, target: DataType) -> Bounds:
    low, high = INT_BOUNDS if target == INTEGER else LONG_BOUNDS
    return max(bounds[0], low), min(bounds[1], high)


def remainder(assembly: Assembly, left: Code, right: Code, target: DataType, text: str) -> Code:
    """Return ``left % right`` of integers; a positive constant divisor is inlined."""
    if right.constant and right.value and right.value > 0:
        divisor = right.value
        top = divisor - 1
        if left.range[0] >= 0:
            return assembly.strict(
                [left],
                lambda codes: f"({codes[0].source} % {divisor})",
                target,
                text,
                bounds=(0, min(top, left.range[1])),
            )
        return assembly.strict(
            [left],
            lambda codes: (
                f"({codes[0].source} % {divisor} if {codes[0].source} >= 0 "
                f"else -(-{codes[0].source} % {divisor}))"
            ),
            target,
            text,
            bounds=(-top, top),
            twice=[0],
        )
    return assembly.call(numbers.long_remainder, [left, right], target, text, text)


def _whole_division(assembly: Assembly, left: Code, right: Code, text: str) -> Code:
    if DOUBLE in (left.type, right.type):
        raise mismatch(text, [left, right], "use / and floor(), or cast both sides to BIGINT")
    if isinstance(left.type, DecimalType) or isinstance(right.type, DecimalType):
        both = [convert(assembly, c, literal_decimal(c)) for c in (left, right)]
        return assembly.call(numbers.decimal_quotient, both, LONG, text, text)
    if right.constant and right.value and right.value > 0 and left.range[0] >= 0:
        return assembly.strict(
            [left],
            lambda codes: f"({codes[0].source} // {right.value})",
            LONG,
            text,
            bounds=(left.range[0] // right.value, left.range[1] // right.value),
        )
    return assembly.call(numbers.long_quotient, [left, right], LONG, text, text)


def negative(assembly: Assembly, operand: Code, text: str) -> Code:
    """Return ``-operand``."""
    if operand.type == STRING:
        operand = convert(assembly, operand, DOUBLE)
    if operand.type == NULL:
        operand = convert(assembly, operand, DOUBLE)
    if operand.type not in (*INTEGRAL, DOUBLE, INTERVAL, DAYS) and not is_numeric(operand.type):
        raise mismatch(text, [operand], "put the sign before a number")
    if operand.type not in INTEGRAL:
        return assembly.strict([operand], lambda codes: f"(-{codes[0].source})", operand.type, text)
    low, high = operand.range
    return assembly.strict(
        [operand],
        lambda codes: checked(assembly, f"(-{codes[0].source})", (-high, -low), operand.type, text),
        operand.type,
        text,
        bounds=_within((-high, -low), operand.type),
    )


def bitwise(assembly: Assembly, operator: str, codes: Sequence[Code], text: str) -> Code:
    """Return ``& | ^`` of integers; Python's are the same, without bounds to check."""
    for code in codes:
        if code.type not in (*INTEGRAL, NULL):
            raise mismatch(text, codes, "use INT or BIGINT operands")
    target = widest(codes[0].type, codes[1].type) or LONG
    target = INTEGER if target == NULL else target
    both = [convert(assembly, code, target) for code in codes]
    return assembly.strict(
        both, lambda c: f"({c[0].source} {operator} {c[1].source})", target, text
    )
