"""The part of the parser that knows where it is: the places of nodes, and Floodway's errors.

The tree quotes the text of every node, and sqlglot does not keep it: here each node gets its span,
in its ``meta``.
"""

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from floodway.core.errors import ExpressionSyntaxError
from floodway.expressions.lexer import CLAUSES

NO_VALUE = "expected an expression"
_UNRESERVED = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)


def span(node: exp.Expr) -> tuple[int, int]:
    """Return where a node begins and ends in the text."""
    place: tuple[int, int] = node.meta["span"]
    return place


def _begin(node: exp.Expr) -> int:
    """Return where a node begins that begins with its first operand."""
    while "span" not in node.meta:
        node = node.parts[0] if isinstance(node, exp.Column) else node.this
        if isinstance(node, exp.Identifier):
            return int(node.meta["start"])
    return span(node)[0]


def marked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of the parser note the place of what it returns."""

    @functools.wraps(method)
    def parse(self: "PlacedParser", *args: Any, **options: Any) -> Any:
        start = self._curr.start
        return self._mark(method(self, *args, **options), start)

    return parse


class PlacedParser(SparkParser):
    """sqlglot's parser, made to note places and to raise Floodway's errors."""

    def _word(self) -> str:
        """Return the current token in capitals, nothing at the end or if it is quoted."""
        # The token that stands for the end has a text of its own.
        quoted = self._curr.token_type in self.TEXT_MATCH_EXCLUDED_TOKENS
        return "" if quoted or not self._curr else self._curr.text.upper()

    def _expect(self, word: str) -> None:
        if not self._match_text_seq(word):
            self._fail(f"expected {word}")

    def _match_r_paren(self, expression: exp.Expr | None = None) -> None:
        if not self._match(TokenType.R_PAREN):
            self._fail("expected , or )")

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise Floodway's error instead of sqlglot's."""
        missing = message.startswith("Required")
        self._fail(NO_VALUE if missing else message.lower().replace("expecting", "expected"))

    def _fail(self, why: str) -> NoReturn:
        token, text = self._curr, self.sql
        if token.token_type == TokenType.COMMAND and token.text.upper() in CLAUSES:
            raise ExpressionSyntaxError(
                f"{text!r} is more than an expression ({token.text})",
                remedy="write one Spark SQL expression; clauses are methods of the stream",
            )
        place = token.start if token else len(text)
        where = f"at {text[place : token.end + 1]!r}" if token else "at the end"
        remedy = "write one Spark SQL expression, e.g. \"price > 10 AND kind = 'view'\""
        if token and token.token_type not in _UNRESERVED and token.text.isalpha():
            remedy += f"; if {token.text} is a column, write `{token.text}`"
        raise ExpressionSyntaxError(
            f"cannot read {text!r}: {why} {where} (position {place + 1})", remedy=remedy
        )

    def _mark(self, node: Any, start: int | None = None) -> Any:
        if node is not None and "span" not in node.meta:
            begin = _begin(node) if start is None else start
            node.meta["span"] = (begin, self._prev.end + 1)
        return node

    def expression(self, instance: Any, *args: Any, **options: Any) -> Any:
        """Return a finished node; AND and OR are finished when their right operand is read."""
        node = super().expression(instance, *args, **options)
        return self._mark(node) if isinstance(node, exp.Connector) else node

    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> list[Any]:
        items = [parse_method()]
        while self._match(sep):
            items.append(parse_method())
        # sqlglot would drop what is missing: f(a, ) is not f(a).
        return [] if items == [None] else [item or self._fail(NO_VALUE) for item in items]

    def _alias(self) -> str | None:
        explicit = self._match(TokenType.ALIAS)
        if self._curr.token_type in self.IDENTIFIER_TOKENS or (explicit and self._word().isalnum()):
            self._advance()
            return self._prev.text
        return self._fail("expected a name after AS") if explicit else None

    def _operand(self) -> exp.Expr:
        tree: exp.Expr | None = self._parse_disjunction()
        return tree or self._fail(NO_VALUE)

    def _value(self) -> exp.Expr:
        """Read what Spark calls a valueExpression: no predicate and no logic at its top."""
        tree: exp.Expr | None = self._parse_bitwise()
        return tree or self._fail(NO_VALUE)
