"""How a record failed is told without anything of the record."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodway.core.errors import ExpressionError
from floodway.expressions.runtime.failures import cast_failed
from floodway.operators.on_error import without_contents
from floodway.operators.source import event_time

MARK = "SECRET"


def raised(function: Any, *arguments: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        function(*arguments)
    return caught.value


TEXT = st.text(st.characters(codec="utf-8"))
WRAPS = {
    "as it is": lambda text: text,
    "bytes": str.encode,
    "list": lambda text: [1, text],
    "mapping": lambda text: {text: text},
}


@pytest.mark.parametrize("wrap", sorted(WRAPS))
@given(before=TEXT, after=TEXT)
def test_nothing_of_a_value_is_told(before: str, after: str, wrap: str) -> None:
    value = WRAPS[wrap](before + MARK + after)
    told = without_contents(
        ExpressionError(f"the record's value {value!r} can't be what 'x' is", remedy="")
    )
    assert MARK not in told
    assert told.startswith("ExpressionError: the record's value ")
    assert len(told) <= 200


@given(st.text().map(lambda text: text + MARK), st.integers(0, 40))
def test_nothing_of_a_value_is_told_that_was_cut(text: str, kept: int) -> None:
    cut = repr(text)[: len(repr(text)) - kept]
    told = without_contents(ExpressionError(f"{cut}... is too long", remedy=""))
    assert MARK not in told


@pytest.mark.parametrize("number", [7, -12, 3.5, 1e-9, 1e300, 4111_1111_1111_1111])
def test_no_number_is_told(number: float) -> None:
    told = without_contents(ExpressionError(f"index {number} is outside", remedy=""))
    assert not any(digit in told for digit in "0123456789")


def test_errors_of_the_decoder_are_told() -> None:
    error = raised(lambda: msgspec.json.decode(b'{"n": "4111"}', type=dict[str, int]))
    assert without_contents(error) == "ValidationError: Expected `int`, got `str` - at `$[...]`"


def test_errors_of_expressions_are_told() -> None:
    assert without_contents(raised(cast_failed, MARK, "INT")) == (
        "ExpressionError: '…' cannot be cast to INT"
    )
    assert (
        without_contents(raised(event_time, None)) == "ExpressionError: None is not an event time"
    )


def users(value: str) -> None:
    raise ValueError(f"bad card {value}")


def test_of_a_users_error_the_place_is_told() -> None:
    told = without_contents(raised(users, MARK))
    assert told.startswith("ValueError in users at tests/operators/test_without_contents.py:")
    assert MARK not in told
