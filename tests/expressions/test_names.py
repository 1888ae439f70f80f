"""Columns that are called like words of the language: taken wherever Spark takes them."""

from typing import Any

import pytest

from floodway.core.errors import ExpressionSyntaxError
from floodway.core.types import INTEGER
from floodway.expressions import Column, Scope, compile_expression, compile_projection

WORDS = (
    *("like", "rlike", "between", "distinct", "case", "when", "then", "end"),
    *("where", "group", "having", "order", "limit", "select", "join", "union", "on", "using"),
    *("start", "key", "value", "interval", "date", "timestamp", "exists", "to", "escape"),
)
TEXTS = (
    "{0}",
    "{0} + 1",
    "a - {0}",
    "({0})",
    "abs({0})",
    "{0} IS NOT NULL AND NOT {0} > 8",
    "a BETWEEN {0} AND {0}",
    "CASE WHEN {0} > 3 THEN {0} ELSE 0 END",
    "CASE {0} WHEN 7 THEN a WHEN {0} THEN 2 END",
    "CASE WHEN a > 3 THEN 1 ELSE {0} END",
    "{0} NOT IN (1, {0})",
    "struct({0}).{0}",
    "struct(a AS {0}).{0}",
)


# What only backquotes can tell apart.
AMBIGUOUS = (
    "CASE case WHEN 7 THEN a WHEN case THEN 2 END",
    "CASE when WHEN 7 THEN a WHEN when THEN 2 END",
)


def _texts(word: str) -> list[str]:
    return [text for text in TEXTS if text.format(word) not in AMBIGUOUS]


def _scope(word: str) -> Scope:
    return Scope({word: Column("x", INTEGER, False), "a": Column("y", INTEGER, False)})


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_a_column_where_nothing_else_can_stand(word: str) -> None:
    for text in _texts(word):
        function = compile_expression(text.format(word), _scope(word)).function("x", "y")
        quoted = compile_expression(text.format(f"`{word}`"), _scope(word)).function("x", "y")
        assert function(7, 8) == quoted(7, 8), text


@pytest.mark.spark
def test_words_are_columns_as_in_spark(judge: Any) -> None:
    for word in WORDS:
        frame = judge.createDataFrame([(7, 8)], f"`{word}` int, a int")
        texts = [text.format(word) for text in _texts(word)]
        answers = frame.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(texts))).first()
        for text, theirs in zip(texts, answers, strict=True):
            ours = compile_expression(text, _scope(word)).function("x", "y")(7, 8)
            assert ours == theirs, text


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("a end", "`end`"), ("CASE WHEN a > 1 THEN 2 ELSE END", "`END`"), ("a + in", "`in`")],
)
def test_a_word_in_the_way_is_told_with_its_quotes(text: str, remedy: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        compile_expression(text, _scope("end"))
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_what_is_ambiguous_works_in_backquotes(text: str) -> None:
    word = text.split()[1]
    with pytest.raises(ExpressionSyntaxError):
        compile_expression(text, _scope(word))
    quoted = text.replace(f" {word} ", f" `{word}` ")
    assert compile_expression(quoted, _scope(word)).function("x", "y")(7, 8) == 8


def test_a_name_after_as_may_be_any_word() -> None:
    assert compile_projection("a + 1 AS end", _scope("end"))[0] == "end"
