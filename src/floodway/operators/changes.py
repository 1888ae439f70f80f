"""changes: a table becomes a stream again, its changelog (thesis, section 5.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from floodway.operators.aggregate import Aggregate
from floodway.operators.base import MAIN, Kernel, Operator, Outputs, RowChange
from floodway.operators.changelog import RowKernel, to_fact
from floodway.operators.changes_at_end import CorrectionsKernel, WindowEndKernel
from floodway.operators.emit import (
    AfterWindowEnd,
    AtMostEvery,
    Consistent,
    Emit,
    EveryUpdate,
    Final,
    Latest,
)
from floodway.operators.facts import Facts, State, passing
from floodway.operators.history import EvolvingTable, Expiry
from floodway.operators.keyed import Space
from floodway.operators.lag import Held
from floodway.operators.map_values import MapValues
from floodway.operators.partitioning import FORWARD, Partitioning
from floodway.operators.windows import Session, WindowInKey, Windows


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Changes(Operator):
    """Subscribes to a table's updates, with an emit strategy of its own.

    The stream's records are facts about the table: timestamp and key are the row's, the value is a
    `Change`. Several subscribers of one table may have different strategies.

    Examples
    --------
    >>> from floodway import Flow, emit, tumbling
    >>> from floodway.testing import Driver
    >>> flow = Flow("clicks")
    >>> clicks = flow.source("clicks", schema=str)
    >>> counts = clicks.group_by("value AS page").window(tumbling(10)).count(name="counts")
    >>> counts.changes(emit=emit.after_window_end()).to("report")
    >>> with Driver(flow) as driver:
    ...     driver.push_at("clicks", (1, "home"), (2, "home"), (11, "home"))
    ...     [(record.value.window.start, record.value.value) for record in driver.read("report")]
    [(0, 2)]
    """

    emit: Emit
    windows: Windows | None
    retention_ms: int
    window: WindowInKey | None = None

    @property
    def counted_as(self) -> str | None:
        """What subscriptions are called that nobody has named."""
        named = not isinstance(self.emit, EveryUpdate | Latest)
        return None if named else f"{self.inputs[0].operator.name}.changes"

    @property
    def facts(self) -> Facts:
        """Where no update is held back, any task can do the work."""
        return passing(keys="scattered", away="yes", held=self._held, emit=self.emit, joins=None)

    def state(self, *, versioned: bool = False) -> State | None:
        """Remember updates that are held back, or what was said of versions."""
        kernel, _ = self._made(versioned=versioned)
        if not kernel.remembers:
            return None
        return State(kernel=kernel, layout="", versions=True, inputs="rows")

    @property
    def windowed(self) -> bool:
        """Whether the rows are those of windows."""
        return self.windows is not None

    @property
    def _held(self) -> Held | None:
        """Strategies that wait for the end of windows send rows as old as the window is long."""
        if not isinstance(self.emit, AfterWindowEnd | Final):
            return None
        delay = self.retention_ms if isinstance(self.emit, Final) else 0
        windows = self.windows if self.window is None else self.window.windows
        if isinstance(windows, Session):
            return Held(delay + windows.reach_ms)
        return Held(delay, windows)

    @property
    def by_group(self) -> bool:
        """Whether rows of all windows of a group come to one task, or each by its own key."""
        origin = self.inputs[0].operator
        while isinstance(origin, MapValues):
            origin = origin.inputs[0].operator
        return self.windowed and isinstance(origin, Aggregate)

    def details(self) -> Mapping[str, str]:
        """Return the strategy."""
        return {"emit": str(self.emit)}

    def partitioning(self, port: int) -> Partitioning:
        """Take what the task before has."""
        return FORWARD

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return the strategy's kernel; `versioned` says whether the table keeps versions."""
        made, options = self._made(versioned=versioned)
        kernel: Kernel = made(self, outputs, *options)
        return kernel

    def _made(self, *, versioned: bool) -> tuple[type[Any], tuple[int, ...]]:
        """Return the strategy's kernel, and what it takes besides operator and outputs."""
        match self.emit:
            case AtMostEvery(interval_ms):
                return IntervalKernel, (interval_ms,)
            case Consistent():
                return MarkKernel, ()
            case AfterWindowEnd(None):
                return WindowEndKernel, (0,)
            case AfterWindowEnd(int(corrections_ms)):
                return CorrectionsKernel, (corrections_ms,)
            case Final():
                return WindowEndKernel, (self.retention_ms,)
            case Latest():
                return LatestUpdateKernel, ()
            case _ if versioned:
                return EveryVersionKernel, ()
            case _:
                return EveryUpdateKernel, ()


class EveryUpdateKernel(Kernel):
    """Passes each update on."""

    def __init__(self, operator: Changes, outputs: Outputs) -> None:
        self._emit = outputs[MAIN].append
        self._windowed = operator.windowed

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Pass changes on as records."""
        for timestamp, key, new, old, _ in rows:
            self._emit(to_fact(timestamp, key, new, old, windowed=self._windowed))


class LatestUpdateKernel(Kernel):
    """Passes on what became of each row, for all that is processed together."""

    def __init__(self, operator: Changes, outputs: Outputs) -> None:
        self._emit = outputs[MAIN].append
        self._windowed = operator.windowed

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Pass the last change of each row on; its versions are apart."""
        made: dict[Any, RowChange] = {}
        for timestamp, key, new, old, until in rows:
            slot = (key, None if until is None else timestamp)
            before = made.pop(slot, None)  # it goes to the end: the order is that of the last ones
            made[slot] = (timestamp, key, new, old if before is None else before[3], until)
        for timestamp, key, new, old, _ in made.values():
            if new is not None or old is not None:
                self._emit(to_fact(timestamp, key, new, old, windowed=self._windowed))


class EveryVersionKernel(RowKernel):
    """Passes each update on, as many updates as it takes to say what became of every version.

    Inside the flow a change holds over an interval of versions. A changelog has no intervals: an
    update holds up to the next one of its key (definition 58). So a change that reaches over
    versions of which the subscriber knows becomes one update for each of them, and where it ends
    the old value is said again unless something is known to start there.
    """

    remembers = ("_sent", "_ends")
    keyed = ("_sent.histories",)
    derived = ("_ends",)

    def __init__(self, operator: Changes, outputs: Outputs) -> None:
        super().__init__(operator, outputs)
        self._retention = operator.retention_ms
        self._emit = outputs[MAIN].append
        self._sent = EvolvingTable(versioned=True)
        self._ends = Expiry()

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Pass changes on as records."""
        for timestamp, key, new, _, until in rows:
            ends_in_silence = until is not None and not self._sent.modified_at(key, until)
            for start, end, known in self._sent.segments(key, timestamp, until):
                self._emit(to_fact(start, key, new, known, windowed=self._windowed))
                self._sent.assign((start, key, new, known, end))
            if until is not None and ends_in_silence:
                rest = self._sent.lookup(key, until)
                self._emit(to_fact(until, key, rest, rest, windowed=self._windowed))
            if self._windowed:
                self._ends.add(key[2] + 1, key)  # a session may go on at its very end

    def advance(self, stream_time: int) -> None:
        """Forget what no update can reach any more."""
        horizon = stream_time - self._retention
        self._sent.forget(horizon)
        for _, key in self._ends.due(horizon):
            self._sent.drop(key)

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a history is back."""
        self._sent.loaded(key, row)
        if self._windowed:
            self._ends.add(key[2] + 1, key)  # a session may go on at its very end


class HoldingKernel(RowKernel):
    """Holds the latest change of each row for a while."""

    remembers: ClassVar[tuple[str, ...]] = ("_held",)
    keyed = ("_held",)

    def __init__(self, operator: Changes, outputs: Outputs) -> None:
        super().__init__(operator, outputs)
        self._held: Space[tuple[Any, int | None], RowChange] = Space()

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Hold changes; a row's versions are held apart."""
        for timestamp, key, new, old, until in rows:
            slot = (key, None if until is None else timestamp)
            held = self._held.get(slot)
            before = old if held is None else held[3]
            self._held[slot] = (timestamp, key, new, before, until)

    def drain(self) -> None:
        """Send what is held: it is due anyway, only later."""
        self.finish()

    def finish(self) -> None:
        """Send what is held."""
        for _, (timestamp, key, new, old, _) in self._held.everything():
            if new is not None or old is not None:
                self._out.append(to_fact(timestamp, key, new, old, windowed=self._windowed))
        self._held.clear()

    def route(self, name: str, key: Any) -> Any:
        """Return what decides to which task the changes of a row come."""
        row, _ = key
        return super().route(name, row)


class IntervalKernel(HoldingKernel):
    """Holds the latest change of each row until the interval has passed."""

    remembers = ("_held", "_due")

    def __init__(self, operator: Changes, outputs: Outputs, interval_ms: int) -> None:
        super().__init__(operator, outputs)
        self._interval = interval_ms
        self._due: int | None = None

    def tick(self, now: int) -> None:
        """Send what is held, if the last time is long enough ago."""
        if self._due is None:
            self._due = now + self._interval
        elif now >= self._due:
            self._due = now + self._interval
            self.finish()


class MarkKernel(HoldingKernel):
    """Holds the latest change of each row until the next mark.

    Before a mark passes, everything that was read before it has come here from wherever it went.
    """

    def marked(self) -> None:
        """Send what is held."""
        self.finish()
