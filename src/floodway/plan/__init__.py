"""From a flow to what an engine runs: the checked graph, and how to explain it."""

from floodway.plan.explain import explain
from floodway.plan.graph import Graph

__all__ = ["Graph", "explain"]
