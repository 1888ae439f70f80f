"""Kill real processes of a flow at random moments, and check every result it has written."""

from floodway.testing.chaos.run import Order, Progress, Result, Times, run
from floodway.testing.chaos.verdict import Branch

__all__ = ["Branch", "Order", "Progress", "Result", "Times", "run"]
