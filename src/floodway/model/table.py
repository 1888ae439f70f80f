"""Tables: what is true now for each key, and the updates that led to it."""

from typing import TYPE_CHECKING, Any

from floodway.core.errors import EmitError, StreamRequiredError
from floodway.core.place import Place
from floodway.core.schema import Schema
from floodway.core.types import Field, StructType
from floodway.model import joins
from floodway.model.build import Builder, UserCode
from floodway.model.handle import Handle
from floodway.model.registry import stable_name
from floodway.operators.base import Edge, Output
from floodway.operators.changelog import Change
from floodway.operators.changes import Changes
from floodway.operators.emit import AfterWindowEnd, Emit, EveryUpdate, Final, Latest, every_update
from floodway.operators.map_values import FilterRows, MapValues
from floodway.operators.materialize import Materialize
from floodway.operators.on_error import OnError
from floodway.operators.source import Changelog
from floodway.operators.windows import Window, WindowInKey, Windows

if TYPE_CHECKING:
    from floodway.model.flow import Flow
    from floodway.model.grouped import GroupedTable
    from floodway.model.stream import Stream


class Table(Handle):
    """An evolving table: one row per key (and window), updated as records come in.

    Every method returns a new table or stream; nothing runs. Expressions are Spark SQL over the
    value's columns, the key's, and in windowed tables ``window_start`` and ``window_end``.
    """

    def __init__(
        self,
        flow: "Flow",
        edge: Edge,
        *,
        retention: int,
        windows: Windows | None = None,
        window: WindowInKey | None = None,
    ) -> None:
        super().__init__(flow, edge)
        self.windows = windows
        self.window = WindowInKey.of(windows) if windows is not None else window
        self.retention_ms = retention

    if not TYPE_CHECKING:  # whoever checks types is told there

        def __getattr__(self, name: str) -> Any:
            """Say what to do instead, where a table is asked for a method of streams."""
            from floodway.model.stream import Stream

            if name.startswith("_") or not callable(getattr(Stream, name, None)):
                raise AttributeError(f"'Table' object has no attribute {name!r}")
            raise StreamRequiredError(
                f"{name} is for streams, and {self.name} is a table: its rows replace each other",
                remedy=f"subscribe to its updates first: .changes().{name}(...); or call {name} "
                "before the table is made",
                operator=self.name,
                place=Place.here(),
            )

    @property
    def dead_letters(self) -> "Stream":
        """The records that made this operator fail, or the source of its changelog."""
        operator = self.edge.operator
        if isinstance(operator, Materialize) and isinstance(operator.inputs[0].operator, Changelog):
            return Handle(self.flow, operator.inputs[0]).dead_letters
        return super().dead_letters

    @property
    def windowed(self) -> bool:
        """Whether there is a row per key and window."""
        return self.windows is not None

    def changes(self, *, emit: Emit | None = None, name: str | None = None) -> "Stream":
        """Subscribe to the table's updates, as a stream of `Change`.

        Parameters
        ----------
        emit
            Which updates: `every_update` (the default), ``latest()``,
            ``at_most_every("1s")``, ``consistent()``, ``after_window_end()`` or ``final()``. Each
            subscriber has its own.
        name
            The subscription's name.
        """
        from floodway.model.stream import Stream

        strategy = every_update() if emit is None else emit
        # A strategy that holds updates back keeps state, so its name must not be a mere number.
        stateful = not isinstance(strategy, EveryUpdate | Latest)
        known = isinstance(strategy, Emit) and stateful
        label = f"{self.name}.{stable_name(str(strategy)) if known else 'changes'}"
        with Builder(self.flow, label, self.edge, name=name, stable=stateful) as build:
            if not isinstance(strategy, Emit):
                raise EmitError(
                    f"{emit!r} is not an emit strategy",
                    remedy="use emit.every_update(), emit.latest(), emit.at_most_every('1s'), "
                    "emit.consistent(), emit.after_window_end() or emit.final()",
                )
            if isinstance(strategy, AfterWindowEnd | Final) and self.window is None:
                raise EmitError(
                    f"the table {self.name} has no windows, so nothing in it ever ends",
                    remedy="use emit.every_update() or emit.at_most_every(...), aggregate in "
                    "windows, or group the rows of windows by window_end, too",
                )
            operator = build.register(
                Changes,
                build.outputs(Output("records", self._change_schema(), self.key)),
                emit=strategy,
                windows=self.windows,
                retention_ms=self.retention_ms,
                window=None if self.windowed else self.window,
            )
            return Stream(self.flow, Edge(operator))

    def _change_schema(self) -> Schema:
        keys = self.key.fields if self.key is not None else ()
        key = Field("key", keys[0].type, keys[0].nullable) if len(keys) == 1 else None
        window = Schema.of(Window).type
        value = self.schema.type
        fields = (
            key or Field("key", Schema.of(Any).type),
            Field("window", window, nullable=True),
            Field("value", value, nullable=True),
            Field("previous", value, nullable=True),
        )
        return Schema(StructType(fields, Change))

    def to(self, sink: Any, *, emit: Emit | None = None, name: str | None = None) -> None:
        """Send the table's updates to a sink."""
        self.changes(emit=emit).to(sink, name=name)

    def map_values(
        self,
        to: UserCode,
        *,
        schema: Any = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> "Table":
        """Replace each row's value; None drops the row. Keys, times and versions stay."""
        with self._builder("map_values", name, on_error) as build:
            code = build.snippet(to, schema=schema)
            outputs = build.outputs(Output("changes", code.schema, self.key))
            return self._new(build.register(MapValues, outputs, code=code, on_error=on_error))

    def filter(
        self, where: UserCode, *, name: str | None = None, on_error: OnError = "fail"
    ) -> "Table":
        """Keep the rows for which a condition is true."""
        with self._builder("filter_rows", name, on_error) as build:
            code = build.predicate(where)
            outputs = build.outputs(Output("changes", self.schema, self.key))
            return self._new(build.register(FilterRows, outputs, code=code, on_error=on_error))

    def group_by(self, *keys: UserCode) -> "GroupedTable":
        """Group the rows by columns, expressions or a function of the value."""
        from floodway.model.grouped import GroupedTable

        return GroupedTable(self, keys)

    join = joins.join_tables

    def _builder(self, label: str, name: str | None, on_error: OnError) -> Builder:
        return Builder(
            self.flow, label, self.edge, name=name, on_error=on_error, windowed=self.windowed
        )

    def _new(self, operator: Any) -> "Table":
        return Table(
            self.flow,
            Edge(operator),
            windows=self.windows,
            window=self.window,
            retention=self.retention_ms,
        )
