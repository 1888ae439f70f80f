"""The numbers of tasks: every task of a plan has one, stage by stage."""

from floodway.engine.transport.batching import receivers
from floodway.plan.stages import Plan


class Numbering:
    """Numbers the tasks of a plan, and knows which come after which.

    Attributes
    ----------
    names
        Stage and index of every task, by number.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._first: dict[str, int] = {}
        self.names: dict[int, tuple[str, int]] = {}
        for stage in plan.stages:
            self._first[stage.name] = len(self.names)
            for index in range(stage.dop):
                self.names[len(self.names)] = (stage.name, index)
        self.count = len(self.names)

    def number(self, stage: str, index: int) -> int:
        """Return the number of a task."""
        return self._first[stage] + index

    def after(self, task: int) -> set[int]:
        """Return the tasks that get anything from a task, at first or second hand."""
        found: set[int] = set()
        waiting = [task]
        while waiting:
            following = self._receivers(waiting.pop()) - found
            found |= following
            waiting += following
        return found

    def _receivers(self, task: int) -> set[int]:
        name, index = self.names[task]
        return {
            self.number(exchange.receiver, target)
            for exchange in self._plan.outputs(self._plan.stage(name))
            for target in receivers(
                exchange.partitioning, index, self._plan.stage(exchange.receiver).dop
            )
        }
