"""Expression text to syntax tree: what is read, what is refused, and how it is said."""

import logging
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from floodway.core.errors import ExpressionSyntaxError, FlowError, UnsupportedExpressionError
from floodway.core.types import STRING
from floodway.expressions import Column, Scope, compile_expression
from floodway.expressions.sql import parse, parse_named
from floodway.expressions.tree import Literal, Term
from tests.expressions.readings import GROUPED, LITERALS, REFUSED, TREES


@pytest.mark.parametrize(("text", "expected"), TREES.items(), ids=TREES)
def test_constructs(text: str, expected: Term) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(("text", "value", "data_type"), LITERALS)
def test_literals(text: str, value: object, data_type: object) -> None:
    assert parse(text) == Literal(text, value, data_type)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("INTERVAL 1 DAY 2 HOURS", "INTERVAL 26 HOURS"),
        ("INTERVAL '1 day 2 hours'", "INTERVAL '26' HOUR"),
        ("INTERVAL 1 DAY -2 HOURS", "INTERVAL 22 HOURS"),
        ("INTERVAL '1 02:00:00' DAY TO SECOND", "INTERVAL 26 HOURS"),
        ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL 14 MONTHS"),
        ("INTERVAL -1.5 SECONDS", "INTERVAL '-1500' MILLISECONDS"),
    ],
)
def test_intervals(text: str, same: str) -> None:
    one, other = parse(text), parse(same)
    assert isinstance(one, Literal)
    assert isinstance(other, Literal)
    assert (one.value, one.type) == (other.value, other.type)


def _plain(node: Any) -> Any:
    """Return a tree without its texts, which differ by the parentheses."""
    if isinstance(node, Term):
        fields = (getattr(node, field) for field in node.__struct_fields__ if field != "text")
        return type(node).__name__, *map(_plain, fields)
    return tuple(map(_plain, node)) if isinstance(node, tuple) else node


@pytest.mark.parametrize(("text", "grouped"), GROUPED)
def test_precedence(text: str, grouped: str) -> None:
    assert _plain(parse(text)) == _plain(parse(grouped))


@pytest.mark.parametrize(
    ("text", "named"),
    [("a", None), ("a AS b", "b"), ("a b", "b"), ("a AS `b c`", "b c"), ("a + 1 AS end", "end")],
)
def test_aliases(text: str, named: str | None) -> None:
    assert parse_named(text)[1] == named


@pytest.mark.parametrize(("text", "problem"), REFUSED)
def test_syntax_errors(text: str, problem: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        parse(text)
    assert problem in caught.value.problem
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sum(a) OVER (PARTITION BY b)", "sum(a) OVER is not an expression on one record"),
        ("sum(a) FILTER (WHERE b)", "FILTER"),
        ("first(a) IGNORE NULLS", "IGNORE"),
        ("count(DISTINCT a)", "DISTINCT"),
        ("CAST(a AS array<int>)", "array<...>"),
        ("CAST(a AS tinyint)", "tinyint"),
        ("TIME '12:00:00'", "not a literal"),
        ("1S", "1S"),
    ],
)
def test_unsupported(text: str, problem: str) -> None:
    with pytest.raises(UnsupportedExpressionError) as caught:
        parse(text)
    assert problem in caught.value.problem
    assert caught.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "a" + ")" * 3000,
        "f(" * 3000 + ")" * 3000,
        "NOT " * 3000 + "a",
        "- " * 3000 + "a",
        "a" + "[0]" * 3000,
        "a" + "::int" * 3000,
        "CASE WHEN a THEN " * 3000 + "1" + " END" * 3000,
    ],
    ids=lambda text: text[:6],
)
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match="nested too deeply"):
        parse(text)


def test_ordinary_depth_is_not_refused() -> None:
    parse("if(a, 1, " * 25 + "2" + ")" * 25)
    parse(" OR ".join(f"a = {i}" for i in range(5000)))
    parse(f"a IN ({', '.join(map(str, range(5000)))})")


_SOUP = (
    "a b 1 2.5 's' ( ) [ ] , . + - * / = < > <=> || :: -> ! ~ AND OR NOT IS NULL IN LIKE BETWEEN "
    "CASE WHEN THEN ELSE END CAST AS INT f( INTERVAL DAY TO DATE ESCAPE DISTINCT FROM `q` trim( "
    "extract( substring( position( OVER SELECT ANY ALL X -- /* */ ; {{ \\ \" ' é 9L .5 1e5"
)
_WORDS = st.sampled_from(_SOUP.split())


@example("INTERVAL '1' DAY TO")
@example("+ INTERVAL 1")
@example("'\\UFFFFFFFF'")
@example("INTERVAL 'NaN' SECOND")
@example("\x00")
@given(st.text() | st.lists(_WORDS, max_size=12).map(" ".join))
def test_nothing_but_our_errors(text: str) -> None:
    try:
        node, _ = parse_named(text)
    except FlowError:
        return
    assert node.text in text


def test_sqlglot_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for text in ("show a", "a; b", "CAST(a AS varchar(2))", "SET x = 1", "IF a THEN b"):
            with pytest.raises(FlowError):
                parse(text)
    assert not caplog.records


def test_a_decimal_with_an_exponent_has_all_its_digits() -> None:
    scope = Scope({})
    assert str(compile_expression("1e3BD", scope).type) == "DECIMAL(4,0)"
    with pytest.raises(FlowError, match="38 digits"):
        compile_expression("12e40BD", scope)


def test_a_long_concatenation_is_one_call() -> None:
    scope = Scope({"s": Column("v", STRING, nullable=False)})
    long = compile_expression(" || ".join(["s"] * 60), scope)
    assert long.function("v")("x") == "x" * 60
    assert len(long.source) < 60 * 20
