"""Let things go wrong with the real processes of a flow, and check every result it has written."""

from floodway_lab.chaos.kinds import KINDS, Kind
from floodway_lab.chaos.result import Order, Result, Suffered, Times
from floodway_lab.chaos.run import Progress, run
from floodway_lab.chaos.verdict import Branch

__all__ = ["KINDS", "Branch", "Kind", "Order", "Progress", "Result", "Suffered", "Times", "run"]
