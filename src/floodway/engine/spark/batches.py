"""Micro-batches on Spark: what tasks offer is processed, one job for all that wait.

While jobs run, the next offers gather; so jobs grow with the load, and the price of a job with
nothing in it, tens of milliseconds, is paid less often. Two are with Spark at a time: slots would
stand still otherwise, between one and the next, for a seventh of the time. Everything that makes a
job dear is kept between jobs: the threads, the RDDs, the Python processes, and in those the plan.
The driver handles paths only; blocks and results are files.
"""

import logging
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from glob import glob
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from floodway.engine.control.messages import Made, Offer
from floodway.engine.opstream.blocks import write_file
from floodway.engine.spark.batch_jobs import Jobs, SparkJobs
from floodway.engine.spark.batch_worker import PART, PROBLEM, STUCK, Errand, Order, Shipped, encode
from floodway.engine.spark.split import Piece, share
from floodway.engine.transport.numbering import Numbering
from floodway.plan.stages import Plan

log = logging.getLogger(__name__)

TRIES = 3
"""So often a piece is processed before its owner is told that it cannot be done."""

RETRY_S = 0.2
"""How long to wait before pieces are processed again that were not killed but had a problem."""

READY_S = 20.0
"""Processes that got ready longer ago may be gone: Spark ends those that had no work lately."""

STOP_SECONDS = 5.0
"""How long the job that runs has to end when all is over."""

SLOW_S = 60.0
"""A job that takes longer is worth a warning."""

OVERLAP = 2
"""So many jobs are with Spark at a time: a slot that is done with one goes on with the next."""

KEPT = 4
"""The results of so many blocks of a task are remembered, to be removed if nobody fetches them."""

TellTask = Callable[[int, Made], None]
"""Tells a task, by its number, what was made of its block."""


class WaitingBlock(NamedTuple):
    """An offer, and when it came."""

    offer: Offer
    since_us: int


class Operations:
    """Processes what the tasks of a flow offer.

    Parameters
    ----------
    folder
        Where orders and results go; it need not be durable, and belongs to the flow.
    now
        Says the time, in seconds.

    Attributes
    ----------
    jobs, again
        How many jobs have run, and how many of them because something was lost in another.
    """

    def __init__(
        self,
        plan: Plan,
        jobs: Jobs,
        folder: Path,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._spark, self._folder = plan, jobs, folder
        self._now = now
        self._names = Numbering(plan).names
        self._queue: SimpleQueue[WaitingBlock | str | None] = SimpleQueue()
        self._made: deque[tuple[int, Made]] = deque()
        self._attempts: dict[int, int] = {}
        self._told: dict[int, deque[Made]] = {}
        self._offered: dict[int, deque[int]] = {}
        self._closing = threading.Event()
        self._since: dict[int, float] = {}
        self._threads: list[threading.Thread] = []
        self._ready: dict[str, float] = {}
        self._numbers = count(1)  # one thread at a time gets the next
        self._counting = threading.Lock()
        self.jobs = self.again = 0
        self.descriptor, self._bell = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._bell, False)

    @classmethod
    def on_spark(
        cls,
        plan: Plan,
        shipped: bytes,
        context: Any,
        folder: Path,
        *,
        slots: Callable[[], int],
        alive: Callable[[], bool],
    ) -> "Operations":
        """Return operations that run on a Spark; `shipped` is the plan, packed."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"plan-{uuid.uuid4().hex}"
        paths = [path or os.getcwd() for path in sys.path]
        write_file(file, [encode(Shipped(shipped, paths))])
        return cls(plan, SparkJobs(context, file, slots, alive), folder)

    # ------------------------------------------------------------------ the driver's thread

    def offer(self, offer: Offer) -> None:
        """Have a block processed, with all others that wait."""
        if self._closing.is_set() or offer.attempt < self._attempts.get(offer.task, 0):
            return
        self.follow({offer.task: offer.attempt})
        offered = self._offered.setdefault(offer.task, deque(maxlen=KEPT))
        if offer.batch in offered:
            return  # said twice; its file may have another block by now
        offered.append(offer.batch)
        self._put(WaitingBlock(offer, _now_us()))

    def follow(self, attempts: Mapping[int, int]) -> None:
        """Forget what was offered in attempts that are over; nobody wants it any more."""
        for task, attempt in attempts.items():
            if attempt > self._attempts.get(task, 0):
                self._attempts[task] = attempt
                for made in self._told.pop(task, ()):
                    _remove(made.results)
                self._offered.pop(task, None)

    def prepare(self, stage: str) -> None:
        """Let the processes that will do a stage's work get ready for it; does not wait."""
        now = time.monotonic()
        if now - self._ready.get(stage, -READY_S) >= READY_S and not self._closing.is_set():
            self._ready[stage] = now
            self._put(stage)

    def _put(self, item: WaitingBlock | str) -> None:
        self._queue.put(item)
        while len(self._threads) < OVERLAP:
            self._threads.append(self._spark.start(self._run, "floodway-batches"))

    def turn(self, tell: TellTask) -> None:
        """Tell the tasks what is done."""
        with suppress(BlockingIOError):
            os.read(self.descriptor, 4096)
        while self._made:
            task, made = self._made.popleft()
            if made.attempt < self._attempts[task]:
                _remove(made.results)
                continue
            self._told.setdefault(task, deque(maxlen=KEPT)).append(made)
            tell(task, made)
        for thread, since in list(self._since.items()):
            if self._now() - since > SLOW_S:
                self._since.pop(thread, None)
                log.warning("a micro-batch has been on Spark for %.0f s%s", SLOW_S, self._where())

    def _where(self) -> str:
        """Return where tasks are that have been at work for long, as far as they could say so."""
        said = []
        for note in sorted(glob(f"{self._folder}/*{STUCK}")):
            with suppress(OSError):  # it goes on just now
                said.append(Path(note).read_text())
        return f": {'; '.join(said)}" if said else ""

    def close(self, seconds: float = STOP_SECONDS) -> None:
        """Let go of everything; a job that runs is cancelled. Whoever waits is told nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        deadline = time.monotonic() + seconds
        self._queue.put(None)
        for thread in self._threads:
            thread.join(0.1)
            while thread.is_alive() and time.monotonic() < deadline:
                self._spark.cancel()  # again and again: a job may be about to begin
                thread.join(0.2)
        if any(thread.is_alive() for thread in self._threads):
            log.warning("a micro-batch could not be stopped")
            return  # with what the thread may still use
        self._made.clear()
        for descriptor in (self.descriptor, self._bell):
            os.close(descriptor)

    # ------------------------------------------------------------------ the threads of the jobs

    def _run(self) -> None:
        begun = False
        while not self._closing.is_set():
            items = self._gathered()
            if self._closing.is_set():
                self._queue.put(None)  # for the next one who waits
                return
            try:
                if not begun:
                    self._spark.begin()
                    begun = True
                self._do(items)
            except Exception as error:
                log.exception("micro-batches failed")
                self._give_up(items, f"{type(error).__name__}: {error}")
            with suppress(BlockingIOError):
                os.write(self._bell, b"!")

    def _gathered(self) -> list[WaitingBlock | str | None]:
        """Return what waits, at least one thing."""
        items = [self._queue.get()]
        with suppress(Empty):
            while True:
                items.append(self._queue.get_nowait())
        return items

    def _do(self, items: Sequence[WaitingBlock | str | None]) -> None:
        waiting = [item for item in items if isinstance(item, WaitingBlock) and self._counts(item)]
        stages = [item for item in items if isinstance(item, str)]
        if waiting:
            self._since[threading.get_ident()] = self._now()
            self._process(waiting)
            self._since.pop(threading.get_ident(), None)
        if stages:
            # Tasks that have ended have left their slots, so jobs may well run side by side.
            self._order(Order([[] for _ in range(self._spark.slots * OVERLAP)], stages))

    def _counts(self, waiting: WaitingBlock) -> bool:
        """Return whether an offer is of its task's latest attempt."""
        offer = waiting.offer
        return offer.attempt == self._attempts.get(offer.task)

    def _give_up(self, items: Sequence[WaitingBlock | str | None], problem: str) -> None:
        for item in items:
            if isinstance(item, WaitingBlock):
                made = Made(item.offer.attempt, item.offer.batch, [], problem=problem)
                self._made.append((item.offer.task, made))

    def _process(self, waiting: Sequence[WaitingBlock]) -> None:
        """Process blocks, and say what came of them."""
        began = _now_us()
        shares = share([item.offer for item in waiting], self._spark.slots)
        results: dict[Piece, str] = {}
        problem = self._try_often(waiting, shares, results)
        if self._closing.is_set():
            return
        ran_us = _now_us() - began
        of_offer: list[list[Piece]] = [[] for _ in waiting]
        for piece in (piece for pieces in shares for piece in pieces):
            of_offer[piece.offer].append(piece)
        for (offer, since), pieces in zip(waiting, of_offer, strict=True):
            lost = any(piece not in results for piece in pieces)
            paths = [results[piece] for piece in pieces if piece in results]
            if lost:
                _remove(paths)
            made = Made(
                offer.attempt,
                offer.batch,
                [] if lost else paths,
                began - since,
                ran_us,
                problem if lost else "",
            )
            self._made.append((offer.task, made))

    def _try_often(
        self, waiting: Sequence[WaitingBlock], shares: list[list[Piece]], results: dict[Piece, str]
    ) -> str:
        """Run jobs until every piece has a result; return what the problem is if there is one."""
        problem = ""
        for number in range(TRIES):
            if number:
                with self._counting:
                    self.again += 1
            problem, noted = self._try(waiting, shares, results)
            shares = [
                [p for p in pieces if p not in results and self._counts(waiting[p.offer])]
                for pieces in shares
            ]
            shares = [pieces for pieces in shares if pieces]
            if not shares or self._closing.is_set() or not self._spark.alive:
                break
            log.warning("a micro-batch on Spark failed: %s", problem)
            if noted:
                self._closing.wait(RETRY_S)
        return problem

    def _try(
        self, waiting: Sequence[WaitingBlock], shares: list[list[Piece]], results: dict[Piece, str]
    ) -> tuple[str, bool]:
        """Run one job; return what the problem is, and whether that was found in a note."""
        number = next(self._numbers)
        errands: list[list[Errand]] = []
        expected: dict[Piece, str] = {}
        for pieces in shares:
            errands.append([])
            for piece in pieces:
                # Never twice the same name: a process that Spark has given up may live on.
                path = f"{self._folder}/{number}-{len(expected)}.result"
                expected[piece] = path
                errands[-1].append(self._errand(waiting[piece.offer].offer, piece, path))
        problem = self._order(Order(errands)) or ""
        noted = False
        for piece, path in expected.items():
            if os.path.exists(path):
                results[piece] = path
            else:
                with suppress(OSError):
                    problem, noted = Path(path + PROBLEM).read_text(), True
                _remove([path + PROBLEM, *glob(f"{path}.*{PART}")])
        return problem or "it left no result", noted

    def _errand(self, offer: Offer, piece: Piece, result: str) -> Errand:
        stage, index = self._names[offer.task]
        return Errand(stage, index, offer.path, piece.start, piece.stop, offer.context, result)

    def _order(self, order: Order) -> str | None:
        """Run the job of an order; return why it failed, if it did."""
        with self._counting:
            self.jobs += 1
        path = self._folder / f"{next(self._numbers)}.order"
        write_file(path, [encode(order)])
        try:
            return self._spark.run(path, len(order.errands))
        finally:
            path.unlink(missing_ok=True)
            if order.ready:
                _remove([f"{path}.{number}" for number in range(len(order.errands))])


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


def _now_us() -> int:
    return time.monotonic_ns() // 1000
