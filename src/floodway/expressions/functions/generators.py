"""Functions that make several rows of one; they stand alone, in ``flat_map``."""

from collections.abc import Callable
from typing import Any

from floodway.core.types import INTEGER, ArrayType, DataType, Field, MapType, StructType
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import mismatch
from floodway.expressions.functions.maps import entry_type, row_type
from floodway.expressions.runtime import generators
from floodway.expressions.tree import Call

GENERATORS: dict[str, str] = {
    "explode": "one row for each element, or for each entry of a map",
    "explode_outer": "as explode, but one row with NULL if there is nothing",
    "posexplode": "one row for each element with its position `pos`, from 0, and its value `col`",
    "posexplode_outer": "as posexplode, but one row with NULL if there is nothing",
}


def generate(assembly: Assembly, call: Call) -> Code:
    """Return code that gives the list of rows."""
    codes = [assembly.lower(argument) for argument in call.arguments]
    if len(codes) != 1 or not isinstance(codes[0].type, ArrayType | MapType):
        raise mismatch(call.text, codes, f"write {call.name}(array) or {call.name}(map)")
    code = codes[0]
    outer = call.name.endswith("_outer")
    if call.name.startswith("pos"):
        return _with_position(assembly, code, call.text, outer=outer)
    return _plain(assembly, code, call.text, outer=outer)


def _plain(assembly: Assembly, code: Code, text: str, *, outer: bool) -> Code:
    rest = "[None]" if outer else "[]"
    if isinstance(code.type, ArrayType):
        source = f"({code.source} or {rest})" if outer or code.nullable else code.source
        return Code(source, code.type.element, code.type.contains_null or outer, text)
    assert isinstance(code.type, MapType)
    target = entry_type(code.type)
    python = assembly.keep("row", target.python, repr(target.fields))
    name = assembly.refer(generators.entry_rows)
    source = f"({name}({code.source}, {python}) or {rest})"
    return Code(source, target, outer, text)


def _with_position(assembly: Assembly, code: Code, text: str, *, outer: bool) -> Code:
    fields: list[tuple[str, DataType, bool]] = [("pos", INTEGER, False)]
    helper: Callable[..., Any]
    if isinstance(code.type, MapType):
        fields += [
            ("key", code.type.key, False),
            ("value", code.type.value, code.type.value_contains_null),
        ]
        helper = generators.numbered_entry_rows
    else:
        assert isinstance(code.type, ArrayType)
        fields.append(("col", code.type.element, code.type.contains_null))
        helper = generators.numbered_rows
    target: StructType = row_type(tuple(Field(*field) for field in fields))
    python = assembly.keep("row", target.python, repr(target.fields))
    rest = "[None]" if outer else "[]"
    source = f"({assembly.refer(helper)}({code.source}, {python}) or {rest})"
    return Code(source, target, outer, text)
