"""The watchdog: says that a process is alive, and when its thread is in one call for too long.

A user's function that waits for a server, or never returns, stops its task, and the task cannot say
so itself. A second thread looks now and then whether the loop has gone on; if not, it tells the
driver in which operator, with which record and at which line the task is.
"""

import os
import sys
import threading
from types import TracebackType
from typing import Self

import zmq

from floodway.engine.control import Beat, Warned, to_frame
from floodway.engine.datastream.runner import Runner
from floodway.engine.datastream.whereabouts import whereabouts
from floodway.engine.transport.sockets import Network, connect_to


class Watchdog:
    """Watches the thread that made it."""

    def __init__(self, network: Network, driver: str, runner: Runner, limit_s: float) -> None:
        self._network, self._driver = network, driver
        self._runner = runner
        self._limit = limit_s
        self._thread_id = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="floodway-watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        context = zmq.Context()
        way = connect_to(context, self._network, self._driver)
        seen, stuck_s, step_s = -1, 0.0, min(self._limit / 2, 1.0)
        told = False
        while not self._stop.wait(step_s):
            beat = Beat(self._runner.number, self._runner.launch, os.getpid())
            way.send(self._network.loose(to_frame(beat)))
            turns = self._runner.beat
            if turns != seen:
                seen, stuck_s, told = turns, 0.0, False
                continue
            stuck_s += step_s
            if stuck_s >= self._limit and not told:
                told = True
                stuck = Warned(self._runner.number, self._describe(stuck_s))
                way.send(self._network.loose(to_frame(stuck)))
        way.close(0)
        context.term()

    def _describe(self, stuck_s: float) -> str:
        runner = self._runner
        where = f"task {runner.index} of {runner.stage} has been in one call for {stuck_s:.0f} s"
        frame = sys._current_frames().get(self._thread_id)
        place = "" if frame is None else f": {whereabouts(frame)}"
        return f"{where}{place}"
