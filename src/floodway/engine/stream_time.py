"""Stream time: the smallest, over all source tasks, of the latest event time each has brought.

Sources that have ended do not count, nor those that have been silent for long, unless all are.
"""

from collections.abc import Collection, Iterable, Mapping

from floodway.engine.control import SourceTime


class StreamTime:
    """Keeps how far every source of every task is.

    Parameters
    ----------
    idle_ms
        For each source after how long a silence it is not waited for.
    time
        What stream time was before.
    """

    def __init__(self, idle_ms: Mapping[str, int], time: int | None = None) -> None:
        self._idle_ms = dict(idle_ms)
        self._latest: dict[tuple[int, str], SourceTime] = {}
        self.time = time

    def take(self, task: int, sources: Iterable[SourceTime]) -> None:
        """Take what a task says of its sources."""
        for source in sources:
            self._latest[task, source.source] = source

    def end(self, task: int) -> None:
        """Take note that a task's sources have ended."""
        for key, source in list(self._latest.items()):
            if key[0] == task:
                self._latest[key] = SourceTime(source.source, source.latest, 0, ended=True)

    def counts(self, task: int) -> dict[str, int]:
        """Return how many records each source of a task had brought in."""
        return {name: s.count for (n, name), s in self._latest.items() if n == task}

    def advance(self, waiting: Collection[str]) -> int | None:
        """Return stream time now; sources in `waiting` may not read yet, and are not idle."""
        time = self._smallest(waiting)
        if time is not None and (self.time is None or time > self.time):
            self.time = time
        return self.time

    def _smallest(self, waiting: Collection[str]) -> int | None:
        active = [
            source
            for source in self._latest.values()
            if not source.ended and not self._idle(source, waiting)
        ]
        if active:
            known = [source.latest for source in active if source.latest is not None]
            return min(known) if len(known) == len(active) else None
        times = [source.latest for source in self._latest.values() if source.latest is not None]
        return max(times, default=None)

    def _idle(self, source: SourceTime, waiting: Collection[str]) -> bool:
        """Return whether a source has been silent for long, and not because it has to wait."""
        return source.source not in waiting and source.silent_ms >= self._idle_ms[source.source]
