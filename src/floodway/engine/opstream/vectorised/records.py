"""Records that need not be made: where only their fields are read, variables do.

A record that is made in the middle of a fused loop, by a join or the like, mostly serves to carry
its fields a few lines further. Its fields become variables; the record itself is made where it is
wanted as a whole, which is allowed only where few records come: what fails, what is late, what is
left over.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

RARE = ("left_", "late_")
"""What the names begin with by which rows leave that few records become."""


def replace_records(loop: ast.For, names: Mapping[str, Any]) -> None:
    """Replace all records that need not be made in a loop, in place."""
    stored = [n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and _is_store(n)]
    for node in list(ast.walk(loop)):
        if isinstance(node, ast.Try) and len(node.body) == 1:
            made = _made(node.body[0], names)
            if made is None or stored.count(made[0]) != 1:
                continue
            variable, row, values = made
            if not any(name.id == variable for name in _wanted_whole(loop)):
                fields = row.__struct_fields__
                node.body = [
                    ast.Assign([ast.Name(_variable(variable, field), ast.Store())], value)
                    for field, value in zip(fields, values, strict=True)
                ]
                maker = _maker(names, row)
                _Fields(variable, fields, maker).visit(loop)


def _variable(record: str, field: str) -> str:
    return f"{record}__{field}__"  # ends unlike any name of a loop


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _made(
    statement: ast.stmt, names: Mapping[str, Any]
) -> tuple[str, type[msgspec.Struct], list[ast.expr]] | None:
    """Return variable, class and values if a statement makes a record."""
    match statement:
        case ast.Assign([ast.Name(variable)], ast.Call(ast.Name(called), values, [])):
            row = names.get(called)
        case _:
            return None
    if not (isinstance(row, type) and issubclass(row, msgspec.Struct)):
        return None
    fields = row.__struct_fields__
    positional = row.__match_args__ == fields and len(values) == len(fields)
    spread = any(isinstance(value, ast.Starred) for value in values)
    if not positional or spread or hasattr(row, "__post_init__"):
        return None
    return variable, row, values


def _maker(names: Mapping[str, Any], row: type[msgspec.Struct]) -> str:
    return next(name for name, value in names.items() if value is row)


def _wanted_whole(node: ast.AST) -> Iterator[ast.Name]:
    """Go through the names that are read otherwise than for a field, where many records come."""
    match node:
        case ast.Attribute(value=ast.Name()) | ast.ExceptHandler():
            return
        case ast.Call(func=ast.Name(name)) if name.startswith(RARE):
            return
        case ast.Name(ctx=ast.Load()):
            yield node
    for child in ast.iter_child_nodes(node):
        yield from _wanted_whole(child)


class _Fields(ast.NodeTransformer):
    """Puts variables in place of a record's fields, and a new record in place of itself."""

    def __init__(self, variable: str, fields: tuple[str, ...], maker: str) -> None:
        self._variable, self._fields, self._maker = variable, fields, maker

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        match node:
            case ast.Attribute(ast.Name(name), field, ast.Load()):
                if name == self._variable and field in self._fields:
                    return ast.Name(_variable(name, field), ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id != self._variable or not isinstance(node.ctx, ast.Load):
            return node
        fields: list[ast.expr] = [ast.Name(_variable(node.id, f), ast.Load()) for f in self._fields]
        return ast.Call(ast.Name(self._maker, ast.Load()), fields, [])
