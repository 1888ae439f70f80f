"""repartition: records change tasks, and nothing else about them."""

from collections.abc import Mapping
from dataclasses import dataclass

from floodway.operators.code import CodeWriter
from floodway.operators.facts import Facts, in_chain
from floodway.operators.partitioning import Partitioning
from floodway.operators.stateless import Stateless


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Repartition(Stateless):
    """Spreads records over the tasks of the operators after it: in turn, or by ranges.

    What a flow computes does not change; where, and with how much parallelism, does.

    Examples
    --------
    >>> from floodway import Flow
    >>> from floodway.testing import run
    >>> numbers = Flow("spread").source("numbers", schema=int)
    >>> run(numbers.rebalance().map("value + 1"), [(1, 5)])
    [(1, 6)]
    """

    spread: Partitioning

    @property
    def passes_all(self) -> bool:
        """Records leave as they came."""
        return True

    def details(self) -> Mapping[str, str]:
        """Return how records are spread."""
        return {"to": str(self.spread)}

    @property
    def facts(self) -> Facts:
        """Records move to other tasks."""
        return in_chain(keys="scattered")

    def partitioning(self, port: int) -> Partitioning:
        """Return what was asked for."""
        return self.spread

    def fragment(self, code: CodeWriter, failed: str) -> None:
        """Write nothing: records pass as they are."""
