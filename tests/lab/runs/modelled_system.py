"""A system and its data engine on a clock of their own: no process, and nobody waits.

What a run makes of what it hears can so be known to the last event, however busy the machine is.
Generator, queue and judge are those of data engines.
"""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from floodway_lab.systems.kit import Results, Task
from floodway_lab.systems.loop_steps import STEPS

from floodway.demo.sending.engine import TELL_US, Ending, Orders, Progress
from floodway.demo.sending.queueing import Queue

BEGAN_MS = 1_600_000_000_000
BUFFERED = 100
"""So many events a system takes before it has done with those that it has."""


class ModelledEngine:
    """A data engine that has said everything by the time that anybody asks."""

    over = True

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.history: list[Progress] = []
        self.ending: Ending | None = None

    def wait(self, seconds: float) -> Ending | None:
        return self.ending


class ModelledEngines:
    """Stands for `DataEngines`."""

    def __init__(self, orders: Sequence[Orders]) -> None:
        self.engines = [ModelledEngine(each) for each in orders]
        self.ports = [0] * len(self.engines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class _System:
    """Takes what its buffer has room for, does so many events a second, tells results later."""

    def __init__(self, task: Task) -> None:
        self._capacity: float = task.options.get("capacity", 1e9)
        self._delay_us = task.options.get("delay_ms", 0) * 1000
        self._room = 10**9 if task.options.get("fault") == "greedy" else BUFFERED
        self._step, self._results = STEPS[task.case](1), Results(task)
        self._inside, self._credit = deque[bytes](), 0.0

    def take(self, queue: Queue) -> None:
        while len(self._inside) < self._room and (blocks := queue.front(1)):
            room = self._room - len(self._inside)
            lines = bytes(blocks[0]).splitlines(keepends=True)[:room]
            self._inside += lines
            queue.gone(sum(map(len, lines)))

    def work(self, now_ms: int) -> None:
        """Do what can be done in a millisecond; what nobody wanted done is gone."""
        self._credit = min(self._credit, 1) + self._capacity / 1000
        some = [self._inside.popleft() for _ in range(min(int(self._credit), len(self._inside)))]
        self._credit -= len(some)
        if some:
            self._hand_over(self._step(b"".join(some)), now_ms)

    def end(self, now_ms: int) -> None:
        while self._inside:
            now_ms += 1
            self.work(now_ms)
        self._hand_over(self._step.end(), now_ms)
        self._results.close()

    def _hand_over(self, rows: Any, now_ms: int) -> None:
        at_us = (BEGAN_MS + now_ms) * 1000 + self._delay_us
        (self._results.tally if self._step.tallied else self._results.put)(rows, at_us)


def play(_: object, task: Task, folder: Path, engines: ModelledEngines, seconds: float) -> str:
    """Stands for `_run_system`: the system has ended, and nothing went wrong."""
    (engine,) = engines.engines
    orders = engine.orders
    lines = orders.supply.make()
    queue, system = Queue(lines), _System(task)
    generator = orders.generator.make(
        orders.schedule.make(), orders.seconds, queue, began_us=0, began_ms=BEGAN_MS
    )
    now_ms = 0
    while not generator.over or (queue.size and generator.drain_s):
        generator.turn(now_ms * 1000)
        system.take(queue)
        system.work(now_ms)
        if now_ms * 1000 % TELL_US == 0:
            engine.history.append(Progress(BEGAN_MS + now_ms, queue.put_in, queue.taken))
        now_ms += 1
    system.end(now_ms)
    Path(str(orders.log)).write_bytes(msgspec.msgpack.encode(lines.sent))
    engine.ending = Ending(BEGAN_MS, queue.put_in, queue.taken, not queue.size, generator.noted)
    return ""


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs be played on a clock of their own."""
    monkeypatch.setattr("floodway_lab.runs.running.DataEngines", ModelledEngines)
    monkeypatch.setattr("floodway_lab.runs.running._run_system", play)
