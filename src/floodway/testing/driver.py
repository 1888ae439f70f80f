"""The reference driver: a flow, run in process, one step at a time.

The driver defines what a flow means. It runs every operator's kernel on one partition, moves
records through the graph in topological order, and lets time pass only when told to. Engines are
right when they give the same answers.

*Stream time* is how far event time has come: the smallest, over all sources that are neither ended
nor idle, of the largest timestamp a source has brought. Static tables have no part in it. It moves
at marks. Windows close, and records become late, by stream time alone. So the result depends on
where the marks are, and not on how records are cut into batches between them. By default each push
is followed by a mark.
"""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, get_args

from floodway.connectors.list_items import Abort, At, Delete, Emitted, End, Pause
from floodway.connectors.lists import ListSink, ListSource
from floodway.core.duration import Duration
from floodway.core.errors import DriverError
from floodway.model.flow import Flow
from floodway.model.stream import Stream
from floodway.model.table import Table
from floodway.operators.base import View
from floodway.operators.windows import Window, Windows
from floodway.plan import Configuration, Graph, Plan
from floodway.plan.windowed import windows_of
from floodway.testing.clock import VirtualClock
from floodway.testing.cluster import Cluster
from floodway.testing.machine import KernelRuntime
from floodway.testing.runtime import PushedRow, Runtime, Stats

EngineName = Literal["reference", "data", "operation", "switching"]
DriverOutcome = Literal["ended", "aborted"]


class Driver:
    """Runs a flow synchronously on a virtual clock.

    Parameters
    ----------
    flow
        The flow to run.
    clock
        The clock; by default one that starts at zero.
    auto_mark
        Whether each push is followed by a mark, so that stream time moves at once.
    engine
        ``reference``, which defines what a flow means; ``data``: the tasks that would run on Spark,
        in this process, record by record; ``operation``: the same in micro-batches; ``switching``:
        from one to the other again and again.
    configuration
        Without ``reference``: how the operators run, e.g. ``Configuration(Tuning(dop=3))``.
    restarts
        With ``data``: whether all tasks are replaced, after every push and every mark, by new ones
        that go on from stored state. What comes out must be the same.

    Examples
    --------
    >>> from floodway import Flow
    >>> flow = Flow("clicks")
    >>> clicks = flow.source("clicks", schema=str)
    >>> counts = clicks.group_by("value AS country").count(name="counts")
    >>> counts.changes().to("changes")
    >>> with Driver(flow) as driver:
    ...     driver.push("clicks", "GER", "US", "GER", at=1)
    ...     driver.table("counts").values()
    {'GER': 2, 'US': 1}
    """

    def __init__(
        self,
        flow: Flow,
        *,
        clock: VirtualClock | None = None,
        auto_mark: bool = True,
        engine: EngineName = "reference",
        configuration: Configuration | None = None,
        restarts: bool = False,
    ) -> None:
        self.flow = flow
        self.clock = clock or VirtualClock()
        self._auto_mark = auto_mark
        self._machine = _runtime(flow, self.clock, engine, configuration, restarts=restarts)
        self._read: dict[str, int] = {}
        self._positions: dict[str, int] = {}
        self._survived: set[tuple[str, int]] = set()
        self._turn: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.finish()

    @property
    def stream_time(self) -> int | None:
        """How far event time has come, or None before the first mark that knows."""
        return self._machine.stream_time

    @property
    def holding_back(self) -> tuple[str, ...]:
        """The sources that hold stream time back: neither ended, nor idle, nor further on.

        Empty if stream time is as far as it can be. A source that is listed here and has nothing
        more to bring can be ended with `end`, or becomes idle when the clock moves on.
        """
        return self._machine.holding_back()

    def sources(self) -> tuple[str, ...]:
        """Return the names of the flow's sources and tables that can be pushed to."""
        return self._machine.sources()

    def push(self, source: str, *values: Any, at: int | None = None) -> None:
        """Push values into a source, in this order.

        `at` is their timestamp, unless the source takes the event time from the value. Without it
        they are undated, as on an engine: they get the latest time that the source has had so far,
        or the clock's if it has had none. A mapping becomes the source's record type.
        """
        self._push(source, [(at, None, value) for value in values])

    def push_at(self, source: str, *values: tuple[int, Any]) -> None:
        """Push ``(timestamp, value)`` pairs into a source, in this order."""
        self._push(source, [(time, None, value) for time, value in values])

    def update(self, table: str, key: Any, value: Any, *, at: int | None = None) -> None:
        """Set the value of a table's key from a time on; without `at` see `push`."""
        self._push(table, [(at, key, value)])

    def delete(self, table: str, key: Any, *, at: int | None = None) -> None:
        """Delete a table's row from a time on; without `at`, from where the table has come to."""
        self.update(table, key, None, at=at)

    def _push(self, source: str, rows: list[PushedRow]) -> None:
        self._machine.push(self._machine.inlet(source), rows)
        if self._auto_mark:
            self.mark()

    def mark(self) -> None:
        """Let stream time move to where the sources are: windows close, lateness is decided."""
        self._machine.mark()

    def advance(self, by: Duration) -> None:
        """Move the clock forward: intervals pass, silent sources become idle."""
        self.clock.advance(by)
        self._machine.tick()
        self.mark()

    def end(self, source: str) -> None:
        """End a source: it no longer holds back time, and nothing more comes from it."""
        self._machine.end(self._machine.inlet(source))
        self.mark()

    def finish(self) -> None:
        """End all sources: everything that was held back comes out."""
        self._machine.finish()

    def read(self, sink: str) -> list[Emitted]:
        """Return what reached a sink since it was last read."""
        records = self._machine.collected(sink)
        start = self._read.get(sink, 0)
        self._read[sink] = len(records)
        return records[start:]

    def table(self, table: str | Table) -> "TableReader":
        """Return a table, to look into it."""
        name = table if isinstance(table, str) else table.name
        view, windows = self._machine.view(name), windows_of(self._machine.graph, name)
        return TableReader(name, view, windows, versioned=self._machine.versioned(name))

    def stats(self, operator: str | Stream | Table) -> Stats:
        """Return an operator's counts: records in and out, and what became of others."""
        name = operator if isinstance(operator, str) else operator.name
        return self._machine.stats(name)

    def run(self, *, every: int = 1) -> DriverOutcome:
        """Read all list sources to their end, one item from each in turn, a mark after `every`.

        At an `Abort` the flow goes back to the last mark and the run stops; running again
        goes on from there.
        """
        lists = self._lists()
        saved = self._save() if _may_abort(lists) else None
        count = 0
        while (name := self._whose_turn(lists)) is not None:
            position = self._positions[name]
            item = lists[name][position]
            if isinstance(item, Abort):
                self._survived.add((name, position))
                self._restore(saved)
                return "aborted"
            self._positions[name], self._turn = position + 1, name
            self._take(name, item, lists[name])
            count += 1
            if count % every == 0:
                self.mark()
                saved = self._save() if saved is not None else None
        self.finish()
        return "ended"

    def _whose_turn(self, lists: dict[str, list[Any]]) -> str | None:
        """Return the next source that has an item; aborts that were survived are none.

        Sources wait for tables that come first, as they do on an engine.
        """
        names = [name for name in lists if name in self._loading()] or list(lists)
        first = names.index(self._turn) + 1 if self._turn in names else 0
        for name in names[first:] + names[:first]:
            while (name, self._positions[name]) in self._survived:
                self._positions[name] += 1
            if self._positions[name] < len(lists[name]):
                return name
        return None

    def _loading(self) -> set[str]:
        """Return the preloaded tables whose sources have not ended."""
        inlets = self._machine.inlets
        return {n for n, i in inlets.items() if i.source.preload and not i.ended}

    def _lists(self) -> dict[str, list[Any]]:
        sources = self._machine.connectors()
        lists = {name: c.items for name, c in sources.items() if isinstance(c, ListSource)}
        for name, items in lists.items():
            self._positions.setdefault(name, 0)
            self._end_if_nothing_follows(name, items)
        return lists

    def _take(self, name: str, item: Any, items: list[Any]) -> None:
        inlet = self._machine.inlet(name)
        match item:
            case End():
                self._positions[name] = len(items)
            case Pause(duration):
                self.advance(duration)
            case At(timestamp, value, key):
                self._machine.push(inlet, [(timestamp, key, value)])
            case Delete(key, timestamp):
                self._machine.push(inlet, [(timestamp, key, None)])
            case _:
                self._machine.push(inlet, [(None, None, item)])
        self._end_if_nothing_follows(name, items)

    def _end_if_nothing_follows(self, name: str, items: list[Any]) -> None:
        inlet, rest = self._machine.inlet(name), range(self._positions[name], len(items))
        if not inlet.ended and all(isinstance(items[index], Abort) for index in rest):
            self._machine.end(inlet)

    def _save(self) -> Any:
        return (self._machine.snapshot(), dict(self._positions), self._turn)

    def _restore(self, saved: Any) -> None:
        snapshot, positions, self._turn = saved
        self._machine.restore(snapshot)
        self._positions = dict(positions)


class TableReader:
    """A table as it is now.

    Keys of a windowed table are pairs of group and `Window`.
    """

    def __init__(self, name: str, view: View, windows: Windows | None, *, versioned: bool) -> None:
        self._name = name
        self._versioned = versioned
        self._view = view
        self._windows = windows

    def lookup(self, key: Any, *, at: int | None = None, window: int | None = None) -> Any:
        """Return the value of a key, in version `at` if given, or None.

        `window` is the start of the window to look into; a windowed table needs it.
        """
        if self._windows is None:
            self._check(at)
            return self._view.lookup(key, at)
        if window is None:
            raise DriverError(
                f"the table {self._name} has a row per window",
                remedy="say which: lookup(key, window=start)",
                operator=self._name,
            )
        found = (v for (k, w), v in self.values(at).items() if k == key and w.start == window)
        return next(found, None)

    def rows(self, at: int | None = None) -> dict[Any, tuple[int, Any]]:
        """Return all rows: key to timestamp and value."""
        self._check(at)
        return {self._shown(key): row for key, row in self._view.rows(at).items()}

    def values(self, at: int | None = None) -> dict[Any, Any]:
        """Return all rows: key to value."""
        return {key: value for key, (_, value) in self.rows(at).items()}

    def modified(self) -> dict[int, set[Any]]:
        """Return, for each kept version, the keys that were modified at its timestamp."""
        self._check(0)
        sets = self._view.modified()
        return {time: {self._shown(key) for key in keys} for time, keys in sets.items()}

    def _check(self, at: int | None) -> None:
        if at is not None and not self._versioned:
            raise DriverError(
                f"the table {self._name} keeps only its latest version",
                remedy="build it with versions=True",
                operator=self._name,
            )

    def _shown(self, key: Any) -> Any:
        return key if self._windows is None else (key[0], Window(key[1], key[2]))


def run(
    result: Stream | Table,
    rows: Iterable[tuple[int, Any]],
    *,
    keys: bool = False,
) -> list[tuple[Any, ...]]:
    """Push rows into the only source of a flow and return what comes out of `result`.

    Returns ``(timestamp, value)`` pairs, or with `keys` triples with the key in the middle. Meant
    for examples and small tests.
    """
    flow = result.flow
    sink = ListSink()
    result.to(sink)
    driver = Driver(flow)
    (source,) = driver.sources()
    driver.push_at(source, *rows)
    driver.finish()
    if keys:
        return [(record.timestamp, record.key, record.value) for record in sink.records]
    return [(record.timestamp, record.value) for record in sink.records]


def _runtime(
    flow: Flow,
    clock: VirtualClock,
    engine: EngineName,
    configuration: Configuration | None,
    *,
    restarts: bool,
) -> Runtime:
    match engine:
        case "reference" if restarts:
            raise DriverError(
                "the reference engine does not restart", remedy="use engine='data' with restarts"
            )
        case "reference":
            return KernelRuntime(Graph.of(flow), clock)
        case "data" | "operation" | "switching":
            plan = Plan.of(flow, configuration)
            return Cluster(plan, clock, restarts=restarts, paradigm=engine)
    raise DriverError(
        f"there is no engine {engine!r}", remedy=f"use one of: {', '.join(get_args(EngineName))}"
    )


def _may_abort(lists: Mapping[str, list[Any]]) -> bool:
    return any(isinstance(item, Abort) for items in lists.values() for item in items)
