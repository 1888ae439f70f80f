"""Groups on their way to a table: what to aggregate, in which windows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from floodway.core.duration import Duration
from floodway.core.errors import OptionError, locating
from floodway.core.place import Place
from floodway.core.schema import Schema
from floodway.model.aggregation import Specs, aggregate_stream, aggregate_table, grouping
from floodway.model.build import Builder, UserCode
from floodway.model.registry import stable_name
from floodway.operators import aggregates
from floodway.operators.aggregates import AggregateSpec
from floodway.operators.base import Edge, Output
from floodway.operators.on_error import OnError
from floodway.operators.window_process import Finalize, WindowInit, WindowProcess, WindowUpdate
from floodway.operators.windows import Session, Windows

if TYPE_CHECKING:
    from floodway.model.stream import Stream
    from floodway.model.table import Table


class TableOptions(TypedDict, total=False):
    """The options every aggregation takes."""

    name: str | None
    retention: Duration | None
    versions: bool
    on_error: OnError


class Aggregating:
    """The aggregates that a grouped stream or table can be turned into.

    All take these options: `name`, the table's; `retention`, how late records may be and how far
    back versions reach; `versions`, to keep versions for ``lookup(key, at=...)``; `on_error`.
    """

    def _aggregate(self, specs: Specs, **options: Unpack[TableOptions]) -> "Table":
        raise TypeError("grouped streams and tables only")  # pragma: no cover

    def count(self, of: UserCode | None = None, **options: Unpack[TableOptions]) -> "Table":
        """Count records, or those for which `of` is not null."""
        return self._table(aggregates.count(of), options)

    def sum(self, of: UserCode, **options: Unpack[TableOptions]) -> "Table":
        """Add up `of`."""
        return self._table(aggregates.sum(of), options)

    def min(self, of: UserCode, **options: Unpack[TableOptions]) -> "Table":
        """Keep the smallest `of`."""
        return self._table(aggregates.min(of), options)

    def max(self, of: UserCode, **options: Unpack[TableOptions]) -> "Table":
        """Keep the largest `of`."""
        return self._table(aggregates.max(of), options)

    def mean(self, of: UserCode, **options: Unpack[TableOptions]) -> "Table":
        """Average `of`."""
        return self._table(aggregates.mean(of), options)

    def top(self, n: int, by: UserCode | None = None, **options: Unpack[TableOptions]) -> "Table":
        """Keep the `n` values that are largest by `by`, largest first."""
        return self._table(aggregates.top(n, by), options)

    def collect(self, of: UserCode | None = None, **options: Unpack[TableOptions]) -> "Table":
        """Collect all values, or `of` for each, in timestamp order; streams need a window."""
        return self._table(aggregates.collect(of), options)

    def aggregate(
        self,
        lift: Callable[[Any], Any],
        combine: Callable[[Any, Any], Any],
        lower: Callable[[Any], Any] | None = None,
        *,
        subtract: Callable[[Any, Any], Any] | None = None,
        holistic: bool = False,
        schema: Any = None,
        **options: Unpack[TableOptions],
    ) -> "Table":
        """Aggregate with your own functions.

        See `floodway.operators.aggregates.aggregate` for what each must do.
        """
        spec = aggregates.aggregate(
            lift, combine, lower, subtract=subtract, holistic=holistic, schema=schema
        )
        return self._table(spec, options)

    def agg(
        self,
        /,
        *,
        name: str | None = None,
        retention: Duration | None = None,
        versions: bool = False,
        on_error: OnError = "fail",
        **columns: AggregateSpec,
    ) -> "Table":
        """Compute several aggregates at once: ``agg(n=fw.count(), total=fw.sum("price"))``.

        `name`, `retention`, `versions` and `on_error` are options, so no column can have one of
        these names.
        """
        with locating("agg"):
            for option, value in (
                ("name", name),
                ("retention", retention),
                ("versions", versions),
                ("on_error", on_error),
            ):
                _check_option(option, value)
        return self._table(
            columns,
            {"name": name, "retention": retention, "versions": versions, "on_error": on_error},
        )

    def _table(self, specs: Specs, options: TableOptions) -> "Table":
        unknown = set(options) - set(TableOptions.__annotations__)
        if unknown:
            raise OptionError(
                f"there is no option {sorted(unknown)[0]!r}",
                remedy=f"the options are {', '.join(TableOptions.__annotations__)}",
            ).at("aggregate", Place.here())
        return self._aggregate(specs, **options)


class GroupedStream(Aggregating):
    """A stream whose records are grouped; aggregate it, or put it into windows first."""

    def __init__(self, stream: "Stream", keys: tuple[UserCode, ...]) -> None:
        self.stream = stream
        self._keys = keys

    def window(self, windows: Windows) -> "WindowedStream":
        """Aggregate per window: `tumbling`, ``hopping`` or ``session``."""
        with locating("window"):
            if not isinstance(windows, Windows):
                raise OptionError(
                    f"{windows!r} does not say which windows",
                    remedy="use tumbling('10s'), hopping('1m', advance='10s') or session('30m')",
                )
        return WindowedStream(self.stream, self._keys, windows)

    def _aggregate(self, specs: Specs, **options: Unpack[TableOptions]) -> "Table":
        return aggregate_stream(self.stream, self._keys, None, specs, **options)


class WindowedStream(Aggregating):
    """A stream whose records are grouped by key and window."""

    def __init__(self, stream: "Stream", keys: tuple[UserCode, ...], windows: Windows) -> None:
        self.stream = stream
        self.windows = windows
        self._keys = keys

    def _aggregate(self, specs: Specs, **options: Unpack[TableOptions]) -> "Table":
        return aggregate_stream(self.stream, self._keys, self.windows, specs, **options)

    def process(
        self,
        *,
        init: WindowInit,
        update: WindowUpdate,
        finalize: Finalize,
        schema: Any = None,
        retention: Duration | None = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> "Stream":
        """Keep a state per key and window, and send records when the window closes.

        See `floodway.operators.window_process.WindowProcess`.
        """
        from floodway.model.stream import Stream

        flow, stream = self.stream.flow, self.stream
        label = name or stable_name("process", getattr(update, "__name__", "update"))
        with Builder(flow, label, stream.edge, name=name, stable=True, on_error=on_error) as build:
            stream.facts("process")
            if isinstance(self.windows, Session):
                raise OptionError(
                    "process cannot merge the states of two sessions",
                    remedy="use aggregate(lift, combine, lower), whose states can be merged",
                )
            group, key = grouping(build, stream, self._keys)
            main = Output("records", Schema.of(Any if schema is None else schema), key)
            operator = build.register(
                WindowProcess,
                build.outputs(main, late=Output("records", stream.schema, stream.key)),
                group=group,
                windows=self.windows,
                init=init,
                update=update,
                finalize=finalize,
                retention_ms=flow.retention(retention),
                on_error=on_error,
            )
            return Stream(flow, Edge(operator))


class GroupedTable(Aggregating):
    """A table whose rows are grouped."""

    def __init__(self, table: "Table", keys: tuple[UserCode, ...]) -> None:
        self.table = table
        self._keys = keys

    def _aggregate(self, specs: Specs, **options: Unpack[TableOptions]) -> "Table":
        return aggregate_table(self.table, self._keys, specs, **options)


def _check_option(option: str, value: object) -> None:
    if isinstance(value, AggregateSpec):
        raise OptionError(
            f"agg({option}={value.text}) cannot be a column: {option}= is an option of the table",
            remedy=f"call the column otherwise, e.g. agg(its_{option}=...), and rename it where "
            f"the table is read: .changes().select('value.its_{option} AS {option}')",
        )
