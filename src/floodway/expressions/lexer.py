"""Expression text -> tokens, with sqlglot's tokenizer set to the lexical rules of Spark 4.

sqlglot's tokens say what they mean (``1L`` becomes a cast, ``date`` becomes ``DATE``); here each
gets back the text that it was written as, because the tree has to quote it. What sqlglot lets
pass and Spark does not, such as ``{{`` or a comment without end, is refused.
"""

import re
from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from floodway.core.errors import ExpressionSyntaxError

CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SELECT", "JOIN", "UNION")

# Words with a meaning of their own that Spark also takes for the name of a column. Words that are
# key words of Python too are not among them: no column can be called so.
_NAMES = {
    *("LIKE", "RLIKE", "BETWEEN", "DISTINCT", "CASE", "WHEN", "THEN", "END"),
    *("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SELECT", "JOIN", "UNION", "ON", "USING"),
}
_BETWEEN_OPERANDS = {
    *("AND", "OR", "NOT", "IN", "LIKE", "RLIKE", "BETWEEN", "WHEN", "THEN", "ELSE", "FROM"),
    *("[", ",", "+", "-", "*", "/", "%", "DIV", "&", "|", "^", "<<", ">>", ">>>", "||"),
    *("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "!>", "!<"),
}
# After these, and at the start, an operand must follow.
_BEFORE_OPERAND = _BETWEEN_OPERANDS | {"CASE", "(", "->", "~", "!"}
# Before these, and at the end, an operand has ended, whatever it was.
_AFTER_OPERAND = _BETWEEN_OPERANDS | {"IS", "END", "AS", ")", "]", ".", "::", ""}
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?(BD|[LSYDF])?", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"\w+")
_OPENING = re.compile(r"['\"`]|/\*")
_PLAIN = (TokenType.NUMBER, TokenType.VAR)


class _Tokenizer(Spark.Tokenizer):
    """Spark's words, of which only those are reserved that would hide a missing operand."""

    # Since Spark 4 a doubled quote is one quote; before, it ended one string and began another.
    STRING_ESCAPES: ClassVar = ["\\", "'", '"']
    # 1L and X'1F' are left to the parser, which needs to know how they were written.
    HEX_STRINGS: ClassVar = []
    NUMERIC_LITERALS: ClassVar = {}
    # No word at the beginning makes the rest a command.
    COMMANDS: ClassVar = set()
    KEYWORDS: ClassVar = {
        **{
            text: Spark.Tokenizer.KEYWORDS[text]
            for text in (
                *("==", "<>", "!=", "<=", ">=", "<=>", "||", "->", "::"),
                *("AND", "OR", "NOT", "IN", "IS", "LIKE", "RLIKE", "BETWEEN", "AS", "DISTINCT"),
                *("NULL", "TRUE", "FALSE", "CASE", "WHEN", "THEN", "ELSE", "END"),
            )
        },
        # Two types that mean nothing in an expression: these are told apart by their text.
        **dict.fromkeys(("<<", ">>", ">>>", "!>", "!<"), TokenType.OPERATOR),
        **dict.fromkeys((*CLAUSES, "ON", "USING"), TokenType.COMMAND),
    }


SYMBOLS = {
    *(kind for text, kind in _Tokenizer.KEYWORDS.items() if not text.isalpha()),
    *(_Tokenizer.SINGLE_TOKENS[symbol] for symbol in "()[],.+-*/%&|^~<>=!"),
}
_KNOWN = {TokenType.IDENTIFIER, TokenType.STRING, *SYMBOLS, *_Tokenizer.KEYWORDS.values()}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of an expression, each with the text that it was written as.

    >>> [token.text for token in tokenize("price >= 15L -- cheap")]
    ['price', '>=', '15L']
    """
    tokenizer = _Tokenizer(dialect=Spark)
    try:
        # A comment that is never closed swallows the semicolon.
        *tokens, last = tokenizer.tokenize(f"{text}\n;")
    except TokenError:
        tokens, last = tokenizer.tokens, Token(TokenType.UNKNOWN, "")
    if last.token_type != TokenType.SEMICOLON:
        raise _unclosed(text, tokens[-1].end + 1 if tokens else 0)
    checked: list[Token] = []
    for token in tokens:
        _check_gap(text, checked[-1].end + 1 if checked else 0, token.start)
        checked.append(_checked(token, text, checked))
    latest = {token.text.upper(): index for index, token in enumerate(checked)}
    for index, token in enumerate(checked):
        if _is_name(checked, index, latest):
            token.token_type = TokenType.IDENTIFIER
    return checked


def _is_name(tokens: list[Token], index: int, latest: dict[str, int]) -> bool:
    """Whether a word of the language stands where only the name of a column or a field can."""
    word, before, after = (_word(tokens, index + offset) for offset in (0, -1, 1))
    if before == ".":
        return word.isalpha()
    if word not in _NAMES or (before, word) == ("CASE", "WHEN"):
        return False
    if word == "CASE" and latest.get("WHEN", 0) > index:
        return False
    if word == "END" and before in ("CASE", "WHEN", "THEN", "ELSE") and latest["END"] == index:
        return False
    return after in _AFTER_OPERAND and _wants_operand(tokens, index)


def _wants_operand(tokens: list[Token], index: int) -> bool:
    before = _word(tokens, index - 1)
    if before == "NOT":  # either a NOT b, as in NOT LIKE, or one of its own
        return _wants_operand(tokens, index - 1)
    return not before or before in _BEFORE_OPERAND


def _word(tokens: list[Token], index: int) -> str:
    """Return a token in capitals; nothing outside the text, a quote if it is quoted."""
    if not 0 <= index < len(tokens):
        return ""
    quoted = tokens[index].token_type in (TokenType.STRING, TokenType.IDENTIFIER)
    return "'" if quoted else tokens[index].text.upper()


def _check_gap(text: str, start: int, end: int) -> None:
    gap = text[start:end].lstrip()
    # sqlglot also skips the comments of a template language: {# like this #}.
    if gap and not gap.startswith(("--", "/*")):
        raise _foreign(text, end - len(gap))


def _checked(token: Token, text: str, before: list[Token]) -> Token:
    """Return a token with its own spelling, if it is one of Spark's."""
    follows = before[-1].token_type if before and before[-1].end + 1 == token.start else None
    if token.token_type == TokenType.RAW_STRING:
        token.token_type = TokenType.STRING
    elif token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
        token.text = text[token.start : token.end + 1]
    if token.token_type not in _PLAIN:
        if token.token_type not in _KNOWN:
            raise _foreign(text, token.start)
        return token
    number = _NUMBER.fullmatch(token.text)
    if follows in _PLAIN or not (number or _WORD.fullmatch(token.text)):
        raise _foreign(text, token.start)
    if not token.text.isascii():
        raise ExpressionSyntaxError(
            f"the name {token.text} has letters that Spark takes only in backquotes",
            remedy=f"write `{token.text}`",
        )
    token.token_type = TokenType.NUMBER if number else TokenType.VAR
    if number and follows == TokenType.DOT:  # .5
        token.start = before.pop().start
        token.text = f".{token.text}"
        if not _NUMBER.fullmatch(token.text):
            raise _foreign(text, token.start)
    return token


def _unclosed(text: str, start: int) -> ExpressionSyntaxError:
    found = _OPENING.search(text, start)
    mark, place = (found.group(), found.start()) if found else ("'", start)
    what, close = ("comment", "*/") if mark == "/*" else ("quote", f"another {mark}")
    return ExpressionSyntaxError(
        f"the {what} at position {place + 1} of {text!r} is never closed",
        remedy=f"close it with {close}",
    )


def _foreign(text: str, place: int) -> ExpressionSyntaxError:
    return ExpressionSyntaxError(
        f"{text[place]!r} at position {place + 1} of {text!r} is not part of Spark SQL",
        remedy="remove it, or quote the name with backquotes if it belongs to a column",
    )
