"""Scopes: which names an expression may use, and the Python source that gives their values."""

from collections.abc import Iterator, Mapping
from typing import Self

import msgspec

from floodway.core.schema import Schema, unknown_column
from floodway.core.types import DataType, StructType


class Column(msgspec.Struct, frozen=True):
    """A column as generated code sees it.

    Parameters
    ----------
    source
        Python source that gives the value, such as ``v.price`` or ``k[0]``. It is evaluated
        once or more, so it must be cheap and without effects.
    type
        The type of the value.
    nullable
        Whether the value may be None. Without null checks the code is faster.
    """

    source: str
    type: DataType
    nullable: bool


class Scope:
    """The columns an expression may use; letter case does not matter.

    Examples
    --------
    >>> from floodway.core.types import LONG
    >>> scope = Scope({"price": Column("v.price", LONG, False)})
    >>> scope.column("PRICE").source
    'v.price'
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)
        self._lowered = {name.lower(): column for name, column in columns.items()}

    @classmethod
    def of(cls, schema: Schema, value: str = "v") -> Self:
        """Return the scope of a schema whose value is in the Python variable `value`.

        >>> Scope.of(Schema.of(str)).column("value").source
        'v'
        """
        if schema.opaque:
            return cls({})
        if not isinstance(schema.type, StructType):
            return cls({schema.column: Column(value, schema.type, schema.nullable)})
        return cls(
            {
                field.name: Column(f"{value}.{field.name}", field.type, field.nullable)
                for field in schema.fields
            }
        )

    def with_columns(self, columns: Mapping[str, Column]) -> "Scope":
        """Return a scope with more columns; one of the same name takes the old one's place."""
        taken = {name.lower() for name in columns}
        kept = {name: col for name, col in self._columns.items() if name.lower() not in taken}
        return Scope({**kept, **columns})

    def find(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return self._lowered.get(name.lower())

    def column(self, name: str) -> Column:
        """Return the column of that name, or raise UnknownColumnError."""
        found = self.find(name)
        if found is None:
            raise unknown_column(name, self._columns)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, as they were given."""
        return tuple(self._columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)
