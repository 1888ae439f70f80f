"""merge: several streams of one schema as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from floodway.operators.base import MAIN, Kernel, Operator, Outputs, beyond
from floodway.operators.facts import Facts, State, passing
from floodway.operators.partitioning import FORWARD, Partitioning


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Merge(Operator):
    """Passes on the records of all its inputs, in the order in which they arrive.

    If any input carries updates, so does the result.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("all")
    >>> left, right = flow.source("left", schema=int), flow.source("right", schema=int)
    >>> left.merge(right).to("out")
    >>> with Driver(flow) as driver:
    ...     driver.push("right", 2, at=5)
    ...     driver.push("left", 1, at=3)
    ...     [record.value for record in driver.read("out")]
    [2, 1]
    """

    @property
    def counted_as(self) -> str:
        """What merged streams are called that nobody has named."""
        return "merge"

    @property
    def facts(self) -> Facts:
        """Records stay where they are; several inputs may bring the same key to several tasks."""
        return passing(keys="scattered", away="yes", held=None, emit=None, joins=None)

    def state(self, *, versioned: bool = False) -> State | None:
        """Remember a count of facts, where some inputs have updates and others have not."""
        if self._facts_only:
            return None
        return State(kernel=MergeRevisionsKernel, layout="", versions=False, inputs="names")

    @property
    def _facts_only(self) -> bool:
        return self.outputs[MAIN].kind == "records"

    def partitioning(self, port: int) -> Partitioning:
        """Take what the tasks before have."""
        return FORWARD

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel for facts, or for updates where an input has them."""
        kinds = [edge.output.kind for edge in self.inputs]
        if self._facts_only:
            return MergeKernel(outputs)
        return MergeRevisionsKernel([kind == "records" for kind in kinds], outputs)


class MergeKernel(Kernel):
    """Merges facts."""

    def __init__(self, outputs: Outputs) -> None:
        self._out = outputs[MAIN]

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Pass the rows on."""
        self._out.extend(rows)


class MergeRevisionsKernel(Kernel):
    """Merges streams of which at least one has updates; identities stay apart by input."""

    remembers = ("state",)

    def __init__(self, facts: list[bool], outputs: Outputs) -> None:
        self._facts = facts
        self._out = outputs[MAIN]
        self.state, self._step = 0, 1

    def number(self, first: int, step: int) -> None:
        """Count facts from `first` in steps of `step`."""
        self.state, self._step = first, step

    def adopt(self, saved: Sequence[Mapping[str, Any]]) -> None:
        """Count on where no fact was counted before."""
        self.state = beyond([scalars["state"] for scalars in saved], self.state, self._step)

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Pass the rows on, facts as revisions of nothing."""
        if self._facts[port]:
            for fact in rows:
                self._out.append(((port, self.state), None, fact))
                self.state += self._step
        else:
            self._out.extend(((port, identity), old, new) for identity, old, new in rows)
