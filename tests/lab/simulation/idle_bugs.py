"""Bugs that take a source for idle which has more: nobody has asked it, or could have."""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from floodway_lab.simulation.idleness import Backlog, RemoteBacklog

from floodway.engine.control.messages import Ask, SourceTime
from floodway.engine.datastream.reading import OpenSource, Sources
from floodway.engine.datastream.silence import Silence
from floodway.engine.driver.pulses import Pulses
from floodway.engine.driver.stream_time import StreamTime
from floodway.engine.program.intake import Intake
from tests.lab.simulation.bugs import Patch, bug, original


@bug(Backlog())
def silence_is_the_time_since_the_last_record(patch: Patch) -> None:
    read, times = original(Sources, "_read"), original(Sources, "times")

    def noting(self: Any, source: OpenSource, now: int, steady: int) -> bool:
        busy: bool = read(self, source, now, steady)
        if busy:
            source.refilled_us = steady  # of no use otherwise where nothing is throttled
        return busy

    def since(self: Any) -> list[SourceTime]:
        now = self._steady()
        silent = {source.name: (now - source.refilled_us) // 1000 for source in self}
        return [msgspec.structs.replace(t, silent_ms=silent[t.source]) for t in times(self)]

    patch.setattr(Sources, "_read", noting)
    patch.setattr(Sources, "times", since)


@bug(RemoteBacklog())
def breaks_count_as_silence(patch: Patch) -> None:
    def nothing(self: Any, now: int, every_us: int) -> None:
        if self._asked_us is not None:
            self.us += now - self._asked_us
        self._asked_us = now

    patch.setattr(Silence, "nothing", nothing)


@bug(Backlog())
def a_source_that_nobody_may_read_is_silent(patch: Patch) -> None:
    ignore = original(Sources, "ignore")

    def and_count(self: Any) -> None:
        ignore(self)
        for source in self:
            source.silence.nothing(self._steady(), 0)

    patch.setattr(Sources, "ignore", and_count)


@bug(Backlog())
def a_source_of_a_successor_is_silent_until_it_brings_something_new(patch: Patch) -> None:
    ask, take = original(Pulses, "ask"), original(StreamTime, "take")

    def with_clock(self: Any, tasks: Collection[int], now_ms: int) -> Ask | None:
        self._time.now_ms = now_ms
        found: Ask | None = ask(self, tasks, now_ms)
        return found

    def by_counts(self: Any, task: int, sources: Iterable[SourceTime]) -> None:
        grown = self.__dict__.setdefault("grown", {})
        silent = []
        for source in sources:
            most, at = grown.get((task, source.source), (-1, 0))
            if source.count > most:
                most, at = grown[task, source.source] = source.count, self.now_ms
            silent.append(msgspec.structs.replace(source, silent_ms=self.now_ms - at))
        take(self, task, silent)

    patch.setattr(StreamTime, "now_ms", 0, raising=False)
    patch.setattr(Pulses, "ask", with_clock)
    patch.setattr(StreamTime, "take", by_counts)


@bug(RemoteBacklog())
def new_tasks_are_where_the_one_was_that_had_come_furthest(patch: Patch) -> None:
    patch.delattr(Intake, "adopt")
