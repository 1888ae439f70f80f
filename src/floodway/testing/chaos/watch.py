"""What is known of a flow whose processes are killed: each kill, and when all was well again."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from floodway.testing.chaos.processes import FlowProcess
from floodway.testing.chaos.schedule import Kill
from floodway.testing.chaos.words import Word

RUNS = "running"
"""The state of a flow whose tasks all run."""


class Strike(msgspec.Struct):
    """A kill that has happened.

    Attributes
    ----------
    stage
        The stage of the task; None for the driver.
    at
        When it was killed, in seconds of the monotonic clock.
    calm
        Whether the flow ran, and was not just recovering from another kill.
    running_at
        When all tasks ran again, the new one among them.
    committed_at
        When an epoch was committed after that.
    overtaken
        Whether the driver was killed before all tasks ran again.
    """

    stage: str | None
    index: int
    pid: int
    at: float
    calm: bool
    running_at: float | None = None
    committed_at: float | None = None
    overtaken: bool = False
    epoch: int = 0

    @property
    def settled(self) -> bool:
        """Whether the flow has gone on and committed since."""
        return self.committed_at is not None

    def hear(self, word: Word) -> None:
        """Take note of what the flow is doing."""
        if word.at < self.at or word.state != RUNS:
            return
        if self.running_at is None:
            if self.stage is None or self.overtaken or self._replaced(word):
                self.running_at, self.epoch = word.at, word.committed
        elif self.committed_at is None and word.committed > self.epoch:
            self.committed_at = word.at

    def _replaced(self, word: Word) -> bool:
        pids = [pid for *task, pid in word.tasks if task == [self.stage, self.index]]
        return bool(pids) and pids != [self.pid]


class Watch:
    """Kills, and listens to what becomes of it; may be used from several threads.

    Attributes
    ----------
    strikes
        All kills, in their order.
    epochs
        All epochs that were committed.
    recoveries
        How often tasks were replaced because one was lost.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._process: FlowProcess | None = None
        self._word: Word | None = None
        self._former_recoveries = self._former_switches = 0
        self.strikes: list[Strike] = []
        self.epochs: set[int] = set()

    def follow(self, process: FlowProcess) -> None:
        """Listen to another process from now on."""
        with self._changed:
            self._former_recoveries = self.recoveries
            self._former_switches = self.switches
            self._process, self._word = process, None

    def hear(self, process: FlowProcess, word: Word) -> None:
        """Take what the flow's process says."""
        with self._changed:
            if process is not self._process:
                return
            self._word = word
            if word.committed:
                self.epochs.add(word.committed)
            for strike in self.strikes:
                if not strike.settled:
                    strike.hear(word)
            self._changed.notify_all()

    @property
    def state(self) -> str:
        """What the flow does."""
        return self._word.state if self._word is not None else "starting"

    @property
    def error(self) -> str | None:
        """What made the flow fail."""
        return self._word.error if self._word is not None else None

    @property
    def committed(self) -> int:
        """The last committed epoch."""
        return max(self.epochs, default=0)

    @property
    def recoveries(self) -> int:
        """How often tasks were replaced because one was lost, of all drivers together."""
        return self._former_recoveries + (self._word.recoveries if self._word is not None else 0)

    @property
    def switches(self) -> int:
        """How often a stage was told to change its paradigm, by all drivers together."""
        return self._former_switches + (self._word.switches if self._word is not None else 0)

    @property
    def settled(self) -> bool:
        """Whether the flow has gone on and committed since every kill."""
        return self.state == RUNS and all(strike.settled for strike in self.strikes)

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so; return whether it is, and False at once if the flow ends."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                ended = self._process is not None and self._process.exit_code is not None
                if left <= 0 or ended:
                    return condition()
                self._changed.wait(min(left, 0.1))
        return True

    def strike(self, kill: Kill) -> bool:
        """Kill a task of a stage, or another one if none is there; return whether one was."""
        with self._changed:
            found = self._victim(kill)
            if found is None:
                return False
            stage, index, pid = found
            at = time.monotonic()
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
            self.strikes.append(Strike(stage, index, pid, at, self.settled))
            return True

    def strike_driver(self) -> None:
        """Kill the driver."""
        with self._changed:
            assert self._process is not None
            calm = self.settled
            for strike in self.strikes:
                strike.overtaken = strike.overtaken or strike.running_at is None
            at = self._process.kill()
            self.strikes.append(Strike(None, 0, 0, at, calm))

    def _victim(self, kill: Kill) -> tuple[str, int, int] | None:
        dead = {strike.pid for strike in self.strikes}
        there = [] if self._word is None else [t for t in self._word.tasks if t[2] not in dead]
        wanted = [task for task in there if task[0] == kill.stage] or there
        return _drawn(wanted, kill.draw)


def _drawn(tasks: Sequence[tuple[str, int, int]], draw: float) -> tuple[str, int, int] | None:
    return tasks[int(draw * len(tasks))] if tasks else None
