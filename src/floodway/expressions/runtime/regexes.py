"""Java regular expressions and LIKE patterns as Python's.

Each expression has two engines: Python's ``re`` for texts on which its worst case is harmless, RE2
for longer ones. See `.backtracking`.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import re2  # type: ignore[import-untyped]

from floodway.expressions.runtime import backtracking
from floodway.expressions.runtime.failures import LONGEST_TEXT, fail, fitting

_LINE_END = r"\n\r\u0085\u2028\u2029"
_DOT = f"[^{_LINE_END}]"
# Java's $ also matches before a last line terminator of any kind.
_DOLLAR = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]\Z)|\Z)"
_VERTICAL = rf"{_LINE_END}\x0b\f"  # Java's \v: all that ends a line or a page
_SAFE_ESCAPES = frozenset("dDwWsSbB" + "ntrfa" + "0123456789")
_SAFE_IN_CLASS = frozenset("dDwWsS" + "ntrfa")


_HARMLESS = 1e6  # steps of `re`: some milliseconds
_BEARABLE = 1e8  # for what only `re` can do: about a second
_ENDINGS = ("\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029")


MOST_CHARACTERS = 50_000
"""No regular expression is longer: what it costs to compile grows with its length."""


class Untranslatable(ValueError):
    """A construct of Java's regular expressions that Python's does not have alike."""


class Found:
    """A match of RE2, without the end of the line that ``$`` has looked at."""

    __slots__ = ("_end", "_found", "_groups", "clipped")

    def __init__(self, found: Any, linear: backtracking.Linear) -> None:
        self._found, self._groups = found, linear.groups
        ends = [found.start(number) for number in linear.ends if found.start(number) >= 0]
        self.clipped = bool(ends)
        self._end: int = ends[0] if ends else found.end()

    def group(self, number: int = 0, /) -> str | None:
        """Return the text of a group, or None if it took no part."""
        start, end = self._found.span(self._groups[number])
        return None if start < 0 else self._found.string[start : min(end, self._end)]

    def start(self) -> int:
        """Return where the match begins."""
        return int(self._found.start())

    def end(self) -> int:
        """Return where the match ends."""
        return self._end


Match = re.Match[str] | Found


class Regex:
    """A Java regular expression.

    Attributes
    ----------
    pattern
        The expression as the user wrote it.
    groups
        How many groups it has.
    limit
        The longest text that is searched with ``re``.
    search_short
        The search for such texts.
    needs
        What RE2 does not have; without RE2, longer texts are refused.

    Examples
    --------
    >>> Regex("^(a+)+$").search("a" * 1000 + "!") is None
    True
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._python = re.compile("".join(_pieces(pattern, _DOLLAR)), re.ASCII)
        self._tree = backtracking.parse("".join(_pieces(pattern, "$")), re.ASCII)
        self._linear: dict[str, tuple[Any, backtracking.Linear]] = {}
        self.groups = self._python.groups
        self.search_short = self._python.search
        self.needs: str | None = None
        try:
            self._compiled("")
        except (backtracking.NeedsBacktracking, re2.error) as error:
            self.needs = str(error)
        self.limit = backtracking.longest(self._tree, _BEARABLE if self.needs else _HARMLESS)
        if not self.limit and self.needs:
            raise Untranslatable(
                f"it may take a time that is exponential in the length of a text, and {self.needs} "
                "does not go with the engine that would not"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return translate, (self.pattern,)

    def search(self, text: str) -> Match | None:
        """Return the first match."""
        if len(text) <= self.limit:
            return self.search_short(text)
        return next(self._find(text), None)

    def finditer(self, text: str) -> Iterator[Match]:
        """Return all matches."""
        return self._python.finditer(text) if len(text) <= self.limit else self._find(text)

    def sub(self, replace: Callable[[Match], str], text: str) -> str:
        """Return the text with what a function makes of each match in its place."""
        if len(text) <= self.limit:
            return self._python.sub(replace, text)
        pieces, last = list[str](), 0
        for found in self._find(text):
            pieces += (text[last : found.start()], replace(found))
            last = found.end()
        return "".join([*pieces, text[last:]])

    @property
    def exact(self) -> bool:
        """Whether both engines fill groups as Java does."""
        return bool(self.needs) or self._compiled("")[1].exact

    def check_groups(self) -> None:
        """Refuse to look into groups that RE2 fills otherwise than Java."""
        if not self.exact:
            fail(
                f"a group of {self.pattern!r} is repeated although it may be empty",
                "write (?:...) for groups that are not asked for, or + instead of * in them",
            )

    def _find(self, text: str) -> Iterator[Match]:
        """Go through all matches in a time that is linear in the text."""
        if self.needs:
            fail(
                f"a text of {len(text)} characters is too long for {self.pattern!r}, which needs "
                f"{self.needs} and so may take very long on more than {self.limit}",
                "write the expression without that, or cut the text with left(...)",
            )
        ending = next((end for end in _ENDINGS if text.endswith(end)), "")
        compiled, linear = self._compiled(ending)
        start, empty = 0, -1
        while start <= len(text):
            for found in compiled.finditer(text, start):
                match = Found(found, linear)
                if match.start() == match.end() == empty:
                    continue  # RE2 finds one that is empty twice, when it comes to its place
                yield match
                empty = match.end() if match.start() == match.end() else -1
                if match.clipped:  # the end of the line is not part of it: go on before that
                    start = match.end() + (match.end() == match.start())
                    break
            else:
                return

    def _compiled(self, ending: str) -> tuple[Any, backtracking.Linear]:
        known = self._linear.get(ending)
        if known is None:
            linear = backtracking.linear(self._tree, ending)
            known = self._linear[ending] = re2.compile(linear.source, _options()), linear
        return known


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


@functools.lru_cache(maxsize=512)
def translate(pattern: str) -> Regex:
    """Return the Python pattern that matches what the Java pattern does.

    >>> translate("a.c").search("abc") is not None
    True
    """
    if len(pattern) > MOST_CHARACTERS:
        raise Untranslatable(f"it has over {MOST_CHARACTERS:,} characters")
    try:
        return Regex(pattern)
    except RecursionError:
        raise Untranslatable("its groups nest too deeply") from None


def _pieces(pattern: str, dollar: str) -> list[str]:
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
            piece = {".": _DOT, "$": dollar}.get(character, character)
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
    if following == "v":
        return f"[{_VERTICAL}]", at + 2
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
            if following == "v":
                out, end = out + _VERTICAL, end + 2
                continue
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


def regex(pattern: str) -> Regex:
    """Return a pattern that is only known while the flow runs."""
    try:
        return translate(pattern)
    except (re.error, Untranslatable) as error:
        fail(
            f"the regular expression {pattern[:100]!r} cannot be used: {error}",
            "write it without that construct, or use a Python function with re",
        )


def regex_search(text: str, pattern: str) -> bool:
    """Whether a pattern is found anywhere."""
    return regex(pattern).search(text) is not None


@functools.lru_cache(maxsize=512)
def like_regex(pattern: str, escape: str, fold: bool) -> re.Pattern[str]:  # noqa: FBT001
    """Return the Python pattern of a LIKE pattern.

    What stands between two % has a fixed length, so its first occurrence is as good as any other:
    an atomic group says so, and nothing is ever tried twice.
    """
    parts, characters = [""], iter(pattern.lower() if fold else pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following not in ("_", "%", escape):
                fail(
                    f"{pattern!r} is not a LIKE pattern: {escape!r} must precede _, % or itself",
                    "double the escape character",
                )
            parts[-1] += re.escape(str(following))
        elif character == "%":
            parts.append("")
        else:
            parts[-1] += "." if character == "_" else re.escape(character)
    first, *rest = parts
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return re.compile(first + middle + (f".*{rest[-1]}" if rest else ""), re.DOTALL)


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
    if any(isinstance(piece, int) and piece for piece in template):
        compiled.check_groups()
    head, body = text[: start - 1], text[start - 1 :]
    if len(replacement) * (len(body) + 1) <= LONGEST_TEXT:
        return head + compiled.sub(lambda match: expand(template, match), body)
    size = 0

    def bounded(match: Match) -> str:
        nonlocal size
        made = expand(template, match)
        size = fitting(size + len(made), LONGEST_TEXT, "regexp_replace")
        return made

    return head + compiled.sub(bounded, body)


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


def expand(template: tuple[str | int, ...], match: Match) -> str:
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


def _check_group(compiled: Regex, group: int, name: str) -> None:
    if not 0 <= group <= compiled.groups:
        fail(
            f"{name} asks for group {group}, and the pattern has {compiled.groups}",
            "use 0 for the whole match, or add parentheses to the pattern",
        )
    if group:
        compiled.check_groups()


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
