"""From what the user wrote to an operator's description.

A `Builder` accompanies one call of the API: it knows the operator's name and the place of
the call, turns expressions and functions into snippets over the input's columns, and makes every
error raised on the way say which operator, where, and what to do.
"""

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from floodway.core.errors import ExpressionTypeError, FloodwayError, FlowError, OptionError
from floodway.core.functions import require_plain
from floodway.core.place import Place
from floodway.core.schema import Schema
from floodway.core.types import (
    LONG,
    ArrayType,
    BooleanType,
    DataType,
    Field,
    MapType,
    NullType,
    OpaqueType,
    can_be_key,
)
from floodway.expressions import Column, Scope, compile_expression, compile_projection
from floodway.model.registry import check_name
from floodway.operators.base import LATE, MAIN, Edge, Key, Operator, Output
from floodway.operators.code import Snippet
from floodway.operators.on_error import OnError, check_policy, with_dead_letters

if TYPE_CHECKING:
    from floodway.model.flow import Flow

T = TypeVar("T", bound=Operator)

UserCode = str | Callable[[Any], Any]
"""What users give to operators: a Spark SQL expression, or a Python function of the value."""

WINDOW_START, WINDOW_END = "k[1]", "k[2]"
"""Where rows of a windowed table have their window, in generated code."""


class Builder:
    """One call of the API on its way to an operator."""

    def __init__(
        self,
        flow: "Flow",
        label: str,
        *inputs: Edge,
        name: str | None = None,
        stable: bool = False,
        on_error: OnError = "fail",
        windowed: bool = False,
    ) -> None:
        self.flow = flow
        self.place = Place.here()
        self.inputs = inputs
        self.on_error: OnError = on_error
        self._windowed = windowed
        self.name = name or (label if stable else flow.registry.numbered(label))

    def __enter__(self) -> Self:
        check_name_at(self.name, self.place)
        check_policy(self.on_error, self.name, self.place)
        for edge in self.inputs:
            if not self.flow.registry.owns(edge.operator):
                raise OptionError(
                    f"{edge.operator.name} is not part of the flow {self.flow.name}",
                    remedy="build both in one flow",
                    operator=self.name,
                    place=self.place,
                )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, FloodwayError):
            error.at(self.name, self.place)

    @property
    def output(self) -> Output:
        """What the first input brings."""
        return self.inputs[0].output

    @property
    def scope(self) -> Scope:
        """The columns expressions may name: the value's, the key's, the window's."""
        return scope_of(self.output, windowed=self._windowed)

    def snippet(self, code: UserCode, /, *, schema: Any = None, rows: bool = False) -> Snippet:
        """Compile an expression or wrap a function."""
        if isinstance(code, str):
            expression = compile_expression(code, self.scope, rows=rows)
            result = Schema(expression.type, expression.nullable)
            return Snippet(code, result, expression)
        if not callable(code):
            raise OptionError(
                f"{code!r} is neither an expression nor a function",
                remedy="pass Spark SQL text or a Python function of the value",
            )
        require_plain(code)
        result = Schema.of(schema) if schema is not None else returned(code, rows=rows)
        return Snippet(getattr(code, "__name__", "function"), result, function=code)

    def whole(self) -> Snippet:
        """Return the whole value as a snippet."""
        return Snippet("value", self.output.schema, function=_itself)

    def predicate(self, code: UserCode) -> Snippet:
        """Compile a condition: an expression must be boolean."""
        snippet = self.snippet(code)
        kinds = (BooleanType, NullType, OpaqueType)
        if snippet.expression is not None and not isinstance(snippet.schema.type, kinds):
            raise ExpressionTypeError(
                f"the condition {snippet.text!r} is {snippet.schema.type}, not BOOLEAN",
                remedy="compare it with something, e.g. 'amount > 0'",
            )
        return snippet

    def named(self, code: UserCode, fallback: str) -> tuple[str, Snippet]:
        """Compile an expression with the name it gives itself, or wrap a function."""
        if not isinstance(code, str):
            return fallback, self.snippet(code)
        name, expression = compile_projection(code, self.scope)
        return name, Snippet(code, Schema(expression.type, expression.nullable), expression)

    def key(self, parts: Iterable[UserCode]) -> tuple[tuple[Snippet, ...], Key]:
        """Compile what to key or group by."""
        named = [self.named(part, "key") for part in parts]
        fields = tuple(
            Field(name, snippet.schema.type, snippet.schema.nullable) for name, snippet in named
        )
        for _, snippet in named:
            check_key(snippet.text, snippet.schema.type)
        return tuple(snippet for _, snippet in named), Key(fields)

    def outputs(
        self, main: Output, *, ports: Sequence[str] = (MAIN,), late: Output | None = None
    ) -> dict[str, Output]:
        """Return the output ports: the same for each of `ports`, late records, dead letters."""
        outputs = dict.fromkeys(ports, main)
        if late is not None:
            outputs[LATE] = late
        return with_dead_letters(outputs, self.on_error, self.output.key if self.inputs else None)

    def register(self, operator: type[T], outputs: Any, **fields: Any) -> T:
        """Make the operator and enter it into the flow."""
        for option, value in fields.items():
            if callable(value):
                require_plain(value, option)
        made = operator(
            name=self.name, place=self.place, inputs=self.inputs, outputs=outputs, **fields
        )
        self.flow.registry.add(made)
        return made


def check_key(text: str, data_type: DataType) -> None:
    """Refuse what cannot be a key."""
    if can_be_key(data_type) is False:
        raise ExpressionTypeError(
            f"{text} is {data_type}, which cannot be a key", remedy=_key_instead(data_type)
        )


def _key_instead(data_type: DataType) -> str:
    match data_type:
        case ArrayType():
            return "make a tuple of it, e.g. lambda v: tuple(v.tags), or take an element: tags[0]"
        case MapType():
            return (
                "make a tuple of it, e.g. lambda v: tuple(sorted(v.counts.items())), or take one "
                "of its values: counts['a']"
            )
    return "take those of its fields that are neither arrays nor maps, e.g. 'place.city'"


def check_choice(option: str, value: str, choices: Any) -> None:
    """Refuse a value that is not among the choices of a `Literal`."""
    if value not in typing.get_args(choices):
        raise OptionError(
            f"{option}={value!r} is not one of the choices",
            remedy=f"use one of: {', '.join(typing.get_args(choices))}",
        )


def key_words(keys: Iterable[Any]) -> list[str]:
    """Return what to call each key in the name of what goes by it.

    >>> key_words(["country", "upper(name) AS name", len])
    ['country', 'name', 'len']
    """
    by = [key if isinstance(key, str) else getattr(key, "__name__", "key") for key in keys]
    return [part.split(" AS ")[-1].split(" as ")[-1] for part in by]


def check_name_at(name: str, place: Place) -> None:
    """Refuse a bad name, saying where it was given."""
    try:
        check_name(name)
    except FlowError as error:
        raise error.at(name, place) from None


def scope_of(output: Output, *, windowed: bool = False, value: str = "v") -> Scope:
    """Return the columns of what comes through a port."""
    scope = Scope.of(output.schema, value)
    own = set() if output.schema.opaque else {name.lower() for name in output.schema.names}
    more: dict[str, Column] = {}
    if output.key is not None:
        sources = output.key.sources("k[0]" if windowed else "k")
        for field, source in zip(output.key.fields, sources, strict=True):
            more[field.name] = Column(source, field.type, field.nullable)
    if windowed:
        more |= {"window_start": Column(WINDOW_START, LONG, nullable=False)}
        more |= {"window_end": Column(WINDOW_END, LONG, nullable=False)}
    return scope.with_columns({n: c for n, c in more.items() if n.lower() not in own})


def returned(function: Callable[..., Any], *, rows: bool = False) -> Schema:
    """Return the schema that a function's annotation promises, opaque without one."""
    try:
        hint = typing.get_type_hints(function).get("return", Any)
    except (NameError, TypeError):
        hint = Any
    if inspect.isclass(function):
        hint = function
    if rows:
        arguments = typing.get_args(hint)
        hint = arguments[0] if arguments else Any
    return Schema.of(hint)


def _itself(value: Any) -> Any:
    return value
