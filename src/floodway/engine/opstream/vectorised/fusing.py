"""Several generated functions as one: a record goes its whole way before the next one begins.

Every kernel of the remote half is a generated function of one shape: a loop over rows, which ends
by emitting a row or goes on with the next. Where the one emits exactly what the other loops over,
the second loop's body can stand in place of the first one's ``emit``, and no row, list or call is
left in between::

    def run(rows):                  def run(rows):
        for t, k, v in rows:            for t, k, v in rows:
            if not p: continue              if not p: continue
            emit((t, k, v))                 into[v.g] = ...
    def run(rows, into):
        for t, k, v in rows:
            into[v.g] = ...

What a record means is thus written in one place only, the kernels' own generators. A function of
another shape is not taken apart: it stays alone.
"""

import ast
import builtins
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from floodway.engine.opstream.vectorised.records import replace_records
from floodway.operators.code import CodeWriter

ROW = 3
"""A row is a timestamp, a key and a value."""


class Loop(NamedTuple):
    """A generated function.

    Attributes
    ----------
    source, names
        Its text, and the names that the text refers to.
    emit
        The name by which it emits rows.
    calls
        Generated functions among the names: what they return is written in place of a call.
    """

    source: str
    names: Mapping[str, Any]
    emit: str
    calls: Mapping[str, CodeWriter] = {}


class FusedLoop(NamedTuple):
    """Functions as one.

    Attributes
    ----------
    run
        Takes the rows and then, function by function, what each takes besides; returns, function
        by function, what each returns, and then how many rows went from each to the next.
    returns
        How many values of the result come from each function.
    """

    run: Callable[..., tuple[Any, ...]]
    source: str
    returns: tuple[int, ...]


class NotFusable(Exception):
    """A function is not of the shape that can be fused."""


class _Parts(NamedTuple):
    """A function taken apart, its names its own."""

    arguments: list[str]
    before: list[ast.stmt]
    loop: ast.For
    returns: list[ast.expr]


def fuse(loops: Sequence[Loop]) -> FusedLoop:
    """Return functions as one; raise NotFusable if that cannot be."""
    parts = [_taken_apart(loop, number) for number, loop in enumerate(loops)]
    _nest(parts, loops)
    counters = [_counter(number) for number in range(1, len(parts))]
    arguments = ["rows", *(name for part in parts for name in part.arguments)]
    returned = [value for part in parts for value in part.returns]
    returned += [ast.Name(name, ast.Load()) for name in counters]
    body: list[ast.stmt] = [_assign(name, ast.Constant(0)) for name in counters]
    for part in parts:
        body += part.before
    names = {
        f"{name}_{number}": value
        for number, loop in enumerate(loops)
        for name, value in _all_names(loop).items()
    }
    replace_records(parts[0].loop, names)
    body += [parts[0].loop, ast.Return(ast.Tuple(returned, ast.Load()))]
    given = [ast.arg(name) for name in arguments]
    function = ast.FunctionDef("run", _arguments(given), body, [])
    module = ast.fix_missing_locations(ast.Module([function], []))
    source = ast.unparse(module) + "\n"
    exec(compile(source, "<floodway fused>", "exec"), names)
    return FusedLoop(names["run"], source, tuple(len(part.returns) for part in parts))


def _all_names(loop: Loop) -> dict[str, Any]:
    """Return the names of a function, and those of the functions that it calls."""
    called = {f"{n}_{c}": v for c, code in loop.calls.items() for n, v in code.names.items()}
    return {**loop.names, **called}


def _arguments(given: list[ast.arg]) -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[])


def _counter(number: int) -> str:
    return f"passed{number}"  # ends unlike any name of a loop


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


# ---------------------------------------------------------------------- taking apart


def _taken_apart(loop: Loop, number: int) -> _Parts:
    (function,) = ast.parse(loop.source).body
    if not isinstance(function, ast.FunctionDef):
        raise NotFusable
    function = _Inline(loop.calls).visit(function)
    function = _Rename(str(number), _all_names(loop)).visit(function)
    arguments = [argument.arg for argument in function.args.args]
    body = function.body
    returns: list[ast.expr] = []
    if isinstance(body[-1], ast.Return):
        last = body.pop()
        if not isinstance(last.value, ast.Tuple):
            raise NotFusable
        returns = last.value.elts
    *before, over = body
    simple = all(isinstance(statement, ast.Assign) for statement in before)
    if not simple or not isinstance(over, ast.For) or over.orelse:
        raise NotFusable
    if not isinstance(over.iter, ast.Name) or over.iter.id != arguments[0]:
        raise NotFusable
    over.iter = ast.Name("rows", ast.Load())
    return _Parts(arguments[1:], before, over, returns)


class _Rename(ast.NodeTransformer):
    """Gives all names of a function, but for Python's own, a suffix."""

    def __init__(self, suffix: str, names: Mapping[str, Any]) -> None:
        self._suffix, self._names = suffix, names

    def _renamed(self, name: str) -> str:
        # No generated function has a variable named as something that Python brings along.
        own = name in self._names or not hasattr(builtins, name)
        return f"{name}_{self._suffix}" if own else name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._renamed(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._renamed(node.arg))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name is not None:
            node.name = self._renamed(node.name)
        return self.generic_visit(node)


class _Inline(ast.NodeTransformer):
    """Writes what generated functions return in place of their calls."""

    def __init__(self, calls: Mapping[str, CodeWriter]) -> None:
        self._calls = calls

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        plain = all(isinstance(argument, ast.Name) for argument in node.args)
        if name not in self._calls or not plain or node.keywords:
            return self.generic_visit(node)
        code = self._calls[name]
        function = _Rename(name, code.names).visit(ast.parse(code.source).body[0])
        match function:
            case ast.FunctionDef(
                args=ast.arguments(args=given), body=[ast.Return(ast.expr() as made)]
            ):
                values = zip(given, node.args, strict=True)
                instead = {argument.arg: value for argument, value in values}
                result: ast.expr = _Replace(instead).visit(made)
                return result
        raise NotFusable


# ---------------------------------------------------------------------- putting together


def _nest(parts: Sequence[_Parts], loops: Sequence[Loop]) -> None:
    """Put each loop's body in place of what the loop before it emits."""
    for number in range(len(parts) - 1, 0, -1):
        emit = f"{loops[number - 1].emit}_{number - 1}"
        inner = parts[number].loop
        outer = parts[number - 1].loop
        count: ast.stmt = ast.AugAssign(
            ast.Name(_counter(number), ast.Store()), ast.Add(), ast.Constant(1)
        )

        def body(
            row: list[ast.expr], inner: ast.For = inner, count: ast.stmt = count
        ) -> list[ast.stmt]:
            return [count, *_bound(inner, row)]

        if not _replace_emits(outer.body, emit, body) or _mentions(outer, emit):
            raise NotFusable


def _replace_emits(
    block: list[ast.stmt], emit: str, body: Callable[[list[ast.expr]], list[ast.stmt]]
) -> bool:
    """Replace emits at the end of a loop's body; return whether there was one.

    After an emit there must be nothing but the next turn of the loop: that is where the inner
    body's ``continue`` leads. Nor may it be within a ``try``, which would catch more than its own.
    """
    last = block[-1]
    row = _emitted(last, emit)
    if row is not None:
        block[-1:] = body(row)
        return True
    if isinstance(last, ast.For) and not last.orelse:
        return _replace_emits(last.body, emit, body)
    if isinstance(last, ast.If) and not last.orelse:
        return _replace_emits(last.body, emit, body)
    return False


def _emitted(statement: ast.stmt, emit: str) -> list[ast.expr] | None:
    match statement:
        case ast.Expr(ast.Call(ast.Name(name), [ast.Tuple(row)], [])) if name == emit:
            return row if len(row) == ROW else None
    return None


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(found, ast.Name) and found.id == name for found in ast.walk(node))


def _bound(loop: ast.For, row: list[ast.expr]) -> list[ast.stmt]:
    """Return a loop's body for one given row.

    A variable that the body does not change is not made: the row's own stands in its place.
    """
    body, whole = loop.body, None
    targets = loop.target
    if isinstance(targets, ast.Name):  # for row in rows: t, k, v = row
        whole = targets.id
        match body[0]:
            case ast.Assign([ast.Tuple() as unpacked], ast.Name(name)) if name == whole:
                targets, body = unpacked, body[1:]
            case _:
                raise NotFusable
    if not isinstance(targets, ast.Tuple) or len(targets.elts) != ROW:
        raise NotFusable
    body = copy.deepcopy(body)
    stored = {
        found.id
        for statement in body
        for found in ast.walk(statement)
        if isinstance(found, ast.Name) and isinstance(found.ctx, ast.Store)
    }
    instead: dict[str, ast.expr] = {}
    before: list[ast.stmt] = []
    parts: list[ast.expr] = []
    for target, value in zip(targets.elts, row, strict=True):
        if not isinstance(target, ast.Name):
            raise NotFusable
        if isinstance(value, ast.Name) and target.id not in stored:
            instead[target.id] = value
        else:
            before.append(_assign(target.id, value))
        parts.append(instead.get(target.id, ast.Name(target.id, ast.Load())))
    if whole is not None:
        if whole in stored or any(isinstance(t, ast.Name) and t.id in stored for t in targets.elts):
            raise NotFusable
        instead[whole] = ast.Tuple(parts, ast.Load())
    replace = _Replace(instead)
    return [*before, *(replace.visit(statement) for statement in body)]


class _Replace(ast.NodeTransformer):
    """Puts expressions in place of names."""

    def __init__(self, instead: Mapping[str, ast.expr]) -> None:
        self._instead = instead

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._instead.get(node.id)
        return node if found is None else copy.deepcopy(found)
