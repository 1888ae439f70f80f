"""Let things go wrong with the real processes of a flow, and check every result it has written."""

from floodway.testing.chaos.kinds import KINDS, Kind
from floodway.testing.chaos.result import Order, Result, Suffered, Times
from floodway.testing.chaos.run import Progress, run
from floodway.testing.chaos.verdict import Branch

__all__ = ["KINDS", "Branch", "Kind", "Order", "Progress", "Result", "Suffered", "Times", "run"]
