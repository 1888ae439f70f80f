"""Schemas and values as Arrow has them."""

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from floodway.connectors.base import Row
from floodway.connectors.lines import bare_values
from floodway.core.errors import SchemaError
from floodway.core.schema import Schema
from floodway.core.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    IntervalType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampType,
)

_BUILTIN_TYPES = (bytes, dt.date, dt.datetime, dt.timedelta, decimal.Decimal)

_SIMPLE: dict[type[DataType], pa.DataType] = {
    NullType: pa.null(),
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    DoubleType: pa.float64(),
    StringType: pa.string(),
    BinaryType: pa.binary(),
    DateType: pa.date32(),
    TimestampType: pa.timestamp("us", tz="UTC"),
    IntervalType: pa.duration("us"),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of values; those that are not records have one column.

    >>> print(arrow_schema(Schema.of(list[int])))
    value: list<item: int64 not null> not null
      child 0, item: int64 not null
    """
    if isinstance(schema.type, StructType):
        return pa.schema(_arrow_fields(schema.type, None))
    (field,) = schema.fields
    arrow = _arrow_type(field.type, field.name)
    return pa.schema([pa.field(field.name, arrow, nullable=field.nullable)])


def columns_of(schema: Schema, sink: str) -> Callable[[Sequence[Row]], list[dict[str, Any]]]:
    """Return the function from rows to what Arrow makes columns of; it refuses updates.

    >>> columns_of(Schema.of(int), "ParquetSink")([(1, None, 10, None)])
    [{'value': 10}]
    """
    wrap = None if isinstance(schema.type, StructType) else schema.column
    remedy = "use JsonLinesSink(..., envelope=True)"

    def columns(rows: Sequence[Row]) -> list[dict[str, Any]]:
        values: list[Any] = msgspec.to_builtins(
            bare_values(rows, sink, remedy=remedy), builtin_types=_BUILTIN_TYPES
        )
        return values if wrap is None else [{wrap: value} for value in values]

    return columns


def _arrow_fields(struct: StructType, column: str | None) -> list[pa.Field]:
    names = [field.name for field in struct.fields]
    if struct.python is not None:  # values are written under the names that they have outside
        names = [field.encode_name for field in msgspec.structs.fields(struct.python)]
    return [
        pa.field(name, _arrow_type(field.type, column or name), nullable=field.nullable)
        for name, field in zip(names, struct.fields, strict=True)
    ]


def _arrow_type(data_type: DataType, column: str) -> pa.DataType:
    match data_type:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, contains_null):
            return pa.list_(pa.field("item", _arrow_type(element, column), nullable=contains_null))
        case MapType(key, value, contains_null):
            values = pa.field("value", _arrow_type(value, column), nullable=contains_null)
            return pa.map_(_arrow_type(key, column), values)
        case StructType():
            return pa.struct(_arrow_fields(data_type, column))
    if type(data_type) in _SIMPLE:
        return _SIMPLE[type(data_type)]
    raise SchemaError(
        f"column {column!r} has the type {data_type}, which has no place in a Parquet file",
        remedy="give the function before it a return annotation that Spark SQL has a type for",
    )
