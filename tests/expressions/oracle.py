"""Asking Spark: rows in, answers and types out, in few jobs."""

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from floodway.core.errors import ExpressionError
from floodway.core.types import (
    INTERVAL,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from floodway.expressions import Expression
from tests.expressions.wide import COLUMNS

_SIMPLE = {
    "BOOLEAN": "boolean", "INT": "int", "BIGINT": "bigint", "DOUBLE": "double", "STRING": "string",
    "BINARY": "binary", "DATE": "date", "TIMESTAMP": "timestamp", "VOID": "void",
}  # fmt: skip
RAISED = object()


def spark_type(data_type: DataType) -> str:
    """Return a type as Spark's schema shows it."""
    match data_type:
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ArrayType(element):
            return f"array<{spark_type(element)}>"
        case MapType(key, value):
            return f"map<{spark_type(key)},{spark_type(value)}>"
        case StructType(fields):
            return f"struct<{','.join(f'{f.name}:{spark_type(f.type)}' for f in fields)}>"
        case _ if data_type == INTERVAL:
            return "interval"
        case _:
            return _SIMPLE[str(data_type)]


def schema() -> str:
    """Return the wide record's schema in Spark's words."""
    parts = ["id int"]
    for name, data_type in COLUMNS.items():
        parts += [f"{name} {spark_type(data_type)}", f"{name}0 {spark_type(data_type)} not null"]
    return ", ".join(parts)


def plain(value: Any) -> Any:
    """Return a value in the form in which both sides can be compared."""
    if isinstance(value, msgspec.Struct):
        return tuple(plain(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value


def same(ours: Any, theirs: Any) -> bool:
    """Whether two plain values are the same answer; doubles may differ in their last bits."""
    if isinstance(ours, float) and isinstance(theirs, float):
        if ours != ours or theirs != theirs:
            return ours != ours and theirs != theirs
        if ours == theirs:
            return ours != 0 or math.copysign(1, ours) == math.copysign(1, theirs)
        return math.isclose(ours, theirs, rel_tol=1e-14, abs_tol=1e-300)
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, Decimal) and isinstance(theirs, Decimal):
        return ours == theirs
    return type(ours) is type(theirs) and bool(ours == theirs)


def our_answers(expression: Expression, rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Return what the generated code gives for each row, RAISED where it raises."""
    function = expression.function("v")
    answers = []
    for row in rows:
        try:
            answers.append(plain(function(row)))
        except ExpressionError:
            answers.append(RAISED)
    return answers


def guarded(text: str, answers: Sequence[Any]) -> str:
    """Return the text, not evaluated on the rows on which ours raised."""
    bad = [str(i) for i, answer in enumerate(answers) if answer is RAISED]
    if not bad:
        return text
    if len(bad) == len(answers):
        return f"CASE WHEN id < 0 THEN {text} END"
    return f"CASE WHEN id NOT IN ({', '.join(bad)}) THEN {text} END"


def raises(frame: Any, text: str, row: int) -> bool:
    """Whether Spark too fails on a row."""
    try:
        frame.where(f"id = {row}").selectExpr(f"{text} AS x").collect()
    except Exception:
        return True
    return False
