"""A whole cluster in one process, from one seed, with everything that can go wrong.

>>> outcome = simulate(1)
>>> outcome.problem is None, outcome.trace_hash == simulate(1).trace_hash
(True, True)
"""

from floodway.testing.simulation.scenario import Scenario
from floodway.testing.simulation.scenarios import SCENARIOS
from floodway.testing.simulation.simulation import Outcome, Summary, simulate, simulate_many

__all__ = ["SCENARIOS", "Outcome", "Scenario", "Summary", "simulate", "simulate_many"]
