"""What is known of a flow to which things happen: each fault, and when all was well again."""

import threading
import time
from collections.abc import Callable, Collection

import msgspec

from floodway_lab.chaos.kinds import Kind
from floodway_lab.chaos.processes import FlowProcess
from floodway_lab.chaos.words import TaskProcess, Word

RUNS = "running"
"""The state of a flow whose tasks all run."""


class Strike(msgspec.Struct):
    """A fault that has happened.

    Attributes
    ----------
    kind, what
        What it was, and whom it befell.
    at
        When, in seconds of the monotonic clock.
    calm
        Whether the flow ran, and was not just recovering from another fault.
    lost
        The tasks that are gone by it: other processes have to be there instead.
    over_at
        When it was over, for those that last: what was stopped goes on, what was killed is back.
    running_at
        When all tasks ran again, the new ones among them.
    committed_at
        When an epoch was committed after that.
    overtaken
        Whether the driver was killed before all tasks ran again.
    many
        How many were hit at once.
    """

    kind: Kind
    what: str
    at: float
    calm: bool
    lost: list[TaskProcess] = []
    over_at: float | None = None
    running_at: float | None = None
    committed_at: float | None = None
    overtaken: bool = False
    epoch: int = 0
    many: int = 1

    @property
    def settled(self) -> bool:
        """Whether the flow has gone on and committed since."""
        return self.committed_at is not None

    def hear(self, word: Word) -> None:
        """Take note of what the flow is doing."""
        if self.over_at is None or word.at < self.over_at or word.state != RUNS:
            return
        if self.running_at is None:
            if self.overtaken or self._replaced(word):
                self.running_at, self.epoch = word.at, word.committed
        elif self.committed_at is None and word.committed > self.epoch:
            self.committed_at = word.at

    def _replaced(self, word: Word) -> bool:
        there = {(stage, index): pid for stage, index, pid in word.tasks}
        return all(there.get((s, i)) not in (None, pid) for s, i, pid in self.lost)


class Watch:
    """Listens to what becomes of a flow; may be used from several threads.

    Attributes
    ----------
    strikes
        All faults, in their order.
    epochs
        All epochs that were committed.
    broken
        What the flow needs and will not have again, if there is anything: nobody waits for it then.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._process: FlowProcess | None = None
        self._word: Word | None = None
        self._former_recoveries = self._former_switches = 0
        self.strikes: list[Strike] = []
        self.epochs: set[int] = set()
        self.broken: str | None = None

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
    def process(self) -> FlowProcess:
        """The process that is listened to."""
        assert self._process is not None
        return self._process

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
        """Whether the flow has gone on and committed since everything that happened."""
        return self.state == RUNS and all(strike.settled for strike in self.strikes)

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so; return whether it is, and False at once if it cannot be."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                ended = self._process is not None and self._process.exit_code is not None
                if left <= 0 or ended or self.broken is not None:
                    return condition()
                self._changed.wait(min(left, 0.1))
        return True

    def alive(self) -> list[TaskProcess]:
        """Return the tasks whose processes were there when the flow last spoke, and are not hit."""
        hit = {task for strike in self.strikes for task in strike.lost}
        there = [] if self._word is None else self._word.tasks
        return [task for task in there if task not in hit]

    def struck(
        self,
        kind: Kind,
        what: str,
        act: Callable[[], object],
        *,
        lost: Collection[TaskProcess] = (),
        lasts: bool = False,
    ) -> Strike:
        """Let something happen, and take note of it; one that `lasts` is over when it is said so.

        Nobody is listened to meanwhile: what the flow says later, it says of the time after it. If
        `act` raises, nothing has happened.
        """
        with self._changed:
            calm = self.settled
            if kind == "driver":
                for strike in self.strikes:
                    strike.overtaken = strike.overtaken or strike.running_at is None
            at = time.monotonic()
            act()
            strike = Strike(kind, what, at, calm, list(lost), None if lasts else at)
            self.strikes.append(strike)
            return strike

    def give_up(self, why: str) -> None:
        """Take note that something is gone for good, and with it the flow."""
        with self._changed:
            self.broken = why
            self._changed.notify_all()

    def over(self, strike: Strike) -> None:
        """Take note that something that lasted is over."""
        with self._changed:
            strike.over_at = time.monotonic()
