"""Random well-typed expressions, three or four levels deep, from a seed."""

# Tables of cases are easier to read wide.
# ruff: noqa: E501

import random

_LEAVES = {
    "bool": ["b", "b0", "b2", "true", "CAST(NULL AS BOOLEAN)"],
    "long": ["l", "l0", "l2", "i", "i0", "1", "-2", "3L", "length(s)", "k"],
    "double": ["d", "d0", "d2", "d20", "0.5D", "l0 / 3"],
    "decimal": ["m", "m0", "1.5", "0.25"],
    "string": ["s", "s0", "s2", "'abc'", "''", "'x'"],
    "date": ["t", "t0", "t2", "DATE '2024-02-29'"],
    "moment": ["ts", "ts0", "ts2"],
    "array": ["al", "al0", "al2", "array(1L, 2L)"],
}
_SHAPES: dict[str, list[str]] = {
    "bool": [
        "({bool} AND {bool})", "({bool} OR {bool})", "(NOT {bool})", "({long} {cmp} {long})", "({double} {cmp} {double})",
        "({string} {cmp} {string})", "({long} IN ({long}, {long}))", "({double} BETWEEN {double} AND {double})", "({string} IS NULL)",
        "({bool} IS NOT TRUE)", "({string} LIKE '%a%')", "({date} {cmp} {date})", "({moment} {cmp} {moment})", "({bool} <=> {bool})",
        "array_contains({array}, {long})", "({long} {cmp} {double})", "({decimal} {cmp} {long})", "startswith({string}, {string})",
        "exists({array}, x -> x > {small})", "(CASE WHEN {bool} THEN {bool} ELSE {bool} END)",
    ],
    "long": [
        "try_add({long}, {long})", "try_subtract({long}, {long})", "try_multiply({long}, {long})", "coalesce({long}, {long})", "if({bool}, {long}, {long})",
        "nullif({long}, {long})", "({long} % 7)", "greatest({long}, {long})", "least({long}, {long})", "length({string})", "year({date})", "datediff({date}, {date})",
        "size({array})", "unix_seconds({moment})", "instr({string}, {string})", "(CASE {long} WHEN {long} THEN {long} ELSE {long} END)", "({long} & {long})",
        "TRY_CAST({double} AS BIGINT)", "get({array}, {small})", "(length({string}) + year({date}) * 2)", "bigint({bool})", "pmod({long}, 5)", "array_max({array})",
    ],
    "double": [
        "({double} + {double})", "({double} * {double})", "({double} - {double})", "try_divide({double}, {double})", "coalesce({double}, {double})", "abs({double})",
        "round({double}, 2)", "if({bool}, {double}, {long})", "greatest({double}, {double})", "least({double}, {double})", "sqrt({double})", "CAST({long} AS DOUBLE)",
        "nanvl({double}, {double})", "(-{double})", "({long} / 8)", "CAST({decimal} AS DOUBLE)", "sign({double})",
    ],
    "decimal": ["try_add({decimal}, {decimal})", "try_multiply({decimal}, 2.5)", "coalesce({decimal}, {decimal})", "try_divide({decimal}, {decimal})", "abs({decimal})", "if({bool}, {decimal}, 1)"],
    "string": [
        "upper({string})", "concat({string}, {string})", "({string} || {string})", "substring({string}, {small}, 3)", "coalesce({string}, {string})", "trim({string})",
        "if({bool}, {string}, {string})", "replace({string}, 'a', {string})", "lpad({string}, 5, 'xy')", "CAST({long} AS STRING)", "CAST({date} AS STRING)",
        "date_format({moment}, 'yyyy-MM')", "concat_ws('-', {string}, {string})", "reverse({string})", "left({string}, {small})", "hex({long})", "CAST({bool} AS STRING)",
    ],
    "date": ["date_add({date}, {small})", "coalesce({date}, {date})", "last_day({date})", "trunc({date}, 'month')", "greatest({date}, {date})", "CAST({moment} AS DATE)", "if({bool}, {date}, {date})"],
    "moment": ["date_trunc('hour', {moment})", "coalesce({moment}, {moment})", "({moment} - INTERVAL 1 HOUR)", "if({bool}, {moment}, {moment})", "CAST({date} AS TIMESTAMP)", "least({moment}, {moment})"],
    "array": ["array_distinct({array})", "array_union({array}, {array})", "sort_array({array})", "filter({array}, x -> x <> {small})", "array({long}, {long}, 1L)", "reverse({array})", "slice({array}, 1, 2)", "transform({array}, x -> try_add(x, {small}))"],
}  # fmt: skip
_COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


def make(rng: random.Random, kind: str, depth: int) -> str:
    """Return one random expression of a kind."""
    if kind == "cmp":
        return rng.choice(_COMPARISONS)
    if kind == "small":
        return str(rng.randint(1, 4))
    if depth == 0:
        return rng.choice(_LEAVES[kind])
    shape = rng.choice(_SHAPES[kind])
    out, rest = "", shape
    while "{" in rest:
        before, _, rest = rest.partition("{")
        inner, _, rest = rest.partition("}")
        down = 0 if rng.random() < 0.25 else depth - 1
        out += before + make(rng, inner, down)
    return out + rest


def expressions(count: int, seed: int = 2024) -> list[str]:
    """Return random expressions of all kinds, three or four levels deep."""
    rng = random.Random(seed)
    kinds = [*_SHAPES]
    return [make(rng, kinds[i % len(kinds)], rng.choice((3, 4))) for i in range(count)]
