"""What a regular expression may cost, and the same expression for an engine without backtracking.

Python's ``re`` is fast on short texts and tries alternatives one after the other: with ``(a+)+$``
on thirty letters that is a billion steps. RE2 needs a time that is linear in the text, but several
times longer than ``re`` for a short one, and it has neither look-around nor back-references. So the
syntax tree of an expression says two things here: a bound on the steps that ``re`` may take, and
what RE2 has to be given to find the same.
"""

import math
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_MANY = math.log(1e9)
_MOST_REPEATS = 1000  # RE2's own limit
_ALL = 0x10FFFF
_CATEGORIES = {
    c.CATEGORY_DIGIT: ((0x30, 0x39),),
    c.CATEGORY_SPACE: ((0x09, 0x0D), (0x20, 0x20)),
    c.CATEGORY_WORD: ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
}
_OPPOSITES = {
    c.CATEGORY_NOT_DIGIT: c.CATEGORY_DIGIT,
    c.CATEGORY_NOT_SPACE: c.CATEGORY_SPACE,
    c.CATEGORY_NOT_WORD: c.CATEGORY_WORD,
}
_PLACES = {c.AT_BEGINNING: r"\A", c.AT_BEGINNING_STRING: r"\A", c.AT_END_STRING: r"\z"}
_PLACES |= {c.AT_BOUNDARY: r"\b"}
_REASONS = {
    c.ASSERT: "look-ahead or look-behind",
    c.ASSERT_NOT: "look-ahead or look-behind",
    c.GROUPREF: "a back-reference",
    c.ATOMIC_GROUP: "an atomic group",
    c.POSSESSIVE_REPEAT: "a possessive quantifier",
}

Ranges = tuple[tuple[int, int], ...]


class NeedsBacktracking(ValueError):
    """An expression that only an engine with backtracking can follow; it says which part."""


class StepBound(NamedTuple):
    """A bound on steps: ``factor * n ** degree`` for a text of n characters.

    The factor is a float, which ends at infinity: a whole number would grow with the expression.
    """

    factor: float
    degree: int

    def times(self, other: "StepBound") -> "StepBound":
        """Return the product of two bounds."""
        return StepBound(self.factor * other.factor, self.degree + other.degree)

    def plus(self, other: "StepBound") -> "StepBound":
        """Return a bound on the sum of two bounds."""
        return StepBound(self.factor + other.factor, max(self.degree, other.degree))


_NONE, _ONE, _EACH, _ENDLESS = (
    StepBound(0.0, 0),
    StepBound(1.0, 0),
    StepBound(1.0, 1),
    StepBound(math.inf, 0),
)


def parse(python: str, flags: int) -> Any:
    """Return the syntax tree of an expression, written for ``re``."""
    return _parser.parse(python, flags)


def longest(tree: Any, steps: float) -> int:
    """Return the length of the longest text that ``re`` searches within some steps.

    >>> longest(parse("(a+)+b", 0), 1e6), longest(parse("a+b", 0), 1e6)
    (0, 500)
    """
    work, _ = _costs(list(tree))
    starts = _ONE if _anchored(tree) else _EACH
    factor, degree = starts.times(work)
    if not math.isfinite(factor) or factor > steps:
        return 0
    return int(steps) if degree == 0 else int((steps / factor) ** (1 / degree))


def _anchored(tree: Any) -> bool:
    first = tree[0] if len(tree) else None
    return (
        first is not None
        and first[0] is c.AT
        and first[1]
        in (
            c.AT_BEGINNING,
            c.AT_BEGINNING_STRING,
        )
    )


def _costs(nodes: list[Any]) -> tuple[StepBound, StepBound]:
    """Return bounds on the steps through a sequence, and on the ways through it."""
    work, ways = _NONE, _ONE
    for operation, argument in nodes:
        own_work, own_ways = _cost(operation, argument)
        work = work.plus(ways.times(own_work))
        ways = ways.times(own_ways)
    return work.plus(_ONE), ways


def _cost(operation: Any, argument: Any) -> tuple[StepBound, StepBound]:
    if operation is c.BRANCH:
        parts = [_costs(list(branch)) for branch in argument[1]]
        work, ways = _NONE, _NONE
        for own_work, own_ways in parts:
            work, ways = work.plus(own_work), ways.plus(own_ways)
        return work, ways
    if operation is c.SUBPATTERN:
        return _costs(list(argument[3]))
    if operation in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
        work, ways = _repeated(*argument)
        return work, _ONE if operation is c.POSSESSIVE_REPEAT else ways
    if operation in (c.ASSERT, c.ASSERT_NOT):
        return _costs(list(argument[1]))[0], _ONE
    if operation is c.ATOMIC_GROUP:
        return _costs(list(argument))[0], _ONE
    return (_EACH if operation is c.GROUPREF else _ONE), _ONE


def _repeated(low: int, high: Any, body: Any) -> tuple[StepBound, StepBound]:
    work, ways = _costs(list(body))
    if ways == _ONE:
        if high is c.MAXREPEAT:
            return _EACH.times(work), _EACH
        rounds = StepBound(float(int(high) - low + 1), 0)
        return StepBound(work.factor * max(int(high), 1), work.degree), rounds
    # Each time round there are several ways, and each of them goes round again.
    if high is c.MAXREPEAT or int(high) * math.log(ways.factor) > _MANY:
        return _ENDLESS, _ENDLESS
    total = StepBound(ways.factor ** int(high) * max(int(high), 1), ways.degree * int(high))
    return total.times(work), total


class Linear(NamedTuple):
    """An expression for RE2.

    Attributes
    ----------
    source
        What RE2 is given.
    groups
        The number that each of the user's groups has there, the whole match first.
    ends
        The numbers of groups that hold the end of the line after the match; it is not part of it.
    exact
        Whether groups hold what they would hold in Java: those that are repeated although they may
        be empty do not.
    """

    source: str
    groups: tuple[int, ...]
    ends: tuple[int, ...]
    exact: bool


def linear(tree: Any, ending: str) -> Linear:
    r"""Return an expression for RE2, for texts that end with a certain end of the line, or none.

    >>> print(linear(parse("(a+)+$", 0), "").source)
    ((?:\x{61})+)+(?:\z)

    Raises
    ------
    NeedsBacktracking
        The expression has something that RE2 does not have.
    """
    writer = _Writer(ending, fold=bool(tree.state.flags & 2))
    source = writer.sequence(list(tree), last=True)
    return Linear(source, tuple(writer.groups), tuple(writer.ends), writer.exact)


class _Writer:
    """Writes one expression."""

    def __init__(self, ending: str, *, fold: bool) -> None:
        self._fold = fold
        self._ending = "".join(map(_character, map(ord, ending)))
        self._count = 0
        self.groups = [0]
        self.ends: list[int] = []
        self.exact = True

    def sequence(self, nodes: list[Any], *, last: bool) -> str:
        """Write parts one after the other; `last` says that nothing comes after them."""
        end = len(nodes) - 1
        return "".join(
            self._part(operation, argument, last=last and i == end)
            for i, (operation, argument) in enumerate(nodes)
        )

    def _part(self, operation: Any, argument: Any, *, last: bool) -> str:
        if operation is c.LITERAL:
            return self._set([(argument, argument)], negated=False)
        if operation is c.NOT_LITERAL:
            return self._set([(argument, argument)], negated=True)
        if operation is c.IN:
            negated = argument[0][0] is c.NEGATE
            ranges = [pair for item in argument[negated:] for pair in _ranges(*item)]
            return self._set(ranges, negated=negated)
        if operation is c.AT:
            return self._place(argument, last=last)
        if operation is c.BRANCH:
            branches = (self.sequence(list(part), last=last) for part in argument[1])
            return f"(?:{'|'.join(branches)})"
        if operation is c.SUBPATTERN:
            return self._group(argument[0], argument[3], last=last)
        if operation in (c.MAX_REPEAT, c.MIN_REPEAT):
            return self._repeat(*argument, lazy=operation is c.MIN_REPEAT, last=last)
        raise NeedsBacktracking(_REASONS.get(operation, str(operation).lower()))

    def _group(self, number: int | None, body: Any, *, last: bool) -> str:
        if number is None:
            return f"(?:{self.sequence(list(body), last=last)})"
        self._count += 1
        self.groups.append(self._count)
        return f"({self.sequence(list(body), last=last)})"

    def _repeat(self, low: int, high: Any, body: Any, *, lazy: bool, last: bool) -> str:
        if max(low, 0 if high is c.MAXREPEAT else int(high)) > _MOST_REPEATS:
            raise NeedsBacktracking(f"more than {_MOST_REPEATS} repetitions")
        before = self._count
        inner = self.sequence(list(body), last=last and high == 1)
        if self._count > before and body.getwidth()[0] == 0:
            self.exact = False
        one = body[0] if len(body) == 1 else (None, None)
        grouped = inner if one[0] is c.SUBPATTERN else f"(?:{inner})"
        upper = "" if high is c.MAXREPEAT else int(high)
        count = {(0, ""): "*", (1, ""): "+", (0, 1): "?"}.get((low, upper), f"{{{low},{upper}}}")
        return f"{grouped}{count}{'?' if lazy else ''}"

    def _place(self, where: Any, *, last: bool) -> str:
        if where in _PLACES:
            return _PLACES[where]
        if where is not c.AT_END:
            # RE2 would find it between the bytes of one character too.
            raise NeedsBacktracking(r"\B")
        if not last:
            raise NeedsBacktracking("$ before the end of the expression")
        if not self._ending:
            return r"(?:\z)"
        self._count += 1
        self.ends.append(self._count)
        return rf"(?:({self._ending})\z|\z)"

    def _set(self, ranges: list[tuple[int, int]], *, negated: bool) -> str:
        if self._fold:
            ranges = [*ranges, *_folded(ranges)]
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and not negated:
            return _character(ranges[0][0])
        inner = "".join(f"{_character(low)}-{_character(high)}" for low, high in ranges)
        return f"[{'^' if negated else ''}{inner}]"


def _character(code: int) -> str:
    return f"\\x{{{code:x}}}"


def _ranges(operation: Any, argument: Any) -> Ranges:
    if operation is c.RANGE:
        return (argument,)
    if operation is c.LITERAL:
        return ((argument, argument),)
    if argument in _CATEGORIES:
        return _CATEGORIES[argument]
    gaps, start = [], 0
    for low, high in _CATEGORIES[_OPPOSITES[argument]]:
        gaps.append((start, low - 1))
        start = high + 1
    return (*gaps, (start, _ALL))


def _folded(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the other case of the ASCII letters in ranges, as Java's ``(?i)`` has it."""
    found = []
    for low, high in ranges:
        for first, last, offset in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
            start, end = max(low, first), min(high, last)
            if start <= end:
                found.append((start + offset, end + offset))
    return found
