"""Who holds whom back: floods are found where they arise.

Input caches are bounded. A stage that is too slow fills its cache, then its senders have no room
for output; they fill theirs, and so on, up to the source. All of them look flooded, but only one
is: the stage that is at work all the time while those before it wait. That is also how a flood
inside of the flow is found, behind an operator that multiplies records.

The other way round, a stage does not get rid of more than those after it take. Where micro-batches
combine they hand on much less; so what such a stage could do record by record is also a matter of
what those after it can.
"""

from collections.abc import Iterator, Mapping

from floodway.engine.scheduler.loads import Link, StageLoad, Topology
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.switch_range import magnification


def is_held_back(load: StageLoad, settings: SchedulerSettings) -> bool:
    """Return whether a stage waits for its receivers, so that its queue is not its own fault.

    A stage that is idle for longer than it is blocked will catch up by itself: its receivers'
    caches are full at times, but there is no flood.
    """
    return load.blocked >= settings.blocked and load.blocked >= load.idle


def holding_back(
    topology: Topology, loads: Mapping[str, StageLoad], settings: SchedulerSettings
) -> dict[str, str]:
    """Return the stages that others wait for, each with one of those that wait."""
    holding: dict[str, str] = {}
    for stage in topology.stages:
        if stage in loads and is_held_back(loads[stage], settings):
            for receiver in _slowest(topology, loads, stage, settings):
                holding.setdefault(receiver, stage)
    return holding


def _slowest(
    topology: Topology, loads: Mapping[str, StageLoad], sender: str, settings: SchedulerSettings
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


def room_after(
    topology: Topology, loads: Mapping[str, StageLoad], rates: Mapping[str, float]
) -> dict[str, float]:
    """Return what each stage may take, record by record, so that those after it keep up.

    Only where its micro-batches combine: elsewhere those after it get as much in both paradigms,
    and a sink that is hardly used says nothing about what it could do.

    Parameters
    ----------
    topology, loads
        The stages, and what each was like when it last worked record by record.
    rates
        What each can do record by record, as far as that was measured; if one goes back, those
        after it may, too.

    Examples
    --------
    Every line has ten words, and a million words a second can be counted:

    >>> flow = Topology(("lines", "counts"), (Link("lines", "counts", "words", True),))
    >>> loads = {"lines": StageLoad(stage="lines", out_per_in=10.0)}
    >>> room_after(flow, loads, {"lines": 3e5, "counts": 1e6})
    {'lines': 100000.0}
    """
    room: dict[str, float] = {}
    for stage in reversed(topology.stages):
        found = []
        for link in filter(_combines, topology.leaving(stage)):
            after = [each[link.receiver] for each in (rates, room) if link.receiver in each]
            by = magnification(topology, loads, link) if stage in loads else 0.0
            if after and by > 0:
                found.append(min(after) / by)
        if found:
            room[stage] = min(found)
    return room


def _combines(link: Link) -> bool:
    return link.combines
