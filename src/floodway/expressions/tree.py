"""The syntax tree of an expression: what was written, before anything is known about types."""

import msgspec

from floodway.core.types import DataType


class Node(msgspec.Struct, frozen=True):
    """A part of an expression and the text it was written as."""

    text: str


class Literal(Node, frozen=True):
    """A constant: its Python value and its type."""

    value: object
    type: DataType


class Name(Node, frozen=True):
    """A column, possibly followed by fields: ``address.city`` has two parts."""

    parts: tuple[str, ...]


class Star(Node, frozen=True):
    """``*``: all columns, or all arguments of ``count``."""


class Call(Node, frozen=True):
    """A function call, in lower case."""

    name: str
    arguments: tuple[Node, ...]


class Unary(Node, frozen=True):
    """``-``, ``+``, ``~`` or ``NOT`` before an operand."""

    operator: str
    operand: Node


class Binary(Node, frozen=True):
    """An operator between two operands, ``AND`` and ``OR`` among them."""

    operator: str
    left: Node
    right: Node


class Test(Node, frozen=True):
    """``IS NULL``, ``IS TRUE`` or ``IS FALSE``; `negated` for ``IS NOT``."""

    what: str
    operand: Node
    negated: bool


class Member(Node, frozen=True):
    """``x IN (a, b, c)``."""

    operand: Node
    choices: tuple[Node, ...]


class Between(Node, frozen=True):
    """``x BETWEEN low AND high``."""

    operand: Node
    low: Node
    high: Node


class Like(Node, frozen=True):
    """``x LIKE pattern ESCAPE '!'`` and ``ILIKE``."""

    operand: Node
    pattern: Node
    escape: str
    fold: bool


class Case(Node, frozen=True):
    """``CASE [operand] WHEN .. THEN .. ELSE .. END``."""

    operand: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None


class Cast(Node, frozen=True):
    """``CAST(x AS type)``, ``x::type`` and, with `lenient`, ``TRY_CAST``."""

    operand: Node
    target: DataType
    lenient: bool


class Index(Node, frozen=True):
    """``array[0]`` or ``map['key']``."""

    operand: Node
    index: Node


class Get(Node, frozen=True):
    """A field of a struct that is not itself a column: ``f(x).city``."""

    operand: Node
    field: str


class Alias(Node, frozen=True):
    """A field of a struct under a name of its own: ``price * 2 AS double``."""

    operand: Node
    name: str


class Lambda(Node, frozen=True):
    """``x -> body``, an argument of the functions that walk over arrays."""

    parameters: tuple[str, ...]
    body: Node
