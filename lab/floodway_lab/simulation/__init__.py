"""A whole cluster in one process, from one seed, with everything that can go wrong.

>>> outcome = simulate(1)
>>> outcome.problem is None, outcome.trace_hash == simulate(1).trace_hash
(True, True)
"""

from floodway_lab.simulation.scenario import Scenario
from floodway_lab.simulation.scenarios import SCENARIOS
from floodway_lab.simulation.simulation import Outcome, Summary, simulate

__all__ = ["SCENARIOS", "Outcome", "Scenario", "Summary", "simulate"]
