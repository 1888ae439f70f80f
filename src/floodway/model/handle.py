"""What streams and tables have in common: a place in the flow's graph, and its side streams."""

from typing import TYPE_CHECKING, Self

from floodway.core.duration import Duration, to_ms
from floodway.core.errors import UndefinedError, locating
from floodway.core.schema import Schema
from floodway.model.tuning import Batching, Pin, Tuning
from floodway.operators.base import DEAD, LATE, Edge, Key

if TYPE_CHECKING:
    from floodway.model.flow import Flow
    from floodway.model.stream import Stream


class Handle:
    """An output of an operator, as the user holds it."""

    def __init__(self, flow: "Flow", edge: Edge) -> None:
        self.flow = flow
        self.edge = edge

    @property
    def name(self) -> str:
        """The name of the operator this comes from."""
        return self.edge.operator.name

    @property
    def schema(self) -> Schema:
        """The schema of the values."""
        return self.edge.output.schema

    @property
    def key(self) -> Key | None:
        """What it is keyed by; in a table with windows, without the window."""
        return self.edge.output.key

    @property
    def late(self) -> "Stream":
        """The records that came too late for this operator."""
        return self._port(LATE, "no record is ever late here", "ask a window, join or table")

    @property
    def dead_letters(self) -> "Stream":
        """The records that made this operator fail."""
        return self._port(DEAD, "it has no dead letters", "give it on_error='dead_letter'")

    def tune(
        self,
        *,
        dop: int | None = None,
        b_out: int | None = None,
        linger: Duration | None = None,
        batching: Batching | None = None,
        paradigm: Pin | None = None,
    ) -> Self:
        """Say how the operator this comes from should run; see `Tuning`. Returns the same handle.

        What is left out here is chosen when the flow is run. What a configuration says there about
        this operator takes precedence.
        """
        return self._tuned(
            Tuning(dop=dop, b_out=b_out, linger=linger, batching=batching, paradigm=paradigm)
        )

    def isolate(self) -> Self:
        """Give the operator a stage of its own: it is not fused with its neighbours."""
        return self._tuned(Tuning(isolate=True))

    def _tuned(self, tuning: Tuning) -> Self:
        with locating(self.name):
            tuning.check()
            if tuning.linger is not None:
                to_ms(tuning.linger, what="linger", zero=True)
        self.flow.tuned(self.name, tuning)
        return self

    def _port(self, port: str, problem: str, remedy: str) -> "Stream":
        from floodway.model.stream import Stream

        operator = self.edge.operator
        if port not in operator.outputs:
            raise UndefinedError(problem, remedy=remedy, operator=self.name, place=operator.place)
        return Stream(self.flow, Edge(operator, port))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.schema})"
