"""The reading head over an expression's tokens."""

from typing import NoReturn

from floodway.core.errors import ExpressionSyntaxError
from floodway.expressions.tokens import Token, tokenize
from floodway.expressions.tree import Node

CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SELECT", "JOIN", "UNION")


class Reader:
    """Where the parser stands in the text, and the small steps it takes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self._at = 0

    @property
    def now(self) -> Token:
        """The token to be read next."""
        return self._tokens[self._at]

    def peek(self, ahead: int = 1) -> Token:
        """Return a token further on."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    @property
    def end(self) -> int:
        """Where the token that was read last ends."""
        return self._tokens[self._at - 1].end

    def advance(self) -> Token:
        """Read one token."""
        token = self.now
        self._at += 1
        return token

    def word(self, *words: str) -> bool:
        """Read one of the given key words, if it is there."""
        if self.now.is_word(*words):
            self._at += 1
            return True
        return False

    def symbol(self, *symbols: str) -> bool:
        """Read one of the given symbols, if it is there."""
        if self.now.is_symbol(*symbols):
            self._at += 1
            return True
        return False

    def expect(self, expected: str) -> None:
        """Read a symbol or a key word that must be there."""
        if not (self.symbol(expected) or self.word(expected)):
            self.fail(f"expected {expected}")

    def since(self, start: int) -> str:
        """Return the text from a place up to what was read last."""
        return self.text[start : self.end]

    def fail(self, why: str) -> NoReturn:
        """Raise ExpressionSyntaxError at this place."""
        token = self.now
        where = "at the end" if token.kind == "end" else f"at {token.value!r}"
        if token.is_word(*CLAUSES):
            raise ExpressionSyntaxError(
                f"{self.text!r} is more than an expression ({token.value})",
                remedy="write one Spark SQL expression; clauses are methods of the stream",
            )
        raise ExpressionSyntaxError(
            f"cannot read {self.text!r}: {why} {where} (position {token.start + 1})",
            remedy="write one Spark SQL expression, e.g. \"price > 10 AND kind = 'view'\"",
        )

    def finish(self) -> None:
        """Check that nothing is left."""
        if self.now.kind != "end":
            self.fail("something is left over")

    def alias(self) -> str | None:
        """Read the name after an expression, if there is one."""
        explicit = self.word("AS")
        if self.now.kind in ("word", "quoted"):
            return self.advance().value
        if explicit:
            self.fail("expected a name after AS")
        return None

    def expression(self) -> Node:
        """Read an expression."""
        raise NotImplementedError

    def value(self, level: int = 0) -> Node:
        """Read an expression without logic and predicates."""
        raise NotImplementedError

    def items(self, close: str) -> tuple[Node, ...]:
        """Read expressions between commas, up to a closing symbol."""
        raise NotImplementedError
