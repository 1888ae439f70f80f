"""Functions of regular expressions. A constant pattern is compiled once, with the expression."""

from collections.abc import Callable
from typing import Any

from floodway.core.errors import ExpressionError, UnsupportedExpressionError
from floodway.core.types import BOOLEAN, INTEGER, STRING, ArrayType, DataType
from floodway.expressions.code import Assembly, Code
from floodway.expressions.functions.registry import definer
from floodway.expressions.patterns import constant_regex
from floodway.expressions.runtime import regexes

define = definer("Regular expressions")


SPECIAL = frozenset("\\^$.|?*+()[]{}")
"""What has a meaning in a regular expression."""


def _matches(assembly: Assembly, codes: list[Code], text: str) -> Code:
    """Build a search; a constant that matches nothing but itself needs none."""
    pattern = codes[1]
    if pattern.constant and pattern.value and not set(pattern.value) & SPECIAL:
        return assembly.strict(codes, lambda c: f"({c[1].source} in {c[0].source})", BOOLEAN, text)
    regex = constant_regex(pattern)
    if regex is None:
        return assembly.call(regexes.regex_search, codes, BOOLEAN, text)
    short = assembly.keep("short", regex.search_short, regex.pattern)
    search = assembly.keep("search", regex.search, regex.pattern)
    return assembly.strict(
        codes[:1],
        lambda c: (
            f"(({short} if len({c[0].source}) <= {regex.limit} else {search})({c[0].source}) "
            "is not None)"
        ),
        BOOLEAN,
        text,
        twice=[0],
    )


def _checked(
    helper: Callable[..., Any], target: DataType, *, nullable: bool = False, group: bool = False
) -> Callable[[Assembly, list[Code], str], Code]:
    """Build a call of a helper, after a look at a constant pattern while there is time.

    `group` says that the third argument is the number of a group, 1 unless it is given.
    """

    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        regex = constant_regex(codes[1])
        asked = group and (len(codes) < 3 or not codes[2].constant or codes[2].value)
        if regex is not None and asked:
            try:
                regex.check_groups()
            except ExpressionError as error:
                raise UnsupportedExpressionError(error.problem, remedy=error.remedy) from None
        return assembly.call(helper, codes, target, text, nullable=nullable)

    return build


define(
    "rlike, regexp, regexp_like",
    "text STRING, pattern STRING",
    BOOLEAN,
    _matches,
    "whether the pattern is found in the text; also `text RLIKE pattern`",
    builder=True,
)
define(
    "regexp_extract",
    "text STRING, pattern STRING, [group INT]",
    STRING,
    _checked(regexes.regex_extract, STRING, group=True),
    "a group (1 unless given) of the first match, or an empty string",
    builder=True,
)
define(
    "regexp_extract_all",
    "text STRING, pattern STRING, [group INT]",
    ArrayType(STRING),
    _checked(regexes.regex_extract_all, ArrayType(STRING), group=True),
    "a group of every match",
    builder=True,
)
define(
    "regexp_replace",
    "text STRING, pattern STRING, replacement STRING, [position INT]",
    STRING,
    _checked(regexes.regex_replace, STRING),
    "the text with every match replaced; `$1` is the first group",
    builder=True,
)
define(
    "regexp_count",
    "text STRING, pattern STRING",
    INTEGER,
    _checked(regexes.regex_count, INTEGER),
    "the number of matches",
    builder=True,
)
define(
    "regexp_substr",
    "text STRING, pattern STRING",
    STRING,
    _checked(regexes.regex_substr, STRING, nullable=True),
    "the first match, or NULL",
    builder=True,
)
define(
    "regexp_instr",
    "text STRING, pattern STRING",
    INTEGER,
    _checked(regexes.regex_instr, INTEGER),
    "the position of the first match, counted from 1, or 0",
    builder=True,
)
PIECES = ArrayType(STRING, contains_null=False)


def _split(assembly: Assembly, codes: list[Code], text: str) -> Code:
    """Build a split; a constant that matches nothing but itself needs no regular expression."""
    at = codes[1]
    if len(codes) == 2 and at.constant and at.value and not set(at.value) & SPECIAL:
        return assembly.strict(codes, lambda c: f"{c[0].source}.split({at.value!r})", PIECES, text)
    return _checked(regexes.regex_split, PIECES)(assembly, codes, text)


define(
    "split",
    "text STRING, pattern STRING, [limit INT]",
    PIECES,
    _split,
    "the pieces between the matches of a pattern, at most `limit` of them",
    builder=True,
)
