"""The paradigms of a flow's stages: who may be switched, and in which paradigm everybody works.

The driver keeps that in one place, and all others ask there: status and metrics, the scheduler. It
follows from what tasks were told, and from what they say of themselves in their present attempt.
"""

from collections.abc import Container, Mapping
from typing import NamedTuple

from floodway.core.errors import OptionError
from floodway.engine.control.messages import Switch, Switched
from floodway.engine.metrics.status import StageParadigm
from floodway.engine.opstream.halves import able
from floodway.engine.transport.numbering import Numbering
from floodway.model.tuning import Paradigm
from floodway.plan.stages import Plan


class Settled(NamedTuple):
    """All tasks of a stage have done what they were told; none stood still for longer."""

    stage: str
    paradigm: Paradigm
    pause_us: int


class _Task:
    """What is known of a task: its attempt, whether that goes already, and how it works."""

    __slots__ = ("attempt", "goes", "left", "owes", "paradigm")

    def __init__(self) -> None:
        self.attempt, self.goes, self.left = 0, False, False
        self.paradigm: Paradigm = "data"
        self.owes = False
        """Whether it has been told to switch, and has not said yet that it did."""


class Paradigms:
    """Knows in which paradigm every task works, and so every stage.

    What a task says counts if it is of the task's present attempt. A new attempt begins in the
    paradigm that the stage was last told: the task hears of that before it may go. One that has
    ended and left counts no more: it will never answer.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._numbering = Numbering(plan)
        self._tasks = {number: _Task() for number in self._numbering.names}
        self._wanted: dict[str, Paradigm] = {stage.name: "data" for stage in plan.stages}
        self._agreed: dict[str, Paradigm] = dict(self._wanted)
        self._pauses: dict[str, int] = {}
        self._able: dict[str, bool] = {}

    # ------------------------------------------------------------------ what others may know

    def of_task(self, stage: str, index: int) -> Paradigm:
        """Return the paradigm in which a task works."""
        return self._now(stage, self._tasks[self._numbering.number(stage, index)])

    def of_stage(self, stage: str) -> StageParadigm:
        """Return the paradigm in which all tasks of a stage work, if it is one."""
        known = {self._now(stage, task) for task in self._tasks_of(stage)}
        if not known:
            return self._agreed[stage]
        return "switching" if len(known) > 1 else known.pop()

    @property
    def of_stages(self) -> Mapping[str, Paradigm]:
        """The paradigm in which all tasks of a stage were when they last agreed, by stage."""
        return dict(self._agreed)

    def _tasks_of(self, stage: str) -> list[_Task]:
        """Return the tasks of a stage that have not left."""
        first, dop = self._numbering.number(stage, 0), self._plan.stage(stage).dop
        tasks = [self._tasks[number] for number in range(first, first + dop)]
        return [task for task in tasks if not task.left]

    def _now(self, stage: str, task: _Task) -> Paradigm:
        return task.paradigm if task.goes else self._wanted[stage]

    def settled(self) -> list[Settled]:
        """Return the stages that have done what they were told; each once for an order."""
        done = [
            stage
            for stage in self._pauses
            if all(task.goes and not task.owes for task in self._tasks_of(stage))
        ]
        return [Settled(stage, self._wanted[stage], self._pauses.pop(stage)) for stage in done]

    # ------------------------------------------------------------------ what happens

    def told(self, order: Switch) -> None:
        """Take note of what the tasks of a stage are told."""
        if order.paradigm != self._wanted[order.stage]:
            self._wanted[order.stage] = order.paradigm
            for task in self._tasks_of(order.stage):
                task.owes = True
        self._pauses.setdefault(order.stage, 0)
        self._agree(order.stage)

    def follow(self, attempts: Mapping[int, int], left: Container[int] = ()) -> None:
        """Take note of the attempt in which each task is, by number, and of who has left."""
        for number, attempt in attempts.items():
            task = self._tasks[number]
            if number in left and not task.left:
                task.left = True
                self._agree(self._numbering.names[number][0])
            if attempt != task.attempt:
                task.attempt, task.goes = attempt, False
                self._agree(self._numbering.names[number][0])

    def goes(self, number: int) -> None:
        """Take note that a task may go, and has heard before what its stage was told."""
        task, stage = self._tasks[number], self._numbering.names[number][0]
        if not task.goes:
            task.goes, task.paradigm = True, self._wanted[stage]
            # In the paradigm `data` it is from the first, and says nothing.
            task.owes = task.paradigm == "operation"

    def heard(self, number: int, attempt: int, paradigm: Paradigm) -> bool:
        """Take note of what a task says of itself; return whether that counts."""
        task = self._tasks[number]
        if attempt != task.attempt or not task.goes:
            return False
        stage = self._numbering.names[number][0]
        task.paradigm = paradigm
        if paradigm != self._wanted[stage]:
            task.owes = True  # what it had answered was meant for an order before the last
        self._agree(stage)
        return True

    def switched(self, message: Switched) -> None:
        """Take note that a task has done what it was told."""
        stage = self._numbering.names[message.task][0]
        if not self.heard(message.task, message.attempt, message.paradigm):
            return
        if message.paradigm == self._wanted[stage]:
            self._tasks[message.task].owes = False
            if stage in self._pauses:
                self._pauses[stage] = max(self._pauses[stage], message.pause_us)

    def _agree(self, stage: str) -> None:
        paradigm = self.of_stage(stage)
        if paradigm != "switching":
            self._agreed[stage] = paradigm

    # ------------------------------------------------------------------ orders

    def able(self, stage: str) -> bool:
        """Return whether a stage can work in the operation paradigm."""
        if stage not in self._able:
            self._able[stage] = able(self._plan, self._plan.stage(stage))
        return self._able[stage]

    def order(self, name: str, paradigm: Paradigm) -> Switch:
        """Return what to tell the tasks of a stage, which may be named by one of its operators."""
        stage = self._stage(name)
        if paradigm not in ("data", "operation"):
            raise OptionError(
                f"there is no paradigm {paradigm!r}", remedy="use 'data' or 'operation'"
            )
        if paradigm == "operation" and not self.able(stage):
            host = self._plan.stage(stage).host
            why = (
                "it runs in the driver's process, because of its connector"
                if host == "driver"
                else "all it does needs its state or its connector"
            )
            others = [stage.name for stage in self._plan.stages if self.able(stage.name)]
            remedy = f"switch one of: {', '.join(others)}" if others else "leave it in 'data'"
            raise OptionError(
                f"the stage {stage!r} cannot work in micro-batches: {why}", remedy=remedy
            )
        return Switch(stage, paradigm)

    def _stage(self, name: str) -> str:
        if name in self._wanted:
            return name
        operators = [op.name for op in self._plan.graph.operators]
        if name not in operators:
            known = dict.fromkeys([*self._wanted, *operators])
            raise OptionError(
                f"the flow has no stage or operator {name!r}",
                remedy=f"use one of: {', '.join(known)}",
            )
        return self._plan.stage_of(name).name
