"""declared: a stream that is used before it is defined."""

from dataclasses import dataclass

from floodway.operators.base import Kernel, Operator, Outputs
from floodway.operators.facts import Facts, State, passing
from floodway.operators.merge import MergeKernel
from floodway.operators.partitioning import FORWARD, Partitioning


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Declared(Operator):
    """Stands for a stream that `Flow.define` names later.

    Lets a program be written in any order, one module reading what another produces. The graph
    must still be free of cycles.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> flow = Flow("later")
    >>> doubled = flow.declare("numbers", schema=int).map("value * 2")
    >>> flow.define("numbers", flow.source("source", schema=int))
    >>> run(doubled, [(1, 4)])
    [(1, 8)]
    """

    @property
    def facts(self) -> Facts:
        """Everything passes as it is."""
        return passing(keys="scattered", away="yes", held=None, emit=None, joins=None)

    def state(self, *, versioned: bool = False) -> State | None:
        """Remember nothing."""
        return None

    def partitioning(self, port: int) -> Partitioning:
        """Take what the task before has."""
        return FORWARD

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that passes everything on."""
        return MergeKernel(outputs)
