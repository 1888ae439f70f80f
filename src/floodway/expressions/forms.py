"""Calls with key words between their arguments: ``trim(BOTH 'x' FROM s)`` and its like.

A form reads what follows the opening parenthesis and returns the arguments in the order in which
the plain call has them, or None, having read nothing, if this is a plain call.
"""

from collections.abc import Callable

from floodway.core.types import STRING
from floodway.expressions.reader import Reader
from floodway.expressions.tree import Literal, Node, Star

Arguments = tuple[Node, ...] | None


def _position(reader: Reader) -> Arguments:
    """``position('a' IN s)``."""
    first = reader.value()
    if reader.word("IN"):
        second = reader.expression()
        reader.expect(")")
        return first, second
    return first, *_rest(reader)


def _rest(reader: Reader) -> tuple[Node, ...]:
    if reader.symbol(","):
        return reader.items(")")
    reader.expect(")")
    return ()


def _trim(reader: Reader) -> Arguments:
    """``trim([BOTH] ['x'] FROM s)``, told from ``trim(s)`` by a third argument."""
    kind = "BOTH"
    following = reader.peek()
    if reader.now.is_word("BOTH", "LEADING", "TRAILING") and not following.is_symbol(",", ")"):
        kind = reader.advance().value.upper()
    characters: Node = Star("")
    if not reader.word("FROM"):
        characters = reader.expression()
        if not reader.word("FROM"):
            return characters, *_rest(reader)
    operand = reader.expression()
    reader.expect(")")
    return operand, characters, Star(kind)


def trim_call(arguments: tuple[Node, ...]) -> tuple[str, tuple[Node, ...]]:
    """Return the plain call that a keyworded trim stands for."""
    operand, characters, kind = arguments
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(kind.text, "btrim")
    if not characters.text:
        return name, (operand,)
    # Spark's ltrim and rtrim take the characters first, btrim takes them last.
    return name, (operand, characters) if name == "btrim" else (characters, operand)


def _extract(reader: Reader) -> Arguments:
    """``extract(HOUR FROM t)``."""
    if not (reader.now.kind in ("word", "string") and reader.peek().is_word("FROM")):
        return None
    field = reader.advance()
    reader.advance()
    operand = reader.expression()
    reader.expect(")")
    return Literal(field.value, field.value, STRING), operand


def _keyworded(*words: str) -> Callable[[Reader], Arguments]:
    """``substring(s FROM 1 FOR 2)``: each word may stand where a comma may."""

    def read(reader: Reader) -> Arguments:
        items = [reader.expression()]
        while not reader.symbol(")"):
            if not reader.word(*words):
                reader.expect(",")
            items.append(reader.expression())
        return tuple(items)

    return read


FORMS: dict[str, Callable[[Reader], Arguments]] = {
    "position": _position,
    "trim": _trim,
    "extract": _extract,
    "substring": _keyworded("FROM", "FOR"),
    "substr": _keyworded("FROM", "FOR"),
    "overlay": _keyworded("PLACING", "FROM", "FOR"),
}
