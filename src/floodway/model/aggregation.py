"""Building aggregates: of a stream, of its windows, of a table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from floodway.core.duration import Duration
from floodway.core.errors import AggregateError, OptionError, UnkeyedError, WindowRequiredError
from floodway.core.schema import Schema
from floodway.model.build import WINDOW_END, WINDOW_START, Builder, UserCode, key_words
from floodway.model.registry import stable_name
from floodway.operators import aggregates
from floodway.operators.aggregate import Aggregate
from floodway.operators.aggregates import AggregateFunction, AggregateSpec
from floodway.operators.base import Edge, Key, Output
from floodway.operators.code import Snippet
from floodway.operators.on_error import OnError
from floodway.operators.table_aggregate import TableAggregate
from floodway.operators.windows import Session, WindowInKey, Windows

if TYPE_CHECKING:
    from floodway.model.stream import Stream
    from floodway.model.table import Table

Specs = Mapping[str, AggregateSpec] | AggregateSpec
"""One aggregate, or several by the name of their column."""


def aggregate_table(
    table: "Table",
    keys: tuple[UserCode, ...],
    specs: Specs,
    *,
    name: str | None = None,
    retention: Duration | None = None,
    versions: bool = False,
    on_error: OnError = "fail",
) -> "Table":
    """Build the aggregation of a table."""
    from floodway.model.table import Table

    flow, label = table.flow, _label(specs, keys)
    with Builder(
        flow,
        label,
        table.edge,
        name=name,
        stable=True,
        on_error=on_error,
        windowed=table.windowed,
    ) as build:
        if not keys:
            raise UnkeyedError(
                "the rows of a table have one key each: grouping by it changes nothing",
                remedy="say what to group by, e.g. group_by('country'); for one group of all rows "
                "group by a constant: group_by(\"'all' AS everything\")",
            )
        group, key = build.key(keys)
        function = resolve(specs, build).retractable()
        window = window_in(group, table)
        if table.window is not None and window is None:
            _check_lasting(function)
        retention_ms = flow.retention(retention)
        if table.window is not None:  # its rows may change for as long as the window may
            own = table.retention_ms if retention is None else retention_ms
            retention_ms = max(own, table.retention_ms)
        operator = build.register(
            TableAggregate,
            build.outputs(Output("changes", result_schema(function), key)),
            group=group,
            function=function,
            retention_ms=retention_ms,
            ending=table.window,
            window=window,
            versions=versions,
            on_error=on_error,
        )
        return Table(flow, Edge(operator), retention=retention_ms, window=window)


def window_in(group: tuple[Snippet, ...], table: "Table") -> WindowInKey | None:
    """Return where a group of a table's rows has the window of the rows, if it has."""
    if table.window is None:
        return None
    told = _telling(table, table.window)
    for number, snippet in enumerate(group):
        source = "" if snippet.expression is None else snippet.expression.source.strip("()")
        if source in told:
            column = number if len(group) > 1 else None
            return WindowInKey(table.window.windows, column, is_end=told[source])
    return None


def _telling(table: "Table", window: WindowInKey) -> dict[str, bool]:
    """Return what of a key tells when its row ends, and whether it is that end or the start.

    The start of a session does not tell when it ends.
    """
    if not table.windowed:
        assert table.key is not None
        return {table.key.sources("k")[window.column or 0]: window.is_end}
    return {WINDOW_END: True} | (
        {} if isinstance(window.windows, Session) else {WINDOW_START: False}
    )


def _check_lasting(function: AggregateFunction) -> None:
    """Refuse what would keep every value of every window for good."""
    lasting = [p for p in function.parts or (function,) if p.holistic and p.kept is None]
    if lasting:
        raise WindowRequiredError(
            f"{lasting[0].text} keeps every value, and those of windows that are closed never "
            "leave: over an endless stream that grows without bound",
            remedy="group by window_end, too, or use count, sum, mean, min, max or top",
        )


def aggregate_stream(
    stream: "Stream",
    keys: tuple[UserCode, ...],
    windows: Windows | None,
    specs: Specs,
    *,
    name: str | None = None,
    retention: Duration | None = None,
    versions: bool = False,
    on_error: OnError = "fail",
) -> "Table":
    """Build the aggregation of a stream."""
    from floodway.model.table import Table

    flow = stream.flow
    label = _label(specs, keys or (stream.key.names if stream.key else ()))
    with Builder(flow, label, stream.edge, name=name, stable=True, on_error=on_error) as build:
        group, key = grouping(build, stream, keys)
        function = resolve(specs, build)
        _check(stream, function, windows, versions=versions)
        retention_ms = flow.retention(retention)
        main = Output("changes", result_schema(function), key)
        late = None if windows is None else Output("records", stream.schema, stream.key)
        operator = build.register(
            Aggregate,
            build.outputs(main, late=late),
            group=group,
            function=function,
            windows=windows,
            retention_ms=retention_ms,
            versions=versions,
            on_error=on_error,
        )
        return Table(flow, Edge(operator), windows=windows, retention=retention_ms)


def grouping(
    build: Builder, stream: "Stream", keys: tuple[UserCode, ...]
) -> tuple[tuple[Snippet, ...], Key]:
    """Compile what to group by; nothing means the stream's key."""
    if keys:
        return build.key(keys)
    if stream.key is None:
        raise UnkeyedError(
            "there is nothing to group by: the stream has no key",
            remedy="say what, e.g. group_by('country'), or call key_by(...) first; for one group "
            "of all records group by a constant: group_by(\"'all' AS everything\")",
        )
    return build.key(f"`{name}`" for name in stream.key.names)


def resolve(specs: Specs, build: Builder) -> AggregateFunction:
    """Resolve one aggregate, or several named ones, against the input's columns."""
    if isinstance(specs, AggregateSpec):
        return specs.resolve(build)
    if not specs:
        raise OptionError("agg() computes nothing", remedy="e.g. agg(n=fw.count())")
    for column, spec in specs.items():
        if not isinstance(spec, AggregateSpec):
            raise OptionError(
                f"{column}={spec!r} is not an aggregate",
                remedy="use fw.count(), fw.sum('price') and the like",
            )
    return aggregates.combined(specs, build)


def result_schema(function: AggregateFunction) -> Schema:
    """Return the schema of an aggregate's table."""
    return Schema(function.result.type, function.result.nullable, function.result.name)


def _check(
    stream: "Stream", function: AggregateFunction, windows: Windows | None, *, versions: bool
) -> None:
    if stream.updating and isinstance(windows, Session):
        raise AggregateError(
            "a stream with updates cannot be put into sessions: a record that is taken back "
            "might split one",
            remedy="make the join before it emit='lazy' or late_updates='ignore', or use "
            "tumbling or hopping windows",
        )
    needed = function.retractable() if stream.updating else function
    if needed.holistic and windows is None:
        raise WindowRequiredError(
            f"{function.text} needs a window: it keeps every value it has seen, and over an "
            "endless stream that grows without bound",
            remedy="call .window(tumbling(...)) after group_by, or aggregate with count, sum, "
            "mean, or over facts min, max, top",
        )
    if versions and isinstance(windows, Session):
        raise OptionError(
            "versions of a session table are not kept: the sessions themselves move",
            remedy="leave out versions=True, or use tumbling or hopping windows",
        )


def _label(specs: Specs, keys: tuple[Any, ...]) -> str:
    by = key_words(keys)
    text = specs.text.split("(")[0] if isinstance(specs, AggregateSpec) else "_".join(specs)
    return stable_name(text, "by", *by) if by else stable_name(text)
