"""From a flow to what an engine runs: the checked graph, its stages, and how to explain them."""

from floodway.plan.configuration import Configuration
from floodway.plan.explain import explain
from floodway.plan.graph import Graph
from floodway.plan.stages import Exchange, Plan, Stage

__all__ = ["Configuration", "Exchange", "Graph", "Plan", "Stage", "explain"]
