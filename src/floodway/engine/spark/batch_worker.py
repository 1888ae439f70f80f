"""What a Spark task of a micro-batch does: pieces of blocks in, files with results out.

Spark keeps its Python processes between jobs, and they keep here what is dear to make: the plan,
and the remote halves. So what Spark ships with a job is small and always the same: where to find
the plan. What this job is about is in a file, its *order*, whose name comes as a local property.
"""

import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from floodway.engine.host.failpoints import reach
from floodway.engine.opstream.blocks import write_file
from floodway.engine.opstream.remote import Remotes
from floodway.engine.spark.shipping import unpack
from floodway.engine.worker.calls import whereabouts
from floodway.engine.worker.watchdog import turns_for_others

ORDER = "floodway.order"
"""The local property that names the file with a job's order."""

PART = ".part"
"""Ends the name of a file that is not complete."""

PROBLEM = ".problem"
"""Ends the name of a file that says why there is no result."""

STUCK = ".stuck"
"""Ends the name of a file that says where a task is that has been at work for long."""

STUCK_S = 55.0
"""After so long at work a task says where it is: shortly before the driver warns of its job."""

KEPT = 4
"""A process keeps the plans of so many flows."""

NICE = 5
"""How far micro-batches stand back behind others for a core."""

MEET_S, ALONE_S = 1.0, 0.2
"""How long processes that get ready wait for each other, in all and for the next one to come."""


class Errand(msgspec.Struct, array_like=True):
    """A piece to be processed, for the task of a stage; and where its result goes."""

    stage: str
    index: int
    block: str
    start: int
    stop: int
    context: bytes
    result: str


class Order(msgspec.Struct, array_like=True):
    """What each task of a job does; `ready` are stages for which all should get ready."""

    errands: list[list[Errand]]
    ready: list[str] = []


class Shipped(msgspec.Struct, array_like=True):
    """A plan, packed, and where its modules are found."""

    plan: bytes
    paths: list[str]


encode = msgspec.msgpack.Encoder().encode
_ORDER = msgspec.msgpack.Decoder(Order)
_SHIPPED = msgspec.msgpack.Decoder(Shipped)


class BatchWork(msgspec.Struct, frozen=True):
    """The function that Spark runs in every task of a micro-batch; `shipped` is the plan's file."""

    shipped: str

    def __call__(self, partition: int, nothing: Iterable[int]) -> Iterator[int]:
        """Do what the order has for a task; nothing goes back through Spark."""
        from pyspark import TaskContext

        list(nothing)  # a process that has not read its input to the end is not kept
        around = TaskContext.get()
        path = around.getLocalProperty(ORDER) if around is not None else None
        if path is not None:
            work(self.shipped, path, partition)
            _settle()
        return iter(())


def work(shipped: str, path: str, partition: int, stuck_s: float = STUCK_S) -> None:
    """Do the part of an order that is for one task."""
    order = _ORDER.decode(Path(path).read_bytes())
    note = Path(f"{path}.{partition}{STUCK}")
    with _rarely_collecting(), _giving_way(), _saying_where(note, stuck_s):
        workshop = _workshop(shipped)
        for errand in order.errands[partition]:
            workshop.run(errand, path)
        if order.ready:
            workshop.get_ready(order.ready)
            meet(path, partition, len(order.errands))


class Workshop:
    """A plan, and the remote halves that were made of it."""

    def __init__(self, shipped: str) -> None:
        found = _SHIPPED.decode(Path(shipped).read_bytes())
        # What the driver can import, its tasks on the same host can.
        sys.path.extend(path for path in found.paths if path not in sys.path)
        self._plan = unpack(found.plan)
        self._remotes = Remotes(self._plan)

    def get_ready(self, stages: Iterable[str]) -> None:
        """Make the remote halves of all tasks of some stages."""
        for name in stages:
            for index in range(self._plan.stage(name).dop):
                self._remotes.get(name, index)

    def run(self, errand: Errand, order: str) -> None:
        """Process a piece; if that cannot be done, leave a note instead of a result.

        Whoever reads the result finds all of it or nothing. An error does not end the Spark task:
        the job would end with it, and the pieces of others with the job.
        """
        part = Path(f"{errand.result}.{os.getpid()}{PART}")  # Spark may have somebody else try, too
        try:
            done = self._remotes.run(
                errand.stage,
                errand.index,
                errand.block,
                errand.start,
                errand.stop,
                errand.context,
            )
            write_file(part, [done])
            reach("job.before_result")
            if os.path.exists(order):
                part.rename(errand.result)
            else:  # the job is over, and this one was given up
                part.unlink()
        except Exception as error:
            self._remotes.clear()
            text = "".join(traceback.format_exception_only(error)).strip()
            with suppress(OSError):  # a full disk is full for notes, too
                part.unlink(missing_ok=True)
                Path(errand.result + PROBLEM).write_text(text)


def meet(path: str, partition: int, count: int) -> None:
    """Wait until all tasks of a job are here: then each has a process of its own.

    There may be fewer slots than tasks. Those that are left out come when the others have gone.
    """
    Path(f"{path}.{partition}").touch()
    began = came = time.monotonic()
    seen = 0
    while (now := time.monotonic()) - began < MEET_S and now - came < ALONE_S:
        here = sum(os.path.exists(f"{path}.{other}") for other in range(count))
        if here == count:
            return
        if here > seen:
            seen, came = here, now
        time.sleep(0.002)


_workshops: dict[str, Workshop] = {}


def _workshop(shipped: str) -> Workshop:
    """Return the workshop of a flow; the least used is closed if there are too many."""
    workshop = _workshops.pop(shipped, None)
    if workshop is None:
        workshop = Workshop(shipped)
        gc.unfreeze()  # what belonged to former ones may go
    _workshops[shipped] = workshop
    while len(_workshops) > KEPT:
        del _workshops[next(iter(_workshops))]
    return workshop


def _settle() -> None:
    """Let what is there now never be looked at again by the garbage collector.

    Spark has it look at everything after each task, and the next one has to wait: that took longer
    than all the rest of an empty job.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def _rarely_collecting() -> Iterator[None]:
    """Look for garbage cycles less often: records are many, young and free of cycles."""
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def _giving_way() -> Iterator[None]:
    """Let others go first: a moment is nothing to a micro-batch, and much to a single record.

    Where cores are few, stages that work record by record would wait for one otherwise. Not every
    user may become important again; a process that stays as it is still does its work.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(before, NICE))
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


@contextmanager
def _saying_where(note: Path, after_s: float) -> Iterator[None]:
    """Note after a while at which operator, record and line this is: it may never go on."""
    working = threading.get_ident()

    def say() -> None:
        with suppress(OSError):  # a full disk: the work itself goes on, or says so
            note.write_text(whereabouts(sys._current_frames()[working]))

    timer = threading.Timer(after_s, say)
    timer.start()
    try:
        with turns_for_others(min(after_s / 2, 1.0)):
            yield
    finally:
        timer.cancel()
        timer.join()
        note.unlink(missing_ok=True)
