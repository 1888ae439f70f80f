"""Routers: which task of the receiving stage each row goes to.

A router is a generated function that appends each row to its task's buffer, with the grouping
expression inlined. A row whose group cannot be computed goes to the first task, where the operator
meets the same failure and its ``on_error`` decides.

A change or revision has an old and a new side. Where the two belong to different tasks it is split:
the one loses the old value, the other gains the new one.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from floodway.engine.transport.hashing import partition
from floodway.operators.base import Kind
from floodway.operators.code import CodeWriter, tuple_source
from floodway.operators.partitioning import ById, Hash, Range

Append = Callable[[Any], None]
Router = Callable[[Sequence[Any], Sequence[Append]], None]

REMEMBERED = 65_536
"""How many groups a router remembers the task of."""


class Places(dict[Any, int]):
    """Group to task, computed once per group while it is remembered."""

    def __init__(self, place: Callable[[Any], int]) -> None:
        super().__init__()
        self._place = place

    def __missing__(self, group: Any) -> int:
        if len(self) >= REMEMBERED:
            self.clear()
        found = self[group] = self._place(group)
        return found


def make_router(
    spread: Hash | ById | Range, kind: Kind, groups: int, dop: int
) -> tuple[Router, str]:
    """Return the router for an exchange to `dop` tasks, and its source."""
    code = CodeWriter()
    code.names["places"] = Places(_placer(spread, groups, dop))
    if isinstance(spread, ById):
        code.line("def route(rows, appends):").indent()
        code.line("for row in rows:").indent().line("appends[places[row[0]]](row)")
        return code.compile("route"), code.source
    match kind:
        case "records":
            _write_records(code, spread)
        case "changes":
            _write_split(code, spread, "t, k, new, old, until = row", ("(new, k)", "(old, k)"))
            _write_parts(code, "(t, k, None, old, until)", "(t, k, new, None, until)")
        case "revisions":
            _write_split(
                code, spread, "i, old, new = row", ("(new[2], new[1])", "(old[2], old[1])")
            )
            _write_parts(code, "(i, old, None)", "(i, None, new)")
    return code.compile("route"), code.source


def _placer(spread: Hash | ById | Range, groups: int, dop: int) -> Callable[[Any], int]:
    if not isinstance(spread, Range):
        return lambda group: place_of(group, groups, dop)
    bounds = spread.bounds
    return lambda value: bisect_right(bounds, value) * dop // (len(bounds) + 1)


def place_of(group: Any, groups: int, dop: int) -> int:
    """Return which of `dop` tasks has a group."""
    try:
        return partition(group, groups, dop)
    except TypeError:
        # A group that has a hash only in its own process: the first task has all of them.
        return 0


def _group_source(code: CodeWriter, spread: Hash | Range) -> str:
    by = (spread.by,) if isinstance(spread, Range) else spread.by
    return tuple_source(code, by) if by else "k"


def _write_records(code: CodeWriter, spread: Hash | Range) -> None:
    code.line("def route(rows, appends):").indent()
    code.line("for row in rows:").indent()
    code.line("t, k, v = row")
    code.line("try:").indent().line(f"p = places[{_group_source(code, spread)}]").dedent()
    code.line("except Exception:").indent().line("p = 0").dedent()
    code.line("appends[p](row)").dedent().dedent()


def _write_split(
    code: CodeWriter, spread: Hash | Range, head: str, arguments: tuple[str, str]
) -> None:
    code.line("def place(v, k, otherwise):").indent()
    code.line("try:").indent().line(f"return places[{_group_source(code, spread)}]").dedent()
    code.line("except Exception:").indent().line("return otherwise").dedent().dedent()
    code.line("def route(rows, appends):").indent()
    code.line("for row in rows:").indent()
    code.line(head)
    new, old = (argument[1:-1] for argument in arguments)
    code.line(f"p = None if new is None else place({new}, 0)")
    # An old value that fails was reported when it was new, and is nowhere.
    code.line(f"q = None if old is None else place({old}, None)")


def _write_parts(code: CodeWriter, without_new: str, without_old: str) -> None:
    code.line("if p is None or q is None or p == q:").indent()
    code.line("appends[p if p is not None else q or 0](row)").dedent()
    code.line("else:").indent()
    code.line(f"appends[q]({without_new})")
    code.line(f"appends[p]({without_old})").dedent().dedent().dedent()
