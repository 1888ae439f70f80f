"""The coordinator: who is there, when all may start, what time it is, when all is over.

A pure state machine: messages and the time go in, messages for tasks come out.

Stream time is the smallest, over all source tasks that are neither ended nor idle, of the latest
event time each has brought. At every pulse the sources are asked; when all have answered, all are
told to make a mark with that time. So the mark of a number carries the same time everywhere.
"""

from typing import Literal

from floodway.core import errors
from floodway.core.errors import EngineError, FloodwayError
from floodway.core.place import Place
from floodway.engine.control import (
    Ask,
    Drain,
    Ended,
    Failed,
    Go,
    Hello,
    InputEnded,
    Message,
    Progress,
    Pulse,
    Ready,
    SourceTime,
    Start,
    Stop,
    Warned,
)
from floodway.engine.datastream.task import Numbering
from floodway.plan.stages import Plan

State = Literal["gathering", "opening", "running", "draining", "stopping", "ended", "failed"]

Action = tuple[int, Message]
"""A message, and the number of the task it is for."""


class Coordinator:
    """Leads the tasks of a plan through their lives."""

    def __init__(self, plan: Plan, *, pulse_ms: int = 100) -> None:
        self._numbering = Numbering(plan)
        self._pulse_ms = pulse_ms
        self._idle_ms = {s.name: s.idle_ms for stage in plan.stages for s in stage.sources}
        self._asked = {
            self._numbering.number(stage.name, index)
            for stage in plan.stages
            if stage.sources
            for index in range(stage.dop)
        }
        self._names = {
            self._numbering.number(stage.name, index): (stage.name, index)
            for stage in plan.stages
            for index in range(stage.dop)
        }
        self.state: State = "gathering"
        self.failure: FloodwayError | None = None
        self.warnings: list[str] = []
        self._held_back = frozenset(self._idle_ms) - plan.preloaded if plan.preloaded else None
        self._first = sorted(plan.preloaded)
        self._loading = {
            (self._numbering.number(receiver.name, index), exchange.number)
            for exchange in plan.exchanges
            if exchange.number in plan.fed_by(plan.preloaded)
            for receiver in (plan.stage(exchange.receiver),)
            for index in range(receiver.dop)
        }
        self._hellos: dict[int, Hello] = {}
        self._ready: set[int] = set()
        self._ended: set[int] = set()
        self._epoch = 0
        self._question = 0
        self._answers: dict[int, list[SourceTime]] = {}
        self._latest: dict[tuple[int, str], SourceTime] = {}
        self._next_pulse = 0
        self.stream_time: int | None = None

    @property
    def over(self) -> bool:
        """Whether there is nothing left to lead."""
        return self.state in ("ended", "failed")

    @property
    def missing(self) -> list[tuple[str, int]]:
        """The tasks that have not said hello."""
        return [name for number, name in self._names.items() if number not in self._hellos]

    @property
    def epoch(self) -> int:
        """The number of the last mark."""
        return self._epoch

    def take(self, message: Message, now_ms: int) -> list[Action]:
        """Take a message of a task; return what to tell whom."""
        match message:
            case Hello(task, _, _, _):
                self._hellos[task] = message
                if self.state == "gathering" and len(self._hellos) == self._numbering.count:
                    return self._start()
            case Ready(task):
                self._ready.add(task)
                if self.state == "opening" and len(self._ready) == self._numbering.count:
                    self.state = "running"
                    self._next_pulse = now_ms + self._pulse_ms
                    return self._go()
            case InputEnded(task, exchange):
                self._loading.discard((task, exchange))
                if not self._loading and self._held_back:
                    return self._go()
            case Progress(task, number, sources):
                return self._progress(task, number, sources, now_ms)
            case Ended(task):
                return self._one_ended(task, now_ms)
            case Warned(_, text):
                self.warnings.append(text)
            case Failed():
                return self._fail(_error_of(message))
            case _:
                pass
        return []

    def _start(self) -> list[Action]:
        self.state = "opening"
        addresses = [self._hellos[number].address for number in range(self._numbering.count)]
        return [(number, Start(addresses)) for number in self._names]

    def _go(self) -> list[Action]:
        """Let sources read: those of preloaded tables, and when these are complete the others."""
        if self._first:
            sources, self._first = self._first, []
        else:
            sources = sorted(self._held_back if self._held_back is not None else self._idle_ms)
            self._held_back = frozenset()
        return [(number, Go(sources)) for number in self._names if number not in self._ended]

    def tick(self, now_ms: int) -> list[Action]:
        """Let time pass: ask the sources when a pulse is due."""
        if self.state not in ("running", "draining") or now_ms < self._next_pulse:
            return []
        if self._question and not (self._asked - self._ended) <= self._answers.keys():
            return []  # somebody has not answered the last question yet
        self._next_pulse = now_ms + self._pulse_ms
        self._question += 1
        self._answers = {}
        return [(number, Ask(self._question)) for number in sorted(self._asked - self._ended)]

    def _progress(
        self, task: int, number: int, sources: list[SourceTime], now_ms: int
    ) -> list[Action]:
        if number != self._question:
            return []
        self._answers[task] = sources
        for source in sources:
            self._latest[task, source.source] = source
        return self._pulse(now_ms)

    def _pulse(self, now_ms: int) -> list[Action]:
        alive = self._asked - self._ended
        if not alive or not alive <= self._answers.keys():
            return []
        self._epoch += 1
        time = self._time()
        if time is not None and (self.stream_time is None or time > self.stream_time):
            self.stream_time = time
        pulse = Pulse(self._epoch, self.stream_time, now_ms)
        return [(number, pulse) for number in sorted(alive)]

    def _time(self) -> int | None:
        waiting = [
            source
            for source in self._latest.values()
            if not source.ended and not self._idle(source)
        ]
        if waiting:
            known = [source.latest for source in waiting if source.latest is not None]
            return min(known) if len(known) == len(waiting) else None
        times = [source.latest for source in self._latest.values() if source.latest is not None]
        return max(times, default=None)

    def _idle(self, source: SourceTime) -> bool:
        """Return whether a source has been silent for long, and not because it has to wait."""
        waits = self._held_back is not None and source.source in self._held_back
        return not waits and source.silent_ms >= self._idle_ms[source.source]

    def _one_ended(self, task: int, now_ms: int) -> list[Action]:
        self._ended.add(task)
        for key, source in list(self._latest.items()):
            if key[0] == task:
                self._latest[key] = SourceTime(source.source, source.latest, 0, ended=True)
        if len(self._ended) == self._numbering.count and self.state != "failed":
            self.state = "ended"
            return []
        return self._pulse(now_ms) if self._question and task in self._asked else []

    def drain(self) -> list[Action]:
        """Let the sources read no more, and everything else come to its end."""
        if self.state in ("gathering", "opening"):
            return self.stop()
        if self.state != "running":
            return []
        self.state = "draining"
        return [(number, Drain()) for number in sorted(self._asked - self._ended)]

    def stop(self) -> list[Action]:
        """Stop all tasks now."""
        if self.over:
            return []
        self.state = "stopping"
        return self._stop_all()

    def lost(self, stage: str, reason: str) -> list[Action]:
        """Take note that a stage's job is over although its tasks have not ended."""
        if self.over or self.state == "stopping":
            return []
        names = [n for n, (s, _) in self._names.items() if s == stage and n not in self._ended]
        if not names:
            return []
        return self._fail(
            EngineError(
                f"a task of the stage {stage} was lost: {reason}",
                remedy="see the log for what killed it (memory is the usual cause); start again",
            )
        )

    def _fail(self, error: FloodwayError) -> list[Action]:
        if self.failure is None:
            self.failure = error
        self.state = "failed"
        return self._stop_all()

    def fail(self, error: FloodwayError) -> list[Action]:
        """Stop everything because of an error."""
        return [] if self.over else self._fail(error)

    def _stop_all(self) -> list[Action]:
        there = self._hellos.keys() - self._ended
        return [(number, Stop()) for number in sorted(there)]

    def address(self, task: int) -> str | None:
        """Return where a task listens, once it has said hello."""
        hello = self._hellos.get(task)
        return None if hello is None else hello.address

    @property
    def processes(self) -> list[tuple[str, int]]:
        """Host and process of every task that has said hello."""
        return [(hello.host, hello.pid) for hello in self._hellos.values()]


def _error_of(message: Failed) -> FloodwayError:
    kind = getattr(errors, message.kind, EngineError)
    if not (isinstance(kind, type) and issubclass(kind, FloodwayError)):
        kind = EngineError
    place = Place(message.file, message.line or 0) if message.file else None
    error: FloodwayError = kind(
        message.problem, remedy=message.remedy, operator=message.operator, place=place
    )
    return error
