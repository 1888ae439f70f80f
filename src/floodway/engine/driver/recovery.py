"""Recovery: which losses a flow survives, and what people have to know of those it does.

A flow that has nothing to go back to survives none. One that has survives all, but for four kinds:
a task that is lost again and again; input that cannot be read again, unless a checkpoint at least
keeps what was made of it; a task that may still be alive and write where nobody keeps it from it;
and a host that does not see the folder in which is kept what the flow goes back to.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from floodway.core.errors import EngineError
from floodway.engine.control.messages import Hello
from floodway.engine.driver.coverage import Coverage
from floodway.engine.driver.epoching import Epoching
from floodway.engine.driver.losses import MOST_TRIES
from floodway.engine.driver.roster import Roster
from floodway.plan.stages import Plan


class Loss(NamedTuple):
    """A task is lost, for a reason.

    The tasks in `affected` go back, to `epoch`, the last committed one. Since that one the task was
    lost `tries` times before.
    """

    task: int
    reason: str
    affected: Set[int]
    epoch: int
    tries: int


class Recovery:
    """Judges losses.

    Parameters
    ----------
    epoching
        How the flow goes back, if it can.

    Attributes
    ----------
    possible
        Whether the flow has anything to go back to.
    lasting
        Whether that is a checkpoint.
    """

    def __init__(self, plan: Plan, roster: Roster, epoching: Epoching | None) -> None:
        self._roster = roster
        self.possible = epoching is not None
        self.lasting = epoching is not None and epoching.lasting
        self._folder, self._machine = (
            (epoching.folder, epoching.machine) if epoching is not None else ("", "")
        )
        self._coverage = Coverage(plan, lasting=self.lasting)
        self._has_run = False

    def run(self) -> list[str]:
        """Take note that the flow runs, so that sources read; return what people should know."""
        self._has_run = True
        once = self._coverage.in_tasks
        if not once or not self.possible or self.lasting:
            return []
        return [
            f"what {_and(once)} has read cannot be read again: the loss of a task that reads "
            "it ends the flow"
        ]

    # ------------------------------------------------------------------ losing a task

    def hopeless(self, loss: Loss) -> EngineError | None:
        """Return why the flow cannot go on after a loss; None if it can."""
        if not self.possible or loss.tries >= MOST_TRIES:
            return self._lost(loss)
        once = self._coverage.read_once(self._stages(loss.affected))
        if self.lasting or not once or not self._has_run:
            return None
        return EngineError(
            f"{self._roster.name(loss.task)} was lost ({loss.reason}), and what {_and(once)} had "
            "read cannot be read again",
            remedy="see the log for what killed it (memory is the usual cause); let a source that "
            "can go back, such as files or Kafka, be between that input and the flow",
        )

    def _lost(self, loss: Loss) -> EngineError:
        stage, index = self._roster.names[loss.task]
        if not self.possible:
            return EngineError(
                f"task {index} of the stage {stage} was lost: {loss.reason}",
                remedy="see the log for what killed it (memory is the usual cause), and whether "
                "its host is there and lets connections in; with recovery, or a checkpoint "
                "(--checkpoint DIR), a flow goes on by itself",
            )
        safe = (
            "what is committed is safe, and the flow goes on from there when it is started again"
            if self.lasting
            else "with a checkpoint (--checkpoint DIR) what is committed would be safe"
        )
        return EngineError(
            f"task {index} of the stage {stage} was lost, as it was {loss.tries} times since epoch "
            f"{loss.epoch}: {loss.reason}",
            remedy=f"see the log for what kills it (memory is the usual cause); {safe}",
        )

    def going_back(self, loss: Loss) -> list[str]:
        """Return what people should know of a loss that the flow survives."""
        lost = f"{self._roster.name(loss.task)} was lost ({loss.reason})"
        said = [f"{lost}; going back to epoch {loss.epoch}"]
        if not self._has_run:
            return said
        stages = self._stages(loss.affected)
        once = self._coverage.read_once(stages)
        if once:
            said.append(
                f"what {_and(once)} had read since epoch {loss.epoch} may be lost: it cannot "
                "be read again"
            )
        again = self._coverage.shown_again(stages)
        if again:
            said.append(
                f"{_and(again)} may show again what came since epoch {loss.epoch}: at least "
                "once is all that is promised there"
            )
        return said

    def _stages(self, tasks: Iterable[int]) -> set[str]:
        return {self._roster.names[task][0] for task in tasks}

    # ------------------------------------------------------------------ tasks out of reach

    def at_large(self, task: int, reason: str) -> EngineError | None:
        """Return why a task cannot be replaced of which nobody knows whether it is dead.

        With a checkpoint it may live: sinks let no zombie write. Those that show rows at once are
        safe only from processes that are dead, and the driver can kill those of its own machine.
        """
        hello = self._roster.hello(task)
        sinks = self._coverage.taken_back(self._stages([task]))
        if hello is None or not sinks or not self.possible:
            return None
        if hello.machine == self._machine:
            return None
        return EngineError(
            f"{self._roster.name(task)} on the host {hello.host} cannot be heard ({reason}), and "
            f"nobody can tell whether it still writes to {_and(sinks)}",
            remedy="see whether that host can be reached; with a checkpoint (--checkpoint DIR) the "
            "flow would go on",
        )

    # ------------------------------------------------------------------ a folder that is not seen

    def unseen(self, hello: Hello) -> EngineError:
        """Return why the flow cannot do with a host that does not see its folder."""
        what = "the checkpoint" if self.lasting else "what the flow goes back to"
        return EngineError(
            f"{self._roster.name(hello.task)} on the host {hello.host} does not see {what} in "
            f"{self._folder}",
            remedy="give --checkpoint a folder on a file system that all hosts see under the "
            "same path, and may write to",
        )

    def do_without(self, hello: Hello) -> str:
        """Go back no more, as a host does not see the folder; return what people should know."""
        self.possible = False
        return (
            f"{hello.host} does not see {self._folder}: a lost task or executor ends the flow; "
            "--checkpoint DIR, on a file system that all hosts see, lets it go on"
        )


def _and(names: list[str]) -> str:
    return " and ".join(names)
