"""Java regular expressions and LIKE patterns as Python's."""

import functools
import re

from floodway.expressions.runtime.failures import fail

_LINE_END = r"\n\r\u0085\u2028\u2029"
_DOT = f"[^{_LINE_END}]"
# Java's $ also matches before a last line terminator of any kind.
_DOLLAR = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]\Z)|\Z)"
_SAFE_ESCAPES = frozenset("dDwWsSbB" + "ntrfav" + "0123456789")
_SAFE_IN_CLASS = frozenset("dDwWsS" + "ntrfav")


class Untranslatable(ValueError):
    """A construct of Java's regular expressions that Python's does not have alike."""


@functools.lru_cache(maxsize=512)
def translate(pattern: str) -> re.Pattern[str]:
    """Return the Python pattern that matches what the Java pattern does.

    >>> translate("a.c").fullmatch("abc") is not None
    True
    """
    return re.compile("".join(_pieces(pattern)), re.ASCII)


def _pieces(pattern: str) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            piece, at = _escape(pattern, at)
        elif character == "[":
            piece, at = _class(pattern, at)
        elif character == "(" and pattern.startswith("(?", at):
            piece, at = _group(pattern, at)
        else:
            piece = {".": _DOT, "$": _DOLLAR}.get(character, character)
            at += 1
        out.append(piece)
    return out


def _escape(pattern: str, at: int) -> tuple[str, int]:
    following = pattern[at + 1 : at + 2]
    if following == "z":
        return r"\Z", at + 2
    if following == "u" and re.match(r"[0-9a-fA-F]{4}", pattern[at + 2 : at + 6]):
        return pattern[at : at + 6], at + 6
    if following == "0" or not following:
        raise Untranslatable(f"\\{following}")
    if following in _SAFE_ESCAPES or not following.isalnum():
        return pattern[at : at + 2] if following.isalnum() else re.escape(following), at + 2
    if following == "A":
        return r"\A", at + 2
    raise Untranslatable(f"\\{following}")


def _class(pattern: str, at: int) -> tuple[str, int]:
    end = at + 1
    out = "["
    if pattern.startswith("^", end):
        out, end = "[^", end + 1
    while end < len(pattern) and (pattern[end] != "]"):
        character = pattern[end]
        if character == "[" or pattern.startswith("&&", end):
            raise Untranslatable(character)
        if character == "\\":
            following = pattern[end + 1 : end + 2]
            if not following or (following.isalnum() and following not in _SAFE_IN_CLASS):
                raise Untranslatable(f"[\\{following}]")
            out += "\\" + following
            end += 2
            continue
        # Python warns about sets that look nested; escaped they mean the same.
        out += "\\" + character if character in "&|~" else character
        end += 1
    if out in ("[", "[^") or end >= len(pattern):
        raise Untranslatable("an unclosed or empty character class")
    return out + "]", end + 1


def _group(pattern: str, at: int) -> tuple[str, int]:
    for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"):
        if pattern.startswith(opening, at):
            return opening, at + len(opening)
    named = re.match(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>", pattern[at:])
    if named:
        return f"(?P<{named[1]}>", at + named.end()
    if pattern.startswith("(?i)", at) and at == 0:
        return "(?i)", at + 4
    raise Untranslatable(pattern[at : at + 4])


def regex(pattern: str) -> re.Pattern[str]:
    """Return a pattern that is only known while the flow runs."""
    try:
        return translate(pattern)
    except (re.error, Untranslatable) as error:
        fail(
            f"the regular expression {pattern!r} cannot be used: {error}",
            "write it without that construct, or use a Python function with re",
        )


def regex_search(text: str, pattern: str) -> bool:
    """Whether a pattern is found anywhere."""
    return regex(pattern).search(text) is not None


@functools.lru_cache(maxsize=512)
def like_regex(pattern: str, escape: str, fold: bool) -> re.Pattern[str]:  # noqa: FBT001
    """Return the Python pattern of a LIKE pattern."""
    out, characters = "", iter(pattern.lower() if fold else pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following not in ("_", "%", escape):
                fail(
                    f"{pattern!r} is not a LIKE pattern: {escape!r} must precede _, % or itself",
                    "double the escape character",
                )
            out += re.escape(str(following))
        else:
            out += {"_": ".", "%": ".*"}.get(character) or re.escape(character)
    return re.compile(out, re.DOTALL)


def like_matches(text: str, pattern: str, escape: str, fold: bool) -> bool:  # noqa: FBT001
    """Return ``text LIKE pattern`` for a pattern that is not a constant."""
    subject = text.lower() if fold else text
    return like_regex(pattern, escape, fold).fullmatch(subject) is not None


def regex_replace(text: str, pattern: str, replacement: str, start: int = 1) -> str:
    """Replace every match from a position on; ``$1`` is the first group."""
    compiled, template = regex(pattern), replacement_template(replacement)
    if start < 1:
        fail(f"position {start} of regexp_replace is not positive", "count positions from 1")
    if start > max(len(text), 1):
        return text
    return text[: start - 1] + compiled.sub(lambda m: expand(template, m), text[start - 1 :])


@functools.lru_cache(maxsize=512)
def replacement_template(replacement: str) -> tuple[str | int, ...]:
    """Return Java's replacement text as literal pieces and group numbers."""
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        if character == "\\" and at + 1 < len(replacement):
            pieces.append(replacement[at + 1])
            at += 2
        elif character == "$" and replacement[at + 1 : at + 2].isdigit():
            pieces.append(int(replacement[at + 1]))
            at += 2
        elif character in "$\\":
            fail(
                f"the replacement {replacement!r} has a lone {character}",
                "write \\$ for a dollar sign and \\\\ for a backslash",
            )
        else:
            pieces.append(character)
            at += 1
    return tuple(pieces)


def expand(template: tuple[str | int, ...], match: re.Match[str]) -> str:
    """Return the replacement of one match."""
    try:
        return "".join(
            piece if isinstance(piece, str) else match.group(piece) or "" for piece in template
        )
    except IndexError:
        fail("the replacement refers to a group that the pattern does not have", "use $1 to $9")


def regex_extract(text: str, pattern: str, group: int = 1) -> str:
    """Return a group of the first match, or nothing."""
    found = regex(pattern).search(text)
    _check_group(regex(pattern), group, "regexp_extract")
    return (found.group(group) or "") if found else ""


def regex_extract_all(text: str, pattern: str, group: int = 1) -> list[str]:
    """Return a group of every match."""
    _check_group(regex(pattern), group, "regexp_extract_all")
    return [found.group(group) or "" for found in regex(pattern).finditer(text)]


def _check_group(compiled: re.Pattern[str], group: int, name: str) -> None:
    if not 0 <= group <= compiled.groups:
        fail(
            f"{name} asks for group {group}, and the pattern has {compiled.groups}",
            "use 0 for the whole match, or add parentheses to the pattern",
        )


def regex_count(text: str, pattern: str) -> int:
    """Return the number of matches."""
    return sum(1 for _ in regex(pattern).finditer(text))


def regex_substr(text: str, pattern: str) -> str | None:
    """Return the first match, or None."""
    found = regex(pattern).search(text)
    return found.group() if found and found.group() else None


def regex_instr(text: str, pattern: str) -> int:
    """Return the position of the first match, counted from 1, or 0."""
    found = regex(pattern).search(text)
    return found.start() + 1 if found else 0


def regex_split(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the pieces between matches, at most `limit` of them if that is positive."""
    if pattern == "":
        return _characters(text, limit)
    pieces: list[str] = []
    last = 0
    for found in regex(pattern).finditer(text):
        if 0 < limit <= len(pieces) + 1:
            break
        # As in Java, an empty match at the very start gives no empty piece.
        if found.end() == 0:
            continue
        pieces.append(text[last : found.start()])
        last = found.end()
    return [*pieces, text[last:]]


def _characters(text: str, limit: int) -> list[str]:
    if limit <= 0 or limit >= len(text):
        return list(text) or [""]
    return list(text[:limit])
