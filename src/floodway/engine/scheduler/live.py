"""The central scheduler at work in a flow that runs: reports in, orders to the tasks out."""

from collections.abc import Callable

from floodway.engine.control import Paradigm, Switch, Switched, Tune
from floodway.engine.metrics.report import TaskReport
from floodway.engine.numbering import Numbering
from floodway.engine.scheduler.decisions import SetBatch
from floodway.engine.scheduler.loads import Pin, Topology
from floodway.engine.scheduler.observing import Observer
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import Settings
from floodway.engine.scheduler.story import Entry, Story
from floodway.plan.stages import Plan

OBSERVE_MS = 100
"""How often loads are looked at; tasks report as often."""

Wish = Callable[[Tune | Switch], None]
"""Tells all tasks, and later each that begins anew."""


class LiveScheduler:
    """Lets the scheduler see what tasks report, and carries out what it decides.

    Parameters
    ----------
    wish
        How orders reach the tasks.
    prepare
        Called with a stage that is about to be switched to micro-batches.
    write
        Takes each line of the story.
    """

    def __init__(
        self,
        plan: Plan,
        wish: Wish,
        *,
        prepare: Callable[[str], None],
        settings: Settings | None = None,
        write: Callable[[bytes], None] | None = None,
    ) -> None:
        self._numbering = Numbering(plan)
        self._dop = {stage.name: stage.dop for stage in plan.stages}
        self._wish, self._prepare = wish, prepare
        self.observer = Observer(plan)
        self.story = Story(write)
        self.scheduler = Scheduler(Topology.of(plan), settings, self.story)
        self._next_ms = 0
        self._told: dict[str, dict[int, int]] = {}
        self.paradigms: dict[str, Paradigm] = dict.fromkeys(self._dop, "data")

    def take(self, report: TaskReport) -> None:
        """Take what a task reports."""
        self.observer.take(report)

    def pin(self, stage: str, pin: Pin) -> None:
        """Have a stage work in a paradigm, or let the scheduler choose again."""
        self.observer.pins[stage] = pin

    def turn(self, now_ms: int) -> None:
        """Look at the loads if it is time, and give orders."""
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + OBSERVE_MS
        for decision in self.scheduler.observe(self.observer.loads(), now_ms):
            if isinstance(decision, SetBatch):
                self._wish(Tune(decision.operator, decision.b_out, None))
            else:
                if decision.paradigm == "operation":
                    self._prepare(decision.stage)
                self._told[decision.stage] = {}
                self._wish(Switch(decision.stage, decision.paradigm))

    def switched(self, message: Switched, now_ms: int) -> None:
        """Take note that a task works in another paradigm; the stage does when all its tasks do."""
        stage, index = self._numbering.names[message.task]
        told = self._told.setdefault(stage, {})
        told[index] = message.pause_us
        if len(told) == self._dop[stage]:
            self.paradigms[stage] = message.paradigm
            self.scheduler.switched(stage, now_ms, max(told.values()))
            self._told[stage] = {}

    @property
    def entries(self) -> list[Entry]:
        """The latest entries of the story."""
        return list(self.story.entries)
