"""The flow: the user's program, as a graph that nothing has run yet."""

import logging
from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any, get_origin

from floodway.core.duration import Duration, to_ms
from floodway.core.errors import (
    DuplicateNameError,
    ExpressionTypeError,
    OptionError,
    SchemaError,
    UndefinedError,
    locating,
)
from floodway.core.schema import Schema
from floodway.core.types import Field, IntegerType, LongType, OpaqueType, TimestampType
from floodway.model.build import Builder, Code, check_key
from floodway.model.connected import require_source
from floodway.model.registry import Registry, check_name
from floodway.model.stream import Stream
from floodway.model.table import Table
from floodway.model.timing import ARRIVAL, Arrival, table_times
from floodway.model.tuning import Tuning
from floodway.operators.base import Edge, Key, Operator, Output
from floodway.operators.code import Snippet
from floodway.operators.declared import Declared
from floodway.operators.materialize import Materialize
from floodway.operators.on_error import OnError
from floodway.operators.source import Changelog, Source

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from floodway.engine.job import Job


class Flow:
    """A program of streams and tables.

    Parameters
    ----------
    name
        The flow's name.
    retention
        How late records may be, unless an operator says otherwise: windows, join buffers and
        versions are kept this much longer than they are open.
    idle
        After how long a silent source no longer holds back stream time, unless a source says
        otherwise.
    key_groups
        Into how many groups keys are divided. A task has whole groups, so this is the largest
        degree of parallelism, and it must stay the same for as long as the flow's state is kept.

    Examples
    --------
    >>> flow = Flow("clicks")
    >>> counts = flow.source("clicks", schema=str).group_by("value AS country").count()
    >>> counts.name
    'count_by_country'
    """

    def __init__(
        self,
        name: str,
        *,
        retention: Duration = "1h",
        idle: Duration = "30s",
        key_groups: int = 128,
    ) -> None:
        self.name = name
        self.key_groups = key_groups
        self.registry = Registry()
        with locating(name):
            check_name(name)
            self._retention_ms = to_ms(retention, what="retention", zero=True)
            self._idle_ms = to_ms(idle, what="idle")
            if not 1 <= key_groups <= 32_768:
                raise OptionError(
                    f"key_groups={key_groups} is not between 1 and 32768",
                    remedy="leave it at 128 unless more than 128 tasks may ever share an operator",
                )
        self._definitions: dict[str, Edge] = {}
        self._tunings: dict[str, Tuning] = {}

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All operators, in the order in which they were written."""
        return self.registry.operators

    @property
    def tunings(self) -> dict[str, Tuning]:
        """What was said about how operators should run."""
        return dict(self._tunings)

    def tuned(self, operator: str, tuning: Tuning) -> None:
        """Remember how an operator should run."""
        self._tunings[operator] = tuning.over(self._tunings.get(operator, Tuning()))

    @property
    def definitions(self) -> dict[str, Edge]:
        """What declared streams stand for."""
        return dict(self._definitions)

    def retention(self, retention: Duration | None) -> int:
        """Return an operator's retention in milliseconds: its own, or the flow's."""
        if retention is None:
            return self._retention_ms
        return to_ms(retention, what="retention", zero=True)

    def source(
        self,
        name: str,
        connector: Any = None,
        *,
        schema: Any,
        timestamp: Code | Arrival | None = None,
        idle: Duration | None = None,
        on_error: OnError = "fail",
    ) -> Stream:
        """Bring in a stream of records.

        Parameters
        ----------
        name
            The source's name.
        connector
            Where records come from. Without one, they are pushed by a driver.
        schema
            The type of the values: a `Record` class, or a scalar type.
        timestamp
            The event time: a column, expression or function that gives milliseconds or a
            timestamp. Without it, the time that the connector gives (that of a Kafka record), or
            the one at which a record comes in. `floodway.ARRIVAL` is always the latter.
        idle
            After how long this source no longer holds back stream time if it is asked and has
            nothing to give.
        on_error
            What to do with a record that has no valid event time.
        """
        described = Schema.of(schema)
        with Builder(self, name, name=name, stable=True, on_error=on_error) as build:
            require_source(connector)
            time = _timestamp(self, build, described, timestamp)
            main = Output("records", described)
            made = build.register(
                Source,
                build.outputs(main),
                timestamp=time,
                arrival=timestamp is ARRIVAL,
                idle_ms=self._idle(idle),
                connector=connector,
                on_error=on_error,
            )
            return Stream(self, Edge(made))

    def table(
        self,
        name: str,
        connector: Any = None,
        *,
        schema: Any,
        key: Any,
        timestamp: Code | Arrival | None = None,
        retention: Duration | None = None,
        versions: bool = False,
        preload: bool | None = None,
        static: bool | None = None,
        idle: Duration | None = None,
        on_error: OnError = "fail",
    ) -> Table:
        """Bring in a table: a stream of updates, each a key's value from a time on.

        Parameters
        ----------
        key
            A column, expression or function of the value, or a list of them; or a type, if updates
            bring their key along.
        versions
            Whether to keep versions for ``lookup(key, at=...)``; joins ask for them by themselves.
        preload
            Whether other sources wait until this table's source has ended, so that the table is
            complete before the first record looks into it. For tables that are read once. By
            default those do that are static and known to end.
        static
            Whether the table has no time: its rows hold from the beginning of time, and of several
            with the same key the last. By default that is a table without timestamps that is
            preloaded or known to end, like one from a file.
        name, connector, schema, timestamp, retention, idle, on_error
            As for `source`; an update older than `retention` is late.
        """
        described = Schema.of(schema)
        source = f"{name}.changelog"
        with Builder(self, source, name=source, stable=True, on_error=on_error) as build:
            require_source(connector)
            presumed = static is None
            preload, static = table_times(connector, timestamp, preload=preload, static=static)
            time = _timestamp(self, build, described, timestamp)
            snippets, keyed = _table_key(self, build, described, key)
            main = Output("records", described, keyed)
            changelog = build.register(
                Changelog,
                build.outputs(main),
                timestamp=time,
                arrival=timestamp is ARRIVAL,
                key=snippets,
                preload=preload,
                static=static,
                presumed=presumed,
                idle_ms=self._idle(idle),
                connector=connector,
                on_error=on_error,
            )
        with Builder(self, name, Edge(changelog), name=name, stable=True) as build:
            made = build.register(
                Materialize,
                build.outputs(Output("changes", described, keyed), late=main),
                retention_ms=self.retention(retention),
                versions=versions,
                static=static,
            )
            return Table(self, Edge(made), retention=self.retention(retention))

    def declare(self, name: str, *, schema: Any, key: str | None = None) -> Stream:
        """Name a stream that `define` will give later."""
        described = Schema.of(schema)
        with Builder(self, name, name=name, stable=True) as build:
            field = None if key is None else described.field(key)
            if field is not None:
                check_key(field.name, field.type)
            keyed = None if field is None else Key((field,))
            made = build.register(Declared, {"main": Output("records", described, keyed)})
            return Stream(self, Edge(made))

    def define(self, name: str, stream: Stream) -> None:
        """Say what a declared stream is."""
        with Builder(self, name, name=name, stable=True):
            declared = next((op for op in self.operators if op.name == name), None)
            if not isinstance(declared, Declared):
                raise UndefinedError(
                    f"no stream {name!r} was declared", remedy="call flow.declare(...) first"
                )
            if name in self._definitions:
                raise DuplicateNameError(
                    f"the stream {name!r} is defined already", remedy="define it once"
                )
            expected = declared.outputs["main"]
            if stream.schema.type != expected.schema.type or stream.updating:
                raise SchemaError(
                    f"{name!r} was declared with {expected.schema}, and is defined with facts of "
                    f"{stream.schema}",
                    remedy="make the two the same",
                )
            self._definitions[name] = stream.edge

    def check(self) -> None:
        """Refuse a flow that could not run: a cycle, an undefined stream, dead letters lost."""
        import_module("floodway.plan").Graph.of(self)

    def start(self, **options: Any) -> "Job":
        """Start the flow and return a handle at once; options as for `run`."""
        job: Job = import_module("floodway.engine.job").start(self, **options)
        return job

    def run(self, *, timeout: float | None = None, **options: Any) -> "Job":
        """Run the flow to its end.

        The end comes when all sources have ended, after `timeout` seconds (what has been read by
        then is processed), or when somebody stops the process. Returns the handle of what has run.
        What has happened is in its `summary`, which is also logged: as a warning if something got
        lost.

        Parameters
        ----------
        timeout
            After how many seconds to stop reading; None to go on.
        dop, b_out, linger
            Parallelism, batch size and linger of operators for which the flow says nothing.
        configuration
            A `floodway.plan.Configuration`, which comes before what the flow says.
        master, conf
            Which Spark to run on, and settings for it. By default one in this process with as
            many slots as there are tasks.
        metrics_port
            The loopback port for metrics; 0 chooses one, None serves none.
        input_cache
            How many bytes may wait for a task.
        transport
            ``ipc`` for Unix sockets on one host, ``tcp`` for encrypted connections between hosts,
            ``auto`` to let the master decide.
        checkpoint
            A folder from which the flow goes on if it is stopped, or if a task or this process
            dies, with nothing lost and nothing doubled; all hosts must see it. Without one, the
            loss of a task is survived, and that of this process is not.
        recovery
            Whether the flow survives the loss of tasks. False makes it a little faster, and the
            first loss its end.
        epoch
            How often what has happened is committed.
        patience
            How long to wait, at the start, from the arrival of one task to that of the next; a
            minute by default.
        state_memory
            How many bytes of state each task may keep in memory; what is used least goes to disk.
            Only with recovery; by default, all state is in memory.
        paradigm
            ``data`` for record by record, ``operation`` for micro-batches on Spark; by default
            (``auto``) each stage moves from one to the other as its load demands. An operator
            that is pinned in the flow stays as it is.
        story
            A file to which every decision about paradigms and batch sizes is appended, with the
            numbers that made it; `floodway story` reads it.
        """
        job = self.start(**options)
        try:
            if not job.wait(timeout):
                job.drain()
                job.wait()
        except BaseException:
            job.stop()
            raise
        degraded = job.status.health.state != "healthy"
        log.log(logging.WARNING if degraded else logging.INFO, "%s", job.summary)
        return job

    def explain(self) -> str:
        """Return the graph as text: kinds, keys, windows, schemas."""
        text: str = import_module("floodway.plan").explain(self)
        return text

    def _idle(self, idle: Duration | None) -> int:
        return self._idle_ms if idle is None else to_ms(idle, what="idle")

    def __repr__(self) -> str:
        return f"Flow({self.name}: {len(self.operators)} operators)"


def _timestamp(
    flow: Flow, build: Builder, schema: Schema, code: Code | Arrival | None
) -> Snippet | None:
    if code is None or isinstance(code, Arrival):
        return None
    snippet = _over(flow, build, schema).snippet(code)
    kinds = (IntegerType, LongType, TimestampType, OpaqueType)
    if not isinstance(snippet.schema.type, kinds):
        raise ExpressionTypeError(
            f"the timestamp {snippet.text!r} is {snippet.schema.type}",
            remedy="give milliseconds (BIGINT) or a TIMESTAMP, e.g. to_timestamp(...)",
        )
    return snippet


def _table_key(
    flow: Flow, build: Builder, schema: Schema, key: Any
) -> tuple[tuple[Snippet, ...], Key]:
    parts = list(key) if isinstance(key, list | tuple) else [key]
    if parts and all(isinstance(part, str) or isfunction(part) for part in parts):
        return _over(flow, build, schema).key(parts)
    described = Schema.of(key)
    if not isinstance(key, type) and described.opaque and get_origin(key) is None:
        raise OptionError(
            f"{key!r} cannot be a table's key",
            remedy="give a column, an expression, a function, a list of them, or a type",
        )
    check_key(str(key), described.type)
    return (), Key((Field("key", described.type, described.nullable),))


class _SchemaBuilder(Builder):
    """A builder over a schema that no operator has yet: a source's own."""

    own: Output

    @property
    def output(self) -> Output:
        """What the source is about to bring."""
        return self.own


def _over(flow: Flow, build: Builder, schema: Schema) -> Builder:
    over = _SchemaBuilder(flow, build.name, name=build.name, stable=True)
    over.own = Output("records", schema)
    return over
