"""Schemas: the columns of a stream's or a table's values.

A value is either a struct, whose fields are the columns, or a single scalar, which is one column
(called ``value`` unless an operator gives it a better name). Values that expressions cannot look
into have an opaque schema; Python functions take them all the same.
"""

import keyword
from collections.abc import Callable, Iterable
from typing import Any, Self, get_origin

import msgspec

from floodway.core.bounds import HIGHEST, LOWEST
from floodway.core.errors import SchemaError, UnknownColumnError
from floodway.core.record import Record
from floodway.core.types import (
    DataType,
    Field,
    OpaqueType,
    StructType,
    from_annotation,
    to_annotation,
)

PythonClass = type
"""What classes are; inside `Schema` the name ``type`` means a column's."""


class Schema(msgspec.Struct, frozen=True):
    """The columns of a value and the Python type that holds them.

    Examples
    --------
    >>> class Click(Record):
    ...     page: str
    ...     visitor: int | None = None
    >>> print(Schema.of(Click))
    Click(page STRING NOT NULL, visitor BIGINT)
    >>> print(Schema.of(str))
    value STRING NOT NULL
    """

    type: DataType
    nullable: bool = False
    column: str = "value"

    @classmethod
    def of(cls, annotation: Any, *, column: str = "value") -> Self:
        """Return the schema of a Python annotation: a record type or a scalar."""
        if isinstance(annotation, Schema):
            return cls(annotation.type, annotation.nullable, annotation.column)
        data_type, nullable = from_annotation(annotation)
        return cls(data_type, nullable, column)

    @classmethod
    def row(cls, name: str, fields: Iterable[Field]) -> Self:
        """Return a schema of the given columns with a record type of its own."""
        columns = tuple(fields)
        _check_names(columns)
        python = msgspec.defstruct(
            name,
            [(field.name, to_annotation(field.type, nullable=field.nullable)) for field in columns],
            bases=(Record,),
            frozen=True,
            module=__name__,
        )
        return cls(StructType(columns, python))

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns."""
        if isinstance(self.type, StructType):
            return self.type.fields
        return (Field(self.column, self.type, self.nullable),)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self.fields)

    @property
    def opaque(self) -> bool:
        """Whether expressions cannot look into the values."""
        return isinstance(self.type, OpaqueType)

    @property
    def python(self) -> Any:
        """The Python annotation of a value."""
        return to_annotation(self.type, nullable=self.nullable)

    @property
    def exact(self) -> PythonClass | None:
        """The Python class that values have unless they are null, or None if nobody can tell."""
        plain = to_annotation(self.type)
        found = get_origin(plain) or plain
        return found if isinstance(found, PythonClass) and found is not Any else None

    def checker(self) -> Callable[[Any], Any]:
        """Return the function that returns a value of this schema, and else raises.

        It goes by the class, and for integers by the 64 bits that they have to fit into.

        Examples
        --------
        >>> Schema.of(int).checker()("5")
        Traceback (most recent call last):
        TypeError: '5' is a str, and the schema says value BIGINT NOT NULL
        """
        exact, nullable = self.exact, self.nullable
        fitting = (float, int) if exact is float else exact

        def require(value: Any) -> Any:
            if fitting is None or (value is None and nullable):
                return value
            if not isinstance(value, fitting):
                shown = repr(value)
                shown = shown if len(shown) <= 100 else shown[:100] + "..."
                kind = value.__class__.__name__
                raise TypeError(f"{shown} is a {kind}, and the schema says {self}")
            if isinstance(value, int) and not LOWEST <= value <= HIGHEST:
                raise ValueError(
                    f"an integer of {value.bit_length()} bits does not fit into 64, and the schema "
                    f"says {self}"
                )
            return value

        return require

    def field(self, name: str) -> Field:
        """Return the column of that name."""
        lowered = name.lower()
        for field in self.fields:
            if field.name.lower() == lowered and not self.opaque:
                return field
        raise unknown_column(name, () if self.opaque else self.names)

    def __str__(self) -> str:
        columns = ", ".join(map(str, self.fields))
        if isinstance(self.type, StructType):
            return f"{getattr(self.type.python, '__name__', 'row')}({columns})"
        return columns


def unknown_column(name: str, known: Iterable[str]) -> UnknownColumnError:
    """Return the error for a column that is not there."""
    names = list(known)
    if not names:
        return UnknownColumnError(
            f"column {name!r} is not known: the schema of this stream is opaque",
            remedy="give the function before it a return annotation, or pass schema=RecordType",
        )
    return UnknownColumnError(
        f"there is no column {name!r}", remedy=f"use one of: {', '.join(names)}"
    )


def _check_names(fields: tuple[Field, ...]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise SchemaError(
                f"column {field.name!r} appears twice", remedy="rename one of them with AS"
            )
        if not field.name.isidentifier() or keyword.iskeyword(field.name):
            raise SchemaError(
                f"column {field.name!r} is not a valid name",
                remedy="give the expression a name with AS, e.g. 'price * 2 AS double_price'",
            )
        seen.add(field.name.lower())
