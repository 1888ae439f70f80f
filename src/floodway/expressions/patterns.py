"""LIKE and regular expressions.

LIKE patterns that are a prefix, a suffix or a part become the string operation they are. Regular
expressions are Java's; the common subset is translated and the rest refused, since a pattern that
almost matches is worse than none.
"""

import re

from floodway.core.errors import UnsupportedExpressionError
from floodway.core.types import BOOLEAN, NULL, STRING
from floodway.expressions.casts import implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import mismatch
from floodway.expressions.runtime import regexes


def like(
    assembly: Assembly, operand: Code, pattern: Code, escape: str, text: str, *, fold: bool
) -> Code:
    """Return ``operand LIKE pattern``; with `fold` letter case does not matter."""
    for code in (operand, pattern):
        if code.type not in (STRING, NULL):
            raise mismatch(text, [operand, pattern], "compare strings, e.g. CAST(... AS STRING)")
    one, two = implied(assembly, operand, STRING), implied(assembly, pattern, STRING)
    assert one is not None
    assert two is not None
    if not two.constant or two.is_null:
        return assembly.call(regexes.like_matches, [one, two], BOOLEAN, text, escape, fold)
    quick = None if fold else _quick(two.value, escape)
    if quick is not None:
        return assembly.strict([one], lambda c: quick.replace("\0", c[0].source), BOOLEAN, text)
    compiled = regexes.like_regex(two.value, escape, fold)
    name = assembly.keep("like", compiled.fullmatch, f"{compiled.pattern!r}{compiled.flags}")
    subject = "{0}.lower()" if fold else "{0}"
    return assembly.strict(
        [one],
        lambda c: f"({name}({subject.format(c[0].source)}) is not None)",
        BOOLEAN,
        text,
    )


def _quick(pattern: str, escape: str) -> str | None:
    r"""Return a template (\0 is the operand) for a pattern with % at its ends only."""
    core = pattern.strip("%")
    if "_" in pattern or escape in pattern or "%" in core or not core:
        return None
    starts, ends = not pattern.startswith("%"), not pattern.endswith("%")
    if starts and ends:
        return f"(\0 == {core!r})"
    if starts:
        return f"\0.startswith({core!r})"
    return f"\0.endswith({core!r})" if ends else f"({core!r} in \0)"


def constant_regex(pattern: Code) -> regexes.Regex | None:
    """Return the compiled pattern, if it is a constant."""
    if not pattern.constant or pattern.value is None:
        return None
    try:
        return regexes.translate(pattern.value)
    except (re.error, regexes.Untranslatable) as error:
        raise UnsupportedExpressionError(
            f"the regular expression {pattern.text} cannot be used: {error}",
            remedy="write it without that construct, or use a Python function with re",
        ) from None
