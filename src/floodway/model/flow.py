"""The flow: the user's program, as a graph that nothing has run yet."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from floodway.core.duration import Duration, to_ms
from floodway.core.errors import (
    DuplicateNameError,
    OptionError,
    SchemaError,
    UndefinedError,
    locating,
)
from floodway.core.schema import Schema
from floodway.model.build import Builder, UserCode, check_key
from floodway.model.connected import require_source
from floodway.model.reading import table_key, timestamp_of
from floodway.model.registry import Registry, check_name
from floodway.model.stream import Stream
from floodway.model.table import Table
from floodway.model.timing import ARRIVAL, IngestionTime, table_times
from floodway.model.tuning import Tuning
from floodway.operators.base import Edge, Key, Operator, Output
from floodway.operators.declared import Declared
from floodway.operators.materialize import Materialize
from floodway.operators.on_error import OnError
from floodway.operators.source import Changelog, Source

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from floodway.engine.driver.job import Job
    from floodway.provisioning.planning.provision import Provision


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
        timestamp: UserCode | IngestionTime | None = None,
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
            time = timestamp_of(self, build, described, timestamp)
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
        timestamp: UserCode | IngestionTime | None = None,
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
            carry their key.
        versions
            Whether to keep versions for ``lookup(key, at=...)``; joins ask for them by themselves.
        preload
            Whether other sources wait until this table's source has ended, so that the table is
            complete before the first record looks into it. For tables that are read once. By
            default, tables that are static and known to end are preloaded.
        static
            Whether the table has no time: its rows hold for events of any time, and of several rows
            with the same key the last one counts. By default, a table is static if it has no
            timestamps and is preloaded or known to end, like one from a file.
        name, connector, schema, timestamp, retention, idle, on_error
            As for `source`; an update older than `retention` is late.
        """
        described = Schema.of(schema)
        source = f"{name}.changelog"
        with Builder(self, source, name=source, stable=True, on_error=on_error) as build:
            require_source(connector)
            presumed = static is None
            preload, static = table_times(connector, timestamp, preload=preload, static=static)
            time = timestamp_of(self, build, described, timestamp)
            snippets, keyed = table_key(self, build, described, key)
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
        """Declare a stream by name; `define` says later what it is."""
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
        """Refuse a flow that cannot run: a cycle, an undefined stream, unread dead letters."""
        import_module("floodway.plan").Graph.of(self)

    def plan(self, *, rate: float | None = None, **options: Any) -> "Provision":
        """Plan how many tasks and which batch sizes a rate takes, before anything runs.

        The costs of the stages are measured on this machine, with a sample of the sources' records,
        unless they are known already. That takes about twenty seconds, and nothing is written to
        sinks. ``floodway plan`` does the same.

        Parameters
        ----------
        rate
            Records per second, all sources together.
        max_tasks
            The most tasks to use. Without `rate`, the plan is for the largest rate that they can
            take.
        max_b_out
            The largest batches allowed; 1 is no batching, None any.
        lean
            Whether to choose the batch sizes with which records wait the least.
        headroom
            The share of each stage's capacity to keep free; 0 by default.
        cores
            The cores of a server, to count servers.
        what_if
            Changes to what was measured, such as ``["counts.selectivity*=2"]``.
        configuration
            A `floodway.Configuration` to check instead of planning one.
        samples
            Files of lines to measure with instead of the sources' own records, by the source's
            name.
        fresh
            Whether to measure again, even if costs are known.
        progress
            A function that is called with what is being done, and which part of it is done.
        """
        module = import_module("floodway.provisioning.planning.provision")
        found: Provision = module.provision(self, rate=rate, **options)
        return found

    def start(self, *, rate: float | None = None, **options: Any) -> "Job":
        """Start the flow and return a handle at once; options as for `run`."""
        planned = rate is not None or not options.keys().isdisjoint(("headroom", "samples"))
        if planned:
            options["rate"] = rate
        name = "provisioning.planning.starting" if planned else "engine.driver.job"
        job: Job = import_module(f"floodway.{name}").start(self, **options)
        return job

    def run(self, *, timeout: float | None = None, **options: Any) -> "Job":
        """Run the flow to its end.

        The flow ends when all sources have ended, after `timeout` seconds (what has been read by
        then is processed), or when the process is stopped. Returns the handle of the flow that has
        run. Its `summary` says what happened; it is also logged, as a warning if something was
        lost.

        Parameters
        ----------
        timeout
            After how many seconds to stop reading; None for no limit.
        dop, b_out, linger
            Parallelism, batch size and linger, unless the flow says otherwise for an operator.
        configuration
            A `floodway.Configuration`, which takes precedence over what the flow says.
        rate
            Instead of `dop`, `b_out` and `configuration`: the records per second, all sources
            together, for which tasks and batch sizes are planned before the flow starts; see
            `plan`.
        headroom, samples
            With `rate`: the share of each stage's capacity to keep free, 0.2 by default, and files
            of lines to measure with, by the source's name.
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
            flow survives the loss of a task, but not that of this process.
        recovery
            Whether the flow survives the loss of tasks. False makes it a little faster, but the
            first loss ends it.
        epoch
            How often the flow commits.
        patience
            How long to wait at the start for the next task to appear; a minute by default.
        state_memory
            How many bytes of state each task may keep in memory; what is used least goes to disk.
            Only with recovery; by default, all state is in memory.
        paradigm
            ``data`` for record by record, ``operation`` for micro-batches on Spark; by default
            (``auto``) each stage moves from one to the other as its load demands. An operator
            that is pinned in the flow stays as it is.
        story
            A file to which every decision about paradigms and batch sizes is appended, with the
            numbers behind it; `floodway story` reads it.
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
