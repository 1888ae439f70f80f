"""Micro-batches without Spark: blocks are cut, and pieces processed, in this process.

Everything is as on Spark but for where it is done: blocks and results are files, the remote half of
every task is an object of its own that knows only what is in them.
"""

import random
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from floodway.engine.control import Made, Offer, Paradigm
from floodway.engine.datastream.task import Task
from floodway.engine.opstream.batches import Batches
from floodway.engine.opstream.blocks import Cut
from floodway.engine.opstream.remote import Remote, decode_context
from floodway.plan import Plan

PIECES = 2
"""Into so many pieces a block is cut, if it has enough units."""

TICK_US = 10_000_000
"""So much time passes whenever somebody looks at the clock: no batch waits for others."""


class MicroBatches:
    """Processes what tasks offer, and switches their paradigm.

    Parameters
    ----------
    paradigm
        ``operation`` for all tasks at all times, or ``switching``.
    seed
        For when to switch.
    """

    def __init__(self, plan: Plan, paradigm: str, *, seed: int = 0) -> None:
        self._plan = plan
        self._random = random.Random(seed) if paradigm == "switching" else None
        self._folder = Path(tempfile.mkdtemp(prefix="floodway-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._offers: deque[Offer] = deque()
        self._remotes: dict[tuple[int, tuple[str, ...]], Remote] = {}
        self._now = self._made = self._adopted = 0

    def tick(self) -> int:
        """Let time pass; return what the clock shows in microseconds."""
        self._now += TICK_US
        return self._now

    def adopt(self, task: Task) -> None:
        """Let a task collect, from the beginning."""
        self._adopted += 1
        folder = self._folder / str(self._adopted)
        batches = Batches(task, self._offers.append, _ignore, folder, self.tick)
        if self._random is None:
            batches.switch("operation")

    def switch_at_random(self, task: Task) -> None:
        """Perhaps switch a task's paradigm."""
        if self._random is not None and task.batches is not None and self._random.random() < 0.3:
            other: Paradigm = "data" if task.batches.wanted == "operation" else "operation"
            task.batches.switch(other)

    def run(self, tasks: Sequence[Task]) -> bool:
        """Process one offer; return whether there was one."""
        if not self._offers:
            return False
        offer = self._offers.popleft()
        task = tasks[offer.task]
        results = [self._piece(task, offer, start, stop) for start, stop in pieces(offer.cuts)]
        if task.batches is not None:
            task.batches.made(Made(offer.attempt, offer.batch, results))
        return True

    def _piece(self, task: Task, offer: Offer, start: int, stop: int) -> str:
        without = tuple(decode_context(offer.context).without)
        remote = self._remotes.get((task.number, without))
        if remote is None:
            remote = Remote(self._plan, task.stage, task.index, without)
            self._remotes[task.number, without] = remote
        self._made += 1
        path = self._folder / f"{self._made}.result"
        path.write_bytes(remote.run(offer.path, start, stop, offer.context))
        return str(path)


def pieces(cuts: Sequence[Cut]) -> list[tuple[int, int]]:
    """Cut a block into pieces; return where each starts and ends."""
    last = len(cuts) - 1
    chosen = sorted({cuts[last * step // PIECES][0] for step in range(PIECES + 1)})
    return list(pairwise(chosen))


def _ignore(paradigm: Paradigm, pause_us: int) -> None: ...
