"""Functions of arrays."""

from collections.abc import Callable, Sequence
from typing import Any

from floodway.core.types import BOOLEAN, INTEGER, LONG, NULL, STRING, ArrayType, DataType, MapType
from floodway.expressions.casts import agreed, convert, implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import (
    INTEGRAL,
    check_text,
    common_type,
    is_orderable,
    mismatch,
    widest,
)
from floodway.expressions.functions.registry import definer
from floodway.expressions.literals import DAYS, MONTHS
from floodway.expressions.runtime import arrays

define = definer("Arrays")


def element(code: Code) -> DataType:
    """Return the type of an array's elements."""
    assert isinstance(code.type, ArrayType)
    return code.type.element


def nulls(code: Code) -> bool:
    """Whether an array may contain NULL."""
    return isinstance(code.type, ArrayType) and code.type.contains_null


def same_arrays(
    assembly: Assembly, codes: Sequence[Code], text: str
) -> tuple[list[Code], ArrayType]:
    """Return several arrays brought to one type."""
    for code in codes:
        if not isinstance(code.type, ArrayType) and code.type != NULL:
            raise mismatch(text, codes, "use arrays only")
    target = common_type(codes, text)
    assert isinstance(target, ArrayType)
    return [agreed(assembly, code, target, text) for code in codes], target


def with_item(
    assembly: Assembly, array: Code, item: Code, text: str
) -> tuple[Code, Code, ArrayType]:
    """Return an array and a value brought to one element type."""
    check_text([array, item], text)
    wider = widest(element(array), item.type)
    if wider is None or wider == NULL:
        raise mismatch(text, [array, item], f"use a value of type {element(array)}")
    target = ArrayType(wider, nulls(array))
    return convert(assembly, array, target), agreed(assembly, item, wider, text), target


def _size(assembly: Assembly, codes: list[Code], text: str) -> Code:
    if not isinstance(codes[0].type, ArrayType | MapType) and codes[0].type != NULL:
        raise mismatch(text, codes, "use an array or a map")
    return assembly.strict(
        codes, lambda c: f"len({c[0].source})", INTEGER, text, bounds=(0, 2**31 - 1)
    )


define("size, cardinality", "value ANY", INTEGER, _size, "the number of elements", builder=True)
define(
    "array_size",
    "array ARRAY",
    INTEGER,
    "len({0})",
    "the number of elements",
    bounds=(0, 2**31 - 1),
)


def _array(assembly: Assembly, codes: list[Code], text: str) -> Code:
    target = common_type(codes, text)
    if target in (DAYS, MONTHS):
        raise mismatch(text, codes, "an element cannot be an interval literal")
    given = [agreed(assembly, code, target, text) for code in codes]
    listed = ", ".join(code.source for code in given)
    nullable = any(code.nullable for code in given)
    return Code(f"[{listed}]", ArrayType(target, nullable), nullable=False, text=text)


define("array", "element ANY...", None, _array, "an array of the elements", builder=True)


def _search(
    helper: Callable[..., Any], target: DataType, *, nullable: bool
) -> Callable[[Assembly, list[Code], str], Code]:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        array, item, _ = with_item(assembly, codes[0], codes[1], text)
        may_be_null = nullable and nulls(array)
        return assembly.call(helper, [array, item], target, text, nullable=may_be_null)

    return build


def _contains(assembly: Assembly, codes: list[Code], text: str) -> Code:
    """Build a search; for a constant text among texts, which are equal if Python says so."""
    array, item, _ = with_item(assembly, codes[0], codes[1], text)
    if item.constant and item.type == STRING and not nulls(array):
        return assembly.strict(
            [array, item], lambda c: f"({c[1].source} in {c[0].source})", BOOLEAN, text
        )
    return _search(arrays.contains, BOOLEAN, nullable=True)(assembly, codes, text)


define(
    "array_contains",
    "array ARRAY, value ANY",
    BOOLEAN,
    _contains,
    "whether the value is in the array; NULL if it is not but a null is",
    builder=True,
)
define(
    "array_position",
    "array ARRAY, value ANY",
    LONG,
    _search(arrays.position_of, LONG, nullable=False),
    "the first position of the value, counted from 1, or 0",
    builder=True,
)


def _remove(assembly: Assembly, codes: list[Code], text: str) -> Code:
    array, item, target = with_item(assembly, codes[0], codes[1], text)
    return assembly.call(arrays.without, [array, item], target, text)


define(
    "array_remove",
    "array ARRAY, value ANY",
    None,
    _remove,
    "the array without the elements equal to the value",
    builder=True,
)


def _adder(*, first: bool) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        array, item, target = with_item(assembly, codes[0], codes[1], text)
        target = ArrayType(target.element, target.contains_null or item.nullable)
        # Only the array decides whether the result is NULL: a null value is added as it is.
        body = f"[{item.source}, *{{0}}]" if first else f"[*{{0}}, {item.source}]"
        return assembly.strict(
            [array], lambda c: body.format(c[0].source), target, text, fold=False
        )

    return build


define(
    "array_append",
    "array ARRAY, value ANY",
    None,
    _adder(first=False),
    "the array with a value at its end",
    builder=True,
)
define(
    "array_prepend",
    "array ARRAY, value ANY",
    None,
    _adder(first=True),
    "the array with a value at its start",
    builder=True,
)


def _pair(helper: Callable[..., Any]) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        given, target = same_arrays(assembly, codes, text)
        return assembly.call(helper, given, target, text)

    return build


for _name, _helper, _doc in (
    ("array_union", arrays.union, "the elements of either array, each once"),
    ("array_intersect", arrays.intersection, "the elements of both arrays, each once"),
    ("array_except", arrays.difference, "the elements of the first array only, each once"),
):
    define(_name, "left ARRAY, right ARRAY", None, _pair(_helper), _doc, builder=True)


def _overlap(assembly: Assembly, codes: list[Code], text: str) -> Code:
    given, target = same_arrays(assembly, codes, text)
    nullable = target.contains_null
    return assembly.call(arrays.overlap, given, BOOLEAN, text, nullable=nullable)


define(
    "arrays_overlap",
    "left ARRAY, right ARRAY",
    BOOLEAN,
    _overlap,
    "whether the arrays share an element that is not null; NULL if only a null might decide",
    builder=True,
)


def _same(codes: Sequence[Code]) -> DataType:
    return codes[0].type


define("array_distinct", "array ARRAY", _same, arrays.distinct, "each element once")


def _compact(assembly: Assembly, codes: list[Code], text: str) -> Code:
    target = ArrayType(element(codes[0]), contains_null=False)
    return assembly.strict(
        codes, lambda c: f"[_x for _x in {c[0].source} if _x is not None]", target, text, twice=[0]
    )


define(
    "array_compact", "array ARRAY", None, _compact, "the elements that are not null", builder=True
)
define(
    "array_join",
    "array ARRAY<STRING>, separator STRING, [null STRING]",
    STRING,
    arrays.join,
    "the elements as one text; nulls are left out, or replaced",
)


def _ordered(helper: Callable[..., Any], *, whole: bool) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        if not is_orderable(element(codes[0])):
            raise mismatch(text, codes, "use an array whose elements can be ordered")
        target = codes[0].type if whole else element(codes[0])
        return assembly.call(helper, codes, target, text, nullable=not whole)

    return build


define(
    "array_max",
    "array ARRAY",
    None,
    _ordered(arrays.largest, whole=False),
    "the greatest element; nulls are passed over",
    builder=True,
)
define(
    "array_min",
    "array ARRAY",
    None,
    _ordered(arrays.smallest, whole=False),
    "the least element; nulls are passed over",
    builder=True,
)
define(
    "sort_array",
    "array ARRAY, [ascending BOOLEAN CONSTANT]",
    None,
    _ordered(arrays.sort_nulls_small, whole=True),
    "the array in order, nulls as the least",
    builder=True,
)
define(
    "array_sort",
    "array ARRAY",
    None,
    _ordered(arrays.sort_nulls_last, whole=True),
    "the array in ascending order, nulls at the end",
    builder=True,
)
define(
    "slice",
    "array ARRAY, start INT, length INT",
    _same,
    arrays.part,
    "a part of the array; positions count from 1, or from the end if negative",
)


def _flatten(assembly: Assembly, codes: list[Code], text: str) -> Code:
    inner = element(codes[0])
    if not isinstance(inner, ArrayType):
        raise mismatch(text, codes, "use an array of arrays")
    return assembly.call(arrays.flatten, codes, inner, text, nullable=nulls(codes[0]))


define("flatten", "array ARRAY", None, _flatten, "the elements of an array of arrays", builder=True)


def _repeat(assembly: Assembly, codes: list[Code], text: str) -> Code:
    value, times = codes
    target = ArrayType(value.type, value.nullable)
    bounded = assembly.refer(arrays.repeated)
    return assembly.strict(
        [times],
        lambda c: f"([{value.source}] * {bounded}({c[0].source}))",
        target,
        text,
        fold=False,
    )


define(
    "array_repeat",
    "value ANY, times INT",
    None,
    _repeat,
    "an array of the value several times",
    builder=True,
)


def _get(assembly: Assembly, codes: list[Code], text: str) -> Code:
    return assembly.call(arrays.item_or_null, codes, element(codes[0]), text, nullable=True)


define(
    "get",
    "array ARRAY, index INT",
    None,
    _get,
    "the element at an index from 0, or NULL",
    builder=True,
)


def _element_at(helper: Callable[..., Any], *, lenient: bool) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        value, key = codes
        if isinstance(value.type, MapType):
            return assembly.look_up(value, key, text)
        position = implied(assembly, key, INTEGER) if key.type in (INTEGER, NULL) else None
        if not isinstance(value.type, ArrayType) or position is None:
            raise mismatch(text, codes, "use an array and an INT position: CAST(... AS INT)")
        extra = () if lenient else (text,)
        nullable = lenient or nulls(value)
        return assembly.call(
            helper, [value, position], element(value), text, *extra, nullable=nullable
        )

    return build


define(
    "element_at",
    "value ANY, position ANY",
    None,
    _element_at(arrays.element_at, lenient=False),
    "the element at a position from 1, or from the end if negative; or the value of a map's key",
    builder=True,
)
define(
    "try_element_at",
    "value ANY, position ANY",
    None,
    _element_at(arrays.element_or_null, lenient=True),
    "as element_at, but NULL outside the array",
    builder=True,
)


def _sequence(assembly: Assembly, codes: list[Code], text: str) -> Code:
    target = common_type(codes, text)
    if target not in INTEGRAL:
        raise mismatch(text, codes, "use INT or BIGINT bounds")
    given = [agreed(assembly, code, target, text) for code in codes]
    return assembly.call(arrays.sequence, given, ArrayType(target, contains_null=False), text)


define(
    "sequence",
    "start ANY, stop ANY, [step ANY]",
    None,
    _sequence,
    "the integers from start to stop, both included",
    builder=True,
)
