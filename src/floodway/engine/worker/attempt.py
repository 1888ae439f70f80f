"""An attempt: a task and what belongs to it, from one beginning to the next loss.

When another task is lost, all that come after it begin anew, each in its own process. What is left
of the former attempt is closed, and nothing of it is used again.
"""

from collections import deque
from collections.abc import Callable

from floodway.engine.control.messages import Drain, Message, PauseReading, Pulse, Start, Switched
from floodway.engine.datastream.chosen import MakePolicy
from floodway.engine.datastream.epochs import Epochs
from floodway.engine.datastream.form import Form
from floodway.engine.datastream.reading import Sources
from floodway.engine.datastream.reporting import Reporter
from floodway.engine.datastream.settings import Settings
from floodway.engine.datastream.task import Positions, Task
from floodway.engine.datastream.writing import Sinks
from floodway.engine.opstream.batches import Batches
from floodway.engine.worker.pace import Pace
from floodway.engine.worker.surroundings import Surroundings
from floodway.model.tuning import Paradigm
from floodway.plan.stages import Plan, Stage


class Attempt:
    """A task and all that belongs to one attempt of it.

    Parameters
    ----------
    plan, stage, index
        Which task of which plan.
    start
        What the driver has said of the attempt.
    tell, warn
        Hand a message to the driver, and tell people what they should know.
    policy
        Makes what chooses among frames that wait.

    Attributes
    ----------
    form
        The form in which the task works now: that of its paradigm.
    ending
        How to read no more, once the marks are made that are overdue.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        index: int,
        start: Start,
        around: Surroundings,
        settings: Settings,
        *,
        tell: Callable[[Message], None],
        warn: Callable[[str], None],
        policy: MakePolicy,
    ) -> None:
        self.vault = around.vault if start.recovers else None
        self.task = task = Task(
            plan,
            stage,
            index,
            around.post.send,
            window=settings.input_cache,
            attempts=start.attempts,
            sampling=settings.metrics,
            policy=policy,
            on_commit=None if self.vault is None else self._end_epoch,
        )
        self.form: Form = task
        now = task.inbox.now = around.now()
        self.reporter = Reporter(task, now, again=around.post.sent_again)
        self.pace = Pace()
        self.sources = Sources(task, around.post, warn, around.now)
        self.sinks = Sinks(task, self.reporter, around.now, warn)
        self.attempts = list(start.attempts)
        self.marks = deque(start.marks)
        self._last_mark = start.marks[-1].epoch if start.marks else start.epoch
        self.ending: PauseReading | Drain | None = None
        self.counts = start.counts
        self.batches = Batches(
            task,
            tell,
            lambda paradigm, pause: tell(Switched(task.number, task.attempt, paradigm, pause)),
            around.scratch / f"blocks-{task.number}-{task.attempt}",
            around.now,
            sources=self.sources,
            most_bytes=settings.block_bytes,
        )
        self.epochs: Epochs | None = None
        if self.vault is not None:
            self.epochs = Epochs(
                task,
                self.sources,
                self.sinks,
                self.vault,
                settings,
                scratch=around.scratch,
                storing=around.aside("store"),
                applying=around.aside("apply"),
                post=around.post.send,
                tell=tell,
                epoch=start.epoch,
            )

    def _end_epoch(self, epoch: int, positions: Positions | None) -> None:
        assert self.epochs is not None
        self.epochs.end_epoch(epoch, positions)

    def switch(self, paradigm: Paradigm) -> None:
        """Work in a paradigm from now on; back in `data`, when what was collected is merged."""
        self.batches.switch(paradigm)
        self.form = self.batches.form

    def turn(self, now: int) -> None:
        """Let batches go on by themselves, and the task change its form when they are done."""
        self.batches.turn(now)
        self.form = self.batches.form

    def expect(self, pulse: Pulse) -> None:
        """Make a mark when it is its turn, once: the pulse may be said twice."""
        if pulse.epoch > self._last_mark:
            self._last_mark = pulse.epoch
            self.marks.append(pulse)

    def close(self, *, stopped: bool = False) -> None:
        """Let go of everything; what is done aside is finished first.

        In a flow that is `stopped`, and cannot go on later, sinks show what they have.
        """
        self.batches.close()
        if self.epochs is not None:
            self.epochs.close()
            if stopped:
                self.sinks.show_rest(self.epochs.last + 1)
        self.sources.close()
        self.sinks.close()
