"""Comparison: ``= <> < <= > >= <=>`` with Spark's NaN, which equals itself and exceeds all else.

Against a constant that is not NaN, the plain operator or its negated opposite is exact, so that
``price > 10`` costs one Python operation. Between two unknown doubles the NaN tests come after
the plain comparison, which decides almost always.
"""

from floodway.core.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    NULL,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    StructType,
)
from floodway.expressions.casts import agreed
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import (
    INTEGRAL,
    alike,
    check_text,
    is_orderable,
    mismatch,
    one_type,
    widest,
)
from floodway.expressions.runtime import collections as together

_PYTHON = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
# With a constant on the right: a NaN on the left must make the test true.
_RIGHT_KNOWN = {">": "not {0} <= {1}", ">=": "not {0} < {1}"}
_LEFT_KNOWN = {"<": "not {0} >= {1}", "<=": "not {0} > {1}"}
_DOUBLES = {
    "=": "({0} == {1} or ({0} != {0} and {1} != {1}))",
    "<>": "({0} != {1} and ({0} == {0} or {1} == {1}))",
    "<": "({0} < {1} or ({1} != {1} and {0} == {0}))",
    "<=": "({0} <= {1} or {1} != {1})",
    ">": "({0} > {1} or ({0} != {0} and {1} == {1}))",
    ">=": "({0} >= {1} or {0} != {0})",
}


def compare(assembly: Assembly, operator: str, left: Code, right: Code, text: str) -> Code:
    """Return a comparison; operands are brought to their common type first."""
    target = _common(left, right, text)
    if operator == "<=>":
        return _null_safe(assembly, left, right, target, text)
    small = {left.type, right.type} == {INTEGER, DOUBLE}
    if small and not (left.constant or right.constant):
        pass  # Python compares a small int and a float exactly; only a BIGINT must be rounded.
    elif {left.type, right.type} <= {*INTEGRAL} or _decimals(left.type, right.type):
        pass  # Python compares these exactly whatever their size.
    else:
        left, right = (_alike(assembly, code, target, text) for code in (left, right))
    return _plain(assembly, operator, left, right, target, text)


def _common(left: Code, right: Code, text: str) -> DataType:
    check_text((left, right), text)
    target = widest(left.type, right.type)
    if target is None and alike(left.type, right.type):
        target = left.type
    if target == NULL:
        target = BOOLEAN
    if target is None:
        raise mismatch(text, [left, right], one_type(left, right))
    if not is_orderable(target):
        raise mismatch(text, [left, right], "compare the parts of the values one by one")
    return target


def _alike(assembly: Assembly, code: Code, target: DataType, text: str) -> Code:
    """Return an operand in its common type, in which structs keep the names of their fields."""
    return code if alike(code.type, target) else agreed(assembly, code, target, text)


def _decimals(left: DataType, right: DataType) -> bool:
    kinds = (*INTEGRAL,)
    return all(t in kinds or isinstance(t, DecimalType) for t in (left, right))


def _plain(
    assembly: Assembly, operator: str, left: Code, right: Code, target: DataType, text: str
) -> Code:
    if isinstance(target, ArrayType | StructType):
        return _nested(assembly, operator, left, right, text)
    if target != DOUBLE:
        return _simple(assembly, operator, left, right, text)
    left_known = left.type != DOUBLE or (left.constant and left.value == left.value)
    right_known = right.type != DOUBLE or (right.constant and right.value == right.value)
    if right_known:
        return _simple(assembly, operator, left, right, text, _RIGHT_KNOWN.get(operator))
    if left_known:
        return _simple(assembly, operator, left, right, text, _LEFT_KNOWN.get(operator))
    template = _DOUBLES[operator]
    return assembly.strict(
        [left, right],
        lambda codes: template.format(codes[0].source, codes[1].source),
        BOOLEAN,
        text,
        twice=[0, 1],
    )


def _simple(
    assembly: Assembly,
    operator: str,
    left: Code,
    right: Code,
    text: str,
    template: str | None = None,
) -> Code:
    shape = template or f"{{0}} {_PYTHON[operator]} {{1}}"
    return assembly.strict(
        [left, right],
        lambda codes: f"({shape.format(codes[0].source, codes[1].source)})",
        BOOLEAN,
        text,
    )


def _nested(assembly: Assembly, operator: str, left: Code, right: Code, text: str) -> Code:
    key = assembly.refer(together.order_key)
    python = _PYTHON[operator]
    return assembly.strict(
        [left, right],
        lambda codes: f"({key}({codes[0].source}) {python} {key}({codes[1].source}))",
        BOOLEAN,
        text,
    )


def _null_safe(assembly: Assembly, left: Code, right: Code, target: DataType, text: str) -> Code:
    left, right = (_alike(assembly, code, target, text) for code in (left, right))
    if not left.nullable and not right.nullable:
        return _plain(assembly, "=", left, right, target, text)
    # Python's == takes None for equal to itself and to nothing else: just what is wanted.
    if target not in (DOUBLE, TIMESTAMP) and not isinstance(target, ArrayType | StructType):
        return assembly.folded(
            Code(f"({left.source} == {right.source})", BOOLEAN, nullable=False, text=text),
            [left, right],
        )
    name = assembly.refer(together.same)
    return assembly.folded(
        Code(f"{name}({left.source}, {right.source})", BOOLEAN, nullable=False, text=text),
        [left, right],
    )
