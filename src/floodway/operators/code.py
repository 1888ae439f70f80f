"""Generated Python: a chain of stateless operators as one function over a list of rows.

Each stateless operator contributes a fragment: a few statements over three variables, ``t``
(timestamp), ``k`` (key) and ``v`` (value). Fragments of neighbouring operators are written one
after the other into one loop, with expressions inlined, so a record passes through a whole chain
without a call per operator::

    def run(rows):
        for t, k, v in rows:
            try:
                if not (v.kind == "view"):
                    continue
            except Exception as error:
                failed(error, t, k, v)
                continue
            emit((t, k, v))

A ``try`` costs nothing in CPython 3.11 and later until something is raised, so every fragment has
one and every failure is attributed to its operator.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Self

import msgspec

from floodway.core.schema import Schema
from floodway.core.types import can_be_key
from floodway.expressions import Expression


class Snippet(msgspec.Struct, frozen=True):
    """A computation on a record: a compiled expression, or a Python function of the value."""

    text: str
    schema: Schema
    expression: Expression | None = None
    function: Callable[..., Any] | None = None

    def call(self) -> Callable[[Any, Any], Any]:
        """Return a function of value and key, for code that is not generated."""
        if self.expression is not None:
            return self.expression.function("v", "k")
        function = self.function
        assert function is not None
        return lambda v, k: function(v)


class CodeWriter:
    """Writes the body of a generated function, line by line, and collects the names it uses."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> Self:
        """Write one line at the current depth."""
        self._lines.append("    " * self._depth + text)
        return self

    def indent(self) -> Self:
        """Go one level deeper."""
        self._depth += 1
        return self

    def dedent(self) -> Self:
        """Come back one level."""
        self._depth -= 1
        return self

    @property
    def depth(self) -> int:
        """How deep the next line goes."""
        return self._depth

    def bind(self, hint: str, value: Any) -> str:
        """Give `value` a name in the generated code and return it."""
        stem = "".join(c if c.isalnum() else "_" for c in hint).strip("_") or "f"
        name, number = f"_{stem}", 1
        while name in self.names and self.names[name] is not value:
            number += 1
            name = f"_{stem}_{number}"
        self.names[name] = value
        return name

    def use(self, names: Mapping[str, Any]) -> None:
        """Make names available that an expression refers to."""
        self.names.update(names)

    def inline(self, snippet: Snippet) -> str:
        """Return source that computes `snippet` from ``t``, ``k`` and ``v``."""
        if snippet.expression is not None:
            self.use(snippet.expression.names)
            return f"({snippet.expression.source})"
        return f"{self.bind(getattr(snippet.function, '__name__', 'f'), snippet.function)}(v)"

    def check(self, schema: Schema) -> tuple[str, str]:
        """Return source of whether ``u`` has to be looked at, and the name of what then does.

        Nearly nothing has to be: what is of the schema's class, and no integer near 64 bits.
        """
        unlike = f"type(u) is not {self.bind('exact', schema.exact)}"
        if schema.exact is int:  # of what compares with two bounds, the fastest
            unlike += " or u.bit_length() > 63"
        return unlike, self.bind("require", schema.checker())

    def guarded(self, failed: str, *statements: str, otherwise: str = "continue") -> Self:
        """Write statements whose failure calls `failed` and then does `otherwise`."""
        self.line("try:").indent()
        for statement in statements:
            self.line(statement)
        self.dedent().line("except Exception as error:").indent()
        return self.line(f"{failed}(error, t, k, v)").line(otherwise).dedent()

    @property
    def source(self) -> str:
        """The text written so far."""
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str) -> Callable[..., Any]:
        """Return the generated function of that name."""
        namespace = dict(self.names)
        exec(_compiled(self.source, function), namespace)
        result: Callable[..., Any] = namespace[function]
        return result


@lru_cache(maxsize=1024)  # every partition of an operator has the same source
def _compiled(source: str, function: str) -> CodeType:
    return compile(source, f"<floodway {function}>", "exec")


def tuple_source(code: CodeWriter, parts: tuple[Snippet, ...]) -> str:
    """Return source for one part as it is, or for several as a tuple."""
    sources = [code.inline(part) for part in parts]
    return sources[0] if len(sources) == 1 else f"({', '.join(sources)})"


def grouping(parts: Sequence[Snippet]) -> Callable[[Any, Any], Any]:
    """Return the function from value and key to group: one part as it is, several as a tuple."""
    calls = [part.call() for part in parts]
    made = calls[0] if len(calls) == 1 else lambda v, k: tuple(call(v, k) for call in calls)
    return _tried(made) if unsure(parts) else made


def unsure(parts: Sequence[Snippet]) -> bool:
    """Whether only their values can tell if a group can be one: it has to be hashable."""
    return any(can_be_key(part.schema.type) is None for part in parts)


def _tried(group: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return `group`, which then raises where a value is no group, and not whoever looks it up."""

    def tried(value: Any, key: Any) -> Any:
        found = group(value, key)
        hash(found)
        return found

    return tried
