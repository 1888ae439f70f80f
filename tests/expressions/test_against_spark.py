"""Spark is the judge: every operator and function, on the same rows, must answer the same.

Ours is computed row by row; where it raises, Spark must raise too (a sample is checked), and
elsewhere values and types must be equal.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest

from floodway.expressions import FUNCTIONS, Expression, compile_expression
from tests.expressions import cases, nested, oracle, wide

pytestmark = pytest.mark.spark

ROWS = wide.rows(20)
SCOPE = wide.scope()
CHUNK = 120


@pytest.fixture(scope="module")
def frame(judge: Any) -> Any:
    """The rows, in Spark."""
    data = [tuple(oracle.plain(value) for value in row.values()) for row in _ordered(ROWS)]
    made = judge.createDataFrame(data, oracle.schema()).coalesce(1).cache()
    made.count()
    return made


def _ordered(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    names = ["id", *(name + tail for name in wide.COLUMNS for tail in ("", "0"))]
    return [{name: row[name] for name in names} for row in rows]


def _compiled(texts: Sequence[str]) -> list[tuple[str, Expression, list[Any]]]:
    made = []
    for text in dict.fromkeys(texts):
        expression = compile_expression(text, SCOPE)
        made.append((text, expression, oracle.our_answers(expression, ROWS)))
    return made


def _differences(frame: Any, compiled: Sequence[tuple[str, Expression, list[Any]]]) -> list[str]:
    """Return what differs, from one job for each chunk of expressions."""
    try:
        selected = frame.orderBy("id").selectExpr(
            *(f"{oracle.guarded(text, ours)} AS c{i}" for i, (text, _, ours) in enumerate(compiled))
        )
        collected = selected.collect()
    except Exception as error:
        if len(compiled) == 1:
            return [f"{compiled[0][0]}: ours {compiled[0][2]}, Spark: {str(error)[:300]}"]
        half = len(compiled) // 2
        return _differences(frame, compiled[:half]) + _differences(frame, compiled[half:])
    found = []
    for i, (text, expression, ours) in enumerate(compiled):
        theirs_type = selected.schema[i].dataType.simpleString()
        theirs_type = "interval" if theirs_type.startswith("interval") else theirs_type
        if oracle.spark_type(expression.type) != theirs_type:
            found.append(f"{text}: ours {expression.type}, Spark {theirs_type}")
        for row, answer in enumerate(ours):
            theirs = oracle.plain(collected[row][i])
            if answer is not oracle.RAISED and not oracle.same(answer, theirs):
                found.append(f"{text} on row {row}: ours {answer!r}, Spark {theirs!r}")
            if answer is None and not expression.nullable:
                found.append(f"{text} on row {row}: NULL, though it is not nullable")
    return found


def _compare(frame: Any, texts: Sequence[str]) -> tuple[int, list[str]]:
    compiled = _compiled(texts)
    found: list[str] = []
    for start in range(0, len(compiled), CHUNK):
        found += _differences(frame, compiled[start : start + CHUNK])
    count = sum(answer is not oracle.RAISED for _, _, ours in compiled for answer in ours)
    return count, found


def _tell(what: str) -> None:
    sys.stderr.write(f"\n{what}\n")


def test_every_operator_and_function_answers_as_spark(frame: Any) -> None:
    started = time.perf_counter()
    texts = [*cases.operators(), *cases.calls()]
    named = {name for name in FUNCTIONS if any(f"{name}(" in text for text in texts)}
    assert named == set(FUNCTIONS)
    count, found = _compare(frame, texts)
    seconds = time.perf_counter() - started
    _tell(f"{count} answers of {len(set(texts))} expressions compared in {seconds:.0f} s")
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:400])
    assert count >= 5000


def test_nested_expressions_answer_as_spark(frame: Any) -> None:
    texts = nested.expressions(300)
    count, found = _compare(frame, texts)
    _tell(f"{count} answers of {len(texts)} nested expressions compared")
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:200])
    assert count >= 3000


def test_where_ours_raises_spark_raises(frame: Any) -> None:
    compiled = _compiled([*cases.operators(), *cases.calls()])
    failing = [
        (text, ours.index(oracle.RAISED)) for text, _, ours in compiled if oracle.RAISED in ours
    ]
    step = max(1, len(failing) // 60)
    sample = failing[::step]
    wrong = [f"{text} on row {row}" for text, row in sample if not oracle.raises(frame, text, row)]
    _tell(f"{len(sample)} failures of {len(failing)} expressions checked")
    assert not wrong, "\n".join(wrong)
