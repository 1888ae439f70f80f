"""Who holds whom back: floods are found where they arise.

Input caches are bounded. A stage that is too slow fills its cache, then its senders have no room
for output; they fill theirs, and so on, up to the source. All of them look flooded, but only one
is: the stage that is at work all the time while those before it wait. That is also how a flood
inside of the flow is found, behind an operator that multiplies records.
"""

from collections.abc import Iterator, Mapping

from floodway.engine.scheduler.loads import Load, Topology
from floodway.engine.scheduler.settings import Settings


def is_held_back(load: Load, settings: Settings) -> bool:
    """Return whether a stage waits for its receivers, so that its queue is not its own fault.

    A stage that is idle for longer than it is blocked will catch up by itself: its receivers'
    caches are full at times, but there is no flood.
    """
    return load.blocked >= settings.blocked and load.blocked >= load.idle


def holding_back(
    topology: Topology, loads: Mapping[str, Load], settings: Settings
) -> dict[str, str]:
    """Return the stages that others wait for, each with one of those that wait."""
    holding: dict[str, str] = {}
    for stage in topology.stages:
        if stage in loads and is_held_back(loads[stage], settings):
            for receiver in _slowest(topology, loads, stage, settings):
                holding.setdefault(receiver, stage)
    return holding


def _slowest(
    topology: Topology, loads: Mapping[str, Load], sender: str, settings: Settings
) -> Iterator[str]:
    """Yield the receivers that a sender waits for."""
    receivers = {link.receiver: None for link in topology.leaving(sender)}
    known = [loads[receiver] for receiver in receivers if receiver in loads]
    free = [load for load in known if not is_held_back(load, settings)]  # others pass it on
    slow = [load for load in free if load.busy >= settings.busy]
    if not slow and free and len(free) == len(known):
        # Nobody is at work all the time, as with few and large frames: then the longest queue.
        slow = [max(free, key=lambda load: load.queue_records / (load.data_per_s or 1.0))]
    yield from (load.stage for load in slow)
