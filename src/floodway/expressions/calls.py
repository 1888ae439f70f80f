"""The part of the parser that reads calls: their arguments, their own key words, and types."""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from floodway.core.errors import UnsupportedExpressionError
from floodway.expressions.lexer import SYMBOLS
from floodway.expressions.places import PlacedParser

_TRIMS = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}


class CallParser(PlacedParser):
    """sqlglot's parser, made to read every call under the name that it was written with."""

    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {
        "CAST": lambda self: self._parse_cast(strict=True),
        "TRY_CAST": lambda self: self._parse_cast(strict=True, safe=True),
        "EXTRACT": lambda self: self._parse_extract(),
        "POSITION": lambda self: self._parse_separated("position", "IN", ","),
        "SUBSTRING": lambda self: self._parse_separated("substring", "FROM", "FOR"),
        "SUBSTR": lambda self: self._parse_separated("substr", "FROM", "FOR"),
        "OVERLAY": lambda self: self._parse_separated("overlay", "PLACING", "FROM", "FOR"),
        "TRIM": lambda self: self._parse_trim(),
        "STRUCT": lambda self: self._called("struct", self._parse_csv(self._parse_named)),
    }

    def _parse_function_args(self, *args: Any, **options: Any) -> list[Any]:
        if self._match(TokenType.DISTINCT):
            raise UnsupportedExpressionError(
                f"{self.sql!r} has DISTINCT in a call, which takes more than one record",
                remedy="make the records distinct with an operator of the stream",
            )
        if self._word() == "ALL" and self._next.token_type not in SYMBOLS:
            self._advance()
        return self._parse_csv(self._parse_lambda)

    def _parse_window(self, this: Any, *args: Any, **options: Any) -> Any:
        if self._word() in ("OVER", "FILTER", "WITHIN", "IGNORE", "RESPECT"):
            start = this.meta.get("start", 0)
            call = self.sql[start : self._prev.end + 1]
            raise UnsupportedExpressionError(
                f"{call} {self._curr.text} is not an expression on one record",
                remedy="use group_by(...) with an aggregate, or a window of the stream",
            )
        return this

    def _called(self, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        if self._curr.token_type != TokenType.R_PAREN:
            self._fail("expected )")
        return exp.Anonymous(this=name, expressions=arguments)

    def _parse_named(self) -> Any:
        """Read a field of a struct, which may have a name of its own: ``price * 2 AS double``."""
        tree = self._parse_lambda()
        name = self._alias() if tree else None
        return tree if name is None else self._mark(exp.Alias(this=tree, alias=name))

    def _parse_separated(self, name: str, *words: str) -> exp.Expr:
        """Read ``substring(x FROM 1 FOR 2)``: each word stands where a comma may."""
        arguments = [self._value()]
        for word in words:
            if not self._match(TokenType.COMMA) and not self._match_text_seq(word):
                break
            arguments.append(self._value())
        return self._called(name, arguments)

    def _parse_extract(self) -> Any:
        start = self._curr.start
        if not self._match_pair(TokenType.VAR, TokenType.COMMAND, advance=False):
            return self._called("extract", self._parse_function_args())
        self._advance()
        field = self._mark(exp.Literal.string(self._prev.text), start)
        self._expect("FROM")
        return self._called("extract", [field, self._value()])

    def _parse_trim(self) -> Any:
        """Read ``trim(LEADING '0' FROM x)``, which is ``ltrim('0', x)``, and its like."""
        name = ""
        if self._next.token_type not in (TokenType.COMMA, TokenType.R_PAREN):
            name = _TRIMS.get(self._word(), "")
            self._advance(1 if name else 0)
        characters = [] if self._word() == "FROM" else [self._value()]
        if not self._match_text_seq("FROM"):
            if name or not characters:
                self._fail("expected FROM")
            rest = self._parse_function_args() if self._match(TokenType.COMMA) else []
            return self._called("trim", [*characters, *rest])
        operand = [self._value()]
        first = name in ("ltrim", "rtrim")
        return self._called(
            name or "btrim", characters + operand if first else operand + characters
        )

    def _parse_cast(self, strict: Any, safe: Any = None) -> Any:
        operand = self._operand()
        self._expect("AS")
        target = self._parse_types()
        if self._curr.token_type != TokenType.R_PAREN:
            self._fail("expected )")
        return (exp.TryCast if safe else exp.Cast)(this=operand, to=target)

    def _parse_types(self, *args: Any, **options: Any) -> Any:
        if options.get("check_func"):  # int(x) is a call
            return None
        name = self._parse_var() or self._fail("expected the name of a type")
        if name.name.upper() in ("ARRAY", "MAP", "STRUCT") and self._match(TokenType.LT):
            raise UnsupportedExpressionError(
                f"expressions cannot cast to {name.name}<...>",
                remedy="cast the elements one by one, or use a Python function",
            )
        parameters: list[Any] = []
        if self._match(TokenType.L_PAREN):
            parameters = self._parse_csv(self._parse_number)
            if not parameters:
                self._fail("expected a number as parameter of the type")
            self._match_r_paren()
        return exp.DataType(this=exp.DType.USERDEFINED, kind=name, expressions=parameters)
