"""Expression text -> tokens, by the rules of Spark SQL's lexer.

Spark's own lexical rules are small, and a general SQL parser bends some of them (what ``1.5`` is,
what ``'it''s'`` is), so they are written down here once, literally: the answer must be Spark's.
Every token remembers where it stands, so that an error can quote the text that caused it.
"""

import re
from typing import NoReturn

import msgspec

from floodway.core.errors import ExpressionSyntaxError


class Token(msgspec.Struct, frozen=True):
    """A piece of the text: its kind, its meaning and its place.

    The kinds are ``word``, ``quoted`` (an identifier in backquotes), ``string``, ``number``,
    ``symbol`` and ``end``.
    """

    kind: str
    value: str
    start: int
    end: int

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of the given symbols."""
        return self.kind == "symbol" and self.value in symbols

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the given key words (which are written in capitals)."""
        return self.kind == "word" and self.value.upper() in words


_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?![\w]))
  | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<word>[^\W\d]\w*)
  | (?P<symbol><=>|>>>|<<|>>|<>|<=|>=|!=|==|\|\||->|::|[-+*/%=<>!(),.\[\]~^&|:])
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)


def tokenize(text: str) -> list[Token]:
    """Return the tokens of an expression, the last of which is the end.

    >>> [token.value for token in tokenize("price >= 1.5 -- cheap")]
    ['price', '>=', '1.5', '']
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            _refuse(text, position)
        kind = str(match.lastgroup)
        if kind != "space":
            kind, value = _meaning(kind, match.group())
            tokens.append(Token(kind, value, position, match.end()))
        position = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _meaning(kind: str, text: str) -> tuple[str, str]:
    if kind == "raw":
        return "string", text[2:-1]
    if kind == "string":
        quote = text[0]
        return "string", unescape(text[1:-1].replace(quote * 2, quote))
    if kind == "quoted":
        return "quoted", text[1:-1].replace("``", "`")
    return kind, text


def unescape(text: str) -> str:
    r"""Return the inside of a string literal with its escapes resolved.

    >>> unescape(r"caf\u00e9")
    'café'
    """
    return _ESCAPE.sub(_escaped, text) if "\\" in text else text


def _escaped(match: re.Match[str]) -> str:
    short, long, octal, plain = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    # LIKE patterns need to see these two escapes, so Spark keeps the backslash.
    if plain in "%_":
        return "\\" + plain
    return _ESCAPES.get(plain, plain)


def _refuse(text: str, position: int) -> NoReturn:
    if text[position] in "'\"`":
        raise ExpressionSyntaxError(
            f"the quote at position {position + 1} of {text!r} is never closed",
            remedy=f"close it with another {text[position]}",
        )
    raise ExpressionSyntaxError(
        f"{text[position]!r} at position {position + 1} of {text!r} is not part of Spark SQL",
        remedy="remove it, or quote the name with backquotes if it belongs to a column",
    )
