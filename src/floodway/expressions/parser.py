"""Tokens -> syntax tree: a precedence climber over Spark SQL's expression grammar.

From loose to tight: ``OR``, ``AND``, ``NOT``, the predicates (``IN``, ``LIKE``, ``IS`` ...),
comparison, ``|``, ``^``, ``&``, shifts, ``+ - ||``, ``* / % DIV``, the signs, and the suffixes
``.field``, ``[index]`` and ``::type``.
"""

from collections.abc import Callable

from floodway.core.errors import UnsupportedExpressionError
from floodway.core.types import BOOLEAN, NULL, STRING, DataType
from floodway.expressions import literals
from floodway.expressions.forms import FORMS, trim_call
from floodway.expressions.reader import CLAUSES, Reader
from floodway.expressions.tokens import Token
from floodway.expressions.tree import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Get,
    Index,
    Lambda,
    Like,
    Literal,
    Member,
    Name,
    Node,
    Star,
    Test,
    Unary,
)
from floodway.expressions.typed import read_interval, type_name, typed_string

_LEVELS = (
    ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>", ">>>"),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
_SAME = {"==": "=", "!=": "<>"}
# Words that cannot stand alone as a column: here one of them means that an operand is missing.
_RESERVED = frozenset(
    [
        *CLAUSES,
        *("AND", "OR", "NOT", "IN", "IS", "LIKE", "RLIKE", "BETWEEN", "CASE", "WHEN"),
        *("THEN", "ELSE", "END", "AS", "CAST", "DISTINCT", "ON", "USING"),
    ]
)


def parse(text: str) -> Node:
    """Return the tree of an expression.

    >>> parse("a + 1").operator
    '+'
    """
    reader = Parser(text)
    tree = reader.expression()
    reader.finish()
    return tree


def parse_named(text: str) -> tuple[Node, str | None]:
    """Return the tree of an expression and its alias, if it has one.

    >>> parse_named("a + 1 AS b")[1]
    'b'
    """
    reader = Parser(text)
    tree = reader.expression()
    alias = reader.alias()
    reader.finish()
    return tree, alias


class Parser(Reader):
    """Reads one expression."""

    # Logic.

    def expression(self) -> Node:
        """Read an expression."""
        return self._chain("OR", self._conjunction)

    def _conjunction(self) -> Node:
        return self._chain("AND", self._negation)

    def _chain(self, word: str, operand: Callable[[], Node]) -> Node:
        """Read operands joined by one word, as a tree that is not deeper than it must be."""
        starts, operands, ends = [self.now.start], [operand()], [self.end]
        while self.word(word):
            starts.append(self.now.start)
            operands.append(operand())
            ends.append(self.end)

        def join(first: int, last: int) -> Node:
            if first == last:
                return operands[first]
            middle = (first + last) // 2
            text = self.text[starts[first] : ends[last]]
            return Binary(text, word, join(first, middle), join(middle + 1, last))

        return join(0, len(operands) - 1)

    def _negation(self) -> Node:
        start = self.now.start
        if self.word("NOT") or self.symbol("!"):
            operand = self._negation()
            return Unary(self.since(start), "NOT", operand)
        return self._predicate()

    def _predicate(self) -> Node:
        start = self.now.start
        left = self.value(0)
        while True:
            negated = self.now.is_word("NOT") or self.now.is_symbol("!")
            word = self.peek() if negated else self.now
            if word.is_word("IS") and not negated:
                left = self._is(left, start)
            elif word.is_word("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"):
                self._at += 2 if negated else 1
                tree = self._test(word.value.upper(), left, start)
                left = Unary(tree.text, "NOT", tree) if negated else tree
            else:
                return left

    def _is(self, operand: Node, start: int) -> Node:
        self.advance()
        negated = self.word("NOT")
        if self.word("DISTINCT"):
            self.expect("FROM")
            right = self.value(0)
            text = self.since(start)
            same = Binary(text, "<=>", operand, right)
            return same if negated else Unary(text, "NOT", same)
        if not self.now.is_word("NULL", "TRUE", "FALSE", "UNKNOWN"):
            self.fail("expected NULL, TRUE, FALSE or DISTINCT FROM")
        what = self.advance().value.upper()
        return Test(self.since(start), "NULL" if what == "UNKNOWN" else what, operand, negated)

    def _test(self, word: str, operand: Node, start: int) -> Node:
        if word == "IN":
            self.expect("(")
            choices = self.items(")")
            if not choices:
                self.fail("IN needs at least one value")
            return Member(self.since(start), operand, choices)
        if word == "BETWEEN":
            low = self.value(0)
            self.expect("AND")
            high = self.value(0)
            return Between(self.since(start), operand, low, high)
        if word in ("RLIKE", "REGEXP"):
            pattern = self.value(0)
            return Call(self.since(start), "rlike", (operand, pattern))
        if self.now.is_word("ANY", "SOME", "ALL") and self.peek().is_symbol("("):
            return self._like_many(word, operand, start)
        pattern = self.value(0)
        escape = self._escape()
        return Like(self.since(start), operand, pattern, escape, word == "ILIKE")

    def _escape(self) -> str:
        if not self.word("ESCAPE"):
            return "\\"
        token = self.advance()
        if token.kind != "string" or len(token.value) != 1:
            self.fail("expected one character after ESCAPE")
        return token.value

    def _like_many(self, word: str, operand: Node, start: int) -> Node:
        joint = "AND" if self.advance().is_word("ALL") else "OR"
        self.expect("(")
        patterns = self.items(")")
        if not patterns:
            self.fail(f"{word} ANY/ALL needs at least one pattern")
        text = self.since(start)
        tests: list[Node] = [Like(text, operand, p, "\\", word == "ILIKE") for p in patterns]
        tree = tests[0]
        for test in tests[1:]:
            tree = Binary(text, joint, tree, test)
        return tree

    # Values.

    def value(self, level: int = 0) -> Node:
        """Read operands and operators from a level of precedence on."""
        if level == len(_LEVELS):
            return self._signed()
        start = self.now.start
        left = self.value(level + 1)
        while self._operator(level):
            operator = self.advance().value.upper()
            right = self.value(level + 1)
            left = Binary(self.since(start), _SAME.get(operator, operator), left, right)
        return left

    def _operator(self, level: int) -> bool:
        token = self.now
        return token.is_symbol(*_LEVELS[level]) or (
            level == len(_LEVELS) - 1 and token.is_word("DIV")
        )

    def _signed(self) -> Node:
        start = self.now.start
        if self.now.is_symbol("-") and self.peek().kind == "number":
            # The sign belongs to the literal: -9223372036854775808 is a BIGINT.
            self._at += 2
            value, data_type = literals.number(self._tokens[self._at - 1].value, "-")
            return self._suffixes(Literal(self.since(start), value, data_type), start)
        if self.now.is_symbol("-", "+", "~"):
            operator = self.advance().value
            operand = self._signed()
            return Unary(self.since(start), operator, operand)
        return self._suffixes(self._primary(), start)

    def _suffixes(self, tree: Node, start: int) -> Node:
        while True:
            if self.symbol("["):
                index = self.expression()
                self.expect("]")
                tree = Index(self.since(start), tree, index)
            elif self.symbol("."):
                if self.now.kind not in ("word", "quoted"):
                    self.fail("expected the name of a field")
                name = self.advance().value
                text = self.since(start)
                tree = (
                    Name(text, (*tree.parts, name))
                    if isinstance(tree, Name)
                    else Get(text, tree, name)
                )
            elif self.symbol("::"):
                target = type_name(self)
                tree = Cast(self.since(start), tree, target, lenient=False)
            else:
                return tree

    def _primary(self) -> Node:
        token = self.now
        if token.kind == "number":
            self.advance()
            value, data_type = literals.number(token.value)
            return Literal(self.since(token.start), value, data_type)
        if token.kind == "string":
            return self._string()
        if token.is_symbol("("):
            return self._parenthesised()
        if self.symbol("*"):
            return Star("*")
        if token.kind == "quoted":
            self.advance()
            return Name(self.since(token.start), (token.value,))
        if token.kind == "word":
            return self._worded(token)
        self.fail("expected an expression")

    def _string(self) -> Node:
        start = self.now.start
        value = ""
        while self.now.kind == "string":
            value += self.advance().value
        return Literal(self.since(start), value, STRING)

    def _parenthesised(self) -> Node:
        start = self.advance().start
        items = self.items(")")
        if self.symbol("->"):
            return self._lambda(items, start)
        if len(items) == 1:
            return items[0]
        if not items:
            self.fail("expected an expression in the parentheses")
        return Call(self.since(start), "struct", items)

    def _lambda(self, parameters: tuple[Node, ...], start: int) -> Node:
        names = []
        for parameter in parameters:
            if not isinstance(parameter, Name) or len(parameter.parts) > 1:
                self.fail("expected names before ->")
            names.append(parameter.parts[0])
        body = self.expression()
        return Lambda(self.since(start), tuple(names), body)

    def items(self, close: str) -> tuple[Node, ...]:
        """Read expressions between commas, up to a closing symbol."""
        items: list[Node] = []
        if self.symbol(close):
            return ()
        while True:
            items.append(self.expression())
            if self.symbol(close):
                return tuple(items)
            self.expect(",")

    # Words: literals, special forms, calls, columns.

    def _worded(self, token: Token) -> Node:
        upper = token.value.upper()
        following = self.peek()
        if upper in _CONSTANTS:
            self.advance()
            value, data_type = _CONSTANTS[upper]
            return Literal(token.value, value, data_type)
        if upper == "CASE":
            return self._case()
        if upper == "INTERVAL" and (
            following.kind in ("number", "string") or following.is_symbol("-")
        ):
            return read_interval(self)
        if following.kind == "string" and upper in ("DATE", "TIMESTAMP", "X", "TIMESTAMP_LTZ"):
            return typed_string(self, upper)
        if following.is_symbol("("):
            return self._call(token)
        if following.is_symbol("->"):
            self._at += 2
            body = self.expression()
            return Lambda(self.since(token.start), (token.value,), body)
        if upper in ("CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_USER"):
            self.advance()
            return Call(token.value, token.value.lower(), ())
        if upper in _RESERVED:
            self.fail("expected an expression")
        self.advance()
        return Name(token.value, (token.value,))

    def _case(self) -> Node:
        start = self.advance().start
        operand = None if self.now.is_word("WHEN") else self.expression()
        branches = []
        while self.word("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self.expression()))
        default = self.expression() if self.word("ELSE") else None
        if not branches:
            self.fail("expected WHEN")
        self.expect("END")
        return Case(self.since(start), operand, tuple(branches), default)

    def _call(self, token: Token) -> Node:
        name = token.value.lower()
        self._at += 2
        if name in ("cast", "try_cast"):
            operand = self.expression()
            self.expect("AS")
            target = type_name(self)
            self.expect(")")
            return Cast(self.since(token.start), operand, target, name == "try_cast")
        special = FORMS.get(name)
        arguments = special(self) if special else None
        if arguments is None:
            self.word("DISTINCT", "ALL")
            arguments = self.items(")")
        if self.now.is_word("OVER", "FILTER"):
            raise UnsupportedExpressionError(
                f"{self.since(token.start)} {self.now.value} is not an expression on one record",
                remedy="use group_by(...) with an aggregate, or a window of the stream",
            )
        if name == "trim" and len(arguments) == 3:
            name, arguments = trim_call(arguments)
        return Call(self.since(token.start), name, arguments)


_CONSTANTS: dict[str, tuple[object, DataType]] = {
    "NULL": (None, NULL),
    "TRUE": (True, BOOLEAN),
    "FALSE": (False, BOOLEAN),
}
