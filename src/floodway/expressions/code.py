"""Typed pieces of Python source and the assembly that puts them together.

Every part of an expression becomes a `Code`: a Python expression with its type, its
nullability and, for integers, the bounds its value is known to keep. Bounds are what lets the
generated code leave out overflow checks that can never fire.

Nulls are tested inline: ``(None if (_1 := v.a) is None else _1 + 1)``. The temporaries are
numbered through one expression; several expressions may share them, since each one assigns before
it reads.
"""

import datetime as dt
import decimal
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from floodway.core.errors import ExpressionError
from floodway.core.types import (
    NULL,
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StructType,
)
from floodway.expressions.tree import Term

Bounds = tuple[int, int]
INT_BOUNDS: Bounds = (-(2**31), 2**31 - 1)
LONG_BOUNDS: Bounds = (-(2**63), 2**63 - 1)
# A longer text is made anew for each record: the flow's code need not carry it.
_LONGEST_CONSTANT = 1000


class Code(msgspec.Struct, frozen=True):
    """Python source with what is known about its value.

    Parameters
    ----------
    source
        A Python expression that can stand anywhere without more parentheses.
    type
        The type of the value.
    nullable
        Whether the value may be None.
    text
        The Spark SQL it came from, for errors.
    atom
        Whether the source is cheap and cannot fail, so that it may be repeated.
    bounds
        The smallest and the largest value, of an integer.
    constant
        Whether the value is known already; then it is `value`.
    tests, body
        Where the source is ``(None if tests else body)``: so that what is built on it can put its
        own operation into the body instead of testing for None again.
    """

    source: str
    type: DataType
    nullable: bool
    text: str
    atom: bool = False
    bounds: Bounds | None = None
    constant: bool = False
    value: Any = None
    tests: tuple[str, ...] = ()
    body: str = ""

    @property
    def range(self) -> Bounds:
        """The bounds of an integer, at least those of its type."""
        return self.bounds or (INT_BOUNDS if isinstance(self.type, IntegerType) else LONG_BOUNDS)

    @property
    def is_null(self) -> bool:
        """Whether this is the constant NULL."""
        return self.constant and self.value is None


class Assembly(ABC):
    """What one expression has gathered so far: helper names and temporaries.

    `names` maps each global name of the generated source to its object. A name is derived from
    the object (the helper's own name, a digest of a constant), so it means the same everywhere.
    """

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self._count = 0

    @abstractmethod
    def lower(self, node: Term) -> Code:
        """Return the code of a part of the tree."""

    @abstractmethod
    def look_up(self, operand: Code, key: Code, text: str) -> Code:
        """Return the value of a map for a key, or NULL."""

    def temporary(self) -> str:
        """Return the name of a new temporary."""
        self._count += 1
        return f"_{self._count}"

    def refer(self, helper: Callable[..., Any]) -> str:
        """Return the name by which the source can call a helper function."""
        name = f"_{helper.__name__}"
        known = self.names.setdefault(name, helper)
        if known is not helper:
            raise AssertionError(f"two helpers are called {name}")
        return name

    def keep(self, prefix: str, value: object, identity: str | None = None) -> str:
        """Return the name by which the source can refer to a constant object."""
        digest = hashlib.sha256((identity or repr(value)).encode()).hexdigest()[:10]
        name = f"_{prefix}_{digest}"
        self.names.setdefault(name, value)
        return name

    def constant(self, value: object, data_type: DataType, text: str) -> Code:
        """Return the code of a known value."""
        bounds = None
        if isinstance(data_type, IntegerType | LongType) and isinstance(value, int):
            bounds = (value, value)
        source = self._constant_source(value)
        return Code(
            source,
            data_type,
            value is None,
            text,
            atom=True,
            bounds=bounds,
            constant=True,
            value=value,
        )

    def null(self, data_type: DataType, text: str) -> Code:
        """Return NULL as a value of the given type."""
        return self.constant(None, data_type, text)

    def _constant_source(self, value: object) -> str:
        match value:
            case float() if not math.isfinite(value):
                return self.keep("float", value)
            case None | bool() | str() | bytes():
                return repr(value)
            case int() | float():
                return f"({value!r})" if value < 0 or math.copysign(1, value) < 0 else repr(value)
            case dt.datetime() | dt.date() | dt.timedelta() | decimal.Decimal():
                return self.keep(type(value).__name__.lower(), value)
            case _:
                return self.keep("constant", value)

    def bind(self, code: Code) -> tuple[str, Code]:
        """Return a null test that binds the code to a temporary, and the temporary."""
        name = self.temporary()
        bound = Code(name, code.type, nullable=False, text=code.text, atom=True, bounds=code.bounds)
        return f"({name} := {code.source}) is None", bound

    def strict(
        self,
        arguments: Sequence[Code],
        body: Callable[[list[Code]], str],
        data_type: DataType,
        text: str,
        *,
        nullable: bool = False,
        bounds: Bounds | None = None,
        twice: Sequence[int] = (),
        fold: bool = True,
    ) -> Code:
        """Return code that is NULL when an argument is, and `body` of the arguments otherwise.

        Parameters
        ----------
        arguments
            The operands, in the order in which Spark evaluates them.
        body
            Makes the source from the operands, none of which is NULL.
        data_type, text
            The type of the result and the Spark SQL it comes from.
        nullable
            Whether the body itself may give None.
        bounds
            The bounds of the result.
        twice
            The operands that the body uses more than once.
        fold
            Whether the body depends on these operands alone, so that constants can be folded.
        """
        if any(argument.is_null for argument in arguments):
            return self.null(data_type, text)
        last = max((i for i, code in enumerate(arguments) if code.nullable), default=-1)
        tests: list[str] = []
        operands: list[Code] = []
        for i, code in enumerate(arguments):
            if i == last and code.tests:
                tests += code.tests
                code = Code(
                    code.body, code.type, nullable=False, text=code.text, bounds=code.bounds
                )
            # What precedes a nullable operand is evaluated first: it may fail, as in Spark.
            if code.nullable or (not code.atom and (i < last or i in twice)):
                test, code = self.bind(code)
                tests.append(test)
            operands.append(code)
        source = body(operands)
        any_null = any(argument.nullable for argument in arguments)
        code = Code(source, data_type, nullable or any_null, text, bounds=bounds)
        if tests:
            whole = f"(None if {' or '.join(tests)} else {source})"
            inner = () if nullable else tuple(tests)
            code = msgspec.structs.replace(code, source=whole, tests=inner, body=source)
        return self.folded(code, arguments) if fold else code

    def call(
        self,
        helper: Callable[..., Any],
        arguments: Sequence[Code],
        data_type: DataType,
        text: str,
        *extra: object,
        nullable: bool = False,
        bounds: Bounds | None = None,
    ) -> Code:
        """Return a call of a helper, NULL when an argument is; `extra` are constants."""
        name = self.refer(helper)
        tail = [self._constant_source(value) for value in extra]
        return self.strict(
            arguments,
            lambda codes: f"{name}({', '.join([*(code.source for code in codes), *tail])})",
            data_type,
            text,
            nullable=nullable,
            bounds=bounds,
        )

    def folded(self, code: Code, arguments: Sequence[Code]) -> Code:
        """Return the code's value as a constant if all its arguments are constants.

        A computation that fails is left as it is: it fails when a record comes by, as in Spark.
        """
        if not arguments or not all(argument.constant for argument in arguments):
            return code
        # A shared mutable constant could be changed by whoever receives it.
        if isinstance(code.type, ArrayType | MapType | StructType):
            return code
        try:
            value = eval(code.source, dict(self.names))
        except ExpressionError:
            return code
        if isinstance(value, str | bytes) and len(value) > _LONGEST_CONSTANT:
            return code
        data_type = code.type if value is not None or code.type != NULL else NULL
        return self.constant(value, data_type, code.text)

    def renamed(self, code: Code, text: str) -> Code:
        """Return the code with another text."""
        return msgspec.structs.replace(code, text=text)
