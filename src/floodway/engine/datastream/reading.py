"""The sources of a task at work: readers, their pauses, and how much they may bring in."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from floodway.connectors.backoff import Backoff
from floodway.connectors.base import Reader, SourceConnector, Split, Unavailable
from floodway.core.errors import FloodwayError
from floodway.engine.control.messages import SourceTime
from floodway.engine.datastream.aside import Waker
from floodway.engine.datastream.form import Form
from floodway.engine.datastream.silence import Silence
from floodway.engine.datastream.task import Task
from floodway.engine.program.opening import opened
from floodway.operators.source import Source

FULL_READS = 50
"""A source that has nothing to read only once in so many times has always more."""

READ = 1000
"""About so many records are read from a source at a time, at most."""


class OpenSource:
    """A source and its reader, at work.

    Attributes
    ----------
    count
        How many records it has brought in.
    idle
        Whether it has been silent for as long as stream time waits, and has brought nothing since.
    returning
        Whether what it brought after that has not come in yet.
    back
        How far it was when that had come in.
    """

    def __init__(
        self, source: Source, reader: Reader, now: int, *, replayable: bool, count: int
    ) -> None:
        self.name = source.name
        self.replayable = replayable
        self.count = count
        self.place = source.place
        self.reader = reader
        self.may_read = False
        self.ended = False
        self.silence = Silence()
        self.idle_us = source.idle_ms * 1000
        self.idle = self.returning = self.warned = False
        self.back: int | None = None
        self.watched: int | None = None
        self.next_us = 0
        self.backoff = Backoff()
        self.away: str | None = None
        self.per_second: float | None = None
        self.tokens = 0.0
        self.full_reads = self.empty_reads = 0
        self.refilled_us = now

    def behind(self) -> bool:
        """Return whether more waits than can be seen or, if that is not known, was always more."""
        full = self.reader.lag().full
        return self.full_reads > FULL_READS * self.empty_reads if full is None else full

    def wait_us(self, now: int) -> int | None:
        """Return how long to wait before it is asked again; None if something else says when.

        What should have been asked meanwhile, while the task was at something else, is asked at
        once.
        """
        if self.ended:
            return None
        if self.next_us > now:
            return self.next_us - now
        if self.per_second is not None:
            return 1000
        return None if self.watched is not None or not self.may_read else 0

    def allowed(self, now: int, most: int) -> int:
        """Return how many records may be read now, of `most`."""
        if self.per_second is None:
            return most
        self.tokens += (now - self.refilled_us) / 1e6 * self.per_second
        self.tokens = min(self.tokens, max(self.per_second * 0.1, 1.0))
        self.refilled_us = now
        return min(int(self.tokens), most)


class Sources:
    """All sources of one task.

    Parameters
    ----------
    task
        Takes what they bring.
    waker
        Wakes the task when there is something to read.
    warn
        Tells people what they should know: a source is away, or back.
    steady
        A clock in microseconds that is never set. Pauses and silence are measured by it.

    Attributes
    ----------
    at_once
        No more than so many records are read at a time.
    """

    def __init__(
        self,
        task: Task,
        waker: Waker,
        warn: Callable[[str], None],
        steady: Callable[[], int],
    ) -> None:
        self._task = task
        self._waker = waker
        self._warn = warn
        self._steady = steady
        self._open: list[OpenSource] = []
        self._ignored = False
        self.at_once = READ

    def open(
        self,
        split: Split,
        positions: Mapping[str, Any] | None = None,
        *,
        with_epochs: bool = False,
    ) -> None:
        """Open the task's part of every source, where its reader was or at the beginning.

        With `with_epochs` readers are told what is committed, by `committed`.
        """
        for operator in self._task.stage.sources:
            connector = operator.connector
            if isinstance(connector, SourceConnector):
                position, count = (positions or {}).get(operator.name, (None, 0))
                with opened(operator):
                    reader = connector.open(split, position)
                    if with_epochs:
                        reader.commits_with_epochs()
                source = OpenSource(
                    operator, reader, self._steady(), replayable=connector.replayable, count=count
                )
                source.ended = self._task.program.sources[operator.name].closed
                self._open.append(source)

    def where(self) -> dict[str, Any]:
        """Return where every reader is."""
        return {s.name: s.reader.position() for s in self._open}

    def positions(self, where: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return where every reader is, or was, and how many records it has brought in."""
        where = self.where() if where is None else where
        return {s.name: (where[s.name], s.count) for s in self._open}

    def behind(self) -> bool:
        """Return whether a source (almost) always had more to read since this was last asked."""
        found = [source.behind() for source in self._open if not source.ended]
        for source in self._open:
            source.full_reads = source.empty_reads = 0
        return any(found)

    def have_brought(self, name: str, count: int) -> None:
        """Take note that so many records, which were read before, have come in."""
        for source in self._open:
            if source.name == name:
                source.count += count
                self._note_back(source)

    def committed(self, positions: Mapping[str, Any]) -> None:
        """Tell the readers that what they read up to there is committed."""
        for source in self._open:
            if source.name in positions and not source.ended:
                source.reader.commit(positions[source.name][0])

    def reached(self, counts: Mapping[str, int]) -> bool:
        """Return whether every source has brought in so many records again, as far as it can."""
        return all(
            source.ended or not source.replayable or source.count >= counts.get(source.name, 0)
            for source in self._open
        )

    def pause(self) -> None:
        """Read no more for now."""
        for source in self._open:
            source.may_read = False

    def __iter__(self) -> Iterator[OpenSource]:
        return iter(self._open)

    def __bool__(self) -> bool:
        return bool(self._open)

    def allow(self, names: Iterable[str]) -> None:
        """Let some sources read."""
        for source in self._open:
            source.may_read |= source.name in names

    def throttle(self, name: str, per_second: float | None) -> None:
        """Let a source bring in at most so many records a second."""
        for source in self._open:
            if source.name == name:
                source.per_second = per_second

    def read(self, now: int, into: Form | None = None) -> bool:
        """Read what there is; return whether there was something.

        It is brought into the task, in the form in which that works: its record form if not said.
        """
        into = into or self._task
        busy = self._ignored = False
        steady = self._steady()
        for source in self._open:
            if source.may_read and not source.ended and source.next_us <= steady:
                busy |= self._read(source, now, steady, into)
            else:
                self._watch(source, None)
        return busy

    def ignore(self) -> None:
        """Do not wake up for what is not to be read now: it would be there again and again."""
        self._ignored = bool(self._open)
        for source in self._open:
            self._watch(source, None)

    def _read(self, source: OpenSource, now: int, steady: int, into: Form) -> bool:
        limit = source.allowed(steady, min(READ, self.at_once))
        if source.idle:  # few, so that how far they are says where what comes now begins
            limit = min(limit, 1)
        if limit < 1:
            self._watch(source, None)
            return False
        try:
            raw = source.reader.poll(limit)
        except Unavailable as error:
            source.silence.end()  # it may well have something to give
            source.next_us = steady + int(source.backoff.next_ms() * 1000)
            if source.away is None:
                self._warn(f"{source.name} is away: {error.reason}; trying again")
            source.away = error.reason
            return False
        except FloodwayError as error:
            raise error.at(source.name, source.place) from None
        if source.away is not None:
            self._warn(f"{source.name} is back")
            source.away = None
            source.backoff.reset()
        if raw is None:
            self._end(source, now, into, final=True)
            return True
        if not raw:
            self._had_nothing(source, steady)
            return False
        source.silence.end()
        source.returning, source.idle = source.returning or source.idle, False
        source.full_reads += 1
        count = into.feed_raw(source.name, raw, now, keyed=source.reader.keyed)
        if into.at_once:  # what is collected is counted when it is merged
            source.count += count
            self._note_back(source)
        if source.per_second is not None:
            source.tokens -= count
        return True

    def _note_back(self, source: OpenSource) -> None:
        """Take note of how far a source is that was idle and has brought something."""
        if source.returning:
            source.returning, source.back = False, self._task.latest(source.name)

    def _warn_of_times(self, source: OpenSource) -> None:
        """Say, once, that times are thrown away since nobody has said that there are any."""
        if source.warned or not self._task.intake(source.name).ignored:
            return
        source.warned = True
        self._warn(
            f"{source.name}: its reader gives times, and they are ignored: the table is taken for "
            "static, since its connector says that it gives none; let the connector say "
            "timed = True, or pass static=False, or static=True if that is meant"
        )

    def _had_nothing(self, source: OpenSource, steady: int) -> None:
        source.empty_reads += 1
        self._watch(source, source.reader.fileno())
        pause_us = int(source.reader.idle_ms * 1000) if source.watched is None else 0
        source.next_us = steady + pause_us
        if source.reader.there and not source.reader.amid:
            source.silence.nothing(steady, pause_us)
            source.idle |= source.silence.us >= source.idle_us
        else:
            source.silence.end()

    def _watch(self, source: OpenSource, descriptor: int | None) -> None:
        """Wake up when a source's descriptor is readable; it may change with every connection."""
        if descriptor == source.watched:
            return
        if source.watched is not None:
            self._waker.unwatch(source.watched)
        if descriptor is not None:
            self._waker.watch(descriptor)
        source.watched = descriptor

    def _end(self, source: OpenSource, now: int, into: Form, *, final: bool) -> None:
        source.ended = True
        self._watch(source, None)
        into.end_source(source.name, now, final=final)

    def drain(self, now: int, into: Form) -> None:
        """Read no more, although the sources have not ended."""
        for source in self._open:
            if not source.ended:
                self._end(source, now, into, final=False)

    def due(self, now: int) -> list[int]:
        """Return when there may be something to read again, of sources that cannot wake us."""
        if self._ignored:
            return [now]
        steady = self._steady()
        return [now + wait for s in self._open if (wait := s.wait_us(steady)) is not None]

    def times(self) -> list[SourceTime]:
        """Return how far each source is."""
        for source in self._open:
            self._warn_of_times(source)
        return [
            SourceTime(
                source.name,
                self._task.latest(source.name),
                source.silence.us // 1000,
                # Not when all is read: what was collected has not come in before it is merged.
                self._task.program.sources[source.name].closed,
                source.count,
                source.back,
            )
            for source in self._open
        ]

    def close(self) -> None:
        """Close all readers."""
        for source in self._open:
            self._watch(source, None)
            source.reader.close()
        self._open.clear()
