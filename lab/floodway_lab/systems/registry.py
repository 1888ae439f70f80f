"""Which systems there are, and how each is started."""

from floodway.core.errors import OptionError
from floodway_lab.systems.flows import FLOWS
from floodway_lab.systems.former import VARIABLE, former_systems
from floodway_lab.systems.loop import STEPS
from floodway_lab.systems.others import OTHERS
from floodway_lab.systems.system import Link, System


def _floodway(mode: str, title: str, starts_s: float = 0.0) -> System:
    return System(
        f"floodway-{mode}",
        f"Floodway, {title}",
        "floodway_lab.systems.on_floodway",
        frozenset(FLOWS),
        tuning=title,
        links=("tcp", "kafka"),
        starts_s=starts_s,
        options={"mode": mode},
    )


OWN = (
    # Micro-batches are Spark jobs, which need some seconds until they are as fast as later.
    _floodway("dual", "as flows run by default", starts_s=5.0),
    _floodway("data", "record by record, b_out 1000"),
    _floodway("unbatched", "record by record, b_out 1, no fusion"),
    _floodway("operation", "micro-batches only", starts_s=5.0),
)
"""Floodway's own ways."""

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        *OWN,
        *former_systems(OWN),
        System(
            "loop",
            "a Python loop by hand, one process",
            "floodway_lab.systems.loop",
            frozenset(STEPS),
            tuning="chunks decoded with msgspec into structs; changes told once per chunk; no GC",
        ),
        System(
            "loops",
            "a Python loop by hand, several processes",
            "floodway_lab.systems.loops",
            frozenset(STEPS),
            tuning="workers decode chunks and add up, the first process adds that up; no GC",
        ),
        *OTHERS,
    )
}
"""All there are, by name."""

MOST_TASKS = 64
"""More tasks than this are a slip of the pen."""


def needs(name: str) -> bool:
    """Return whether a system has to be installed before it can be started."""
    return bool(SYSTEMS[name].requirements)


def system_named(name: str, case: str) -> System:
    """Return a system that can do a workload."""
    system = SYSTEMS.get(name)
    if system is None:
        raise OptionError(f"there is no system {name!r}", remedy=f"use one of {', '.join(SYSTEMS)}")
    if case not in system.cases:
        why = system.cannot.get(case)
        raise OptionError(
            f"{name} is not written for the workload {case!r}" + (f": {why}" if why else ""),
            remedy=f"it can do {', '.join(sorted(system.cases))}",
        )
    if system.sources and not system.ready:
        raise OptionError(
            f"there is no floodway in {system.sources[0]}",
            remedy=f"let {VARIABLE} name a checkout of another version",
        )
    if not system.ready:
        raise OptionError(
            f"{name} is not installed", remedy=f"run `floodway bench install {name}` first"
        )
    return system


def with_tasks(name: str) -> tuple[str, int | None]:
    """Return the system that a name is of, and how many tasks it is to have if the name says so.

    >>> with_tasks("bytewax@2"), with_tasks("loop")
    (('bytewax', 2), ('loop', None))
    """
    system, at, tasks = name.partition("@")
    if at and not (tasks.isascii() and tasks.isdigit() and 0 < int(tasks) <= MOST_TASKS):
        raise OptionError(
            f"{name!r} does not say how many tasks {system} is to have",
            remedy=f"write {system}@2 for two of them; {MOST_TASKS} at the most",
        )
    return system, int(tasks) if at else None


def link_of(system: System, wanted: Link | None) -> Link:
    """Return how events come to a system: as is wanted, or the best way for it."""
    if wanted is None:
        return system.links[0]
    if wanted not in system.links:
        raise OptionError(
            f"{system.name} cannot read from {wanted}",
            remedy=f"it can read from {', '.join(system.links)}",
        )
    return wanted
