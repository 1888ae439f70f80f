"""Three-valued logic and choice: AND, OR, NOT, IS, IN, CASE.

A boolean is True, False or None. Where an operand cannot be null its source is used as it is; the
forms below are the shortest that still tell False from unknown.
"""

from collections.abc import Sequence

from floodway.core.types import BOOLEAN, NULL, DataType
from floodway.expressions.casts import agreed, convert
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import common_type, is_numeric, mismatch
from floodway.expressions.comparison import compare


def boolean(assembly: Assembly, code: Code, where: str) -> Code:
    """Return the operand as a condition, or refuse it."""
    if code.type == BOOLEAN:
        return code
    if code.type == NULL:
        return convert(assembly, code, BOOLEAN)
    remedy = f"compare it: {code.text} <> 0" if is_numeric(code.type) else "write a comparison"
    raise mismatch(where, [code], f"a condition must be BOOLEAN; {remedy}")


def conjunction(assembly: Assembly, left: Code, right: Code, text: str) -> Code:
    """Return ``left AND right``."""
    if left.constant and left.value is not None:
        return assembly.renamed(right, text) if left.value else left
    if right.constant and right.value is True:
        return assembly.renamed(left, text)
    nullable = left.nullable or right.nullable
    if not left.nullable:
        source = f"({left.source} and {right.source})"
    elif not right.nullable:
        one = assembly.temporary()
        source = f"(False if ({one} := {left.source}) is False or not {right.source} else {one})"
    else:
        one, two = assembly.temporary(), assembly.temporary()
        source = (
            f"(False if ({one} := {left.source}) is False or ({two} := {right.source}) is False "
            f"else {one} and {two})"
        )
    return assembly.folded(Code(source, BOOLEAN, nullable, text), [left, right])


def disjunction(assembly: Assembly, left: Code, right: Code, text: str) -> Code:
    """Return ``left OR right``."""
    if left.constant and left.value is not None:
        return left if left.value else assembly.renamed(right, text)
    if right.constant and right.value is False:
        return assembly.renamed(left, text)
    nullable = left.nullable or right.nullable
    if not left.nullable:
        source = f"({left.source} or {right.source})"
    elif not right.nullable:
        one = assembly.temporary()
        source = f"(True if ({one} := {left.source}) or {right.source} else {one})"
    else:
        one, two = assembly.temporary(), assembly.temporary()
        source = (
            f"(True if ({one} := {left.source}) or ({two} := {right.source}) "
            f"else None if {one} is None else {two})"
        )
    return assembly.folded(Code(source, BOOLEAN, nullable, text), [left, right])


def negation(assembly: Assembly, operand: Code, text: str) -> Code:
    """Return ``NOT operand``."""
    return assembly.strict([operand], lambda codes: f"(not {codes[0].source})", BOOLEAN, text)


def null_test(assembly: Assembly, operand: Code, text: str, *, negated: bool) -> Code:
    """Return ``operand IS [NOT] NULL``."""
    if operand.constant or (operand.atom and not operand.nullable):
        return assembly.constant((operand.is_null) != negated, BOOLEAN, text)
    word = "is not" if negated else "is"
    return Code(f"({operand.source} {word} None)", BOOLEAN, nullable=False, text=text)


def truth_test(assembly: Assembly, operand: Code, text: str, *, what: bool, negated: bool) -> Code:
    """Return ``operand IS [NOT] TRUE`` or ``FALSE``."""
    word = "is not" if negated else "is"
    code = Code(f"({operand.source} {word} {what})", BOOLEAN, nullable=False, text=text)
    if operand.constant:
        return assembly.constant((operand.value is what) != negated, BOOLEAN, text)
    return code


def membership(assembly: Assembly, operand: Code, choices: Sequence[Code], text: str) -> Code:
    """Return ``operand IN (choices)``; an unknown choice makes a miss unknown."""
    target = common_type([operand, *choices], text)
    value = agreed(assembly, operand, target, text)
    options = [agreed(assembly, choice, target, text) for choice in choices]
    plain = _plain_set(options)
    if plain is not None:
        return assembly.strict(
            [value], lambda codes: f"({codes[0].source} in {plain})", BOOLEAN, text
        )
    test, bound = assembly.bind(value)
    tree = compare(assembly, "=", bound, options[0], text)
    for option in options[1:]:
        tree = disjunction(assembly, tree, compare(assembly, "=", bound, option, text), text)
    source = f"(None if {test} else {tree.source})"
    return assembly.folded(
        Code(source, BOOLEAN, value.nullable or tree.nullable, text), [value, *options]
    )


def _plain_set(options: Sequence[Code]) -> str | None:
    """Return a set display, which Python keeps as a constant, if all choices are plain."""
    values = [option.value for option in options if option.constant]
    # NaN equals itself in Spark but not in a Python set; -0.0 and 0.0 are equal in both.
    plain = all(type(v) in (int, str, bool, float) and v == v for v in values)
    if len(values) < len(options) or not plain:
        return None
    return "{" + ", ".join(dict.fromkeys(option.source for option in options)) + "}"


def choice(
    assembly: Assembly, branches: Sequence[tuple[Code, Code]], default: Code, text: str
) -> Code:
    """Return ``CASE WHEN condition THEN value ... ELSE default END``."""
    target = common_type([*(value for _, value in branches), default], text)
    source, nullable = "", False
    for condition, value in branches:
        if condition.constant and not condition.value:
            continue
        converted = agreed(assembly, value, target, text)
        nullable = nullable or converted.nullable
        if condition.constant:
            return _chosen(source, converted, target, text, nullable=nullable)
        source += f"{converted.source} if {condition.source} else "
    converted = agreed(assembly, default, target, text)
    return _chosen(source, converted, target, text, nullable=nullable or converted.nullable)


def _chosen(source: str, last: Code, target: DataType, text: str, *, nullable: bool) -> Code:
    if not source:
        return Code(
            last.source, target, nullable, text, last.atom, last.bounds, last.constant, last.value
        )
    return Code(f"({source}{last.source})", target, nullable, text)


def coalesce(assembly: Assembly, codes: Sequence[Code], text: str) -> Code:
    """Return the first operand that is not null."""
    target = common_type(codes, text)
    source = ""
    for code in codes:
        converted = agreed(assembly, code, target, text)
        if converted.is_null:
            continue
        if not converted.nullable:
            return _chosen(source, converted, target, text, nullable=False)
        if code is codes[-1]:
            return _chosen(source, converted, target, text, nullable=True)
        name = assembly.temporary()
        source += f"{name} if ({name} := {converted.source}) is not None else "
    return _chosen(source, assembly.null(target, text), target, text, nullable=True)
