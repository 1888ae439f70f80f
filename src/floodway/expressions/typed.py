"""Literals that begin with a word, and the names of types."""

from floodway.core.errors import ExpressionSyntaxError, UnsupportedExpressionError
from floodway.core.types import BINARY, DATE, STRING, TIMESTAMP, DataType
from floodway.expressions import literals
from floodway.expressions.reader import Reader
from floodway.expressions.tree import Cast, Literal, Node


def typed_string(reader: Reader, word: str) -> Node:
    """Read ``DATE '2024-02-29'``, ``TIMESTAMP '...'`` or ``X'1F'``."""
    start = reader.advance().start
    token = reader.advance()
    text = reader.since(start)
    if word == "X":
        try:
            digits = token.value if len(token.value) % 2 == 0 else "0" + token.value
            return Literal(text, bytes.fromhex(digits), BINARY)
        except ValueError:
            raise ExpressionSyntaxError(
                f"{text} is not a binary literal", remedy="use hexadecimal digits: X'1F'"
            ) from None
    target = DATE if word == "DATE" else TIMESTAMP
    return Cast(text, Literal(text, token.value, STRING), target, lenient=False)


def read_interval(reader: Reader) -> Node:
    """Read ``INTERVAL 1 DAY``, ``INTERVAL '1 02:03' DAY TO MINUTE`` and their like."""
    start = reader.advance().start
    parts: list[tuple[str, str]] = []
    while reader.now.kind in ("number", "string") or reader.now.is_symbol("-"):
        sign = "-" if reader.symbol("-") else ""
        amount = sign + reader.advance().value
        if reader.now.kind != "word" or reader.now.is_word("AND", "OR", "AS"):
            words = amount.split()
            parts += list(zip(words[::2], words[1::2], strict=False))
            break
        unit = reader.advance().value
        if reader.word("TO"):
            last = reader.advance().value
            text = reader.since(start)
            return Literal(text, *literals.interval_between(amount, unit, last, text))
        parts.append((amount, unit))
    text = reader.since(start)
    return Literal(text, *literals.interval(parts, text))


def type_name(reader: Reader) -> DataType:
    """Read the name of a type, with its parameters."""
    if reader.now.kind != "word":
        reader.fail("expected the name of a type")
    name = reader.advance().value
    if reader.now.is_symbol("<"):
        raise UnsupportedExpressionError(
            f"expressions cannot cast to {name}<...>",
            remedy="cast the elements one by one, or use a Python function",
        )
    parameters: list[int] = []
    if reader.symbol("("):
        for item in reader.items(")"):
            if not isinstance(item, Literal) or not isinstance(item.value, int):
                reader.fail("expected a number as parameter of the type")
            parameters.append(item.value)
    return literals.type_named(name, parameters)
