"""What has to be true when a simulation is over."""

from collections.abc import Iterator

from floodway.core.errors import CorruptError
from floodway.engine.checkpoint.commits import Commits
from floodway.engine.checkpoint.records import CommitRecord
from floodway.engine.checkpoint.vault import epoch_of
from floodway.plan.stages import Plan
from floodway_lab.simulation.disk import RECORDS
from floodway_lab.simulation.processes import Process
from floodway_lab.simulation.world import World


def problem_of(world: World) -> str | None:
    """Return the first thing that is wrong, or None."""
    try:
        return next((problem for problem in _problems(world) if problem), None)
    except CorruptError as error:
        return f"the checkpoint is damaged: {error.problem}"


def taken_for_sound(world: World) -> str | None:
    """Return a file that has gone bad and from which a driver would go on, if one came now.

    It may say that it cannot, or go back to a record that needs none of those files.
    """
    damaged = world.disk.damaged
    try:
        record = _inspected(world).latest(verify=True) if damaged else None
    except CorruptError:
        return None
    used = [] if record is None else [_name(record), *(ref.name for ref in record.files)]
    wrong = sorted({*used} & {*damaged})
    return f"{wrong[0]} is damaged, and would be taken for sound" if wrong else None


def _problems(world: World) -> Iterator[str | None]:
    yield world.problem
    yield world.outside.problem
    yield world.disk.problem
    yield _processes_left(world)
    yield _wrong_output(world)
    yield _wrong_between(world)
    yield _taken_for_idle(world)
    records = _records(world)
    yield _unfinished(records)
    yield _only_one(world, records)
    yield _superfluous_files(world, records)
    yield _read_twice(world)
    yield _begun_twice(world)


def _processes_left(world: World) -> str | None:
    alive = [process.name for process in world.processes if process.alive]
    return f"still alive: {', '.join(alive)}" if alive else None


def _wrong_output(world: World) -> str | None:
    scenario, outside = world.conditions.scenario, world.outside
    shown = {sink: outside.rows(sink) for sink in scenario.sinks()}
    return scenario.problem(outside.feeds, shown)


def _taken_for_idle(world: World) -> str | None:
    """Return a source that was idle and came back: here none has nothing to give for so long."""
    for driver in world.drivers:
        if driver.coordinator is not None and driver.coordinator.returns:
            return f"{driver.name} took sources for idle: {dict(driver.coordinator.returns)}"
    return None


def _wrong_between(world: World) -> str | None:
    scenario, outside = world.conditions.scenario, world.outside
    return scenario.problem_between({sink: outside.epochs(sink) for sink in scenario.sinks()})


def _records(world: World) -> list[CommitRecord]:
    """Return the newest commit record and the one before it."""
    commits = _inspected(world)
    newest = commits.latest(verify=True)
    former = None if newest is None else commits.before(newest.epoch)
    if former is not None:
        commits.verified(former)
    return [record for record in (newest, former) if record is not None]


def _inspected(world: World) -> Commits:
    return Commits(world.disk.vault(Process(world, "inspector", -1)))


def _name(record: CommitRecord) -> str:
    return f"{RECORDS}{record.epoch:012d}"


def _unfinished(records: list[CommitRecord]) -> str | None:
    if not records:
        return "there is no commit record"
    return None if records[0].finished else "the last commit record is not that of the end"


def _only_one(world: World, records: list[CommitRecord]) -> str | None:
    """Return a problem if there is nothing to go back to, should the last record be damaged."""
    if len(records) == 1 and any(driver.commits > 1 for driver in world.drivers[-1:]):
        return "the record before the last one is gone, or what it needs"
    return None


def _superfluous_files(world: World, records: list[CommitRecord]) -> str | None:
    """Return files that nobody needs, but for those that zombies have written lately."""
    needed = {ref.name for record in records for ref in record.files}
    needed |= {_name(record) for record in records}
    opened = world.disk.locked_at
    last = world.disk.files[_name(records[0])].at
    left = [
        name
        for name, file in world.disk.files.items()
        if epoch_of(name) is not None or name.startswith(RECORDS)
        if name not in needed
        if file.at < opened or (file.at < last and file.run == len(world.drivers) - 1)
    ]
    return f"superfluous files: {', '.join(sorted(left)[:5])}" if left else None


def _read_twice(world: World) -> str | None:
    """Return a record that was read more often than anybody who reads it was lost."""
    if len(world.drivers) > 1:
        return None
    (driver,) = world.drivers
    lost = {stage for _, stage, _ in world.losses} | {stage for _, stage, _ in world.paused}
    affected = _after(driver.plan, lost) | lost
    for (source, shard, number), count in world.outside.polled.items():
        if count > 1 and driver.plan.stage_of(source).name not in affected:
            return f"{source} read {shard}/{number} {count} times; only {sorted(lost)} were lost"
    return None


def _begun_twice(world: World) -> str | None:
    """Return a task that worked again although neither it nor anybody before it was lost."""
    for driver in world.drivers:
        troubled = [*world.losses, *world.paused]
        lost = {stage for run, stage, _ in troubled if run == driver.run}
        affected = _after(driver.plan, lost) | lost
        for process in world.processes:
            worked = [attempt for attempt, records in process.attempts.items() if records]
            if process.run == driver.run and process.stage not in affected and len(worked) > 1:
                return f"{process.name} worked as {worked}, and only {sorted(lost)} were lost"
    return None


def _after(plan: Plan, stages: set[str]) -> set[str]:
    """Return the stages that come after some, at first or second hand."""
    found: set[str] = set()
    waiting = list(stages)
    while waiting:
        stage = waiting.pop()
        fresh = {e.receiver for e in plan.exchanges if e.sender == stage} - found
        found |= fresh
        waiting += fresh
    return found
