"""Expression text -> syntax tree: what sqlglot has read, in the words of `.tree`.

sqlglot reads the text (see `.lexer` and `.dialect`); here each kind of its nodes has one
small function that makes the node of the tree.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from floodway.core.errors import ExpressionSyntaxError, UnsupportedExpressionError
from floodway.core.types import BINARY, BOOLEAN, DATE, NULL, STRING, TIMESTAMP, DataType
from floodway.expressions import literals, tree
from floodway.expressions.dialect import ExpressionParser
from floodway.expressions.places import span

MAX_LENGTH = 100_000
# Chains such as a OR b OR c do not count: they are deep, but nothing has to descend into them.
MAX_DEPTH = 200

_SAME = {"==": "=", "!=": "<>", "!>": "<=", "!<": ">="}
# Functions that may be written without parentheses.
_BARE = ("current_date", "current_timestamp", "localtimestamp", "current_user")
_TYPED = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP}
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")


def parse(text: str) -> tree.Term:
    """Return the tree of an expression.

    >>> parse("a + 1").operator
    '+'
    """
    return _parse(text, named=False)[0]


def parse_named(text: str) -> tuple[tree.Term, str | None]:
    """Return the tree of an expression and its alias, if it has one.

    >>> parse_named("a + 1 AS b")[1]
    'b'
    """
    return _parse(text, named=True)


def _parse(text: str, *, named: bool) -> tuple[tree.Term, str | None]:
    if len(text) > MAX_LENGTH:
        raise ExpressionSyntaxError(
            f"an expression of {len(text)} characters is too long",
            remedy=f"use at most {MAX_LENGTH}, or a Python function",
        )
    try:
        node, alias = ExpressionParser(dialect=Spark).read(text, named=named)
        return _Translation(text).node(node), alias
    except RecursionError:
        raise _too_deep(text) from None
    except SqlglotError as error:
        raise ExpressionSyntaxError(
            f"cannot read {text!r}: {error}", remedy="write one Spark SQL expression"
        ) from None


def _too_deep(text: str) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"{text[:40]!r}... is nested too deeply",
        remedy="compute parts of it in columns of their own, or use a Python function",
    )


class _Translation:
    """Makes the tree of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0

    def node(self, node: exp.Expr) -> tree.Term:
        """Return the node of the tree for a node of sqlglot's."""
        translate = _TRANSLATIONS.get(type(node))
        if translate is None:
            raise UnsupportedExpressionError(
                f"{self.text(node)} is not something expressions can do",
                remedy="use an operator of the stream, or a Python function",
            )
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_deep(self._text)
        result = translate(self, node)
        self._depth -= 1
        return result

    def nodes(self, nodes: list[exp.Expr]) -> tuple[tree.Term, ...]:
        """Return the nodes of the tree for several nodes of sqlglot's."""
        return tuple(self.node(node) for node in nodes)

    def text(self, node: exp.Expr) -> str:
        """Return what a node was written as."""
        start, end = span(node)
        return self._text[start:end]

    def pair(self, node: exp.Expr) -> tuple[tree.Term, tree.Term]:
        """Return both operands of a node."""
        return self.node(node.this), self.node(node.expression)

    # Literals.

    def literal(self, node: exp.Literal) -> tree.Term:
        text = self.text(node)
        if node.is_string:
            return tree.Literal(text, node.this, STRING)
        sign = "-" if node.this.startswith("-") else ""
        return tree.Literal(text, *_value(text, literals.number, node.this.removeprefix("-"), sign))

    def strings(self, node: exp.Concat) -> tree.Term:
        value = "".join(part.this for part in node.expressions)
        return tree.Literal(self.text(node), value, STRING)

    def null(self, node: exp.Null) -> tree.Term:
        return tree.Literal(self.text(node), None, NULL)

    def boolean(self, node: exp.Boolean) -> tree.Term:
        return tree.Literal(self.text(node), node.this, BOOLEAN)

    def typed(self, node: exp.Introducer) -> tree.Term:
        text, word = self.text(node), node.this
        string = self.node(node.expression)
        value = string.value if isinstance(string, tree.Literal) else None
        if word in _TYPED and isinstance(value, str):
            return tree.Cast(text, tree.Literal(text, value, STRING), _TYPED[word], lenient=False)
        if word != "X" or not isinstance(value, str):
            raise UnsupportedExpressionError(
                f"{text} is not a literal that Floodway has",
                remedy="use DATE '...', TIMESTAMP '...' or X'...', or an operator between the two",
            )
        if not _HEXADECIMAL.fullmatch(value):
            raise ExpressionSyntaxError(
                f"{text} is not a binary literal", remedy="use hexadecimal digits: X'1F'"
            )
        return tree.Literal(text, bytes.fromhex("0" * (len(value) % 2) + value), BINARY)

    def interval(self, node: exp.Interval) -> tree.Term:
        text, unit = self.text(node), node.args.get("unit")
        if unit:
            ends = (node.this.this, unit.this.this, unit.expression.this, text)
            return tree.Literal(text, *_value(text, literals.interval_between, *ends))
        words = [part.this for part in node.this.expressions]
        if len(words) == 1:
            words = words[0].split()
        # An amount that is left over gets a unit that does not exist.
        parts = list(zip(words[::2], [*words[1::2], ""], strict=False)) or [("", "")]
        return tree.Literal(text, *_value(text, literals.interval, parts, text))

    # Columns and their parts.

    def star(self, node: exp.Star) -> tree.Term:
        return tree.Star(self.text(node))

    def column(self, node: exp.Column) -> tree.Term:
        text, parts = self.text(node), node.parts
        bare = len(parts) == 1 and not node.this.args.get("quoted")
        if bare and node.name.lower() in _BARE:
            return tree.Call(text, node.name.lower(), ())
        return tree.Name(text, tuple(self.field(part) for part in parts))

    def dot(self, node: exp.Dot) -> tree.Term:
        text, field = self.text(node), self.field(node.expression)
        operand = self.node(node.this)
        if isinstance(operand, tree.Name):
            return tree.Name(text, (*operand.parts, field))
        return tree.Get(text, operand, field)

    def field(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Identifier):
            raise ExpressionSyntaxError(
                f"cannot read {self._text!r}: expected the name of a field after a dot",
                remedy="write column.field, and calls without a name before them",
            )
        return node.name

    def index(self, node: exp.Bracket) -> tree.Term:
        if len(node.expressions) != 1:
            raise ExpressionSyntaxError(
                f"cannot read {self.text(node)!r}: expected one index",
                remedy="write array[0] or map['key']",
            )
        return tree.Index(self.text(node), self.node(node.this), self.node(node.expressions[0]))

    # Operators.

    def group(self, node: exp.Paren) -> tree.Term:
        return self.node(node.this)

    def row(self, node: exp.Tuple) -> tree.Term:
        return tree.Call(self.text(node), "struct", self.nodes(node.expressions))

    def sign(self, node: exp.Neg) -> tree.Term:
        return tree.Unary(self.text(node), node.meta["operator"], self.node(node.this))

    def negation(self, node: exp.Not) -> tree.Term:
        return tree.Unary(self.text(node), "NOT", self.node(node.this))

    def operators(self, node: exp.Operator) -> tree.Term:
        """Return a chain of operators, which is deep on its left, without descending into it."""
        links: list[exp.Expr] = []
        first: exp.Expr = node
        while isinstance(first, exp.Operator):
            links.append(first)
            first = first.this
        result = self.node(first)
        for link in reversed(links):
            operator, right = link.args["operator"], self.node(link.expression)
            result = tree.Binary(self.text(link), _SAME.get(operator, operator), result, right)
        return result

    def connector(self, node: exp.Connector) -> tree.Term:
        """Return a chain of AND or OR as a tree that is not deeper than it must be, like Spark."""
        kind, word = type(node), "AND" if isinstance(node, exp.And) else "OR"
        operands: list[exp.Expr] = []
        first: exp.Expr = node
        while type(first) is kind:
            operands.append(first.expression)
            first = first.this
        operands.append(first)
        operands.reverse()
        nodes, spans = self.nodes(operands), [span(operand) for operand in operands]

        def join(start: int, end: int) -> tree.Term:
            if start == end:
                return nodes[start]
            middle = (start + end) // 2
            text = self._text[spans[start][0] : spans[end][1]]
            return tree.Binary(text, word, join(start, middle), join(middle + 1, end))

        return join(0, len(operands) - 1)

    def same(self, node: exp.NullSafeEQ) -> tree.Term:
        return tree.Binary(self.text(node), "<=>", *self.pair(node))

    def distinct(self, node: exp.NullSafeNEQ) -> tree.Term:
        text = self.text(node)
        return tree.Unary(text, "NOT", tree.Binary(text, "<=>", *self.pair(node)))

    # Predicates.

    def test(self, node: exp.Is) -> tree.Term:
        negated = bool(node.args["negate"])
        return tree.Test(self.text(node), node.expression.name, self.node(node.this), negated)

    def member(self, node: exp.In) -> tree.Term:
        return tree.InList(self.text(node), self.node(node.this), self.nodes(node.expressions))

    def between(self, node: exp.Between) -> tree.Term:
        bounds = (self.node(node.args[name]) for name in ("this", "low", "high"))
        return tree.Between(self.text(node), *bounds)

    def like(self, node: exp.Like | exp.ILike) -> tree.Term:
        if isinstance(node.expression, exp.Any | exp.All):
            return self.like_many(node)
        return tree.Like(self.text(node), *self.pair(node), "\\", isinstance(node, exp.ILike))

    def escaped(self, node: exp.Escape) -> tree.Term:
        like, escape = node.this, node.expression.this
        return tree.Like(self.text(node), *self.pair(like), escape, isinstance(like, exp.ILike))

    def like_many(self, node: exp.Like | exp.ILike) -> tree.Term:
        text, joint = self.text(node), "AND" if isinstance(node.expression, exp.All) else "OR"
        operand, fold = self.node(node.this), isinstance(node, exp.ILike)
        patterns = self.nodes(node.expression.this.expressions)
        tests: list[tree.Term] = [tree.Like(text, operand, p, "\\", fold) for p in patterns]
        return functools.reduce(functools.partial(tree.Binary, text, joint), tests)

    def regexp(self, node: exp.RegexpLike) -> tree.Term:
        return tree.Call(self.text(node), "rlike", self.pair(node))

    # Forms.

    def call(self, node: exp.Anonymous) -> tree.Term:
        return tree.Call(self.text(node), node.name.lower(), self.nodes(node.expressions))

    def alias(self, node: exp.Alias) -> tree.Term:
        return tree.Alias(self.text(node), self.node(node.this), node.alias)

    def case(self, node: exp.Case) -> tree.Term:
        operand = self.node(node.this) if node.this else None
        branches = tuple(
            (self.node(ask.this), self.node(ask.args["true"])) for ask in node.args["ifs"]
        )
        default = node.args.get("default")
        return tree.Case(
            self.text(node), operand, branches, self.node(default) if default else None
        )

    def cast(self, node: exp.Cast) -> tree.Term:
        lenient = isinstance(node, exp.TryCast)
        return tree.Cast(self.text(node), self.node(node.this), self.target(node.to), lenient)

    def target(self, node: exp.DataType) -> DataType:
        parameters = [part.this for part in node.expressions]
        if not all(parameter.isdigit() and len(parameter) < 9 for parameter in parameters):
            raise ExpressionSyntaxError(
                f"cannot read {self._text!r}: a type has no parameter {', '.join(parameters)}",
                remedy="write whole numbers, e.g. DECIMAL(10,2)",
            )
        return literals.type_named(node.args["kind"].name, [int(part) for part in parameters])

    def function(self, node: exp.Lambda) -> tree.Term:
        names = tuple(parameter.name for parameter in node.expressions)
        return tree.Lambda(self.text(node), names, self.node(node.this))


def _value(
    text: str, read: Callable[..., tuple[object, DataType]], *arguments: Any
) -> tuple[object, DataType]:
    try:
        return read(*arguments)
    except (ValueError, ArithmeticError):
        raise ExpressionSyntaxError(
            f"the literal {text[:40]} is out of range", remedy="use a smaller value"
        ) from None


_TRANSLATIONS: dict[type[exp.Expr], Callable[[_Translation, Any], tree.Term]] = {
    exp.Literal: _Translation.literal,
    exp.Concat: _Translation.strings,
    exp.Null: _Translation.null,
    exp.Boolean: _Translation.boolean,
    exp.Introducer: _Translation.typed,
    exp.Interval: _Translation.interval,
    exp.Star: _Translation.star,
    exp.Column: _Translation.column,
    exp.Dot: _Translation.dot,
    exp.Bracket: _Translation.index,
    exp.Paren: _Translation.group,
    exp.Tuple: _Translation.row,
    exp.Neg: _Translation.sign,
    exp.Not: _Translation.negation,
    exp.Operator: _Translation.operators,
    exp.And: _Translation.connector,
    exp.Or: _Translation.connector,
    exp.NullSafeEQ: _Translation.same,
    exp.NullSafeNEQ: _Translation.distinct,
    exp.Is: _Translation.test,
    exp.In: _Translation.member,
    exp.Between: _Translation.between,
    exp.Like: _Translation.like,
    exp.ILike: _Translation.like,
    exp.Escape: _Translation.escaped,
    exp.RegexpLike: _Translation.regexp,
    exp.Anonymous: _Translation.call,
    exp.Alias: _Translation.alias,
    exp.Case: _Translation.case,
    exp.Cast: _Translation.cast,
    exp.TryCast: _Translation.cast,
    exp.Lambda: _Translation.function,
}
