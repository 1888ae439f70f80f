"""Micro-batches without Spark: blocks are cut, and pieces processed, in this process.

Everything is as on Spark but for where it is done: blocks and results are files, the remote half of
every task is an object of its own that knows only what is in them.
"""

import random
import shutil
import tempfile
import weakref
from collections import deque
from pathlib import Path

from floodway.engine.control.messages import Made, Offer
from floodway.engine.datastream.form import Form
from floodway.engine.datastream.task import Task
from floodway.engine.opstream.batches import Batches
from floodway.engine.opstream.remote import Remotes
from floodway.engine.spark.split import Piece, share
from floodway.engine.transport.numbering import Numbering
from floodway.model.tuning import Paradigm
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
        self._random = random.Random(seed) if paradigm == "switching" else None
        self._folder = Path(tempfile.mkdtemp(prefix="floodway-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._offers: deque[Offer] = deque()
        self._processed = Processed(plan, self._folder)
        self._now = self._adopted = 0
        self._of: dict[int, Batches] = {}

    def tick(self) -> int:
        """Let time pass; return what the clock shows in microseconds."""
        self._now += TICK_US
        return self._now

    def adopt(self, task: Task) -> None:
        """Let a task collect, from the beginning; it may be another one of the same number."""
        self._adopted += 1
        folder = self._folder / str(self._adopted)
        batches = Batches(task, self._offers.append, _ignore, folder, self.tick)
        self._of[task.number] = batches
        if self._random is None:
            batches.switch("operation")

    def switch_at_random(self, task: Task) -> None:
        """Perhaps switch a task's paradigm."""
        if self._random is not None and self._random.random() < 0.3:
            batches = self._of[task.number]
            other: Paradigm = "data" if batches.wanted == "operation" else "operation"
            batches.switch(other)

    def form(self, task: Task) -> Form:
        """Return the form in which a task works now."""
        return self._of[task.number].form

    def turn(self, task: Task) -> None:
        """Let a task's batches go on as far as they can by themselves."""
        self._of[task.number].turn(self.tick())

    def run(self) -> bool:
        """Process one offer; return whether there was one."""
        if not self._offers:
            return False
        offer = self._offers.popleft()
        results = self._processed.results(offer)
        self._of[offer.task].made(Made(offer.attempt, offer.batch, results))
        return True


class Processed:
    """Processes offers in this process; results are files in a folder, as they are on Spark."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._names = Numbering(plan).names
        self._remotes = Remotes(plan)
        self._folder = folder
        self._made = 0

    def results(self, offer: Offer) -> list[str]:
        """Return the results of an offer's pieces, in order."""
        self._folder.mkdir(parents=True, exist_ok=True)
        shares = share([offer], PIECES, least=1)
        return [self._result(offer, piece) for pieces in shares for piece in pieces]

    def _result(self, offer: Offer, piece: Piece) -> str:
        stage, index = self._names[offer.task]
        done = self._remotes.run(stage, index, offer.path, piece.start, piece.stop, offer.context)
        self._made += 1
        path = self._folder / f"{self._made}.result"
        path.write_bytes(done)
        return str(path)


def _ignore(paradigm: Paradigm, pause_us: int) -> None: ...
