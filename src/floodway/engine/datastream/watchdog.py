"""The watchdog: says that a process is alive, and when its thread is in one call for too long.

A user's function that waits for a server, or never returns, stops its task, and the task cannot say
so itself. A second thread looks now and then whether the loop has gone on; if not, it tells the
driver in which call, at which line, the task is.
"""

import os
import sys
import sysconfig
import threading
import traceback
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import zmq

import floodway
from floodway.engine.control import Beat, Warned, to_frame
from floodway.engine.datastream.runner import Runner
from floodway.engine.transport.sockets import Network, connect_to

_NOT_THE_USERS = (
    "<floodway",
    "<frozen",
    str(Path(floodway.__file__).parent),
    sysconfig.get_path("purelib"),
    sysconfig.get_path("stdlib"),
)
"""Where the code is that the user has not written: ours, libraries, Python."""


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
            way.send(to_frame(Beat(self._runner.number, self._runner.launch, os.getpid())))
            beat = self._runner.beat
            if beat != seen:
                seen, stuck_s, told = beat, 0.0, False
                continue
            stuck_s += step_s
            if stuck_s >= self._limit and not told:
                told = True
                way.send(to_frame(Warned(self._runner.number, self._describe(stuck_s))))
        way.close(0)
        context.term()

    def _describe(self, stuck_s: float) -> str:
        runner = self._runner
        where = f"task {runner.index} of {runner.stage} has been in one call for {stuck_s:.0f} s"
        frame = sys._current_frames().get(self._thread_id)
        place = "" if frame is None else f": {_innermost(frame)}"
        return f"{where}{place}"


def _innermost(frame: FrameType) -> str:
    """Return the innermost line of the user's code, or if there is none just the innermost."""
    calls = traceback.extract_stack(frame)
    own = [c for c in calls if not c.filename.startswith(_NOT_THE_USERS)]
    generated = any(c.filename.startswith("<floodway") for c in calls)
    call = own[-1] if own and generated else calls[-1]
    return f"{call.filename}:{call.lineno} in {call.name}"
