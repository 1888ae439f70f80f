"""What an expression may make of a record: bounded, when the flow is built and while it runs."""

import tracemalloc

import pytest

from floodway.core.errors import ExpressionError
from floodway.core.types import LONG, STRING
from floodway.expressions import Column, Scope, compile_expression

SCOPE = Scope({"n": Column("n", LONG, False), "s": Column("s", STRING, False)})
HUGE = 1_000_000_000
MEGABYTE = 2**20


@pytest.mark.parametrize(
    "text",
    [
        f"space({HUGE})",
        f"repeat('ab', {HUGE})",
        f"length(repeat('x', {HUGE}))",
        f"lpad('x', {HUGE})",
        f"rpad('x', {HUGE}, 'yz')",
        f"size(sequence(1, {HUGE}))",
        f"array_repeat('x', {HUGE})",
        f"concat(space({HUGE}), 'x')",
        f"upper(repeat('x', {HUGE}))",
        f"array_join(array_repeat('x', {HUGE}), ',')",
        "length(space(30000000))",
        "sequence(1, 4000000)",
    ],
)
def test_constants_are_not_computed_without_bound(text: str) -> None:
    tracemalloc.start()
    try:
        expression = compile_expression(text, SCOPE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(expression.source) < 1000
    assert peak < 64 * MEGABYTE


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("space(n)", "characters"),
        ("repeat(s, n)", "characters"),
        ("lpad(s, n)", "characters"),
        ("rpad(s, n, 'yz')", "characters"),
        ("sequence(1, n)", "elements"),
        ("array_repeat(s, n)", "elements"),
    ],
)
def test_a_record_cannot_make_a_value_without_bound(text: str, size: str) -> None:
    function = compile_expression(text, SCOPE).function("n", "s")
    assert len(function(3, "a")) == 3
    with pytest.raises(ExpressionError, match=size):
        function(HUGE, "a")


@pytest.mark.parametrize(
    "text",
    [
        "replace(s, 'a', s)",
        "regexp_replace(s, 'a', s)",
        "array_join(split(s, 'a'), s)",
        "concat_ws(s, split(s, 'a'))",
        "levenshtein(s, s)",
    ],
)
def test_the_square_of_a_text_is_refused(text: str) -> None:
    function = compile_expression(text, SCOPE).function("n", "s")
    function(0, "aba")
    with pytest.raises(ExpressionError):
        function(0, "a" * 100_000)


def test_flatten_makes_no_array_without_bound() -> None:
    function = compile_expression("flatten(array_repeat(sequence(1, n), n))", SCOPE).function(
        "n", "s"
    )
    assert function(2, "") == [1, 2, 1, 2]
    with pytest.raises(ExpressionError, match=r"flatten makes \d+ elements"):
        function(3000, "")
