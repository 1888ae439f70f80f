"""Streams: what happens, record by record."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from floodway.core.duration import Duration, to_ms
from floodway.core.errors import OptionError, SchemaError, UnkeyedError
from floodway.core.schema import Schema
from floodway.core.types import Field
from floodway.model import joins
from floodway.model.build import Builder, UserCode, check_choice, key_words
from floodway.model.connected import require_sink
from floodway.model.handle import Handle
from floodway.model.registry import stable_name
from floodway.operators.base import MAIN, Edge, Output
from floodway.operators.branch import Branch, arm_name
from floodway.operators.deduplicate import Deduplicate, Keep
from floodway.operators.filter import Filter
from floodway.operators.flat_map import FlatMap
from floodway.operators.key_by import KeyBy
from floodway.operators.map import Map
from floodway.operators.materialize import Materialize
from floodway.operators.merge import Merge
from floodway.operators.on_error import OnError
from floodway.operators.partitioning import Partitioning, Random, Range
from floodway.operators.peek import Peek
from floodway.operators.process import Init, Process, Update
from floodway.operators.repartition import Repartition
from floodway.operators.select import Select
from floodway.operators.sink import Sink

if TYPE_CHECKING:
    from floodway.model.grouped import GroupedStream
    from floodway.model.table import Table


class Stream(Handle):
    """A stream of records. Every method returns a new stream; nothing runs.

    Functions are called with a record's value. Expressions are Spark SQL over the value's columns
    and the key's.
    """

    @property
    def updating(self) -> bool:
        """Whether later records may replace earlier ones (thesis, definition 70)."""
        return self.edge.output.kind == "revisions"

    def _builder(self, label: str, name: str | None, on_error: OnError = "fail") -> Builder:
        return Builder(self.flow, label, self.edge, name=name, on_error=on_error)

    def _with(self, **changes: Any) -> Output:
        output = self.edge.output
        fields = {"kind": output.kind, "schema": output.schema, "key": output.key}
        return Output(**{**fields, **changes})

    def map(
        self,
        to: UserCode,
        *,
        schema: Any = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> "Stream":
        """Replace each value by the result of a function or an expression.

        Parameters
        ----------
        to
            An expression, or a function of the value.
        schema
            The type of the new values; by default the function's return annotation.
        name, on_error
            The operator's name, and what to do with a record that fails.
        """
        with self._builder("map", name, on_error) as build:
            code = build.snippet(to, schema=schema)
            outputs = build.outputs(self._with(schema=code.schema))
            return self._new(build.register(Map, outputs, code=code, on_error=on_error))

    def flat_map(
        self,
        to: UserCode,
        *,
        schema: Any = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> "Stream":
        """Replace each value by all the values a function returns, or an array's elements.

        With an expression, use ``explode``: ``flat_map("explode(split(line, ' '))")``.
        """
        with self._builder("flat_map", name, on_error) as build:
            code = build.snippet(to, schema=schema, rows=True)
            if code.expression is not None and not code.expression.rows:
                raise OptionError(
                    f"{code.text!r} gives one value, not many",
                    remedy="use explode(...) for one record per element, or map for one record",
                )
            outputs = build.outputs(self._with(schema=code.schema))
            return self._new(build.register(FlatMap, outputs, code=code, on_error=on_error))

    def filter(
        self, where: UserCode, *, name: str | None = None, on_error: OnError = "fail"
    ) -> "Stream":
        """Keep the records for which a condition is true; false and null drop them."""
        with self._builder("filter", name, on_error) as build:
            predicate = build.predicate(where)
            outputs = build.outputs(self._with())
            return self._new(
                build.register(Filter, outputs, predicate=predicate, on_error=on_error)
            )

    def select(
        self, *columns: str, name: str | None = None, on_error: OnError = "fail"
    ) -> "Stream":
        """Make each value a record of the given columns, ``'*'`` for all of them."""
        with self._builder("select", name, on_error) as build:
            wanted = [part for column in columns for part in self._expanded(column)]
            named = [build.named(column, column) for column in wanted]
            return self._select(build, "Select", named)

    def with_columns(
        self, /, *more: str, name: str | None = None, on_error: OnError = "fail", **columns: str
    ) -> "Stream":
        """Add columns to each value, or replace them: ``with_columns(total="price * pieces")``.

        Columns whose names are options are written ``with_columns("upper(name) AS name")``.
        """
        with self._builder("with_columns", name, on_error) as build:
            columns = {**{build.named(text, text)[0]: text for text in more}, **columns}
            kept = [c for c in self.schema.names if c.lower() not in {n.lower() for n in columns}]
            order = [c if c in kept else _matching(c, columns) for c in self.schema.names]
            order += [c for c in columns if c not in order]
            named = [(c, build.named(_as(columns.get(c, f"`{c}`"), c), c)[1]) for c in order]
            return self._select(build, "WithColumns", named)

    def _expanded(self, column: str) -> Iterable[str]:
        return [f"`{name}`" for name in self.schema.names] if column.strip() == "*" else [column]

    def _select(self, build: Builder, kind: str, named: list[Any]) -> "Stream":
        if not named:
            raise SchemaError("no columns are selected", remedy="name at least one column")
        fields = [Field(c, snippet.schema.type, snippet.schema.nullable) for c, snippet in named]
        outputs = build.outputs(self._with(schema=Schema.row(kind, fields)))
        columns = tuple(named)
        return self._new(build.register(Select, outputs, columns=columns, on_error=build.on_error))

    def key_by(
        self, *keys: UserCode, name: str | None = None, on_error: OnError = "fail"
    ) -> "Stream":
        """Give each record a key: one column, expression or function, or several."""
        with self._builder("key_by", name, on_error) as build:
            code, key = build.key(_some(keys, "key_by"))
            outputs = build.outputs(self._with(key=key))
            return self._new(build.register(KeyBy, outputs, code=code, on_error=on_error))

    def peek(
        self, at: Callable[[Any], Any], *, name: str | None = None, on_error: OnError = "fail"
    ) -> "Stream":
        """Call a function with each value, for its effect."""
        with self._builder("peek", name, on_error) as build:
            code = build.snippet(at)
            outputs = build.outputs(self._with())
            return self._new(build.register(Peek, outputs, code=code, on_error=on_error))

    def merge(self, *others: "Stream", name: str | None = None) -> "Stream":
        """Merge streams of the same schema into one."""
        edges = (self.edge, *(other.edge for other in others))
        with Builder(self.flow, "merge", *edges, name=name) as build:
            for other in others:
                if other.schema.type != self.schema.type:
                    raise SchemaError(
                        f"{other.name} has {other.schema}, and {self.name} has {self.schema}",
                        remedy="make them the same with map or select before merging",
                    )
            kind = "revisions" if any(s.updating for s in (self, *others)) else "records"
            same_key = all(other.key == self.key for other in others)
            main = self._with(kind=kind, key=self.key if same_key else None)
            return self._new(build.register(Merge, build.outputs(main)))

    def branch(
        self, *conditions: UserCode, name: str | None = None, on_error: OnError = "fail"
    ) -> tuple["Stream", ...]:
        """Split the stream: one for each condition, and one for what none of them took."""
        with self._builder("branch", name, on_error) as build:
            predicates = tuple(build.predicate(code) for code in _some(conditions, "branch"))
            ports = [arm_name(index) for index in range(len(predicates) + 1)]
            outputs = build.outputs(self._with(), ports=ports)
            operator = build.register(Branch, outputs, predicates=predicates, on_error=on_error)
            return tuple(Stream(self.flow, Edge(operator, port)) for port in ports)

    def group_by(self, *keys: UserCode) -> "GroupedStream":
        """Group by columns, expressions or a function; without any, by the stream's key."""
        from floodway.model.grouped import GroupedStream

        return GroupedStream(self, keys)

    def deduplicate(
        self,
        *keys: UserCode,
        ttl: Duration,
        keep: Keep = "first",
        retention: Duration | None = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> "Stream":
        """Keep the first or the last of the records with one key that are less than `ttl` apart.

        See `floodway.operators.deduplicate.Deduplicate`.
        """
        label = stable_name("deduplicate", "by" if keys else "", *key_words(keys))
        with Builder(
            self.flow, label, self.edge, name=name, stable=True, on_error=on_error
        ) as build:
            self.facts("deduplicate")
            check_choice("keep", keep, Keep)
            made = build.register(
                Deduplicate,
                build.outputs(self._with(), late=self._with()),
                group=build.key(_some(keys, "deduplicate"))[0],
                keep=keep,
                ttl_ms=to_ms(ttl, what="ttl"),
                retention_ms=self.flow.retention(retention),
                on_error=on_error,
            )
            return self._new(made)

    def process(
        self,
        *,
        init: Init,
        update: Update,
        schema: Any = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> "Stream":
        """Keep a state per key: ``update(time, key, value, state) -> state, outputs``.

        See `floodway.operators.process.Process`.
        """
        label = stable_name("process", getattr(update, "__name__", "update"))
        with Builder(
            self.flow, label, self.edge, name=name, stable=True, on_error=on_error
        ) as build:
            self.facts("process")
            if self.key is None:
                raise _unkeyed("process keeps a state per key, and the stream has none")
            outputs = build.outputs(self._with(schema=Schema.of(Any if schema is None else schema)))
            made = build.register(Process, outputs, init=init, update=update, on_error=on_error)
            return self._new(made)

    def to_table(
        self, *, name: str, retention: Duration | None = None, versions: bool = False
    ) -> "Table":
        """Read the stream as a changelog: the latest value of each key."""
        from floodway.model.table import Table

        with Builder(self.flow, name, self.edge, name=name, stable=True) as build:
            self.facts("to_table")
            if self.key is None:
                raise _unkeyed("a table needs a key, and the stream has none")
            made = build.register(
                Materialize,
                build.outputs(self._with(kind="changes"), late=self._with()),
                retention_ms=self.flow.retention(retention),
                versions=versions,
            )
            return Table(self.flow, Edge(made), retention=self.flow.retention(retention))

    @overload
    def join(self, other: "Stream", **options: Unpack[joins.StreamJoinOptions]) -> "Stream": ...

    @overload
    def join(self, other: "Table", **options: Unpack[joins.LookupJoinOptions]) -> "Stream": ...

    def join(self, other: Any, **options: Any) -> "Stream":
        """Join with another stream within a window of time, or with a table as it was then.

        Parameters
        ----------
        other
            A stream (then `within` says how far apart two records may be) or a table.
        on
            What to join on, if the streams are not keyed by it: one expression for both, or one for
            each. With a table: which part of the record is the table's key.
        how
            ``inner`` (the default), ``left``, and between streams ``right`` and ``full``.
        joiner, select, schema
            A function of the two values, or fields such as ``["left.id", "right.name AS who"]``;
            by default all columns of both. `schema` is the type of a function's result.
        emit
            Between streams, for records without a partner: ``eager`` (the default) sends them at
            once and replaces them later, ``lazy`` when no partner can come any more.
        late_updates
            With a table: ``correct`` (the default) replaces results that a late update proves
            wrong, ``ignore`` leaves them.
        broadcast
            With a table: keep a copy of it in every task, so that the stream's records need not
            move. For small tables.
        retention
            How late records may be.
        name, on_error
            The operator's name, and what to do with a record that fails.
        """
        if isinstance(other, Stream):
            joins.check_options("two streams", joins.StreamJoinOptions, options)
            return joins.join_streams(self, other, **options)
        joins.check_options("a stream with a table", joins.LookupJoinOptions, options)
        return joins.join_table(self, other, **options)

    def rebalance(self, *, name: str | None = None) -> "Stream":
        """Spread the records evenly over the tasks of the operators that follow.

        Use it before heavy work on a source with fewer partitions than there are cores. The order
        of records, even of one key, is lost.
        """
        return self._repartitioned(Random(), name)

    def range_by(
        self, code: UserCode, bounds: Sequence[int | float | str], *, name: str | None = None
    ) -> "Stream":
        """Spread the records by where a value lies between `bounds`, which must ascend."""
        with Builder(self.flow, "range_by", self.edge, name=name) as build:
            self.facts("range_by")
            if not bounds or list(bounds) != sorted(set(bounds)):
                raise OptionError(
                    f"the bounds {list(bounds)!r} do not ascend",
                    remedy="give at least one bound, each larger than the one before",
                )
            spread = Range(build.snippet(code), tuple(bounds))
        return self._repartitioned(spread, name)

    def _repartitioned(self, spread: Partitioning, name: str | None) -> "Stream":
        with Builder(self.flow, "repartition", self.edge, name=name) as build:
            return self._new(build.register(Repartition, {MAIN: self._with()}, spread=spread))

    def to(self, sink: Any, *, name: str | None = None) -> None:
        """Send the stream to a sink: a connector, or a name under which a driver reads it."""
        own = sink if isinstance(sink, str) else getattr(sink, "name", None) or "sink"
        with Builder(self.flow, own, self.edge, name=name, stable=isinstance(sink, str)) as build:
            if not isinstance(sink, str):
                require_sink(sink)
            connector = None if isinstance(sink, str) else sink
            build.register(Sink, {MAIN: self._with()}, connector=connector)

    def facts(self, operation: str) -> None:
        """Refuse a stream with updates where only facts make sense."""
        if self.updating:
            raise OptionError(
                f"{operation} takes facts, and this stream has updates: later records replace "
                "earlier ones",
                remedy="make the join before it emit='lazy' or late_updates='ignore', or "
                "aggregate the stream into a table",
            )

    def _new(self, operator: Any) -> "Stream":
        return Stream(self.flow, Edge(operator))


def _matching(column: str, columns: Iterable[str]) -> str:
    return next(name for name in columns if name.lower() == column.lower())


def _as(text: str, column: str) -> str:
    return (
        text
        if re.search(rf"\sas\s+`?{column}`?\s*$", text, re.IGNORECASE)
        else f"{text} AS `{column}`"
    )


def _some(codes: tuple[UserCode, ...], what: str) -> tuple[UserCode, ...]:
    if not codes:
        raise OptionError(f"{what} needs at least one argument", remedy=f"e.g. {what}('country')")
    return codes


def _unkeyed(problem: str) -> UnkeyedError:
    return UnkeyedError(problem, remedy="call key_by(...) before it")
