"""Generators of events on a clock of their own."""

from typing import Any

from floodway.demo.sending.generating import Generator
from floodway.demo.sending.lines import Lines
from floodway.demo.sending.queueing import Queue
from floodway.demo.sending.schedules import Schedule
from tests.demo.sending.lines import T0


class Clock:
    """Time as a test wants it."""

    def __init__(self) -> None:
        self.lines = Lines([b"%d,\x00" % number for number in range(100)])
        self.queue = Queue(self.lines)
        self.began: dict[str, Any] = {"began_us": 0, "began_ms": T0}

    def generator(self, schedule: Schedule, seconds: float) -> Generator:
        return Generator(schedule, seconds, self.queue, **self.began)

    def empty(self) -> None:
        """Let everything leave the queue."""
        while blocks := self.queue.front(7):
            self.queue.gone(sum(map(len, blocks)))
