"""Casts that are written as functions."""

from typing import Any

from floodway.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
)
from floodway.expressions.casts import convert
from floodway.expressions.code import Assembly, Code
from floodway.expressions.functions.registry import definer

define = definer("Casts")


def _cast(target: DataType) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        return assembly.renamed(convert(assembly, codes[0], target), text)

    return build


for _name, _type in (
    ("boolean", BOOLEAN),
    ("int", INTEGER),
    ("bigint", LONG),
    ("double", DOUBLE),
    ("string", STRING),
    ("binary", BINARY),
    ("date", DATE),
    ("timestamp", TIMESTAMP),
):
    define(_name, "value ANY", _type, _cast(_type), f"the value cast to {_type}", builder=True)
