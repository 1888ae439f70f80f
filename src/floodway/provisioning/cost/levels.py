"""Levels: how far an operator is from the sources, by the longest way (thesis, definition 44)."""

from collections.abc import Mapping, Sequence

from floodway.core.errors import CycleError


def levels(
    producers: Mapping[str, Sequence[str]], consumers: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...], ...]:
    """Return the operators level by level; sources are on level 0 (equation 4.7).

    An operator's level is known when the last of its producers has one, so each connection is
    looked at once.

    Examples
    --------
    The graph of examples 1 and 9:

    >>> producers = {
    ...     "v1": [],
    ...     "v2": [],
    ...     "v3": ["v1"],
    ...     "v4": ["v2", "v3"],
    ...     "v5": ["v4"],
    ...     "v6": ["v4"],
    ... }
    >>> consumers = {
    ...     "v1": ["v3"],
    ...     "v2": ["v4"],
    ...     "v3": ["v4"],
    ...     "v4": ["v5", "v6"],
    ...     "v5": [],
    ...     "v6": [],
    ... }
    >>> levels(producers, consumers)
    (('v1', 'v2'), ('v3',), ('v4',), ('v5', 'v6'))
    """
    waiting = {name: len(found) for name, found in producers.items()}
    current = [name for name, count in waiting.items() if not count]
    found: list[tuple[str, ...]] = []
    while current:
        found.append(tuple(current))
        following: list[str] = []
        for name in current:
            for consumer in consumers[name]:
                waiting[consumer] -= 1
                if not waiting[consumer]:
                    following.append(consumer)
        current = following
    stuck = [name for name, count in waiting.items() if count]
    if stuck:
        raise _cycle(stuck, producers, waiting)
    return tuple(found)


def _cycle(
    stuck: Sequence[str], producers: Mapping[str, Sequence[str]], waiting: Mapping[str, int]
) -> CycleError:
    """Walk up from an operator that never got its turn; sooner or later one comes up again."""
    trail: dict[str, None] = {}
    name = stuck[0]
    while name not in trail:
        trail[name] = None
        name = next(producer for producer in producers[name] if waiting[producer])
    names = list(trail)
    loop = [name, *reversed(names[names.index(name) :])]
    return CycleError(
        f"the graph has a cycle: {' -> '.join(loop)}",
        remedy="take one of these connections out; records cannot flow back",
        operator=name,
    )
