"""Which stages a flood reaches: the switch range (DO, section 4.3), on general graphs.

From the flooded stage p on the records are counted along every way: as many times as many as
before p - 1. The range ends with the first stage q whose output is not more than what came into
p - 1, ``lambda(p-1) * ... * lambda(q) < 1`` (equation 8). The paper has chains. Where ways part,
each is followed for itself, with that part of the records that takes it; where they meet, a stage
is in the range if any way wants it. It is the smallest such range: stage p - 1 is not in it, nor is
anything past q.

A way also ends before a stage that stays as it is: one of sinks only, one that cannot be switched,
one that a user has pinned to the data paradigm.
"""

from collections.abc import Collection, Mapping

from floodway.engine.scheduler.loads import Link, StageLoad, Topology


def switch_range(
    topology: Topology, loads: Mapping[str, StageLoad], start: str, closed: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the stages to switch, in the order of the flow; none if `start` has to stay.

    Parameters
    ----------
    topology, loads
        The stages, and what was measured of them. Ways end before stages without a load.
    start
        The flooded stage, p.
    closed
        Further stages that stay as they are.

    Examples
    --------
    The paper's Figure 7:

    >>> chain = Topology(tuple("12345"), tuple(Link(a, b, a) for a, b in zip("1234", "2345")))
    >>> magnified = zip("12345", [8, 0.625, 1, 0.1, 1])
    >>> loads = {stage: StageLoad(stage=stage, out_per_in=by) for stage, by in magnified}
    >>> switch_range(chain, loads, "2")
    ('2', '3', '4')
    """

    def stays(stage: str) -> bool:
        load = loads.get(stage)
        return load is None or not may_operate(topology, load) or stage in closed

    if stays(start):
        return ()
    # The largest product with which a stage is reached decides: what it does not reach, no smaller
    # one does. In the order of the flow it is known before it is needed.
    reached = {start: _before(topology, loads, start)}
    for stage in topology.stages:
        if stage not in reached:
            continue
        for link in topology.leaving(stage):
            product = reached[stage] * magnification(topology, loads, link)
            if product >= 1 and not stays(link.receiver):
                reached[link.receiver] = max(product, reached.get(link.receiver, product))
    return tuple(stage for stage in topology.stages if stage in reached)


def combining(topology: Topology, loads: Mapping[str, StageLoad], stage: str) -> tuple[str, ...]:
    """Return the stages before a flooded one whose micro-batches would combine what floods it.

    The paper's stages have no such half, so equation 8 looks downstream only. Here the sender is
    the better place to meet the flood: what is combined there is never sent.
    """
    return tuple(
        link.sender
        for link in topology.entering(stage)
        if link.combines and link.sender in loads and may_operate(topology, loads[link.sender])
    )


def may_operate(topology: Topology, load: StageLoad) -> bool:
    """Return whether a stage may be in the operation paradigm at all."""
    return load.able and load.pin != "data" and load.stage not in topology.sinks


def magnification(topology: Topology, loads: Mapping[str, StageLoad], link: Link) -> float:
    """Return how many records go over a link for each that its sender takes; 1 if unknown."""
    load = loads.get(link.sender)
    if load is None or load.out_per_in is None:
        return 1.0
    leaving = topology.leaving(link.sender)
    handed = sum(load.handed.values())
    if len(leaving) == 1 or handed <= 0:
        # If nobody has counted what goes where, an even split would make a range too small, and a
        # flood that is missed is worse than a stage that is switched in vain.
        return load.out_per_in
    copies = sum(other.name == link.name for other in leaving)
    return load.out_per_in * load.handed.get(link.name, 0.0) / copies / handed


def _before(topology: Topology, loads: Mapping[str, StageLoad], start: str) -> float:
    """Return lambda of p - 1: the predecessor that magnifies most; 1 before a source."""
    entering = topology.entering(start)
    return max((magnification(topology, loads, link) for link in entering), default=1.0)
