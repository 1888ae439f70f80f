"""Which types go together, by Spark's ANSI rules: the widest common type, and decimal results."""

from collections.abc import Sequence

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
    MapType,
    StructType,
)
from floodway.expressions.code import Code
from floodway.expressions.literals import DAYS

INTEGRAL = (INTEGER, LONG)
ATOMIC = (BOOLEAN, INTEGER, LONG, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)
MAX_PRECISION, MIN_SCALE = 38, 6


def is_numeric(data_type: DataType) -> bool:
    """Whether values of the type are numbers."""
    return data_type in (INTEGER, LONG, DOUBLE) or isinstance(data_type, DecimalType)


def is_atomic(data_type: DataType) -> bool:
    """Whether the type has no parts."""
    return data_type in ATOMIC or isinstance(data_type, DecimalType)


def is_orderable(data_type: DataType) -> bool:
    """Whether values of the type can be compared by size."""
    if isinstance(data_type, ArrayType):
        return is_orderable(data_type.element)
    if isinstance(data_type, StructType):
        return all(is_orderable(field.type) for field in data_type.fields)
    return is_atomic(data_type) or data_type in (INTERVAL, DAYS, NULL)


def as_decimal(data_type: DataType) -> DecimalType:
    """Return the decimal type that holds every value of an integral or decimal type."""
    if isinstance(data_type, DecimalType):
        return data_type
    return DecimalType(10, 0) if data_type == INTEGER else DecimalType(20, 0)


def literal_decimal(code: Code) -> DecimalType:
    """Return the decimal type of an operand; an integer literal needs only its own digits."""
    if code.constant and isinstance(code.value, int) and code.type in INTEGRAL:
        return DecimalType(len(str(abs(code.value))), 0)
    return as_decimal(code.type)


def wider_decimal(left: DecimalType, right: DecimalType) -> DecimalType:
    """Return the decimal type that holds the values of both."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= MAX_PRECISION:
        return DecimalType(whole + scale, scale)
    # Digits before the point are worth more than digits after it.
    return DecimalType(MAX_PRECISION, max(0, MAX_PRECISION - whole))


def widest(left: DataType, right: DataType) -> DataType | None:
    """Return the type to which both operands are converted, or None if there is none.

    >>> str(widest(INTEGER, LONG)), str(widest(STRING, INTEGER))
    ('BIGINT', 'BIGINT')
    """
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if is_numeric(left) and is_numeric(right):
        return _wider_number(left, right)
    for one, other in ((left, right), (right, left)):
        if one == STRING:
            return _with_string(other)
        if one == DATE and other == TIMESTAMP:
            return TIMESTAMP
        if one == DAYS and other == INTERVAL:
            return INTERVAL
    return _wider_nested(left, right)


def _wider_number(left: DataType, right: DataType) -> DataType:
    if DOUBLE in (left, right):
        return DOUBLE
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        return wider_decimal(as_decimal(left), as_decimal(right))
    return LONG


def _with_string(other: DataType) -> DataType | None:
    if other in INTEGRAL:
        return LONG
    if is_numeric(other):
        return DOUBLE
    return other if other in (BOOLEAN, DATE, TIMESTAMP) else None


def _wider_nested(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        element = widest(left.element, right.element)
        if element is None:
            return None
        return ArrayType(element, left.contains_null or right.contains_null)
    if isinstance(left, MapType) and isinstance(right, MapType):
        if left.key == right.key and left.value == right.value:
            nullable = left.value_contains_null or right.value_contains_null
            return MapType(left.key, left.value, nullable)
        return None
    if isinstance(left, StructType) and isinstance(right, StructType):
        same = [(f.name, f.type) for f in left.fields] == [(f.name, f.type) for f in right.fields]
        return left if same and left.python is right.python else None
    return None


def alike(left: DataType, right: DataType) -> bool:
    """Whether two types are the same but for the names of fields: Spark compares such structs."""
    if isinstance(left, StructType) and isinstance(right, StructType):
        pairs = zip(left.fields, right.fields, strict=False)
        same_size = len(left.fields) == len(right.fields)
        return same_size and all(alike(one.type, other.type) for one, other in pairs)
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        return alike(left.element, right.element)
    return left == right


def one_type(left: Code, right: Code) -> str:
    """Return the remedy for two values that have no type in common."""
    if isinstance(left.type, StructType) and isinstance(right.type, StructType):
        return (
            "structs are compared if they have as many fields of the same types: write 1L for a "
            "BIGINT, cast single fields, or compare them one by one"
        )
    if not (is_atomic(left.type) and is_atomic(right.type)):
        return "compare or choose between values of one type, part by part if need be"
    return f"bring them to one type, e.g. CAST({right.text} AS {left.type})"


def check_text(codes: Sequence[Code], text: str) -> None:
    """Refuse a text column beside a number or a truth value, also within arrays.

    Spark would cast the text, and fail at the first record that is none.
    """
    other = next((code for code in codes if _is_number_or_truth(_innermost(code.type))), None)
    if other is None:
        return
    words = next((c for c in codes if _innermost(c.type) == STRING and not _fixed(c)), None)
    if words is not None:
        raise mismatch(text, [words, other], _said(words, other))


def _is_number_or_truth(data_type: DataType) -> bool:
    return is_numeric(data_type) or data_type == BOOLEAN


def _innermost(data_type: DataType) -> DataType:
    while isinstance(data_type, ArrayType):
        data_type = data_type.element
    return data_type


def _fixed(code: Code) -> bool:
    """Whether a value is the same for all records: it names none."""
    return code.constant or not compile(code.source, "<expression>", "eval").co_names


def _said(words: Code, other: Code) -> str:
    """Return how to say what text beside a number or a truth value is."""
    kind = _innermost(other.type)
    wanted = LONG if kind == INTEGER else kind
    cast = f"CAST({words.text} AS {wanted})"
    if words.type != STRING:
        cast = f"transform({words.text}, x -> CAST(x AS {wanted}))"
    what = "truth value" if kind == BOOLEAN else "number"
    quoted = f", or put quotes around {other.text}" if other.constant else ""
    return (
        f"say that the text is a {what}, e.g. {cast} (TRY_CAST gives NULL where it is none){quoted}"
    )


def common_type(codes: Sequence[Code], text: str) -> DataType:
    """Return the widest type of several operands, or raise ExpressionTypeError."""
    check_text(codes, text)
    # A string is promoted by what stands beside it, so the others are put together first.
    ordered = sorted(codes, key=lambda code: code.type == STRING)
    result: DataType = NULL
    for code in ordered:
        wider = widest(result, code.type)
        if wider is None:
            shown = ", ".join(f"{code.text} is {code.type}" for code in codes)
            raise ExpressionTypeError(
                f"the values in {text} have no common type: {shown}",
                remedy=one_type(_of_type(result, codes), code),
            )
        result = wider
    return result


def _of_type(data_type: DataType, codes: Sequence[Code]) -> Code:
    """Return an operand of a type, or else the first one."""
    return next((code for code in codes if code.type == data_type), codes[0])


def adjusted(precision: int, scale: int) -> DecimalType:
    """Return a decimal type within 38 digits, giving up scale before whole digits."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, MIN_SCALE)))


def decimal_result(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    """Return the type of decimal arithmetic.

    >>> str(decimal_result("*", DecimalType(2, 1), DecimalType(1, 0)))
    'DECIMAL(4,1)'
    """
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator == "*":
        return adjusted(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(MIN_SCALE, s1 + p2 + 1)
        return adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    if operator == "%":
        return adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)


def mismatch(text: str, codes: Sequence[Code], remedy: str) -> ExpressionTypeError:
    """Return the error for operands that an operator does not take."""
    shown = " and ".join(f"{code.text} is {code.type}" for code in codes)
    return ExpressionTypeError(f"{text} does not work: {shown}", remedy=remedy)
