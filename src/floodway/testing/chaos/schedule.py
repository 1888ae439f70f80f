"""Whom to kill, and when: random, and the same for the same seed.

The moments are counted from what the flow does, which differs from run to run; the delays, the
victims and their order do not.
"""

import random
from collections.abc import Iterator, Sequence

import msgspec

SOON_SHARE = 0.25
"""This part of the kills comes soon after the one before."""

SOON_S = 1.0
"""A kill that comes soon comes within so many seconds, mostly into the recovery."""

CALM_S = 1.5
"""Any other comes within so many seconds after the flow has committed an epoch again."""

RECOVERY_S = 2.0
"""About how long a flow takes to go on and commit, to plan with."""

RESTART_S = 15.0
"""About how long a new driver takes to start its Spark, and the flow, to plan with."""


class Kill(msgspec.Struct, frozen=True):
    """A kill that is planned.

    Attributes
    ----------
    stage
        The stage whose task is killed; None for the driver.
    soon
        Whether the delay counts from the kill before, not from when the flow is well again.
    delay_s
        How long to wait.
    draw
        Which task of the stage, as a number between 0 and 1.
    """

    stage: str | None
    soon: bool
    delay_s: float
    draw: float


def plan(stages: Sequence[str], *, kills: int, driver_kills: int, seed: int) -> list[Kill]:
    """Return what to kill in turn: all stages about equally often, drivers somewhere between.

    >>> made = plan(["source", "table"], kills=4, driver_kills=1, seed=7)
    >>> sorted(kill.stage or "driver" for kill in made)
    ['driver', 'source', 'source', 'table', 'table']
    >>> made == plan(["source", "table"], kills=4, driver_kills=1, seed=7)
    True
    """
    rng = random.Random(seed)
    victims: list[str | None] = list(_dealt(rng, stages, kills))
    for _ in range(driver_kills):
        victims.insert(rng.randint(min(1, len(victims)), len(victims)), None)
    later = range(1, len(victims))  # nothing comes before the first
    hurried = set(rng.sample(later, round(len(later) * SOON_SHARE)))
    planned = []
    for number, stage in enumerate(victims):
        soon = number in hurried
        delay = rng.uniform(0, SOON_S if soon else CALM_S)
        planned.append(Kill(stage, soon, round(delay, 3), rng.random()))
    return planned


def _dealt(rng: random.Random, stages: Sequence[str], kills: int) -> Iterator[str]:
    """Deal all stages out again and again, each time in another order."""
    left: list[str] = []
    for _ in range(kills):
        left = left or rng.sample(list(stages), len(stages))
        yield left.pop()


def expected_s(kills: Sequence[Kill]) -> float:
    """Return about how many seconds a plan takes."""
    waits = sum(kill.delay_s + (0 if kill.soon else RECOVERY_S) for kill in kills)
    return waits + sum(RESTART_S for kill in kills if kill.stage is None)
