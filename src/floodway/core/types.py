"""The types that records and expressions have: Spark SQL's, as far as Python has them.

A type says what its values are in Python (``annotation``) and how Spark SQL writes it
(``str(type)``). Nullability is a property of a column, not of a type.
"""

import datetime as dt
import decimal
import types
import typing
from functools import reduce
from operator import or_
from typing import Any

import msgspec


class DataType(msgspec.Struct, frozen=True):
    """A type of Spark SQL."""

    def __str__(self) -> str:
        return type(self).__name__.removesuffix("Type").upper()


class NullType(DataType, frozen=True):
    """The type of ``NULL`` alone."""

    def __str__(self) -> str:
        return "VOID"


class BooleanType(DataType, frozen=True):
    """``bool``."""


class IntegerType(DataType, frozen=True):
    """A 32-bit integer; in Python an ``int`` within bounds."""

    def __str__(self) -> str:
        return "INT"


class LongType(DataType, frozen=True):
    """A 64-bit integer: what Python's ``int`` means in a schema."""

    def __str__(self) -> str:
        return "BIGINT"


class DoubleType(DataType, frozen=True):
    """``float``."""


class DecimalType(DataType, frozen=True):
    """``decimal.Decimal`` with at most `precision` digits, `scale` of them after the point."""

    precision: int = 38
    scale: int = 18

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


class StringType(DataType, frozen=True):
    """``str``."""


class BinaryType(DataType, frozen=True):
    """``bytes``."""


class DateType(DataType, frozen=True):
    """``datetime.date``."""


class TimestampType(DataType, frozen=True):
    """``datetime.datetime``; one without a time zone is read as UTC."""


class IntervalType(DataType, frozen=True):
    """A span of days and microseconds, ``datetime.timedelta``; in expressions only."""

    def __str__(self) -> str:
        return "INTERVAL DAY TO SECOND"


class ArrayType(DataType, frozen=True):
    """``list`` of one element type."""

    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


class MapType(DataType, frozen=True):
    """``dict`` with one type of keys and one of values."""

    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


class Field(msgspec.Struct, frozen=True):
    """A column: its name, its type, and whether it may be null."""

    name: str
    type: DataType
    nullable: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.type}" + ("" if self.nullable else " NOT NULL")


class StructType(DataType, frozen=True):
    """Named fields; in Python an instance of `python`, a ``msgspec.Struct`` class."""

    fields: tuple[Field, ...]
    python: type[msgspec.Struct] | None = None

    def field(self, name: str) -> Field | None:
        """Return the field of that name (letter case does not matter), or None."""
        lowered = name.lower()
        return next((field for field in self.fields if field.name.lower() == lowered), None)

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{f.name}: {f.type}' for f in self.fields)}>"


class OpaqueType(DataType, frozen=True):
    """A Python type that expressions cannot look into; functions can."""

    python: Any = object

    def __str__(self) -> str:
        return f"PYTHON {getattr(self.python, '__name__', self.python)}"


NULL = NullType()
BOOLEAN = BooleanType()
INTEGER = IntegerType()
LONG = LongType()
DOUBLE = DoubleType()
STRING = StringType()
BINARY = BinaryType()
DATE = DateType()
TIMESTAMP = TimestampType()
INTERVAL = IntervalType()
OPAQUE = OpaqueType()

_SIMPLE: dict[Any, DataType] = {
    bool: BOOLEAN,
    int: LONG,
    float: DOUBLE,
    str: STRING,
    bytes: BINARY,
    decimal.Decimal: DecimalType(),
    dt.date: DATE,
    dt.datetime: TIMESTAMP,
    dt.timedelta: INTERVAL,
    type(None): NULL,
}


def from_annotation(annotation: Any) -> tuple[DataType, bool]:
    """Return the type of a Python annotation and whether it may be null.

    >>> from_annotation(int | None)
    (LongType(), True)
    >>> from_annotation(typing.Literal["view", "click"])
    (StringType(), False)
    """
    if typing.get_origin(annotation) is typing.Annotated:
        return from_annotation(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) is typing.Literal:
        # A choice of values has the type of its values.
        annotation = reduce(or_, {type(choice) for choice in typing.get_args(annotation)})
    members = _union_members(annotation)
    if members is not None:
        rest = [member for member in members if member is not type(None)]
        inner = from_annotation(rest[0])[0] if len(rest) == 1 else OpaqueType(annotation)
        return inner, len(rest) < len(members)
    if annotation in (Any, object):
        return OPAQUE, True
    return _from_plain(annotation), annotation is type(None)


def to_annotation(data_type: DataType, *, nullable: bool = False) -> Any:
    """Return the Python annotation of a type, the inverse of `from_annotation`."""
    plain = _to_plain(data_type)
    return plain | None if nullable and plain not in (Any, None) else plain


def struct_fields(python: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the fields of a Struct class as columns."""
    hints = typing.get_type_hints(python, include_extras=True)
    return tuple(Field(name, *from_annotation(hints[name])) for name in python.__struct_fields__)


def can_be_key(data_type: DataType) -> bool | None:
    """Whether values of a type can be keys, which have to be hashable; None if only they can tell.

    >>> can_be_key(STRING), can_be_key(ArrayType(STRING)), can_be_key(OPAQUE)
    (True, False, None)
    """
    match data_type:
        case ArrayType() | MapType():
            return False
        case OpaqueType():
            return None
        case StructType(fields, python):
            parts = {can_be_key(field.type) for field in fields}
            if False in parts:
                return False
            # A class that is not frozen has a hash only if its author has written one.
            frozen = python is not None and python.__struct_config__.frozen
            return True if frozen and None not in parts else None
    return True


def _union_members(annotation: Any) -> tuple[Any, ...] | None:
    origin = typing.get_origin(annotation)
    return typing.get_args(annotation) if origin in (typing.Union, types.UnionType) else None


def _from_plain(annotation: Any) -> DataType:
    try:
        if annotation in _SIMPLE:
            return _SIMPLE[annotation]
    except TypeError:
        return OpaqueType(annotation)
    origin, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin is list and len(arguments) == 1:
        return ArrayType(*from_annotation(arguments[0]))
    if origin is dict and len(arguments) == 2:
        return MapType(from_annotation(arguments[0])[0], *from_annotation(arguments[1]))
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return StructType(struct_fields(origin), origin)
    return OpaqueType(annotation)


_PYTHON: dict[type[DataType], Any] = {
    NullType: None,
    BooleanType: bool,
    IntegerType: int,
    LongType: int,
    DoubleType: float,
    DecimalType: decimal.Decimal,
    StringType: str,
    BinaryType: bytes,
    DateType: dt.date,
    TimestampType: dt.datetime,
    IntervalType: dt.timedelta,
}


def _to_plain(data_type: DataType) -> Any:
    match data_type:
        case ArrayType(element, contains_null):
            return list[to_annotation(element, nullable=contains_null)]  # type: ignore[misc]
        case MapType(key, value, contains_null):
            return dict[to_annotation(key), to_annotation(value, nullable=contains_null)]  # type: ignore[misc]
        case StructType(_, python) if python is not None:
            return python
        case OpaqueType():
            return Any
        case _:
            return _PYTHON.get(type(data_type), Any)
