"""Functions of numbers."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from floodway.core.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    LONG,
    DataType,
    DecimalType,
)
from floodway.expressions.arithmetic import (
    arithmetic,
    checked,
    decimal_arithmetic,
    negative,
    operands,
)
from floodway.expressions.casts import convert
from floodway.expressions.code import INT_BOUNDS, LONG_BOUNDS, Assembly, Code
from floodway.expressions.coercion import INTEGRAL, is_numeric, mismatch, widest
from floodway.expressions.functions.registry import definer
from floodway.expressions.runtime import maths, numbers

define = definer("Numbers")


def _same(codes: Sequence[Code]) -> DataType:
    return codes[0].type


def _abs(assembly: Assembly, codes: list[Code], text: str) -> Code:
    code = codes[0]
    if code.type not in INTEGRAL:
        return assembly.strict([code], lambda c: f"abs({c[0].source})", code.type, text)
    low, high = code.range
    top = max(abs(low), abs(high))
    limit = INT_BOUNDS[1] if code.type == INTEGER else LONG_BOUNDS[1]
    return assembly.strict(
        [code],
        lambda c: checked(assembly, f"abs({c[0].source})", (0, top), code.type, text),
        code.type,
        text,
        bounds=(0, min(top, limit)),
    )


define("abs", "number NUMBER", _same, _abs, "the absolute value", builder=True)
define(
    "negative",
    "number NUMBER",
    _same,
    lambda assembly, codes, text: negative(assembly, codes[0], text),
    "the number with its sign turned",
    builder=True,
)
define("positive", "number NUMBER", _same, "{0}", "the number itself")


def _to_whole(helper: Callable[..., Any], decimal_helper: Callable[..., Any]) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        code = codes[0]
        if code.type in INTEGRAL:
            return assembly.renamed(convert(assembly, code, LONG), text)
        if isinstance(code.type, DecimalType):
            whole = code.type.precision - code.type.scale
            precision = min(whole + (1 if code.type.scale else 0), 38) or 1
            target = DecimalType(precision, 0)
            return assembly.call(decimal_helper, [code], target, text)
        return assembly.call(helper, [code], LONG, text, text)

    return build


define(
    "ceil, ceiling",
    "number NUMBER",
    LONG,
    _to_whole(maths.ceil_double, maths.ceil_decimal),
    "the next whole number that is not smaller",
    builder=True,
)
define(
    "floor",
    "number NUMBER",
    LONG,
    _to_whole(maths.floor_double, maths.floor_decimal),
    "the next whole number that is not greater",
    builder=True,
)


def _rounder(half: str) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        code = codes[0]
        digits = codes[1].value if len(codes) > 1 else 0
        if isinstance(code.type, DecimalType):
            return _round_decimal(assembly, code, digits, half, text)
        if code.type == DOUBLE:
            return assembly.call(maths.round_double, [code], DOUBLE, text, digits, half)
        if digits >= 0:
            return assembly.renamed(code, text)
        bounds = INT_BOUNDS if code.type == INTEGER else LONG_BOUNDS
        extra = (digits, half, *bounds, text, str(code.type))
        return assembly.call(maths.round_integer, [code], code.type, text, *extra)

    return build


def _round_decimal(assembly: Assembly, code: Code, digits: int, half: str, text: str) -> Code:
    assert isinstance(code.type, DecimalType)
    precision, scale = code.type.precision, code.type.scale
    whole = precision - scale + 1
    if digits < 0:
        target = DecimalType(min(max(whole, -digits + 1), 38), 0)
    else:
        kept = min(scale, digits)
        target = DecimalType(min(whole + kept, 38), kept)
    extra = (digits, half, target.precision, target.scale, text)
    return assembly.call(maths.round_decimal, [code], target, text, *extra)


define(
    "round",
    "number NUMBER, [digits INT CONSTANT]",
    _same,
    _rounder("ROUND_HALF_UP"),
    "the number rounded to some digits after the point, halves away from zero",
    builder=True,
)
define(
    "bround",
    "number NUMBER, [digits INT CONSTANT]",
    _same,
    _rounder("ROUND_HALF_EVEN"),
    "the number rounded to some digits after the point, halves to the even digit",
    builder=True,
)

_REAL = "number DOUBLE"
for _name, _helper, _doc in (
    ("sqrt", maths.square_root, "the square root; NaN of a negative number"),
    ("cbrt", math.cbrt, "the cube root"),
    ("exp", maths.exponential, "e to the power of the number"),
    ("expm1", maths.exponential_less_one, "e to the power of the number, minus 1"),
    ("rint", maths.nearest, "the nearest whole number, as a double, halves to the even one"),
    ("sin", maths.sine, "the sine"),
    ("cos", maths.cosine, "the cosine"),
    ("tan", maths.tangent, "the tangent"),
    ("cot", maths.cotangent, "the cotangent"),
    ("sec", maths.secant, "the secant"),
    ("csc", maths.cosecant, "the cosecant"),
    ("asin", maths.arc_sine, "the angle of a sine; NaN outside -1 to 1"),
    ("acos", maths.arc_cosine, "the angle of a cosine; NaN outside -1 to 1"),
    ("atan", math.atan, "the angle of a tangent"),
    ("sinh", maths.hyperbolic_sine, "the hyperbolic sine"),
    ("cosh", maths.hyperbolic_cosine, "the hyperbolic cosine"),
    ("tanh", math.tanh, "the hyperbolic tangent"),
    ("degrees", math.degrees, "the angle in degrees"),
    ("radians", math.radians, "the angle in radians"),
    ("sign, signum", maths.signum, "-1.0, 0.0 or 1.0"),
):
    define(_name, _REAL, DOUBLE, _helper, _doc)
_logarithms: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("ln", maths.logarithm, "the natural logarithm; NULL unless positive"),
    ("log2", maths.logarithm_2, "the logarithm to base 2; NULL unless positive"),
    ("log10", maths.logarithm_10, "the logarithm to base 10; NULL unless positive"),
    ("log1p", maths.logarithm_plus_one, "the natural logarithm of 1 plus it; NULL up to -1"),
)
for _name, _logarithm, _doc in _logarithms:
    define(_name, _REAL, DOUBLE, _logarithm, _doc, nullable=True)


def _log(assembly: Assembly, codes: list[Code], text: str) -> Code:
    helper: Callable[..., Any] = maths.logarithm if len(codes) == 1 else maths.logarithm_base
    return assembly.call(helper, codes, DOUBLE, text, nullable=True)


define(
    "log",
    "[base DOUBLE], number DOUBLE",
    DOUBLE,
    _log,
    "the logarithm, natural unless a base is given; NULL unless both are positive",
    builder=True,
)
define("pow, power", "base DOUBLE, exponent DOUBLE", DOUBLE, maths.power, "base to the exponent")
define("atan2", "y DOUBLE, x DOUBLE", DOUBLE, maths.angle, "the angle of the point (x, y)")
define("hypot", "x DOUBLE, y DOUBLE", DOUBLE, math.hypot, "the length of the vector (x, y)")
define("e", "", DOUBLE, "2.718281828459045", "Euler's number")
define("pi", "", DOUBLE, "3.141592653589793", "pi")
define(
    "factorial",
    "number INT",
    LONG,
    maths.factorial,
    "the factorial of 0 to 20, else NULL",
    nullable=True,
)
define(
    "width_bucket",
    "value DOUBLE, low DOUBLE, high DOUBLE, count BIGINT",
    LONG,
    maths.width_bucket,
    "the number of the bucket, of `count` equal ones, that the value falls into",
    nullable=True,
)


def _isnan(assembly: Assembly, codes: list[Code], text: str) -> Code:
    code = codes[0]
    if code.constant:
        return assembly.constant(code.value is not None and code.value != code.value, BOOLEAN, text)
    name = assembly.temporary()
    # None equals itself, so that NULL is not NaN without another test.
    return Code(f"(({name} := {code.source}) != {name})", BOOLEAN, nullable=False, text=text)


define("isnan", "number DOUBLE", BOOLEAN, _isnan, "whether the number is NaN", builder=True)


def _mod(assembly: Assembly, codes: list[Code], text: str) -> Code:
    return arithmetic(assembly, "%", codes[0], codes[1], text)


define("mod", "left NUMBER, right NUMBER", _same, _mod, "the remainder; also `a % b`", builder=True)


def _pmod(assembly: Assembly, codes: list[Code], text: str) -> Code:
    left, right = operands(assembly, codes[0], codes[1], text)
    target = widest(left.type, right.type) or DOUBLE
    if isinstance(target, DecimalType):
        return decimal_arithmetic(assembly, "pmod", left, right, text)
    both = [convert(assembly, code, target) for code in (left, right)]
    helper: Callable[..., Any] = numbers.double_pmod if target == DOUBLE else numbers.long_pmod
    if target != DOUBLE and right.constant and right.value and right.value > 0:
        bounds = (0, right.value - 1)
        return assembly.strict(
            both[:1], lambda c: f"({c[0].source} % {right.value})", target, text, bounds=bounds
        )
    extra = () if target == DOUBLE else (32 if target == INTEGER else 64,)
    return assembly.call(helper, both, target, text, text, *extra)


define("pmod", "left NUMBER, right NUMBER", _same, _pmod, "the positive remainder", builder=True)


def _trying(operator: str) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        for code in codes:
            if not is_numeric(code.type):
                raise mismatch(text, codes, "use numbers")
        left, right = operands(assembly, codes[0], codes[1], text)
        target = widest(left.type, right.type) or DOUBLE
        if isinstance(target, DecimalType):
            return decimal_arithmetic(assembly, operator, left, right, text, lenient=True)
        if operator == "/":
            target = DOUBLE
        both = [convert(assembly, code, target) for code in (left, right)]
        return _try_number(assembly, operator, both, target, text)

    return build


def _try_number(
    assembly: Assembly, operator: str, both: list[Code], target: DataType, text: str
) -> Code:
    plain = f"{{0}} {operator} {{1}}"
    twice: list[int] = []
    if operator in "/%":
        helper = maths.float_or_null if target == DOUBLE else maths.remainder_or_null
        if operator == "%":
            return assembly.call(helper, both, target, text, nullable=True)
        plain, twice = "({0} / {1} if {1} else None)", [1]
    elif target != DOUBLE:
        low, high = INT_BOUNDS if target == INTEGER else LONG_BOUNDS
        name = assembly.temporary()
        plain = f"({name} if {low} <= ({name} := {plain}) <= {high} else None)"
    return assembly.strict(
        both,
        lambda c: f"({plain.format(c[0].source, c[1].source)})",
        target,
        text,
        nullable=True,
        twice=twice,
    )


for _name, _operator, _doc in (
    ("try_add", "+", "the sum, or NULL where it does not fit"),
    ("try_subtract", "-", "the difference, or NULL where it does not fit"),
    ("try_multiply", "*", "the product, or NULL where it does not fit"),
    ("try_divide", "/", "the quotient, or NULL where the divisor is zero"),
    ("try_mod", "%", "the remainder, or NULL where the divisor is zero"),
):
    define(_name, "left NUMBER, right NUMBER", _same, _trying(_operator), _doc, builder=True)

define("bit_count", "number INTEGRAL", INTEGER, maths.bit_count, "the number of bits that are set")
for _name, _method, _doc in (
    ("shiftleft", "shift_left", "the bits moved left; also `a << b`"),
    ("shiftright", "shift_right", "the bits moved right, keeping the sign; also `a >> b`"),
    ("shiftrightunsigned", "shift_right_unsigned", "the bits moved right; also `a >>> b`"),
):

    def _shift(assembly: Assembly, codes: list[Code], text: str, method: str = _method) -> Code:
        width = 32 if codes[0].type == INTEGER else 64
        return assembly.call(getattr(maths, method), codes, codes[0].type, text, width)

    define(_name, "number INTEGRAL, bits INT", _same, _shift, _doc, builder=True)
