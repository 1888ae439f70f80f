"""Functions that choose between values."""

from typing import Any

from floodway.core.types import BOOLEAN, DOUBLE, NULL, ArrayType, StructType
from floodway.expressions.casts import agreed
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import common_type, is_orderable, mismatch
from floodway.expressions.comparison import compare
from floodway.expressions.functions.registry import definer
from floodway.expressions.logic import boolean, choice, coalesce, null_test
from floodway.expressions.runtime import arrays

define = definer("Conditions")


def _coalesce(assembly: Assembly, codes: list[Code], text: str) -> Code:
    return coalesce(assembly, codes, text)


define(
    "coalesce",
    "value ANY...",
    None,
    _coalesce,
    "the first value that is not null",
    builder=True,
)
define(
    "nvl, ifnull",
    "value ANY, default ANY",
    None,
    _coalesce,
    "the value, or the default where it is null",
    builder=True,
)


def _if(assembly: Assembly, codes: list[Code], text: str) -> Code:
    condition = boolean(assembly, codes[0], text)
    return choice(assembly, [(condition, codes[1])], codes[2], text)


define(
    "if",
    "condition ANY, then ANY, else ANY",
    None,
    _if,
    "one of two values",
    builder=True,
)


def _nvl2(assembly: Assembly, codes: list[Code], text: str) -> Code:
    condition = null_test(assembly, codes[0], text, negated=True)
    return choice(assembly, [(condition, codes[1])], codes[2], text)


define(
    "nvl2",
    "value ANY, present ANY, absent ANY",
    None,
    _nvl2,
    "one of two values, for a value that is not null or is",
    builder=True,
)


def _nullif(assembly: Assembly, codes: list[Code], text: str) -> Code:
    value, other = codes
    if value.atom:
        bound, tail = value, ""
    else:
        name = assembly.temporary()
        bound = Code(name, value.type, value.nullable, value.text, atom=True)
        tail = f"(({name} := {value.source}) is None or True) and "
    equal = compare(assembly, "=", bound, other, text)
    target = value.type
    if target == NULL:
        return assembly.null(target, text)
    return assembly.folded(
        Code(
            f"(None if {tail}{equal.source} else {bound.source})", target, nullable=True, text=text
        ),
        codes,
    )


define(
    "nullif",
    "value ANY, other ANY",
    None,
    _nullif,
    "NULL where the value equals the other, else the value",
    builder=True,
)


def _nanvl(assembly: Assembly, codes: list[Code], text: str) -> Code:
    value, other = codes
    if not value.nullable and not value.atom:
        test, bound = assembly.bind(value)
        source = (
            f"({other.source} if {test} or {bound.source} != {bound.source} else {bound.source})"
        )
        return Code(source, DOUBLE, other.nullable, text)
    one = assembly.temporary()
    source = f"({one} if ({one} := {value.source}) == {one} else {other.source})"
    return assembly.folded(Code(source, DOUBLE, value.nullable or other.nullable, text), codes)


define(
    "nanvl",
    "value DOUBLE, other DOUBLE",
    DOUBLE,
    _nanvl,
    "the value, or the other where it is NaN",
    builder=True,
)


def _extreme(word: str) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        if len(codes) < 2:
            raise mismatch(text, codes, "compare at least two values")
        target = common_type(codes, text)
        if not is_orderable(target):
            raise mismatch(text, codes, "use values that can be ordered")
        given = [agreed(assembly, code, target, text) for code in codes]
        listed = ", ".join(code.source for code in given)
        nullable = all(code.nullable for code in given)
        simple = target != DOUBLE and not isinstance(target, ArrayType | StructType)
        if simple and not any(code.nullable for code in given):
            return assembly.folded(
                Code(f"{word}({listed})", target, nullable=False, text=text), given
            )
        helper = arrays.largest if word == "max" else arrays.smallest
        source = f"{assembly.refer(helper)}([{listed}])"
        return assembly.folded(Code(source, target, nullable, text), given)

    return build


define(
    "greatest",
    "value ANY...",
    None,
    _extreme("max"),
    "the greatest value; nulls are passed over",
    builder=True,
)
define(
    "least",
    "value ANY...",
    None,
    _extreme("min"),
    "the least value; nulls are passed over",
    builder=True,
)


def _is_null(*, negated: bool) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        return null_test(assembly, codes[0], text, negated=negated)

    return build


define("isnull", "value ANY", BOOLEAN, _is_null(negated=False), "whether it is null", builder=True)
define(
    "isnotnull",
    "value ANY",
    BOOLEAN,
    _is_null(negated=True),
    "whether it is not null",
    builder=True,
)


def _equal_null(assembly: Assembly, codes: list[Code], text: str) -> Code:
    return compare(assembly, "<=>", codes[0], codes[1], text)


define(
    "equal_null",
    "left ANY, right ANY",
    BOOLEAN,
    _equal_null,
    "whether both are equal or both null; also `a <=> b`",
    builder=True,
)
