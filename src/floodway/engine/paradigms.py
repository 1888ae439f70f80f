"""The paradigms of a flow's stages: who may be switched, and in which paradigm each is."""

from collections.abc import Mapping

from floodway.core.errors import OptionError
from floodway.engine.control import Switch, Switched
from floodway.engine.numbering import Numbering
from floodway.engine.opstream.halves import able
from floodway.model.tuning import Paradigm
from floodway.plan.stages import Plan


class Paradigms:
    """Knows in which paradigm every stage works."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._names = Numbering(plan).names
        self._tasks: dict[int, Paradigm] = dict.fromkeys(self._names, "data")
        self._stages: dict[str, Paradigm] = {stage.name: "data" for stage in plan.stages}
        self._able: dict[str, bool] = {}

    @property
    def of_stages(self) -> Mapping[str, Paradigm]:
        """The paradigm in which all tasks of a stage were when they last agreed, by stage."""
        return dict(self._stages)

    def switched(self, message: Switched) -> None:
        """Take note that a task works in a paradigm."""
        self._tasks[message.task] = message.paradigm
        stage, _ = self._names[message.task]
        others = {self._tasks[task] for task, name in self._names.items() if name[0] == stage}
        if others == {message.paradigm}:
            self._stages[stage] = message.paradigm

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
        if name in self._stages:
            return name
        operators = [op.name for op in self._plan.graph.operators]
        if name not in operators:
            known = dict.fromkeys([*self._stages, *operators])
            raise OptionError(
                f"the flow has no stage or operator {name!r}",
                remedy=f"use one of: {', '.join(known)}",
            )
        return self._plan.stage_of(name).name
