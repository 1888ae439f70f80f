"""The front door: expression text in, Python source out.

An expression is compiled once, when the flow is built; errors appear there. What runs per record
is plain Python source, to be inlined into the generated function of a chain.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from floodway.core.errors import ExpressionTypeError, UnsupportedExpressionError
from floodway.core.types import INTERVAL, DataType
from floodway.expressions import tree
from floodway.expressions.code import Code
from floodway.expressions.functions.generators import GENERATORS, generate
from floodway.expressions.literals import DAYS, MONTHS
from floodway.expressions.lowering import Compiler
from floodway.expressions.scope import Scope
from floodway.expressions.sql import parse, parse_named


class Expression(msgspec.Struct, frozen=True):
    """A compiled expression.

    Parameters
    ----------
    text
        The Spark SQL it was compiled from.
    type
        The type of its value; of the elements, if it generates rows.
    nullable
        Whether the value may be None.
    source
        One Python expression on one line, to be inlined. It uses the sources of the scope's
        columns, `names`, and temporaries called ``_1``, ``_2`` and so on.
    names
        The helpers and constants that the source refers to. A name means the same in every
        expression.
    rows
        Whether the value is a list of values, one for each row to come out.
    """

    text: str
    type: DataType
    nullable: bool
    source: str
    names: Mapping[str, object]
    rows: bool = False

    def function(self, *arguments: str) -> Callable[..., Any]:
        """Return a function of the given argument names that computes the expression.

        >>> from floodway.core.types import LONG
        >>> from floodway.expressions import Column, Scope, compile_expression
        >>> scope = Scope({"a": Column("v", LONG, True)})
        >>> half = compile_expression("a / 2", scope).function("v")
        >>> half(5), half(None)
        (2.5, None)
        """
        code = compile(f"lambda {', '.join(arguments)}: {self.source}", f"<{self.text}>", "eval")
        return eval(code, dict(self.names))  # type: ignore[no-any-return]


def compile_expression(text: str, scope: Scope, *, rows: bool = False) -> Expression:
    """Compile one Spark SQL expression.

    Parameters
    ----------
    text
        The expression.
    scope
        The columns it may use.
    rows
        Whether ``explode`` and its like are allowed, at the top.

    Raises
    ------
    FlowError
        One of the expression errors: the syntax, an unknown column, types that do not go
        together, or something that cannot be lowered.

    Examples
    --------
    >>> from floodway.core.types import LONG, STRING
    >>> from floodway.expressions import Column
    >>> scope = Scope(
    ...     {
    ...         "price": Column("v.price", LONG, False),
    ...         "kind": Column("v.kind", STRING, True),
    ...     }
    ... )
    >>> compile_expression("price > 10 AND kind = 'view'", scope).source
    "((v.price > 10) and (None if (_1 := v.kind) is None else (_1 == 'view')))"
    """
    try:
        return _compile(text, parse(text), scope, rows=rows)
    except RecursionError:
        raise _too_deep(text) from None


def compile_projection(text: str, scope: Scope) -> tuple[str, Expression]:
    """Compile an expression with a name: its alias, or the column that it is.

    >>> from floodway.core.types import LONG
    >>> from floodway.expressions import Column
    >>> scope = Scope({"price": Column("v.price", LONG, False)})
    >>> compile_projection("price % 2 AS odd", scope)[0]
    'odd'
    """
    try:
        node, alias = parse_named(text)
        name = alias or _own_name(node, scope, text)
        return name, _compile(text, node, scope, rows=False)
    except RecursionError:
        raise _too_deep(text) from None


def compile_projections(texts: Sequence[str], scope: Scope) -> list[tuple[str, Expression]]:
    """Compile several named expressions; ``*`` stands for all columns of the scope.

    >>> from floodway.core.types import LONG
    >>> from floodway.expressions import Column
    >>> scope = Scope({"a": Column("v.a", LONG, False), "b": Column("v.b", LONG, False)})
    >>> [name for name, _ in compile_projections(["*", "a % 2 AS odd"], scope)]
    ['a', 'b', 'odd']
    """
    compiled: list[tuple[str, Expression]] = []
    for text in texts:
        if text.strip() == "*":
            compiled += [compile_projection(_quoted(name), scope) for name in _all(scope)]
        else:
            compiled.append(compile_projection(text, scope))
    return compiled


def _all(scope: Scope) -> tuple[str, ...]:
    # An empty scope is an opaque schema: asking for any column explains that.
    return scope.names or (str(scope.column("*")),)


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _own_name(node: tree.Term, scope: Scope, text: str) -> str:
    if isinstance(node, tree.Name):
        if len(node.parts) > 1:
            return node.parts[-1]
        wanted = node.parts[0].lower()
        return next((name for name in scope if name.lower() == wanted), node.parts[0])
    raise ExpressionTypeError(
        f"{text} needs a name", remedy=f"give it one with AS, e.g. '{text} AS result'"
    )


def _compile(text: str, node: tree.Term, scope: Scope, *, rows: bool) -> Expression:
    compiler = Compiler(scope)
    if isinstance(node, tree.Call) and node.name in GENERATORS:
        if not rows:
            raise UnsupportedExpressionError(
                f"{text} makes several rows of one",
                remedy=f"use flat_map({text!r})",
            )
        return _expression(text, generate(compiler, node), compiler, rows=True)
    code = _bare(node, scope) or compiler.lower(node)
    return _expression(text, code, compiler, rows=False)


def _too_deep(text: str) -> UnsupportedExpressionError:
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return UnsupportedExpressionError(
        f"{shown} is nested too deeply", remedy="compute parts of it as columns of their own first"
    )


def _bare(node: tree.Term, scope: Scope) -> Code | None:
    """Return a column that is taken as it is, whatever its type."""
    if not isinstance(node, tree.Name) or len(node.parts) > 1:
        return None
    column = scope.column(node.parts[0])
    return Code(column.source, column.type, column.nullable, node.text, atom=True)


def _expression(text: str, code: Code, compiler: Compiler, *, rows: bool) -> Expression:
    if code.type == MONTHS:
        raise UnsupportedExpressionError(
            f"{text} is an interval of months, which is not a value by itself",
            remedy="add it to a date or timestamp",
        )
    try:
        # Python has limits of its own on nesting: better to meet them while the flow is built.
        compile(code.source, "<expression>", "eval")
    except (SyntaxError, MemoryError):
        raise _too_deep(text) from None
    data_type = INTERVAL if code.type == DAYS else code.type
    names = {name: value for name, value in compiler.names.items() if name in code.source}
    return Expression(text, data_type, code.nullable, code.source, names, rows)
