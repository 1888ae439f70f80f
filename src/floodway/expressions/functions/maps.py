"""Functions of maps and structs."""

import functools
import hashlib

from floodway.core.errors import ExpressionTypeError
from floodway.core.schema import Schema
from floodway.core.types import (
    BOOLEAN,
    NULL,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
)
from floodway.expressions.casts import agreed, implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import common_type, mismatch
from floodway.expressions.functions.registry import definer
from floodway.expressions.literals import DAYS, MONTHS
from floodway.expressions.runtime import maps
from floodway.expressions.tree import Alias, Call, Literal, Name

define = definer("Maps and structs")


def _keys(assembly: Assembly, codes: list[Code], text: str) -> Code:
    assert isinstance(codes[0].type, MapType)
    target = ArrayType(codes[0].type.key, contains_null=False)
    return assembly.strict(codes, lambda c: f"[*{c[0].source}]", target, text)


def _values(assembly: Assembly, codes: list[Code], text: str) -> Code:
    assert isinstance(codes[0].type, MapType)
    target = ArrayType(codes[0].type.value, codes[0].type.value_contains_null)
    return assembly.strict(codes, lambda c: f"[*{c[0].source}.values()]", target, text)


define("map_keys", "map MAP", None, _keys, "the keys as an array", builder=True)
define("map_values", "map MAP", None, _values, "the values as an array", builder=True)


def _contains_key(assembly: Assembly, codes: list[Code], text: str) -> Code:
    assert isinstance(codes[0].type, MapType)
    key = implied(assembly, codes[1], codes[0].type.key)
    if key is None or codes[1].type == NULL:
        raise mismatch(text, codes, f"use a key of type {codes[0].type.key}")
    return assembly.strict(
        [codes[0], key], lambda c: f"({c[1].source} in {c[0].source})", BOOLEAN, text
    )


define(
    "map_contains_key",
    "map MAP, key ANY",
    BOOLEAN,
    _contains_key,
    "whether the map has the key",
    builder=True,
)


def _map(assembly: Assembly, codes: list[Code], text: str) -> Code:
    if len(codes) % 2:
        raise mismatch(text, codes, "give a value for every key")
    keys, values = codes[::2], codes[1::2]
    key, value = common_type(keys, text), common_type(values, text)
    pairs = ", ".join(
        f"({agreed(assembly, k, key, text).source}, {agreed(assembly, v, value, text).source})"
        for k, v in zip(keys, values, strict=True)
    )
    nullable = any(code.nullable for code in values)
    source = f"{assembly.refer(maps.make_map)}([{pairs}])"
    return Code(source, MapType(key, value, nullable), nullable=False, text=text)


define("map", "key_or_value ANY...", None, _map, "a map of keys and values in turn", builder=True)


def _from_arrays(assembly: Assembly, codes: list[Code], text: str) -> Code:
    keys, values = (code.type for code in codes)
    assert isinstance(keys, ArrayType)
    assert isinstance(values, ArrayType)
    target = MapType(keys.element, values.element, values.contains_null)
    return assembly.call(maps.from_arrays, codes, target, text)


define(
    "map_from_arrays",
    "keys ARRAY, values ARRAY",
    None,
    _from_arrays,
    "a map of an array of keys and one of values",
    builder=True,
)


def _concat(assembly: Assembly, codes: list[Code], text: str) -> Code:
    target = common_type(codes, text)
    name = assembly.refer(maps.merge)
    return assembly.strict(
        codes, lambda c: f"{name}({', '.join(code.source for code in c)})", target, text
    )


define("map_concat", "map MAP...", None, _concat, "the maps put together", builder=True)


@functools.lru_cache(maxsize=256)
def row_type(fields: tuple[Field, ...]) -> StructType:
    """Return the struct type of some fields, the same class for the same fields."""
    shown = ", ".join(map(str, fields))
    digest = hashlib.sha256(shown.encode()).hexdigest()[:8]
    schema = Schema.row(f"Row_{digest}", fields)
    assert isinstance(schema.type, StructType)
    return schema.type


def make_struct(assembly: Assembly, names: list[str], codes: list[Code], text: str) -> Code:
    """Return a struct of named values."""
    for code in codes:
        if code.type in (DAYS, MONTHS):
            raise mismatch(text, codes, "a field cannot be an interval literal")
    fields = tuple(
        Field(name, code.type, code.nullable) for name, code in zip(names, codes, strict=True)
    )
    target = row_type(fields)
    python = assembly.keep("row", target.python, repr(target.fields))
    listed = ", ".join(code.source for code in codes)
    return Code(f"{python}({listed})", target, nullable=False, text=text)


def _struct(assembly: Assembly, call: Call) -> Code:
    names, codes = [], []
    for number, argument in enumerate(call.arguments, 1):
        match argument:
            case Alias(_, operand, name):
                names.append(name)
            case Name(_, parts):
                operand = argument
                names.append(parts[-1])
            case operand:
                names.append(f"col{number}")
        codes.append(assembly.lower(operand))
    return make_struct(assembly, names, codes, call.text)


def _named_struct(assembly: Assembly, call: Call) -> Code:
    names = []
    for argument in call.arguments[::2]:
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            raise ExpressionTypeError(
                f"the field name {argument.text} in {call.text} is not a string literal",
                remedy="write named_struct('a', 1, 'b', 2)",
            )
        names.append(argument.value)
    codes = [assembly.lower(argument) for argument in call.arguments[1::2]]
    if len(names) != len(codes):
        raise mismatch(call.text, codes, "give a value for every name")
    return make_struct(assembly, names, codes, call.text)


define(
    "struct",
    "value ANY...",
    None,
    _struct,
    "a struct; fields are named like columns, or with AS",
    tree=True,
)
define(
    "named_struct",
    "name_or_value ANY...",
    None,
    _named_struct,
    "a struct of names and values in turn",
    tree=True,
)


def _entries(assembly: Assembly, codes: list[Code], text: str) -> Code:
    source = codes[0].type
    assert isinstance(source, MapType)
    target = entry_type(source)
    python = assembly.keep("row", target.python, repr(target.fields))
    name = assembly.refer(maps.entries)
    return assembly.strict(
        codes,
        lambda c: f"{name}({c[0].source}, {python})",
        ArrayType(target, contains_null=False),
        text,
    )


def entry_type(source: MapType) -> StructType:
    """Return the type of a map's entries."""
    fields: tuple[tuple[str, DataType, bool], ...] = (
        ("key", source.key, False),
        ("value", source.value, source.value_contains_null),
    )
    return row_type(tuple(Field(*field) for field in fields))


define(
    "map_entries",
    "map MAP",
    None,
    _entries,
    "the entries as structs of key and value",
    builder=True,
)
