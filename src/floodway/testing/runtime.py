"""What the driver's engines have in common: sources, stream time, and how they are asked."""

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from floodway.connectors.list_items import Emitted
from floodway.connectors.lists import ListSink
from floodway.core.errors import DriverError
from floodway.core.schema import Schema
from floodway.operators.base import MAIN, TableOperator, View
from floodway.operators.sink import Sink
from floodway.operators.source import BEGINNING, Source
from floodway.plan.graph import Graph
from floodway.testing.clock import VirtualClock


class Stats(msgspec.Struct, frozen=True):
    """What an operator has done: records in, records out, and those that did not make it.

    `duplicates` are records that were left out because of others that had been sent before.
    """

    received: int
    sent: int
    late: int
    skipped: int
    dead_letters: int
    duplicates: int


PushedRow = tuple[int | None, Any, Any]
"""The time at which it comes in or, if nobody said so, None; key and value."""


class Inlet:
    """A source as the driver sees it: how far it is, and whether it still counts.

    `dated` is the latest of the times that were said, by the value or by whoever pushed it, and
    `arrived` when the last row came in for which nobody said one.
    """

    def __init__(self, source: Source, now: int) -> None:
        self.source = source
        self.schema = source.outputs[MAIN].schema
        self.dated: int | None = None
        self.arrived: int | None = None
        self.active_at = now
        self.ended = False

    @property
    def moves_time(self) -> bool:
        """Whether stream time depends on this source."""
        return self.source.moves_time

    def holds_back(self, now: int) -> bool:
        """Return whether stream time has to wait for this source."""
        idle = now - self.active_at >= self.source.idle_ms
        return self.moves_time and not self.ended and not idle

    @property
    def latest(self) -> int | None:
        """How far the source is: by the clock if no time was ever said."""
        return self.arrived if self.dated is None else self.dated

    def date(self, row: PushedRow, now: int) -> int:
        """Return the time at which a row counts, unless its value says another."""
        time, _, value = row
        if time is not None:
            return time
        if not (self._deletes(value) or self.source.dated_outside):
            return now
        if self.dated is not None:
            return self.dated
        # Nothing was there before the first row of a table, and no later one may be older.
        return BEGINNING if self._deletes(value) else now

    def seen(self, row: PushedRow, event_time: int) -> None:
        """Take note of the event time that a row turned out to have."""
        if self._deletes(row[2]) or not self.moves_time:
            return
        if row[0] is None and self.source.dated_outside:
            self.came_to(None, event_time if self.dated is None else None)
        else:
            self.came_to(event_time, None)

    def came_to(self, dated: int | None, arrived: int | None) -> None:
        """Be at least so far."""
        self.dated, self.arrived = _later(self.dated, dated), _later(self.arrived, arrived)

    def _deletes(self, value: Any) -> bool:
        """Return whether it is a deletion where only values have times."""
        return value is None and self.source.dates_values_only


class Runtime(ABC):
    """Runs a graph's kernels when the driver says so."""

    def __init__(self, graph: Graph, clock: VirtualClock) -> None:
        self.graph = graph
        self.clock = clock
        self.stream_time: int | None = None
        self.inlets = {source.name: Inlet(source, clock.now) for source in graph.sources}
        self._sinks = {sink.name: records_of(sink) for sink in graph.sinks}

    # ------------------------------------------------------------------ sources and time

    def inlet(self, name: str) -> Inlet:
        """Return the source of that name, or of the table of that name."""
        found = self.inlets.get(name) or self.inlets.get(f"{name}.changelog")
        if found is None:
            known = ", ".join(key.removesuffix(".changelog") for key in self.inlets)
            raise DriverError(
                f"the flow has no source {name!r}", remedy=f"use one of: {known or 'none'}"
            )
        return found

    def sources(self) -> tuple[str, ...]:
        """Return what can be pushed to."""
        return tuple(name.removesuffix(".changelog") for name in self.inlets)

    def connectors(self) -> dict[str, Any]:
        """Return the connector of each source."""
        return {name: inlet.source.connector for name, inlet in self.inlets.items()}

    def push(self, inlet: Inlet, rows: list[PushedRow]) -> None:
        """Bring rows in through a source and let them run through the graph."""
        if inlet.ended:
            raise DriverError(
                f"the source {inlet.source.name} has ended",
                remedy="push before end(...) or finish()",
                operator=inlet.source.name,
            )
        checked = _checked(
            rows, inlet.schema, inlet.source.name, deletes=inlet.source.brings_updates
        )
        inlet.active_at = self.clock.now
        self._push(inlet, checked)

    def mark(self) -> None:
        """Move stream time to where the sources are; where it stands still, a mark passes too."""
        time = self._time()
        if time is not None and self.stream_time is not None and time <= self.stream_time:
            time = None
        if time is not None:
            self.stream_time = time
        self._mark(time)

    def _time(self) -> int | None:
        sources = [inlet for inlet in self.inlets.values() if inlet.moves_time]
        going = [inlet for inlet in sources if not inlet.ended]
        counting = [inlet for inlet in going if inlet.holds_back(self.clock.now)] or going
        times = [inlet.latest for inlet in counting or sources]
        known = [time for time in times if time is not None]
        if not going:
            return max(known, default=None)
        return min(known) if len(known) == len(times) else None

    def holding_back(self) -> tuple[str, ...]:
        """Return the sources that stream time waits for."""
        waited = {n: i for n, i in self.inlets.items() if i.holds_back(self.clock.now)}
        furthest = max(
            (i.latest for i in self.inlets.values() if i.latest is not None), default=None
        )
        behind = [n for n, i in waited.items() if i.latest is None or i.latest != furthest]
        return tuple(name.removesuffix(".changelog") for name in behind)

    def end(self, inlet: Inlet) -> None:
        """End a source, and what reads it and nothing else."""
        inlet.ended = True
        self._end(inlet)

    @abstractmethod
    def tick(self) -> None:
        """Tell every kernel what the clock shows."""

    @abstractmethod
    def finish(self) -> None:
        """End all sources and let everything out."""

    @abstractmethod
    def _push(self, inlet: Inlet, rows: list[PushedRow]) -> None: ...

    @abstractmethod
    def _mark(self, time: int | None) -> None: ...

    @abstractmethod
    def _end(self, inlet: Inlet) -> None: ...

    # ------------------------------------------------------------------ looking in

    def collected(self, sink: str) -> list[Emitted]:
        """Return all that reached a sink."""
        if sink not in self._sinks:
            raise DriverError(
                f"the flow has no sink {sink!r}",
                remedy=f"use one of: {', '.join(self._sinks) or 'none'}",
            )
        return self._sinks[sink]

    def view(self, table: str) -> View:
        """Return a view of a table."""
        operator = next((op for op in self.graph.operators if op.name == table), None)
        if not isinstance(operator, TableOperator):
            tables = [op.name for op in self.graph.operators if isinstance(op, TableOperator)]
            raise DriverError(
                f"the flow has no table {table!r}",
                remedy=f"use one of: {', '.join(tables) or 'none'}",
            )
        inputs = [
            self.view(edge.operator.name) if edge.output.kind == "changes" else None
            for edge in self.graph.inputs[table]
        ]
        return self._view(operator, inputs)

    def stats(self, name: str) -> Stats:
        """Return an operator's counts."""
        names = [operator.name for operator in self.graph.operators]
        if name not in names:
            raise DriverError(
                f"the flow has no operator {name!r}", remedy=f"use one of: {', '.join(names)}"
            )
        return self._stats(name)

    def versioned(self, table: str) -> bool:
        """Return whether a table keeps versions."""
        return table in self.graph.versioned

    @abstractmethod
    def _view(self, operator: TableOperator, inputs: list[View | None]) -> View: ...

    @abstractmethod
    def _stats(self, name: str) -> Stats: ...

    # ------------------------------------------------------------------ going back

    def snapshot(self) -> dict[str, Any]:
        """Return all that the runtime remembers."""
        return {
            "inlets": {
                n: (i.dated, i.arrived, i.active_at, i.ended) for n, i in self.inlets.items()
            },
            "sinks": {name: len(records) for name, records in self._sinks.items()},
            "stream_time": self.stream_time,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot; what reached the sinks since then is undone."""
        for name, inlet in self.inlets.items():
            inlet.dated, inlet.arrived, inlet.active_at, inlet.ended = snapshot["inlets"][name]
        for name, records in self._sinks.items():
            del records[snapshot["sinks"][name] :]
        self.stream_time = snapshot["stream_time"]


def records_of(sink: Sink) -> list[Emitted]:
    """Return the list that a sink's records go to."""
    if sink.connector is None:
        return []
    if isinstance(sink.connector, ListSink):
        return sink.connector.records
    raise DriverError(
        f"the driver cannot write to {type(sink.connector).__name__}",
        remedy="give the sink a name or a ListSink in tests",
        operator=sink.name,
        place=sink.place,
    )


def _later(one: int | None, other: int | None) -> int | None:
    return max((time for time in (one, other) if time is not None), default=None)


def _checked(
    rows: list[PushedRow], schema: Schema, source: str, *, deletes: bool
) -> list[PushedRow]:
    """Return rows whose values have the source's type; mappings become records."""
    if schema.opaque:
        return rows
    python = schema.python
    exact = python if isinstance(python, type) else None
    checked = []
    for time, key, value in rows:
        if type(value) is exact or (value is None and (deletes or schema.nullable)):
            checked.append((time, key, value))
            continue
        try:
            converted = msgspec.convert(value, python, from_attributes=False)
        except msgspec.ValidationError as error:
            raise DriverError(
                f"{value!r} is not a value of this source: {error}",
                remedy=f"push values of {schema}",
                operator=source,
            ) from None
        checked.append((time, key, converted))
    return checked
