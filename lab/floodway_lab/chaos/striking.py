"""How faults are made: signals to processes, and what else `Means` can do."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import psutil

from floodway.testing.servers import Server
from floodway_lab.chaos.clocks import MACHINE, set_clock
from floodway_lab.chaos.kinds import Kind
from floodway_lab.chaos.means import Means
from floodway_lab.chaos.schedule import Fault
from floodway_lab.chaos.watch import Strike, Watch
from floodway_lab.chaos.words import TaskProcess

SILENT_S = 5.0
"""Where processes are stopped, nothing may be heard of a task for so long."""

STOPPED_S = 1.5 * SILENT_S
"""For so long a process is stopped."""

AWAY_S = 1.0
"""So long after it was killed a server is started again."""

HOUR_NS = 3_600_000_000_000
DAEMON = "floodway.engine.spark.daemon"

Found = TypeVar("Found")


class _Missed(Exception):
    """Nobody was hit, for this reason."""


class Striker:
    """Lets faults happen to the flow that is watched.

    Attributes
    ----------
    missed
        Why the last attempt hit nobody.
    """

    def __init__(self, watch: Watch, means: Means) -> None:
        self._watch, self._means = watch, means
        self._later: list[threading.Timer] = []
        self.missed = ""

    def strike(self, fault: Fault) -> bool:
        """Let a fault happen; return False if there is nobody now whom it could befall."""
        how: Callable[[Fault], Strike] = {
            "task": self._task,
            "driver": self._driver,
            "reset": self._reset,
            "stop": self._stop,
            "daemon": self._daemon,
            "executor": self._executor,
            "broker": lambda _: self._server("broker", self._means.kafka),
            "redis": lambda _: self._server("redis", self._means.redis),
            "clock": self._clock,
        }[fault.kind]
        try:
            how(fault)
        except (_Missed, ProcessLookupError, psutil.NoSuchProcess) as error:
            self.missed = str(error)
            return False
        return True

    def close(self) -> None:
        """Undo nothing more."""
        for timer in self._later:
            timer.cancel()

    # ------------------------------------------------------------------ processes

    def _task(self, fault: Fault) -> Strike:
        task = self._victim(fault)
        name = f"{task[0]}/{task[1]}"
        act = lambda: os.kill(task[2], signal.SIGKILL)  # noqa: E731
        return self._watch.struck("task", name, act, lost=[task])

    def _victim(self, fault: Fault) -> TaskProcess:
        there = self._watch.alive()
        of_stage = [task for task in there if task[0] == fault.stage]
        return _drawn(of_stage or there, fault.draw, "no task is there")

    def _driver(self, fault: Fault) -> Strike:
        return self._watch.struck("driver", "driver", self._watch.process.kill)

    def _stop(self, fault: Fault) -> Strike:
        """Stop a process for longer than anybody waits for a task; one in four is the driver."""
        if fault.draw < 0.25:
            name, pid = "driver", self._watch.process.pid
        else:
            stage, index, pid = self._victim(fault)
            name = f"{stage}/{index}"
        act = lambda: os.kill(pid, signal.SIGSTOP)  # noqa: E731
        strike = self._watch.struck("stop", name, act, lasts=True)
        self._after(STOPPED_S, lambda: self._continue(strike, pid))
        return strike

    def _continue(self, strike: Strike, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        self._watch.over(strike)

    def _daemon(self, fault: Fault) -> Strike:
        """Kill the process that has forked a task: with it go all that it has forked."""
        stage, index, pid = self._victim(fault)
        daemon = psutil.Process(pid).parent()
        if daemon is None or DAEMON not in " ".join(daemon.cmdline()):
            raise _Missed(f"{stage}/{index}, process {pid}, is a child of {daemon}")
        return self._watch.struck("daemon", str(daemon.pid), daemon.kill, lost=self._below(daemon))

    def _executor(self, fault: Fault) -> Strike:
        cluster = self._means.cluster
        assert cluster is not None
        at_work = [executor for executor in cluster.executors() if self._below(executor)]
        executor = _drawn(at_work, fault.draw, "no executor has a task")
        lost = self._below(executor)
        return self._watch.struck("executor", str(executor.pid), executor.kill, lost=lost)

    def _below(self, process: psutil.Process) -> list[TaskProcess]:
        """Return the tasks that a process has started, at first or second hand."""
        pids = {child.pid for child in process.children(recursive=True)}
        return [task for task in self._watch.alive() if task[2] in pids]

    # ------------------------------------------------------------------ the rest

    def _reset(self, fault: Fault) -> Strike:
        relay = self._means.relay
        assert relay is not None
        before = relay.resets

        def act() -> None:
            if not relay.reset():
                raise _Missed("there is no connection")

        strike = self._watch.struck("reset", "connections", act)
        strike.many = relay.resets - before
        return strike

    def _server(self, kind: Kind, server: Server | None) -> Strike:
        assert server is not None
        if not self._means.ready(server):
            raise _Missed(f"{server.name} is not back yet")
        strike = self._watch.struck(kind, server.name, server.kill, lasts=True)
        self._after(AWAY_S, lambda: self._revive(strike, server))
        return strike

    def _revive(self, strike: Strike, server: Server) -> None:
        self._means.revive(server).add_done_callback(
            lambda revival: self._revived(strike, server, revival)
        )

    def _revived(self, strike: Strike, server: Server, revival: "Future[None]") -> None:
        if revival.cancelled():
            return  # the run is over
        error = revival.exception()
        if error is None:
            self._watch.over(strike)
        else:
            self._watch.give_up(f"{server.name} did not start again: {error}")

    def _clock(self, fault: Fault) -> Strike:
        """Set the clock of a task, of the driver, or of all, an hour forward or back."""
        folder, task = self._means.clocks, self._victim(fault)
        assert folder is not None
        by = HOUR_NS if fault.draw * 10 % 2 < 1 else -HOUR_NS
        drawn = int(fault.draw * 100) % 3
        names = [
            [str(task[2])],
            [str(self._watch.process.pid)],
            [MACHINE, *(str(p.pid) for p in self._watch.process.left())],
        ][drawn]
        there = [name for name in names if name != MACHINE and (folder / name).exists()]
        if not there:
            raise _Missed(f"nobody reads the clocks of {', '.join(names)}")
        if MACHINE in names:
            there.append(MACHINE)
        what = (f"{task[0]}/{task[1]}", "driver", "machine")[drawn]
        return self._watch.struck("clock", what, lambda: _set(folder, there, by))

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()
        self._later.append(timer)


def _set(folder: Path, names: list[str], by_ns: int) -> None:
    for name in names:
        set_clock(folder, name, by_ns)


def _drawn(found: list[Found], draw: float, nobody: str) -> Found:
    if not found:
        raise _Missed(nobody)
    return found[int(draw * len(found))]
