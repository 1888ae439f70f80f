"""The watchdog: says that a process is alive, and when its thread is in one call for too long.

A user's function that waits for a server, or never returns, stops its task, and the task cannot say
so itself. A second thread looks now and then whether the loop has gone on; if not, it tells the
driver in which operator, with which record and at which line the task is.

A call into C may keep the interpreter to itself, as Python's `re` does, and with it the second
thread. Such calls look for signals now and then, or they could not be interrupted with Ctrl-C. So
a timer that counts time on the processor, and nothing while the task waits, sends one now and then,
whose handler lets the other threads have a turn.

The second thread also gives back memory that was freed, now and then.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Self

import zmq

from floodway.engine.control.messages import Beat, Stuck, to_frame
from floodway.engine.transport.sockets import Network, connect_to
from floodway.engine.worker.calls import whereabouts
from floodway.engine.worker.giving_back import EVERY_S, give_back
from floodway.engine.worker.runner import Runner


class Watchdog:
    """Watches the thread that made it."""

    def __init__(self, network: Network, driver: str, runner: Runner, limit_s: float) -> None:
        self._network, self._driver = network, driver
        self._runner = runner
        self._limit = limit_s
        self._thread_id = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="floodway-watchdog", daemon=True)
        self._turns = ExitStack()

    def __enter__(self) -> Self:
        self._thread.start()
        self._turns.enter_context(turns_for_others(self._step_s))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._turns.close()
        self._stop.set()
        self._thread.join()

    @property
    def _step_s(self) -> float:
        return min(self._limit / 2, 1.0)

    def _watch(self) -> None:
        context = zmq.Context()
        way = connect_to(context, self._network, self._driver)
        seen, stuck_s, step_s = -1, 0.0, self._step_s
        told, kept_s = False, 0.0
        while not self._stop.wait(step_s):
            kept_s += step_s
            if kept_s >= EVERY_S:
                kept_s = 0.0
                give_back()
            beat = Beat(self._runner.number, self._runner.launch, os.getpid())
            way.send(self._network.loose(to_frame(beat)))
            turns = self._runner.beat
            stuck_s = stuck_s + step_s if turns == seen else 0.0
            seen = turns
            if told != (stuck_s >= self._limit):
                told = not told
                where = self._describe(stuck_s) if told else ""
                stuck = Stuck(self._runner.number, self._runner.launch, where)
                way.send(self._network.loose(to_frame(stuck)))
        way.close(0)
        context.term()

    def _describe(self, stuck_s: float) -> str:
        where = f"has been in one call for {stuck_s:.0f} s"
        frame = sys._current_frames().get(self._thread_id)
        place = "" if frame is None else f": {whereabouts(frame)}"
        return f"{where}{place}"


@contextmanager
def turns_for_others(every_s: float) -> Iterator[None]:
    """Let other threads have a turn after so much time on the processor, also during calls into C.

    Only a process's main thread can do that; in others, and where somebody has a use of their own
    for this signal, nothing is done.
    """
    there = signal.getsignal(signal.SIGVTALRM)
    if threading.current_thread() is not threading.main_thread() or there is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGVTALRM, _give_way)
    # Libraries may not expect to be interrupted in what they ask of the system.
    signal.siginterrupt(signal.SIGVTALRM, False)  # noqa: FBT003
    signal.setitimer(signal.ITIMER_VIRTUAL, every_s, every_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)


def _give_way(number: int, frame: FrameType | None) -> None:
    time.sleep(0)
