"""Processes: something that has an inbox, works turn by turn, is paused, and dies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from floodway.engine.checkpoint.vault import Vault
from floodway.engine.datastream.aside import Aside, Outcome, Work
from floodway.engine.host.clock import SteadyClock
from floodway.engine.worker.surroundings import Post
from floodway_lab.simulation.disk import Disk
from floodway_lab.simulation.network import Mailbox, Network
from floodway_lab.simulation.timeline import Timeline

MOST_IDLE_TURNS = 300
"""So often in a row a process may be busy without anything to show for it."""


class Died(BaseException):
    """The process that is at work was killed at a fail point."""


class World(Protocol):
    """What processes know of the simulation."""

    timeline: Timeline
    network: Network
    disk: Disk
    scratch: Path
    current: "Process | None"
    set_by: int

    def killed(self, process: "Process", reason: str) -> None:
        """Take note that a process was killed."""

    def fell(self, process: "Process") -> None:
        """Let happen what was to happen at the fail point that a process has reached."""

    def fail(self, problem: str) -> None:
        """Take note of something that should never have happened."""


class Process:
    """A process: alive, paused or dead.

    Attributes
    ----------
    name, run
        Its name, which no other has, and the number of the driver that it belongs to.
    alive, paused
        Whether it still is, and whether it is stopped for now.
    set_by
        By how many microseconds somebody has set its wall clock; that of others is another one.
    clock
        What it goes by.
    """

    def __init__(self, world: World, name: str, run: int) -> None:
        self.world, self.name, self.run = world, name, run
        self.alive, self.paused = True, False
        self._elapsed = 0
        self.set_by = world.set_by
        self.clock = SteadyClock(lambda: (self.time + self.set_by) * 1000, lambda: self.time * 1000)
        self.mailbox = Mailbox(world.network, self, self)
        self._due: int | None = None
        self._free_at = 0
        self._idle_turns = 0
        self._shown = (0, 0)
        self._resumed: list[Callable[[], None]] = []

    # ------------------------------------------------------------------ time

    @property
    def time(self) -> int:
        """What time it is for this process, which may be in the middle of something."""
        return self.world.timeline.now + self._elapsed

    def spend(self, microseconds: int) -> None:
        """Let time pass while the process is at work."""
        self._elapsed += microseconds

    def deliver(self, frame: bytes) -> None:
        """Take a frame into the inbox."""
        self.mailbox.frames.append(frame)
        self.wake(self.world.timeline.now)

    def wake(self, time: int) -> None:
        """Have the next turn at a time, or when the process is free."""
        time = max(time, self._free_at)
        if self._due is None or time < self._due:
            self._due = time
            self.world.timeline.at(time, lambda: self._turn_if(time))

    def _turn_if(self, time: int) -> None:
        if self._due == time and self.alive and not self.paused:
            self._due = None
            pause = self.within(self.turn)
            if pause is not None and self.alive:
                self._see_if_idle(pause)
                self.wake(self._free_at + int(pause * 1000))

    def within(self, work: Callable[[], Any]) -> Any:
        """Do something in the process's own thread; time passes, and it may die of it."""
        with self._at_work(self.world.timeline.between(20, 300)) as spent:
            try:
                return work()
            except Died:
                self.world.fell(self)
                return None
            finally:
                self._free_at = self.world.timeline.now + spent()

    def beside(self, work: Callable[[], Outcome]) -> tuple[Outcome | None, int]:
        """Do something in another thread; return what came of it, and how long it took."""
        with self._at_work(0) as spent:
            try:
                return work(), spent()
            except Died:
                self.world.fell(self)
                return None, 0

    @contextmanager
    def _at_work(self, first: int) -> Iterator[Callable[[], int]]:
        world = self.world
        former, world.current = world.current, self
        elapsed, self._elapsed = self._elapsed, first
        try:
            yield lambda: self._elapsed
        finally:
            world.current, self._elapsed = former, elapsed

    def turn(self) -> float | None:
        """Do what there is to do; return for how many milliseconds there is nothing more."""
        raise TypeError(f"{type(self).__name__} has no turns")  # pragma: no cover

    def _see_if_idle(self, pause: float) -> None:
        """Complain about a process that does nothing again and again."""
        shown = (self.mailbox.carried, self.world.disk.operations)
        if pause < 0.5 and shown == self._shown:
            self._idle_turns += 1
            if self._idle_turns > MOST_IDLE_TURNS:
                self.world.fail(f"{self.name} is busy with nothing")
        else:
            self._idle_turns = 0
        self._shown = shown

    # ------------------------------------------------------------------ faults

    def pause(self) -> None:
        """Stop the process, with all its threads, until it is resumed."""
        self.paused = True

    def when_running(self, action: Callable[[], None]) -> None:
        """Do something now, or when the process goes on."""
        if self.paused:
            self._resumed.append(action)
        else:
            action()

    def resume(self) -> None:
        """Let the process go on."""
        if self.alive and self.paused:
            self.paused = False
            waiting, self._resumed = self._resumed, []
            for action in waiting:
                action()
            self._due = None
            self.wake(self.world.timeline.now)

    def leave(self) -> None:
        """End the process in order."""
        if self.alive:
            self.alive = False
            self.mailbox.leave(self.world.timeline)
            self.world.timeline.note("left", self.name)

    def kill(self, reason: str) -> None:
        """End the process at once."""
        if self.alive:
            self.leave()
            self.mailbox.close()
            self.world.network.died(self.name)
            self.world.killed(self, reason)


class SimulatedAside:
    """Does work aside: it takes a while, and is lost if the process dies before."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._work: Work | None = None
        self._outcome: Outcome | None = None

    def begin(self, work: Work) -> None:
        """Begin a piece of work."""
        self._work = work
        timeline = self._process.world.timeline
        timeline.after(timeline.between(100, 8_000), lambda: self._when_running(work))

    def _when_running(self, work: Work) -> None:
        self._process.when_running(lambda: self._do(work))

    def _do(self, work: Work) -> None:
        if self._work is not work or not self._process.alive:
            return
        self._work = None
        outcome, spent = self._process.beside(lambda: _outcome(work))
        if outcome is not None:
            self._process.world.timeline.after(spent, lambda: self._end(outcome))

    def _end(self, outcome: Outcome) -> None:
        self._process.when_running(lambda: self._wake(outcome))

    def _wake(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._process.wake(self._process.world.timeline.now)

    def outcome(self) -> Outcome | None:
        """Return what came of it, or None if it is not done."""
        outcome, self._outcome = self._outcome, None
        return outcome

    def close(self) -> None:
        """Finish what was begun."""
        work, self._work = self._work, None
        if work is not None and self._process.alive:
            _, spent = self._process.beside(lambda: _outcome(work))
            self._process.spend(spent)
            if not self._process.alive:
                raise Died


def _outcome(work: Work) -> Outcome:
    try:
        return work(), None
    except Exception as error:  # the task's own thread judges it
        return None, error


class SimulatedSurroundings:
    """What a task finds around it."""

    def __init__(self, process: Process, scratch: Path) -> None:
        self.post: Post = process.mailbox
        self.vault: Vault | None = process.world.disk.vault(process)
        self.scratch = scratch
        self.now = process.clock.now
        self._process = process
        self.alone, self.sees = False, True

    def aside(self, name: str) -> Aside:
        """Return somebody who does work aside."""
        return SimulatedAside(self._process)

    def orphaned(self) -> bool:
        """Return whether the process that made this one is gone."""
        return self.alone
