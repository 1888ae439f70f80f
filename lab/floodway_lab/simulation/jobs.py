"""Spark's jobs in a simulation: they take a while, are tried again, and may be lost."""

from collections.abc import Callable
from pathlib import Path

from floodway.core.errors import EngineError
from floodway.engine.control.messages import Made, Offer
from floodway.plan.stages import Plan
from floodway.testing.micro_batches import Processed
from floodway_lab.simulation.processes import Process

SHORTEST_US, LONGEST_US, STUCK_US = 1_000, 150_000, 3_000_000
"""How long a job takes at least and at most, and how long it may have to wait for its turn."""


class SimulatedJobs:
    """Processes the blocks that are offered to a driver.

    The work itself is real: the remote half reads the block from its file, if that is still there.
    """

    def __init__(
        self, driver: Process, plan: Plan, folder: Path, told: Callable[[int, Made], None]
    ) -> None:
        self._driver, self._told = driver, told
        self._processed = Processed(plan, folder)

    def offer(self, offer: Offer) -> None:
        """Process a block after a while."""
        timeline = self._driver.world.timeline
        # A Spark task that is killed is tried again: its work is done twice, and counts once.
        tries = 1 + timeline.chance(0.1) + timeline.chance(0.05)
        later = sum(timeline.between(SHORTEST_US, LONGEST_US) for _ in range(tries))
        if timeline.chance(0.05):  # others have Spark's slots
            later += timeline.between(0, STUCK_US)
        timeline.after(later, lambda: self._driver.when_running(lambda: self._run(offer, tries)))

    def _run(self, offer: Offer, tries: int) -> None:
        if not self._driver.alive:
            return
        try:
            for _ in range(tries):
                results = self._processed.results(offer)
        except FileNotFoundError:
            return  # whoever has offered it is gone
        except EngineError as error:
            # It was offered twice, and its file has another block by now: then nobody waits for it.
            made = Made(offer.attempt, offer.batch, [], problem=error.problem)
        else:
            made = Made(offer.attempt, offer.batch, results)
        self._driver.within(lambda: self._told(offer.task, made))
