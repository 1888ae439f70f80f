"""Stream time: the smallest, over all source tasks, of the latest event time each has brought.

Sources that have ended do not count, nor, as long as others bring something, those that are idle:
that were asked for long and had nothing to give. If all are idle, stream time goes no further than
each of them has come. If all have ended, it is the latest event time of all, since nothing can be
late any more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from floodway.engine.control.messages import SourceTime


class StreamTime:
    """Keeps how far every source of every task is.

    Parameters
    ----------
    idle_ms
        For each source that stream time depends on, after how long a silence it is not waited for.
    time
        What stream time was before.

    Attributes
    ----------
    returns
        How often each source was idle and came back behind stream time.
    """

    def __init__(self, idle_ms: Mapping[str, int], time: int | None = None) -> None:
        self._idle_ms = dict(idle_ms)
        self._latest: dict[tuple[int, str], SourceTime] = {}
        self._counts_when_idle: dict[tuple[int, str], int] = {}
        self._warnings: list[str] = []
        self.returns: Counter[str] = Counter()
        self.time = time

    def take(self, task: int, sources: Iterable[SourceTime]) -> None:
        """Take what a task says of its sources."""
        for source in sources:
            key = (task, source.source)
            self._latest[key] = source
            if self._idle(source):
                self._counts_when_idle[key] = source.count
            elif source.count > self._counts_when_idle.get(key, source.count):
                # Not before: silence begins anew after a break of the engine, too.
                del self._counts_when_idle[key]
                self._returned(source)

    def _returned(self, source: SourceTime) -> None:
        """Count a source that is back and behind stream time; say so, but not again and again."""
        # By now it may have caught up, and what it brought first was late all the same.
        first = source.latest if source.back is None else source.back
        if self.time is None or first is None or first >= self.time:
            return
        self.returns[source.source] += 1
        count = self.returns[source.source]
        if count in (1, 10, 100, 1000):
            times = "" if count == 1 else f", for the {count}th time"
            behind = f"{(self.time - first) / 1000:,.1f} s"
            self._warnings.append(
                f"{source.source} was idle and is back{times}: what it brings is {behind} behind "
                "stream time, and late where the retention is shorter; a longer idle=... waits"
            )

    def warnings(self) -> list[str]:
        """Return what people should know, once."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def end(self, task: int, sources: Iterable[SourceTime] = ()) -> None:
        """Take note that a task's sources have ended, and how far they came, if it says so."""
        self.take(task, sources)
        for key, source in list(self._latest.items()):
            if key[0] == task:
                self._latest[key] = msgspec.structs.replace(source, silent_ms=0, ended=True)

    def counts(self, task: int) -> dict[str, int]:
        """Return how many records each source of a task had brought in."""
        return {name: s.count for (n, name), s in self._latest.items() if n == task}

    def advance(self) -> int | None:
        """Return stream time now."""
        time = self._smallest()
        if time is not None and (self.time is None or time > self.time):
            self.time = time
        return self.time

    def _smallest(self) -> int | None:
        sources = [s for (_, name), s in self._latest.items() if name in self._idle_ms]
        going = [s for s in sources if not s.ended]
        counting = [s for s in going if not self._idle(s)] or going
        times = [s.latest for s in counting or sources]
        known = [time for time in times if time is not None]
        if not going:
            return max(known, default=None)
        return min(known) if len(known) == len(times) else None

    def _idle(self, source: SourceTime) -> bool:
        """Return whether a source was asked for long and had nothing to give."""
        limit = self._idle_ms.get(source.source)
        return limit is not None and not source.ended and source.silent_ms >= limit
