"""Tokens -> syntax tree: a precedence climber over Spark SQL's expression grammar.

From loose to tight: ``OR``, ``AND``, ``NOT``, the predicates (``IN``, ``LIKE``, ``IS`` ...),
comparison, ``|``, ``^``, ``&``, shifts, ``+ - ||``, ``* / % DIV``, the signs, and the suffixes
``.field``, ``[index]`` and ``::type``.
"""

from typing import NoReturn

from floodway.core.errors import ExpressionSyntaxError, UnsupportedExpressionError
from floodway.core.types import BINARY, BOOLEAN, DATE, NULL, STRING, TIMESTAMP, DataType
from floodway.expressions import literals
from floodway.expressions.tokens import Token, tokenize
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
_NEXT_CLAUSE = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SELECT", "JOIN", "UNION")
# Words that cannot stand alone as a column: here one of them means that an operand is missing.
_RESERVED = frozenset(
    (*_NEXT_CLAUSE, "AND", "OR", "NOT", "IN", "IS", "LIKE", "RLIKE", "BETWEEN", "CASE", "WHEN")
    + ("THEN", "ELSE", "END", "AS", "CAST", "DISTINCT", "ON", "USING")
)


def parse(text: str) -> Node:
    """Return the tree of an expression.

    >>> parse("a + 1").operator
    '+'
    """
    reader = _Parser(text)
    tree = reader.expression()
    reader.finish()
    return tree


def parse_named(text: str) -> tuple[Node, str | None]:
    """Return the tree of an expression and its alias, if it has one.

    >>> parse_named("a + 1 AS b")[1]
    'b'
    """
    reader = _Parser(text)
    tree = reader.expression()
    alias = reader.alias()
    reader.finish()
    return tree, alias


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._at = 0

    # The reading head.

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _next(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _advance(self) -> Token:
        token = self._now
        self._at += 1
        return token

    def _word(self, *words: str) -> bool:
        if self._now.is_word(*words):
            self._at += 1
            return True
        return False

    def _symbol(self, *symbols: str) -> bool:
        if self._now.is_symbol(*symbols):
            self._at += 1
            return True
        return False

    def _expect(self, expected: str) -> None:
        if not (self._symbol(expected) or self._word(expected)):
            self._fail(f"expected {expected}")

    def _since(self, start: int) -> str:
        return self._text[start : self._tokens[self._at - 1].end]

    def _fail(self, why: str) -> NoReturn:
        token = self._now
        where = "at the end" if token.kind == "end" else f"at {token.value!r}"
        if token.is_word(*_NEXT_CLAUSE):
            raise ExpressionSyntaxError(
                f"{self._text!r} is more than an expression ({token.value})",
                remedy="write one Spark SQL expression; clauses are methods of the stream",
            )
        raise ExpressionSyntaxError(
            f"cannot read {self._text!r}: {why} {where} (position {token.start + 1})",
            remedy="write one Spark SQL expression, e.g. \"price > 10 AND kind = 'view'\"",
        )

    def finish(self) -> None:
        if self._now.kind != "end":
            self._fail("something is left over")

    def alias(self) -> str | None:
        explicit = self._word("AS")
        if self._now.kind in ("word", "quoted"):
            return self._advance().value
        if explicit:
            self._fail("expected a name after AS")
        return None

    # Logic.

    def expression(self) -> Node:
        start = self._now.start
        left = self._conjunction()
        while self._word("OR"):
            right = self._conjunction()
            left = Binary(self._since(start), "OR", left, right)
        return left

    def _conjunction(self) -> Node:
        start = self._now.start
        left = self._negation()
        while self._word("AND"):
            right = self._negation()
            left = Binary(self._since(start), "AND", left, right)
        return left

    def _negation(self) -> Node:
        start = self._now.start
        if self._word("NOT") or self._symbol("!"):
            operand = self._negation()
            return Unary(self._since(start), "NOT", operand)
        return self._predicate()

    def _predicate(self) -> Node:
        start = self._now.start
        left = self._binary(0)
        while True:
            negated = self._now.is_word("NOT") or self._now.is_symbol("!")
            word = self._next() if negated else self._now
            if word.is_word("IS") and not negated:
                left = self._is(left, start)
            elif word.is_word("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"):
                self._at += 2 if negated else 1
                tree = self._test(word.value.upper(), left, start)
                left = Unary(tree.text, "NOT", tree) if negated else tree
            else:
                return left

    def _is(self, operand: Node, start: int) -> Node:
        self._advance()
        negated = self._word("NOT")
        if self._word("DISTINCT"):
            self._expect("FROM")
            right = self._binary(0)
            text = self._since(start)
            same = Binary(text, "<=>", operand, right)
            return same if negated else Unary(text, "NOT", same)
        if not self._now.is_word("NULL", "TRUE", "FALSE", "UNKNOWN"):
            self._fail("expected NULL, TRUE, FALSE or DISTINCT FROM")
        what = self._advance().value.upper()
        return Test(self._since(start), "NULL" if what == "UNKNOWN" else what, operand, negated)

    def _test(self, word: str, operand: Node, start: int) -> Node:
        if word == "IN":
            self._expect("(")
            choices = self._list(")")
            if not choices:
                self._fail("IN needs at least one value")
            return Member(self._since(start), operand, choices)
        if word == "BETWEEN":
            low = self._binary(0)
            self._expect("AND")
            high = self._binary(0)
            return Between(self._since(start), operand, low, high)
        if word in ("RLIKE", "REGEXP"):
            pattern = self._binary(0)
            return Call(self._since(start), "rlike", (operand, pattern))
        if self._now.is_word("ANY", "SOME", "ALL") and self._next().is_symbol("("):
            return self._like_many(word, operand, start)
        pattern = self._binary(0)
        escape = self._escape()
        return Like(self._since(start), operand, pattern, escape, word == "ILIKE")

    def _escape(self) -> str:
        if not self._word("ESCAPE"):
            return "\\"
        token = self._advance()
        if token.kind != "string" or len(token.value) != 1:
            self._fail("expected one character after ESCAPE")
        return token.value

    def _like_many(self, word: str, operand: Node, start: int) -> Node:
        joint = "AND" if self._advance().is_word("ALL") else "OR"
        self._expect("(")
        patterns = self._list(")")
        if not patterns:
            self._fail(f"{word} ANY/ALL needs at least one pattern")
        text = self._since(start)
        tests: list[Node] = [Like(text, operand, p, "\\", word == "ILIKE") for p in patterns]
        tree = tests[0]
        for test in tests[1:]:
            tree = Binary(text, joint, tree, test)
        return tree

    # Values.

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._signed()
        start = self._now.start
        left = self._binary(level + 1)
        while self._operator(level):
            operator = self._advance().value.upper()
            right = self._binary(level + 1)
            left = Binary(self._since(start), _SAME.get(operator, operator), left, right)
        return left

    def _operator(self, level: int) -> bool:
        token = self._now
        return token.is_symbol(*_LEVELS[level]) or (level == len(_LEVELS) - 1 and token.is_word("DIV"))

    def _signed(self) -> Node:
        start = self._now.start
        if self._now.is_symbol("-") and self._next().kind == "number":
            # The sign belongs to the literal: -9223372036854775808 is a BIGINT.
            self._at += 2
            value, data_type = literals.number(self._tokens[self._at - 1].value, "-")
            return self._suffixes(Literal(self._since(start), value, data_type), start)
        if self._now.is_symbol("-", "+", "~"):
            operator = self._advance().value
            operand = self._signed()
            return Unary(self._since(start), operator, operand)
        return self._suffixes(self._primary(), start)

    def _suffixes(self, tree: Node, start: int) -> Node:
        while True:
            if self._symbol("["):
                index = self.expression()
                self._expect("]")
                tree = Index(self._since(start), tree, index)
            elif self._symbol("."):
                if self._now.kind not in ("word", "quoted"):
                    self._fail("expected the name of a field")
                name = self._advance().value
                text = self._since(start)
                tree = Name(text, (*tree.parts, name)) if isinstance(tree, Name) else Get(text, tree, name)
            elif self._symbol("::"):
                target = self._type()
                tree = Cast(self._since(start), tree, target, False)
            else:
                return tree

    def _primary(self) -> Node:
        token = self._now
        if token.kind == "number":
            self._advance()
            value, data_type = literals.number(token.value)
            return Literal(self._since(token.start), value, data_type)
        if token.kind == "string":
            return self._string()
        if token.is_symbol("("):
            return self._parenthesised()
        if self._symbol("*"):
            return Star("*")
        if token.kind == "quoted":
            self._advance()
            return Name(self._since(token.start), (token.value,))
        if token.kind == "word":
            return self._worded(token)
        self._fail("expected an expression")

    def _string(self) -> Node:
        start = self._now.start
        value = ""
        while self._now.kind == "string":
            value += self._advance().value
        return Literal(self._since(start), value, STRING)

    def _parenthesised(self) -> Node:
        start = self._advance().start
        items = self._list(")")
        if self._symbol("->"):
            return self._lambda(items, start)
        if len(items) == 1:
            return items[0]
        if not items:
            self._fail("expected an expression in the parentheses")
        return Call(self._since(start), "struct", items)

    def _lambda(self, parameters: tuple[Node, ...], start: int) -> Node:
        names = []
        for parameter in parameters:
            if not isinstance(parameter, Name) or len(parameter.parts) > 1:
                self._fail("expected names before ->")
            names.append(parameter.parts[0])
        body = self.expression()
        return Lambda(self._since(start), tuple(names), body)

    def _list(self, close: str) -> tuple[Node, ...]:
        items: list[Node] = []
        if self._symbol(close):
            return ()
        while True:
            items.append(self.expression())
            if self._symbol(close):
                return tuple(items)
            self._expect(",")

    # Words: literals, special forms, calls, columns.

    def _worded(self, token: Token) -> Node:
        upper = token.value.upper()
        following = self._next()
        if upper in _CONSTANTS:
            self._advance()
            value, data_type = _CONSTANTS[upper]
            return Literal(token.value, value, data_type)
        if upper == "CASE":
            return self._case()
        if upper == "INTERVAL" and (following.kind in ("number", "string") or following.is_symbol("-")):
            return self._interval()
        if following.kind == "string" and upper in ("DATE", "TIMESTAMP", "X", "TIMESTAMP_LTZ"):
            return self._typed_string(upper)
        if following.is_symbol("("):
            return self._call(token)
        if following.is_symbol("->"):
            self._at += 2
            body = self.expression()
            return Lambda(self._since(token.start), (token.value,), body)
        if upper in ("CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_USER"):
            self._advance()
            return Call(token.value, token.value.lower(), ())
        if upper in _RESERVED:
            self._fail("expected an expression")
        self._advance()
        return Name(token.value, (token.value,))

    def _typed_string(self, word: str) -> Node:
        start = self._advance().start
        token = self._advance()
        text = self._since(start)
        if word == "X":
            try:
                digits = token.value if len(token.value) % 2 == 0 else "0" + token.value
                return Literal(text, bytes.fromhex(digits), BINARY)
            except ValueError:
                raise ExpressionSyntaxError(
                    f"{text} is not a binary literal", remedy="use hexadecimal digits: X'1F'"
                ) from None
        target = DATE if word == "DATE" else TIMESTAMP
        return Cast(text, Literal(text, token.value, STRING), target, False)

    def _case(self) -> Node:
        start = self._advance().start
        operand = None if self._now.is_word("WHEN") else self.expression()
        branches = []
        while self._word("WHEN"):
            condition = self.expression()
            self._expect("THEN")
            branches.append((condition, self.expression()))
        default = self.expression() if self._word("ELSE") else None
        if not branches:
            self._fail("expected WHEN")
        self._expect("END")
        return Case(self._since(start), operand, tuple(branches), default)

    def _interval(self) -> Node:
        start = self._advance().start
        parts: list[tuple[str, str]] = []
        while self._now.kind in ("number", "string") or self._now.is_symbol("-"):
            sign = "-" if self._symbol("-") else ""
            amount = sign + self._advance().value
            if self._now.kind != "word" or self._now.is_word("AND", "OR", "AS"):
                words = amount.split()
                parts += list(zip(words[::2], words[1::2], strict=False))
                break
            unit = self._advance().value
            if self._word("TO"):
                last = self._advance().value
                text = self._since(start)
                return Literal(text, *literals.interval_between(amount, unit, last, text))
            parts.append((amount, unit))
        text = self._since(start)
        return Literal(text, *literals.interval(parts, text))

    def _call(self, token: Token) -> Node:
        name = token.value.lower()
        self._at += 2
        if name in ("cast", "try_cast"):
            operand = self.expression()
            self._expect("AS")
            target = self._type()
            self._expect(")")
            return Cast(self._since(token.start), operand, target, name == "try_cast")
        special = _SPECIAL.get(name)
        arguments = special(self) if special else None
        if arguments is None:
            self._word("DISTINCT", "ALL")
            arguments = self._list(")")
        if self._now.is_word("OVER", "FILTER"):
            raise UnsupportedExpressionError(
                f"{self._since(token.start)} {self._now.value} is not an expression on one record",
                remedy="use group_by(...) with an aggregate, or a window of the stream",
            )
        if name == "trim" and len(arguments) == 3:
            kind = arguments[2]
            name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(kind.text, "btrim")
            operand, characters = arguments[0], arguments[1]
            pair = (operand, characters) if name == "btrim" else (characters, operand)
            arguments = pair if characters.text else (operand,)
        return Call(self._since(token.start), name, arguments)

    def _position(self) -> tuple[Node, ...] | None:
        first = self._binary(0)
        if self._word("IN"):
            second = self.expression()
            self._expect(")")
            return first, second
        return (first, *self._rest())

    def _rest(self) -> tuple[Node, ...]:
        if self._symbol(","):
            return self._list(")")
        self._expect(")")
        return ()

    def _trim(self) -> tuple[Node, ...] | None:
        kind = "BOTH"
        if self._now.is_word("BOTH", "LEADING", "TRAILING") and not self._next().is_symbol(",", ")"):
            kind = self._advance().value.upper()
        characters: Node = Star("")
        if not self._word("FROM"):
            characters = self.expression()
            if not self._word("FROM"):
                return (characters, *self._rest())
        operand = self.expression()
        self._expect(")")
        return operand, characters, Star(kind)

    def _extract(self) -> tuple[Node, ...] | None:
        if not (self._now.kind in ("word", "string") and self._next().is_word("FROM")):
            return None
        field = self._advance()
        self._advance()
        operand = self.expression()
        self._expect(")")
        return Literal(field.value, field.value, STRING), operand

    def _keyworded(self, *words: str) -> tuple[Node, ...]:
        """``substring(x FROM 1 FOR 2)``: each word may stand where a comma may."""
        items = [self.expression()]
        while not self._symbol(")"):
            if not self._word(*words):
                self._expect(",")
            items.append(self.expression())
        return tuple(items)

    def _unit_first(self) -> tuple[Node, ...] | None:
        """``timestampadd(HOUR, 1, t)``: the unit is a word, not a column."""
        if self._now.kind != "word" or not self._next().is_symbol(","):
            return None
        unit = self._advance()
        self._advance()
        return (Literal(unit.value, unit.value, STRING), *self._list(")"))

    def _type(self) -> DataType:
        if self._now.kind != "word":
            self._fail("expected the name of a type")
        name = self._advance().value
        if self._now.is_symbol("<"):
            raise UnsupportedExpressionError(
                f"expressions cannot cast to {name}<...>",
                remedy="cast the elements one by one, or use a Python function",
            )
        parameters: list[int] = []
        if self._symbol("("):
            for item in self._list(")"):
                if not isinstance(item, Literal) or not isinstance(item.value, int):
                    self._fail("expected a number as parameter of the type")
                parameters.append(item.value)
        return literals.type_named(name, parameters)


_CONSTANTS: dict[str, tuple[object, DataType]] = {
    "NULL": (None, NULL),
    "TRUE": (True, BOOLEAN),
    "FALSE": (False, BOOLEAN),
}
_SPECIAL = {
    "position": _Parser._position,
    "trim": _Parser._trim,
    "extract": _Parser._extract,
    "substring": lambda parser: parser._keyworded("FROM", "FOR"),
    "substr": lambda parser: parser._keyworded("FROM", "FOR"),
    "overlay": lambda parser: parser._keyworded("PLACING", "FROM", "FOR"),
    "timestampadd": _Parser._unit_first,
    "timestampdiff": _Parser._unit_first,
}
