"""The syntax tree of an expression: what was written, before anything is known about types."""

import msgspec

from floodway.core.types import DataType


class Term(msgspec.Struct, frozen=True):
    """A part of an expression and the text it was written as."""

    text: str


class Literal(Term, frozen=True):
    """A constant: its Python value and its type."""

    value: object
    type: DataType


class Name(Term, frozen=True):
    """A column, possibly followed by fields: ``address.city`` has two parts."""

    parts: tuple[str, ...]


class Star(Term, frozen=True):
    """``*``: all columns, or all arguments of ``count``."""


class Call(Term, frozen=True):
    """A function call, in lower case."""

    name: str
    arguments: tuple[Term, ...]


class Unary(Term, frozen=True):
    """``-``, ``+``, ``~`` or ``NOT`` before an operand."""

    operator: str
    operand: Term


class Binary(Term, frozen=True):
    """An operator between two operands, ``AND`` and ``OR`` among them."""

    operator: str
    left: Term
    right: Term


class Test(Term, frozen=True):
    """``IS NULL``, ``IS TRUE`` or ``IS FALSE``; `negated` for ``IS NOT``."""

    what: str
    operand: Term
    negated: bool


class InList(Term, frozen=True):
    """``x IN (a, b, c)``."""

    operand: Term
    choices: tuple[Term, ...]


class Between(Term, frozen=True):
    """``x BETWEEN low AND high``."""

    operand: Term
    low: Term
    high: Term


class Like(Term, frozen=True):
    """``x LIKE pattern ESCAPE '!'`` and ``ILIKE``."""

    operand: Term
    pattern: Term
    escape: str
    fold: bool


class Case(Term, frozen=True):
    """``CASE [operand] WHEN .. THEN .. ELSE .. END``."""

    operand: Term | None
    branches: tuple[tuple[Term, Term], ...]
    default: Term | None


class Cast(Term, frozen=True):
    """``CAST(x AS type)``, ``x::type`` and, with `lenient`, ``TRY_CAST``."""

    operand: Term
    target: DataType
    lenient: bool


class Index(Term, frozen=True):
    """``array[0]`` or ``map['key']``."""

    operand: Term
    index: Term


class Get(Term, frozen=True):
    """A field of a struct that is not itself a column: ``f(x).city``."""

    operand: Term
    field: str


class Alias(Term, frozen=True):
    """A field of a struct under a name of its own: ``price * 2 AS double``."""

    operand: Term
    name: str


class Lambda(Term, frozen=True):
    """``x -> body``, an argument of the functions that walk over arrays."""

    parameters: tuple[str, ...]
    body: Term
