"""Kernels of the emit strategies that wait for the end of windows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from floodway.operators.base import Outputs, RowChange
from floodway.operators.changelog import RowKernel, to_fact
from floodway.operators.history import Expiry
from floodway.operators.keyed import Space
from floodway.operators.windows import over_ms

if TYPE_CHECKING:
    from floodway.operators.changes import Changes


class WindowEndKernel(RowKernel):
    """Holds each row until its window has ended, and `delay` more.

    A row that has its window in its key is held under what the rows of windowed tables have: key,
    start and end.
    """

    remembers: ClassVar[tuple[str, ...]] = ("_held", "_ends", "_closed")
    keyed: ClassVar[tuple[str, ...]] = ("_held",)
    derived = ("_ends",)

    def __init__(self, operator: "Changes", outputs: Outputs, delay_ms: int) -> None:
        super().__init__(operator, outputs)
        self._window = operator.window
        self._by_group = self._by_group or operator.window is not None
        self._delay = delay_ms + over_ms(operator.windows)
        self._held: Space[Any, RowChange] = Space()
        self._ends = Expiry()
        self._closed: int | None = None

    def process(self, port: int, rows: Sequence[RowChange]) -> None:
        """Hold changes of open windows; send those of windows that have ended."""
        if self._window is not None:
            end_of = self._window.end
            rows = [(t, (key, None, end_of(key)), *rest) for t, key, *rest in rows]
        held, ends, delay = self._held, self._ends, self._delay
        hot, dirty, closed = held.hot, held.dirty, self._closed
        last, ending = None, []
        for change in rows:
            timestamp, key, new, _, until = change
            if until is not None:  # an older version; the row's latest value is what is reported
                continue
            end = key[2] + delay
            if closed is not None and end <= closed:
                self._correct(change)
                continue
            waiting = hot.get(key)
            if waiting is None:
                waiting = held.fetch(key)
            if waiting is None:
                if end != last:  # most windows end with the one before
                    last, ending = end, ends.at(end)
                ending.append(key)
                hot[key] = dirty[key] = change
            elif new is None and waiting[3] is None:
                del held[key]  # it comes and goes, and nobody has heard of it
            else:
                hot[key] = dirty[key] = (timestamp, key, new, waiting[3], None)

    def advance(self, stream_time: int) -> None:
        """Send the windows that have ended."""
        self._closed = stream_time
        for _, keys in self._ends.lists(stream_time):
            self._send(keys)

    def finish(self) -> None:
        """Send all windows: nothing more can come."""
        self._send(list(self._held))

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a row is held again."""
        self._ends.add(key[2] + self._delay, key)

    def _correct(self, change: RowChange) -> None:
        """Send what became of a row whose window has ended."""
        timestamp, key, new, old, _ = change
        self._say(timestamp, key, new, old)

    def _say(self, timestamp: int, key: Any, new: Any, old: Any) -> None:
        if self._window is None:
            self._out.append(to_fact(timestamp, key, new, old, windowed=True))
        else:
            self._out.append(to_fact(timestamp, key[0], new, old, windowed=False))

    def _send(self, keys: Sequence[Any]) -> None:
        """Send those of these rows that are still held."""
        for key in keys:
            held = self._held.pop(key, None)
            if held is None:
                continue
            timestamp, _, new, old, _ = held
            if new is not None or old is not None:
                self._say(timestamp, key, new, old)


class CorrectionsKernel(WindowEndKernel):
    """Does the same, and holds what corrects a row that was sent until the interval has passed."""

    remembers = (*WindowEndKernel.remembers, "_later", "_due")
    keyed = ("_held", "_later")

    def __init__(self, operator: "Changes", outputs: Outputs, interval_ms: int) -> None:
        super().__init__(operator, outputs, 0)
        self._interval = interval_ms
        self._later: Space[Any, RowChange] = Space()
        self._due: int | None = None

    def _correct(self, change: RowChange) -> None:
        timestamp, key, new, old, _ = change
        waiting = self._later.get(key)
        before = old if waiting is None else waiting[3]
        self._later[key] = (timestamp, key, new, before, None)

    def tick(self, now: int) -> None:
        """Send corrections, if the last time is long enough ago."""
        if self._due is None:
            self._due = now + self._interval
        elif now >= self._due:
            self._due = now + self._interval
            self.drain()

    def drain(self) -> None:
        """Send the corrections that are held: they are due anyway, only later."""
        for key, (timestamp, _, new, old, _) in self._later.everything():
            if new is not None or old is not None:
                self._say(timestamp, key, new, old)
        self._later.clear()

    def finish(self) -> None:
        """Send all windows, and all corrections: nothing more can come."""
        super().finish()
        self.drain()

    def loaded(self, name: str, namespace: Any, key: Any, row: Any) -> None:
        """See that a row is held again."""
        if name == "_held":
            super().loaded(name, namespace, key, row)
