"""sink: where results leave the flow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from floodway.operators.base import MAIN, Kernel, Operator, Outputs
from floodway.operators.facts import Facts, State, connected, passing
from floodway.operators.partitioning import FORWARD, Partitioning


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Sink(Operator):
    """Hands a stream's records to a connector, in the order in which they come.

    A stream with updates hands over each update with its identity; a value of None takes the
    record of that identity back.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import Driver
    >>> flow = Flow("through")
    >>> flow.source("in", schema=int).to("out")
    >>> with Driver(flow) as driver:
    ...     driver.push("in", 7, at=1)
    ...     driver.read("out")
    [Emitted(timestamp=1, key=None, value=7, id=None)]
    """

    connector: Any = None

    @property
    def counted_as(self) -> str:
        """What sinks are called that nobody has named: as their connector is."""
        return getattr(self.connector, "name", None) or "sink"

    @property
    def facts(self) -> Facts:
        """Only the task that has the connector can hand records to it."""
        facts = passing(keys="scattered", away="no", held=None, emit=None, joins=None)
        return connected(facts, self.connector)

    def state(self, *, versioned: bool = False) -> State | None:
        """Remember nothing; what the connector remembers is its own."""
        return None

    def partitioning(self, port: int) -> Partitioning:
        """Take what the task before has."""
        return FORWARD

    def kernel(self, outputs: Outputs, *, versioned: bool = False) -> Kernel:
        """Return a kernel that passes rows on as ``(timestamp, key, value, id)``."""
        return SinkKernel(outputs, revisions=self.inputs[0].output.kind == "revisions")


class SinkKernel(Kernel):
    """Gives records the form in which connectors take them."""

    def __init__(self, outputs: Outputs, *, revisions: bool) -> None:
        self._out = outputs[MAIN]
        self._revisions = revisions

    def process(self, port: int, rows: Sequence[Any]) -> None:
        """Pass rows on."""
        if not self._revisions:
            self._out += [(t, k, v, None) for t, k, v in rows]
            return
        for identity, old, new in rows:
            if new is not None:
                self._out.append((*new, identity))
            elif old is not None:
                self._out.append((old[0], old[1], None, identity))
