"""Tokens -> sqlglot's tree, with sqlglot's parser set to Spark's expression grammar.

sqlglot reads the scripts of many databases, so it is generous where Spark is not, and it gives
functions names of its own. Here every call keeps the name it was written with, the operators
have the levels of Spark's ``SqlBaseParser.g4``, and nothing but an expression is read.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from floodway.expressions.calls import CallParser
from floodway.expressions.lexer import SYMBOLS, tokenize
from floodway.expressions.places import NO_VALUE, marked

# From loose to tight. The predicates and NOT are looser, the signs and the suffixes tighter.
_LEVELS = {
    operator: level
    for level, operators in enumerate(
        (
            ("=", "==", "<>", "!=", "<", "<=", "!>", ">", ">=", "!<", "<=>"),
            ("|",),
            ("^",),
            ("&",),
            ("<<", ">>", ">>>"),
            ("+", "-", "||"),
            ("*", "/", "%", "DIV"),
        )
    )
    for operator in operators
}
_TESTS = {"NULL": "NULL", "UNKNOWN": "NULL", "TRUE": "TRUE", "FALSE": "FALSE"}
_UNITS = frozenset(
    unit + plural
    for unit in (
        *("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
        *("MILLISECOND", "MICROSECOND", "NANOSECOND"),
    )
    for plural in ("", "S")
)


class ExpressionParser(CallParser):
    """sqlglot's parser, made to read one expression and nothing else."""

    FUNC_TOKENS: ClassVar = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.LIKE, TokenType.RLIKE}
    NO_PAREN_FUNCTIONS: ClassVar = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": lambda self: self._parse_case()}
    ID_VAR_TOKENS: ClassVar = {TokenType.VAR}
    RESERVED_TOKENS: ClassVar = SparkParser.RESERVED_TOKENS | SYMBOLS
    SUBQUERY_PREDICATES: ClassVar = {}
    PLACEHOLDER_PARSERS: ClassVar = {}
    ARRAY_CONSTRUCTORS: ClassVar = {}  # array[0] is an element of a column called array
    PRIMARY_PARSERS: ClassVar = {
        **{
            kind: SparkParser.PRIMARY_PARSERS[kind]
            for kind in (
                TokenType.NUMBER,
                TokenType.STRING,
                TokenType.NULL,
                TokenType.TRUE,
                TokenType.FALSE,
            )
        },
        TokenType.STAR: lambda self, _: exp.Star(),
    }
    COLUMN_OPERATORS: ClassVar = {
        TokenType.DOT: None,
        TokenType.DCOLON: lambda self, this, to: exp.Cast(this=this, to=to),
    }
    PREDICATES: ClassVar[dict[str, Callable[[Any, exp.Expr], exp.Expr]]] = {
        "IN": lambda self, this: self._parse_in(this),
        "BETWEEN": lambda self, this: self._parse_between(this),
        "LIKE": lambda self, this: self._parse_like(exp.Like, this),
        "ILIKE": lambda self, this: self._parse_like(exp.ILike, this),
        "RLIKE": lambda self, this: exp.RegexpLike(this=this, expression=self._value()),
        "REGEXP": lambda self, this: exp.RegexpLike(this=this, expression=self._value()),
    }

    def read(self, text: str, *, named: bool) -> tuple[exp.Expr, str | None]:
        """Return the expression that a text is and, if asked for, its alias."""
        self.reset()
        self.sql = text
        self._chunks = [tokenize(text)]
        self._advance_chunk()
        tree: exp.Expr | None = self._parse_lambda()
        if tree is None:
            self._fail(NO_VALUE)
        alias = self._alias() if named else None
        if self._curr:
            self._fail("something is left over")
        return tree, alias

    # Logic and predicates.

    @marked
    def _parse_equality(self, *args: Any, **options: Any) -> Any:
        if self._match(TokenType.NOT):
            return exp.Not(this=self._parse_equality() or self._fail(NO_VALUE))
        this = self._parse_bitwise()
        return this and self._parse_range(this)

    def _parse_range(self, this: Any = None, *args: Any, **options: Any) -> Any:
        if self._match(TokenType.IS):
            return self._mark(self._parse_is(this))
        negated = self._match_text_seq("NOT")
        predicate = self.PREDICATES.get(self._word())
        if predicate is None:
            return self._fail("expected IN, BETWEEN, LIKE or RLIKE") if negated else this
        self._advance()
        tree = self._mark(predicate(self, this))
        return self._mark(exp.Not(this=tree)) if negated else tree

    def _parse_is(self, this: Any) -> exp.Expr:
        negated = self._match_text_seq("NOT")
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return kind(this=this, expression=self._value())
        if self._word() not in _TESTS:
            self._fail("expected NULL, TRUE, FALSE or DISTINCT FROM")
        what = exp.Var(this=_TESTS[self._word()])
        self._advance()
        return exp.Is(this=this, expression=what, negate=negated)

    def _parse_in(self, this: Any, *args: Any, **options: Any) -> exp.In:
        self._expect("(")
        choices = self._parse_csv(self._parse_disjunction)
        if not choices:
            self._fail("IN needs at least one value")
        self._match_r_paren()
        return exp.In(this=this, expressions=choices)

    def _parse_between(self, this: Any) -> exp.Between:
        low = self._value()
        self._expect("AND")
        return exp.Between(this=this, low=low, high=self._value())

    def _parse_like(self, kind: Any, this: exp.Expr) -> exp.Expr:
        word = self._word()
        if word in ("ANY", "SOME", "ALL") and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            patterns = self._parse_csv(self._parse_disjunction)
            if not patterns:
                self._fail(f"LIKE {word} needs at least one pattern")
            self._match_r_paren()
            many = (exp.All if word == "ALL" else exp.Any)(this=exp.Tuple(expressions=patterns))
            return kind(this=this, expression=many)  # type: ignore[no-any-return]
        tree = kind(this=this, expression=self._value())
        if not self._match_text_seq("ESCAPE"):
            return tree  # type: ignore[no-any-return]
        if self._curr.token_type != TokenType.STRING or len(self._curr.text) != 1:
            self._fail("expected one character after ESCAPE")
        self._advance()
        return exp.Escape(this=tree, expression=exp.Literal.string(self._prev.text))

    # Values.

    def _parse_bitwise(self, floor: int = 0) -> Any:
        this = self._parse_unary()
        while this and (level := _LEVELS.get(self._word(), -1)) >= floor:
            operator = self._word()
            self._advance()
            right = self._parse_bitwise(level + 1) or self._fail(NO_VALUE)
            this = self._mark(exp.Operator(this=this, operator=operator, expression=right))
        return this

    @marked
    def _parse_unary(self) -> Any:
        start, sign = self._curr.start, self._word()
        if sign == "-" and self._next.token_type == TokenType.NUMBER:
            # The sign belongs to the literal: -9223372036854775808 is a BIGINT.
            self._advance(2)
            literal = exp.Literal(this=f"-{self._prev.text}", is_string=False)
            return self._parse_column_ops(self._mark(literal, start))
        if sign not in ("-", "+", "~"):
            return self._parse_type()
        self._advance()
        # sqlglot has no node for the sign +, so the operator is noted apart.
        tree = exp.Neg(this=self._parse_unary() or self._fail(NO_VALUE))
        tree.meta["operator"] = sign
        return tree

    def _parse_type(self, *args: Any, **options: Any) -> Any:
        start, word = self._curr.start, self._word()
        literal: exp.Expr | None = None
        if word == "INTERVAL":
            literal = self._parse_interval()
        elif self._match_pair(TokenType.VAR, TokenType.STRING, advance=False):
            self._advance()
            literal = exp.Introducer(this=word, expression=self._parse_primary())
        if literal:
            return self._parse_column_ops(self._mark(literal, start))
        return super()._parse_type(parse_interval=False)

    def _parse_interval(self, *args: Any, **options: Any) -> Any:
        """Read ``INTERVAL 1 DAY -2 HOURS``, ``INTERVAL '1-2' YEAR TO MONTH`` or ``'1 day'``."""
        index = self._index
        self._advance()
        parts: list[exp.Expr] = []
        while part := self._parse_amount(first=not parts):
            parts += part
            if len(part) == 1:
                break
            if len(parts) == 2 and self._match_text_seq("TO"):
                last = self._parse_var() or self._fail("expected a unit after TO")
                return exp.Interval(
                    this=parts[0], unit=exp.IntervalSpan(this=parts[1], expression=last)
                )
        if not parts:
            self._retreat(index)
            return None
        return exp.Interval(this=exp.Tuple(expressions=parts))

    def _parse_amount(self, *, first: bool) -> list[exp.Expr]:
        """Read an amount and its unit; only the first can have its unit inside the quotes."""
        index = self._index
        sign = self._prev.text if self._match_set((TokenType.DASH, TokenType.PLUS)) else ""
        if self._match_set((TokenType.NUMBER, TokenType.STRING)):
            amount = exp.Literal.string(sign + self._prev.text)
            alone = first and not sign
            # After a number that stands alone, a word that is no unit can only be a mistake.
            wrong = alone and self._prev.token_type == TokenType.NUMBER and self._word().isalpha()
            if wrong or self._word() in _UNITS:
                self._advance()
                return [amount, exp.Var(this=self._prev.text)]
            if alone:
                return [amount]
        self._retreat(index)
        return []

    # Primaries and their suffixes.

    @marked
    def _parse_atom(self) -> Any:
        return super()._parse_atom()

    @marked
    def _parse_function_call(self, *args: Any, **options: Any) -> Any:
        return super()._parse_function_call(*args, **options)

    @marked
    def _parse_primary(self) -> Any:
        # sqlglot reads ". 5" as a number.
        return None if self._curr.token_type == TokenType.DOT else super()._parse_primary()

    def _parse_column_parts_fast(self) -> None:
        """Take the slow path, on which every part of ``a.b.c.d.e`` gets its place."""

    def _parse_column_ops(self, this: Any) -> Any:
        return super()._parse_column_ops(self._mark(this))

    def _parse_bracket(self, this: Any = None) -> Any:
        if this is None and self._curr.token_type == TokenType.L_BRACKET:
            self._fail(NO_VALUE)  # [1, 2] is an array elsewhere, but not in Spark
        return super()._parse_bracket(self._mark(this))

    def _parse_paren(self) -> Any:
        if not self._match(TokenType.L_PAREN):
            return None
        items = self._parse_csv(self._parse_named)
        if not items:
            self._fail("expected an expression in the parentheses")
        self._match_r_paren()
        if len(items) == 1 and isinstance(items[0], exp.Alias):
            self._fail("expected a value without a name in the parentheses")
        return exp.Tuple(expressions=items) if len(items) > 1 else exp.Paren(this=items[0])

    def _parse_case(self) -> Any:
        operand = None if self._curr.token_type == TokenType.WHEN else self._operand()
        ifs: list[exp.If] = []
        while not ifs or self._curr.token_type == TokenType.WHEN:
            self._expect("WHEN")
            condition = self._operand()
            self._expect("THEN")
            ifs.append(exp.If(this=condition, true=self._operand()))
        default = self._operand() if self._match(TokenType.ELSE) else None
        self._expect("END")
        return exp.Case(this=operand, ifs=ifs, default=default)

    @marked
    def _parse_lambda(self, *args: Any, **options: Any) -> Any:
        index, names = self._index, []
        several = self._match(TokenType.L_PAREN)
        while name := self._parse_id_var(any_token=False):
            names.append(name)
            if not (several and self._match(TokenType.COMMA)):
                break
        closed = not several or self._match(TokenType.R_PAREN)
        if names and closed and bool(several) == (len(names) > 1) and self._match(TokenType.ARROW):
            return exp.Lambda(this=self._operand(), expressions=names)
        self._retreat(index)
        return self._parse_disjunction()
