"""Expressions that cannot be: each error names the part that is wrong and a remedy."""

import pytest

from floodway.core.errors import (
    ExpressionSyntaxError,
    ExpressionTypeError,
    FlowError,
    UnknownColumnError,
    UnsupportedExpressionError,
)
from floodway.core.schema import Schema
from floodway.expressions import Scope, compile_expression
from tests.expressions.wide import scope

SCOPE = scope()


def refused(text: str, kind: type[FlowError], *fragments: str) -> None:
    with pytest.raises(kind) as caught:
        compile_expression(text, SCOPE)
    shown = str(caught.value)
    assert caught.value.remedy
    for fragment in fragments:
        assert fragment in shown, shown


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("", ["expected an expression", "at the end"]),
        ("a +", ["expected an expression"]),
        ("l > ", ["expected an expression"]),
        ("l l2 l", ["something is left over"]),
        ("(l + 1", ["expected ,"]),
        ("'open", ["never closed"]),
        ("l # 2", ["'#'", "position 3"]),
        ("l IN ()", ["IN needs at least one value"]),
        ("CASE l END", ["expected WHEN"]),
        ("SELECT l", ["more than an expression"]),
        ("l WHERE l > 1", ["more than an expression", "WHERE"]),
        ("l IS 5", ["expected NULL, TRUE"]),
        ("CAST(l AS)", ["the name of a type"]),
        ("s LIKE 'a' ESCAPE 'xy'", ["one character after ESCAPE"]),
        ("INTERVAL 1 FORTNIGHT", ["not an interval"]),
        ("X'ZZ'", ["binary literal"]),
        ("CAST(l AS DECIMAL(50,2))", ["DECIMAL(50,2) is not a type"]),
        ("9223372036854775808L", ["does not fit into a BIGINT"]),
    ],
)
def test_syntax_errors_say_where(text: str, fragments: list[str]) -> None:
    refused(text, ExpressionSyntaxError, *fragments)


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("b + 1", ["b + 1", "b is BOOLEAN", "1 is INT"]),
        ("l AND b", ["l AND b", "l is BIGINT", "compare it: l <> 0"]),
        ("NOT s", ["NOT s", "s is STRING"]),
        ("t > 5", ["t > 5", "t is DATE", "CAST(5 AS DATE)"]),
        ("b = 1", ["b = 1", "BOOLEAN"]),
        ("mp = mp0", ["mp = mp0", "one by one"]),
        ("coalesce(t, 1)", ["coalesce(t, 1)", "t is DATE", "1 is INT"]),
        ("if(b, al, 1)", ["no common type", "al is ARRAY<BIGINT>"]),
        ("upper(al)", ["upper(al)", "ARRAY<BIGINT>", "upper(text STRING)"]),
        ("upper()", ["upper() has 0 arguments", "upper(text STRING)"]),
        ("upper(s, s)", ["has 2 arguments"]),
        ("p.z", ["p has no field 'z'", "use one of: x, y"]),
        ("l.z", ["l is BIGINT", "no field 'z'"]),
        ("l[0]", ["l[0]", "index an array"]),
        ("al['a']", ["al['a']", "'a' is STRING"]),
        ("CAST(t AS INT)", ["t is DATE", "cannot be cast to INT"]),
        ("CAST(al AS STRING)", ["cannot be cast to STRING"]),
        ("ts * 2", ["ts * 2", "ts is TIMESTAMP", "datediff"]),
        ("t + l", ["t + l", "l is BIGINT"]),
        ("date_add(t, l)", ["date_add(t, l)", "days STRICT INT"]),
        ("element_at(al, l)", ["CAST(... AS INT)"]),
        ("x -> x", ["is a function, not a value"]),
        ("transform(al, 1)", ["transform(array, x -> ...)"]),
        ("* + 1", ["* stands for all columns"]),
        ("d DIV 2", ["d DIV 2", "floor()"]),
        ("round(d, k)", ["round(d, k)", "digits INT CONSTANT"]),
        ("-s || 1 AND b", ["BOOLEAN"]),
        ("s LIKE 5", ["s LIKE 5", "5 is INT"]),
    ],
)
def test_type_errors_name_the_part_and_its_types(text: str, fragments: list[str]) -> None:
    refused(text, ExpressionTypeError, *fragments)


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("d IN ('a')", ["'a' is STRING", "write a literal that is DOUBLE"]),
        ("l IN ('1', 'b')", ["'b' is STRING", "BIGINT"]),
        ("greatest(s, 5)", ["s is STRING and 5 is INT", "CAST(s AS BIGINT)", "quotes around 5"]),
        ("least('x', l)", ["'x' is STRING", "BIGINT"]),
        ("coalesce(s, 5)", ["s is STRING and 5 is INT", "TRY_CAST"]),
        ("coalesce(l, 'none')", ["'none' is STRING", "BIGINT"]),
        ("coalesce(s, b)", ["b is BOOLEAN", "CAST(s AS BOOLEAN)"]),
        ("CASE WHEN b THEN s ELSE 0 END", ["s is STRING", "CAST(s AS BIGINT)"]),
        ("if(b, 'yes', 0)", ["'yes' is STRING", "BIGINT"]),
        ("s > true", ["true is BOOLEAN", "the text is a truth value", "CAST(s AS BOOLEAN)"]),
        ("array_contains(split(s, ','), 5)", ["ARRAY<STRING>", "transform(", "quotes around 5"]),
        ("array_contains(al, s)", ["s is STRING", "CAST(s AS BIGINT)"]),
        ("array_contains(al, 'x')", ["'x' is STRING", "BIGINT"]),
        ("concat(al, split(s, ','))", ["ARRAY<STRING>", "x -> CAST(x AS BIGINT)"]),
        ("array(s, 1)", ["s is STRING", "CAST(s AS BIGINT)"]),
    ],
)
def test_text_that_is_read_as_something_else_has_to_say_so(text: str, fragments: list[str]) -> None:
    refused(text, ExpressionTypeError, *fragments)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 IN ('7', '8')", True),
        ("greatest('7', 5)", 7),
        ("coalesce('7', 5)", 7),
        ("array_contains(array(1, 2), '2')", True),
        ("array_contains(split('1,2', ','), '2')", True),
        ("concat(array('1'), array(2))", [1, 2]),
        ("coalesce(NULL, 'a')", "a"),
        ("true = 'true'", True),
        ("coalesce(CAST('7' AS BIGINT), 5)", 7),
    ],
)
def test_constants_that_are_of_the_common_type_are_brought_to_it(text: str, value: object) -> None:
    assert compile_expression(text, SCOPE).function("v")({}) == value


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("uper(s)", ["no function uper", "upper", "Python function"]),
        ("frobnicate(s)", ["frobnicate", "docs/expressions.md", "Python function"]),
        ("count(*)", ["aggregate", "group_by(...)"]),
        ("sum(l)", ["aggregate", "group_by(...)"]),
        ("sum(l) OVER (PARTITION BY s)", ["OVER"]),
        ("rand()", ["processed again"]),
        ("uuid()", ["processed again"]),
        ("now()", ["record's own timestamp"]),
        ("current_date", ["record's own timestamp"]),
        ("current_timestamp()", ["record's own timestamp"]),
        ("row_number()", ["order of many records"]),
        ("explode(al)", ["several rows", "flat_map"]),
        ("size(explode(al))", ["inside another expression", "flat_map"]),
        ("from_json(s, 'a int')", ["schema"]),
        ("CAST(l AS SMALLINT)", ["SMALLINT", "use INT"]),
        ("CAST(al AS ARRAY<INT>)", ["ARRAY<...>"]),
        ("1.5F", ["does not have"]),
        ("s RLIKE '\\\\p{Alpha}+'", ["regular expression", "\\p"]),
        ("s RLIKE '[a-z&&[^b]]'", ["regular expression"]),
        ("date_format(t, 'G')", ["format", "yyyy"]),
        ("to_date(s, 'yyyyMMdd')", ["without a separator"]),
        ("get_json_object(j, '$.*')", ["without wildcards"]),
        ("INTERVAL 1 MONTH 2 DAYS", ["mixes months with days"]),
        ("INTERVAL 1 MONTH", ["not a value by itself"]),
        ("(" * 300 + "l" + ")" * 300, ["nested too deeply"]),
        ("- " * 400 + "l", ["nested too deeply"]),
    ],
)
def test_what_cannot_be_lowered_says_what_to_do(text: str, fragments: list[str]) -> None:
    refused(text, UnsupportedExpressionError, *fragments)


def test_an_unknown_column_lists_the_known_ones() -> None:
    refused("nope + 1", UnknownColumnError, "'nope'", "use one of: b, b0")


def test_an_opaque_schema_says_that_it_is_opaque() -> None:
    with pytest.raises(UnknownColumnError, match="opaque"):
        compile_expression("a", Scope.of(Schema.of(set)))


def test_long_chains_are_not_deep() -> None:
    text = " OR ".join(f"l = {i}" for i in range(2000))
    check = compile_expression(text, SCOPE).function("v")
    assert check({"l": 1999}) is True
    assert check({"l": 2000}) is False
    assert check({"l": None}) is None
