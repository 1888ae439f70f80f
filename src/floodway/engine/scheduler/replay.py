"""A story lived through again: the loads of one story, and the decisions of a new scheduler."""

from collections.abc import Iterable
from typing import NamedTuple

from floodway.core.errors import EngineError
from floodway.engine.scheduler.decisions import Decision
from floodway.engine.scheduler.loads import Topology
from floodway.engine.scheduler.scheduler import Scheduler
from floodway.engine.scheduler.settings import SchedulerSettings
from floodway.engine.scheduler.story import Answered, Began, Entry, Observed, read_story


class Decided(NamedTuple):
    """A decision, and when it was made."""

    time_ms: int
    decision: Decision


def recorded(lines: Iterable[bytes | str]) -> list[Decided]:
    """Return the decisions of a story."""
    entries = (line for line in read_story(lines) if isinstance(line, Entry))
    return [Decided(e.time_ms, e.decision) for e in entries if e.decision is not None]


def replay(
    lines: Iterable[bytes | str],
    topology: Topology | None = None,
    settings: SchedulerSettings | None = None,
) -> list[Decided]:
    """Show the loads of a story to a new scheduler and return what it decides.

    Parameters
    ----------
    lines
        The story, with its loads.
    topology, settings
        What the new scheduler knows; if None, what the former one did. With other settings one
        sees what they would have changed, as far as the loads would have been the same.

    Raises
    ------
    EngineError
        If the story cannot be read, or does not say whose it is.
    """
    scheduler: Scheduler | None = None
    if topology is not None and settings is not None:
        scheduler = Scheduler(topology, settings)
    decided: list[Decided] = []
    for line in read_story(lines):
        if isinstance(line, Began):
            # A driver that was started again began anew, too.
            scheduler = Scheduler(topology or line.topology, settings or line.settings)
        elif scheduler is None:
            raise EngineError(
                "the scheduler's story has no beginning",
                remedy="pass the topology and the settings, or the whole file",
            )
        elif isinstance(line, Observed):
            made = scheduler.observe(line.loads, line.time_ms)
            decided += [Decided(line.time_ms, decision) for decision in made]
        elif isinstance(line, Answered) and line.failed is not None:
            scheduler.failed(line.stage, line.failed)
        elif isinstance(line, Answered):
            scheduler.switched(line.stage, line.time_ms, line.pause_us, line.paradigm)
    return decided
