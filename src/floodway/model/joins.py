"""Building joins: keys, joiners, and what the result looks like."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

from floodway.core.duration import Duration, to_ms
from floodway.core.errors import (
    ExpressionTypeError,
    OptionError,
    SchemaError,
    UnkeyedError,
    locating,
)
from floodway.core.functions import require_plain
from floodway.core.schema import Schema
from floodway.core.types import Field, IntegerType, LongType, OpaqueType, StructType
from floodway.expressions import Column, Scope, compile_projections
from floodway.model.build import Builder, UserCode, check_choice, check_key, returned
from floodway.model.registry import stable_name
from floodway.operators.base import Edge, Key, Kind, Output
from floodway.operators.code import Snippet
from floodway.operators.joiner import Joiner, select_joiner
from floodway.operators.lookup_join import LateUpdates, LookupJoin, LookupKind
from floodway.operators.on_error import OnError
from floodway.operators.stream_join import OuterEmit, StreamJoin, StreamJoinKind
from floodway.operators.table_join import TableJoin, TableJoinKind
from floodway.operators.windows import WindowInKey

if TYPE_CHECKING:
    from floodway.model.stream import Stream
    from floodway.model.table import Table

On = UserCode | tuple[UserCode, UserCode] | None
JoinSide = tuple[str, Schema, bool]
"""A side of a join for expressions: its variable, its schema, whether it may be missing."""


class JoinOptions(TypedDict, total=False):
    """What every join of a stream takes."""

    joiner: Callable[[Any, Any], Any] | None
    select: Iterable[str] | None
    schema: Any
    retention: Duration | None
    name: str | None
    on_error: OnError


class StreamJoinOptions(JoinOptions, total=False):
    """What a join of two streams takes."""

    within: Required[Duration]
    on: On
    how: StreamJoinKind
    emit: OuterEmit


class LookupJoinOptions(JoinOptions, total=False):
    """What a join of a stream with a table takes."""

    on: UserCode | None
    how: LookupKind
    late_updates: LateUpdates
    broadcast: bool


def check_options(kind: str, takes: type[Any], options: Mapping[str, Any]) -> None:
    """Refuse options that this kind of join does not have, and miss those that it needs."""
    unknown = [name for name in options if name not in takes.__annotations__]
    missing = [name for name in takes.__required_keys__ if name not in options]
    with locating("join"):
        if missing:
            raise OptionError(
                f"a join of {kind} needs {missing[0]}=",
                remedy=f"say how far apart two records may be, e.g. {missing[0]}='10s'",
            )
        if unknown:
            raise OptionError(
                f"a join of {kind} has no option {unknown[0]!r}",
                remedy=f"the options are {', '.join(takes.__annotations__)}",
            )


def join_streams(left: "Stream", right: "Stream", **options: Unpack[StreamJoinOptions]) -> "Stream":
    """Build a join of two streams."""
    from floodway.model.stream import Stream

    how, emit = options.get("how", "inner"), options.get("emit", "eager")
    name, on_error = options.get("name"), options.get("on_error", "fail")
    if (on := options.get("on")) is not None:
        for_left, for_right = on if isinstance(on, tuple) else (on, on)
        left, right = left.key_by(for_left), right.key_by(for_right)
    label = name or stable_name("join", left.name, right.name)
    edges = (left.edge, right.edge)
    with Builder(left.flow, label, *edges, name=name, stable=True, on_error=on_error) as build:
        check_choice("how", how, StreamJoinKind)
        check_choice("emit", emit, OuterEmit)
        left.facts("join")
        right.facts("join")
        key = _common_key(left.key, right.key)
        missing = (how in ("right", "full"), how in ("left", "full"))
        sides = (("l", left.schema, missing[0]), ("r", right.schema, missing[1]))
        made = _joiner(sides, options)
        kind: Kind = "revisions" if how != "inner" and emit == "eager" else "records"
        main = Output(kind, made.schema, key)
        late = Output("records", Schema.of(Any), key)
        operator = build.register(
            StreamJoin,
            build.outputs(main, late=late),
            how=how,
            emit=emit,
            within_ms=to_ms(options["within"], what="within", zero=True),
            joiner=made,
            retention_ms=left.flow.retention(options.get("retention")),
            on_error=on_error,
        )
        return Stream(left.flow, Edge(operator))


def join_table(stream: "Stream", table: "Table", **options: Unpack[LookupJoinOptions]) -> "Stream":
    """Build a join of a stream with a table."""
    from floodway.model.stream import Stream

    how, late_updates = options.get("how", "inner"), options.get("late_updates", "correct")
    name, on_error = options.get("name"), options.get("on_error", "fail")
    on = options.get("on")
    label = name or _label(stream, table, on)
    edges = (stream.edge, table.edge)
    with Builder(stream.flow, label, *edges, name=name, stable=True, on_error=on_error) as build:
        check_choice("how", how, LookupKind)
        check_choice("late_updates", late_updates, LateUpdates)
        stream.facts("join")
        if table.windowed:
            raise OptionError(
                f"the table {table.name} has a row per window, so a key alone finds no row",
                remedy="join with a table without windows, or group_by(...) the table first",
            )
        wanted = build.snippet(on) if on is not None else None
        if wanted is None and stream.key is None:
            raise UnkeyedError(
                "the stream has no key to look up in the table",
                remedy="pass on='column', or call key_by(...) first",
            )
        if wanted is not None:
            field = Field(wanted.text, wanted.schema.type, wanted.schema.nullable)
            _comparable(Key((field,)), table.key)
        elif stream.key is not None:
            _comparable(stream.key, table.key)
        sides = (("l", stream.schema, False), ("r", table.schema, how == "left"))
        made = _joiner(sides, options)
        kind: Kind = "revisions" if late_updates == "correct" else "records"
        late = Output("records", stream.schema, stream.key)
        operator = build.register(
            LookupJoin,
            build.outputs(Output(kind, made.schema, stream.key), late=late),
            how=how,
            on=wanted,
            joiner=made,
            late_updates=late_updates,
            broadcast=options.get("broadcast", False),
            retention_ms=stream.flow.retention(options.get("retention")),
            on_error=on_error,
        )
        return Stream(stream.flow, Edge(operator))


def join_tables(
    table: "Table",
    other: "Table",
    *,
    on: UserCode | None = None,
    how: TableJoinKind = "inner",
    joiner: Callable[[Any, Any], Any] | None = None,
    select: Iterable[str] | None = None,
    schema: Any = None,
    retention: Duration | None = None,
    versions: bool = False,
    name: str | None = None,
    on_error: OnError = "fail",
) -> "Table":
    """Join with another table, row by row.

    Parameters
    ----------
    other
        The other table.
    on
        What of this table's value is the other's key; by default both tables' keys meet.
    how
        ``inner``, ``left`` or ``full``.
    joiner, select, schema
        A function of the two values, or fields such as ``["left.id", "right.name AS who"]``;
        by default all columns of both. `schema` is the type of a function's result.
    retention, versions
        How far back versions reach, and whether to keep them for ``lookup(key, at=...)``.
    name, on_error
        The table's name, and what to do with a row that fails.
    """
    from floodway.model.table import Table

    left, right = table, other
    label = name or _label(left, right, on)
    with Builder(
        left.flow,
        label,
        left.edge,
        right.edge,
        name=name,
        stable=True,
        on_error=on_error,
        windowed=left.windowed,
    ) as build:
        check_choice("how", how, TableJoinKind)
        foreign = _foreign_key(build, left, right, on, how)
        missing = (how == "full", how in ("left", "full"))
        sides = (("l", left.schema, missing[0]), ("r", right.schema, missing[1]))
        made = make_joiner(sides, joiner, select, schema)
        window = _ending(left, right, how, foreign)
        # A row may change for as long as either side may.
        own = left.flow.retention(retention)
        longest = max(own, left.retention_ms, right.retention_ms)
        operator = build.register(
            TableJoin,
            build.outputs(Output("changes", made.schema, left.key)),
            how=how,
            joiner=made,
            foreign=foreign,
            window=window,
            retention_ms=own if window is None else longest,
            versions=versions,
            on_error=on_error,
        )
        return Table(
            left.flow, Edge(operator), windows=left.windows, window=window, retention=longest
        )


def _ending(
    left: "Table", right: "Table", how: TableJoinKind, foreign: Snippet | None
) -> WindowInKey | None:
    """Return where a joined row has the window with which it is forgotten, if it has."""
    match how:
        case "full":  # a row stays for as long as either side has one
            return left.window if left.window == right.window else None
        case "inner" if foreign is None:
            return left.window or right.window
        case _:
            return left.window


def _label(left: "Stream | Table", right: "Table", on: UserCode | None) -> str:
    """Return a name that says what is looked up: one table may be joined by several columns."""
    text = on if isinstance(on, str) else getattr(on, "__name__", "").strip("<>")
    return stable_name("join", left.name, right.name, *(("by", text) if text else ()))


def _foreign_key(
    build: Builder, left: "Table", right: "Table", on: UserCode | None, how: TableJoinKind
) -> Any:
    if on is None:
        if left.windows != right.windows:
            raise OptionError(
                f"{left.name} and {right.name} have different windows, so their keys never meet",
                remedy="give both the same windows, or join with on=...",
            )
        _comparable(left.key, right.key)
        return None
    if how == "full" or right.windowed:
        raise OptionError(
            "a join on a foreign key goes from many rows to one: inner or left, to a table "
            "without windows",
            remedy="use how='left', or group_by(...) so that both tables have the same key",
        )
    foreign = build.snippet(on)
    _comparable(Key((Field(foreign.text, foreign.schema.type),)), right.key)
    return foreign


def _joiner(sides: tuple[JoinSide, JoinSide], options: JoinOptions) -> Joiner:
    return make_joiner(sides, options.get("joiner"), options.get("select"), options.get("schema"))


def make_joiner(
    sides: tuple[JoinSide, JoinSide],
    function: Callable[[Any, Any], Any] | None,
    select: Iterable[str] | None,
    schema: Any,
) -> Joiner:
    """Return the joiner for a function, for selected fields, or for all columns of both sides."""
    if function is not None and select is not None:
        raise OptionError(
            "a join takes a joiner or selected fields, not both", remedy="leave one of them out"
        )
    if function is not None:
        require_plain(function, "joiner")
        result = Schema.of(schema) if schema is not None else returned(function)
        return Joiner(getattr(function, "__name__", "function"), result, function)
    texts = list(select) if select is not None else _all_columns(sides)
    columns = compile_projections(texts, _scope(sides))
    fields = [Field(name, expression.type, expression.nullable) for name, expression in columns]
    row = Schema.row("Joined", fields)
    return select_joiner(", ".join(texts), row, [expression for _, expression in columns])


def _scope(sides: tuple[JoinSide, JoinSide]) -> Scope:
    columns: dict[str, Column] = {}
    names = [name.lower() for _, schema, _ in sides for name in _own_names(schema)]
    for label, (variable, schema, missing) in zip(("left", "right"), sides, strict=True):
        columns[label] = Column(variable, schema.type, schema.nullable or missing)
        for field in _own_fields(schema):
            if names.count(field.name.lower()) == 1:
                columns[field.name] = _member(variable, field, missing=missing)
    return Scope(columns)


def _member(variable: str, field: Field, *, missing: bool) -> Column:
    source = f"{variable}.{field.name}"
    if missing:
        source = f"(None if {variable} is None else {source})"
    return Column(source, field.type, field.nullable or missing)


def _own_fields(schema: Schema) -> tuple[Field, ...]:
    return schema.fields if isinstance(schema.type, StructType) else ()


def _own_names(schema: Schema) -> tuple[str, ...]:
    return tuple(field.name for field in _own_fields(schema))


def _all_columns(sides: tuple[JoinSide, JoinSide]) -> list[str]:
    texts: list[str] = []
    for label, (_, schema, _) in zip(("left", "right"), sides, strict=True):
        if schema.opaque:
            raise SchemaError(
                f"the {label} side's columns are not known", remedy="pass joiner= or select="
            )
        own = _own_names(schema)
        texts += [f"{label}.`{name}` AS `{name}`" for name in own] if own else [label]
    names = [name.lower() for _, schema, _ in sides for name in _own_names(schema)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(
            f"both sides have a column {twice[0]!r}",
            remedy=f"choose with select=, e.g. select=['left.{twice[0]}', 'right.{twice[0]} AS "
            f"right_{twice[0]}']",
        )
    return texts


def _common_key(left: Key | None, right: Key | None) -> Key:
    if left is None or right is None:
        side = "left" if left is None else "right"
        raise UnkeyedError(
            f"the {side} stream of the join has no key",
            remedy="pass on='column' (or on=('left_column', 'right_column')), or call "
            "key_by(...) on both streams first",
        )
    _comparable(left, right)
    return left


def _comparable(left: Key | None, right: Key | None) -> None:
    if left is None or right is None:
        return
    for field in left.fields:
        check_key(field.name, field.type)
    ours = [_plain(field) for field in left.fields]
    theirs = [_plain(field) for field in right.fields]
    known = all(not isinstance(kind, OpaqueType) for kind in ours + theirs)
    if known and ours != theirs:
        raise ExpressionTypeError(
            f"the keys cannot meet: {', '.join(map(str, left.fields))} on one side, "
            f"{', '.join(map(str, right.fields))} on the other",
            remedy="key both sides by the same number of columns of the same types, with CAST "
            "where needed",
        )


def _plain(field: Field) -> Any:
    return LongType() if isinstance(field.type, IntegerType) else field.type
