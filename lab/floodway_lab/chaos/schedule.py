"""What goes wrong, and when: random, and the same for the same seed.

The moments are counted from what the flow does, which differs from run to run; the delays, the
victims and their order do not.
"""

import random
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from floodway_lab.chaos.kinds import KINDS, Kind

SOON_SHARE = 0.25
"""This part of the faults comes soon after the one before."""

SOON_S = 1.0
"""A fault that comes soon comes within so many seconds, mostly into the recovery."""

CALM_S = 1.5
"""Any other comes within so many seconds after the flow has committed an epoch again."""


class Fault(msgspec.Struct, frozen=True):
    """A fault that is planned.

    Attributes
    ----------
    kind
        What goes wrong.
    stage
        The stage whose task it befalls, if it befalls one.
    soon
        Whether the delay counts from the fault before, not from when the flow is well again.
    delay_s
        How long to wait.
    draw
        Which of those it could befall, as a number between 0 and 1.
    """

    kind: Kind
    stage: str
    soon: bool
    delay_s: float
    draw: float


def plan(stages: Sequence[str], faults: Mapping[Kind, int], seed: int) -> list[Fault]:
    """Return what goes wrong in turn: all stages about equally often, all kinds mixed.

    >>> made = plan(["source", "table"], {"task": 4, "driver": 1}, seed=7)
    >>> sorted(fault.kind for fault in made)
    ['driver', 'task', 'task', 'task', 'task']
    >>> sorted(fault.stage for fault in made if fault.kind == "task")
    ['source', 'source', 'table', 'table']
    >>> made == plan(["source", "table"], {"task": 4, "driver": 1}, seed=7)
    True
    """
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS for _ in range(faults.get(kind, 0))]
    rng.shuffle(kinds)
    if "task" in kinds:  # whoever wants few kills wants to see how long the first one takes
        kinds.insert(0, kinds.pop(kinds.index("task")))
    hit = _dealt(rng, stages)
    other = random.Random(f"others of {seed}")
    later = range(1, len(kinds))  # nothing comes before the first
    hurried = set(rng.sample(later, round(len(later) * SOON_SHARE)))
    planned = []
    for number, kind in enumerate(kinds):
        stage = next(hit) if kind == "task" else other.choice(list(stages))
        soon = number in hurried
        delay = rng.uniform(0, SOON_S if soon else CALM_S)
        planned.append(Fault(kind, stage, soon, round(delay, 3), rng.random()))
    return planned


def _dealt(rng: random.Random, stages: Sequence[str]) -> Iterator[str]:
    """Deal all stages out again and again, each time in another order."""
    while True:
        yield from rng.sample(list(stages), len(stages))


def expected_s(faults: Sequence[Fault]) -> float:
    """Return about how many seconds a plan takes."""
    return sum(
        fault.delay_s + (0 if fault.soon and fault.kind == "task" else KINDS[fault.kind].seconds)
        for fault in faults
    )
